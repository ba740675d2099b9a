/* SPDX-License-Identifier: MIT */
/*
 * Prints the stack of each thread of a core file: function, file and line, with inlined calls.
 *
 *	cc core-stacks.c $(pkg-config --cflags --libs libtally-profile)
 *	./a.out core
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/profiling.h>

#define MOST_FRAMES 256

struct reader {
	struct tally_core *core;
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	struct tally_symbolizer *symbolizer;
};

static int open_all(struct reader *r, const char *path, struct tally_error *err)
{
	int ret = tally_core_open(&r->core, path, err);

	if (ret == 0)
		ret = tally_maps_new(&r->maps);
	if (ret == 0)
		ret = tally_core_map(r->core, r->maps);
	if (ret == 0)
		ret = tally_unwinder_new(
			&r->unwinder, r->maps,
			TALLY_OPTS(unwinder, .machine = tally_core_info(r->core)->machine), err);
	return ret == 0 ? tally_symbolizer_new(&r->symbolizer, r->maps, NULL, err) : ret;
}

static void close_all(struct reader *r)
{
	tally_symbolizer_free(r->symbolizer);
	tally_unwinder_free(r->unwinder);
	tally_maps_free(r->maps);
	tally_core_close(r->core);
}

static void print_frame(uint64_t address, const struct tally_symbolized *at)
{
	for (uint32_t i = 0; i < at->source_count; i++) {
		const struct tally_source *s = &at->sources[i];
		printf("  %016" PRIx64 " %s", address, s->function ? s->function : "[unknown]");
		if (s->file)
			printf(" at %s:%" PRIu32 "\n", s->file, s->line);
		else
			printf(" in %s\n", at->frame.path);
	}
}

/* A return address is named by the call before it; what a signal interrupted stands where it is. */
static uint64_t call_before(struct reader *r, int32_t pid, const uint64_t *addresses, uint32_t i)
{
	if (!i || tally_unwinder_is_signal(r->unwinder, pid, UINT64_MAX, addresses[i]) > 0)
		return 0;
	return tally_unwinder_is_signal(r->unwinder, pid, UINT64_MAX, addresses[i - 1]) <= 0;
}

static int print_frames(struct reader *r, int32_t pid, const uint64_t *addresses, uint32_t count)
{
	static struct tally_symbolizer_query queries[MOST_FRAMES];
	static struct tally_symbolized names[MOST_FRAMES];

	for (uint32_t i = 0; i < count; i++)
		queries[i] = (struct tally_symbolizer_query){
			.pid = pid,
			.mode = TALLY_MODE_USER,
			.time = UINT64_MAX,
			.address = addresses[i] - call_before(r, pid, addresses, i),
		};
	int ret = tally_symbolizer_lines(r->symbolizer, queries, count, names);
	for (uint32_t i = 0; i < count && ret == 0; i++)
		print_frame(addresses[i], &names[i]);
	return ret;
}

static int print_thread(struct reader *r, const struct tally_core_thread *t)
{
	uint64_t addresses[MOST_FRAMES];
	struct tally_unwound how;
	int ret = tally_unwinder_walk(r->unwinder, &t->start, addresses, MOST_FRAMES, &how);

	printf("thread %" PRId32 ":\n", t->tid);
	if (ret == 0)
		ret = print_frames(r, t->start.pid, addresses, how.frames);
	if (ret == 0 && how.end != TALLY_UNWIND_WHOLE)
		puts("  ... the stack goes on, but nothing tells how");
	return ret;
}

int main(int argc, char **argv)
{
	struct tally_core_thread thread;
	struct tally_error err = { .text = "no memory" };
	struct reader r = { 0 };

	if (argc != 2)
		return fprintf(stderr, "usage: %s CORE\n", argv[0]), 2;
	int ret = open_all(&r, argv[1], &err);
	if (ret == 0)
		printf("process %" PRId32 " (%s), signal %" PRIu32 "\n",
		       tally_core_info(r.core)->pid, tally_core_info(r.core)->comm,
		       tally_core_info(r.core)->signal);
	for (uint32_t i = 0; ret == 0 && i < tally_core_info(r.core)->threads; i++) {
		tally_core_thread(r.core, i, &thread);
		ret = print_thread(&r, &thread);
	}
	if (ret < 0)
		fprintf(stderr, "%s\n", err.text);
	close_all(&r);
	return ret < 0;
}
