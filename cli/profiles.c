/* SPDX-License-Identifier: MIT */
/* Loading recordings for the commands that show them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "profiles.h"
#include "span.h"
#include "term.h"

#define DEFAULT_INPUT "perf.data"

static void keep(struct trouble **list, size_t *count, const char *path, const char *why,
		 uint64_t lookups)
{
	struct trouble *grown = realloc(*list, (*count + 1) * sizeof(**list));

	if (!grown)
		return;
	*list = grown;
	struct trouble *t = &grown[*count];
	*t = (struct trouble){ strdup(path), strdup(why), lookups };
	if (t->path && t->why) {
		++*count;
	} else {
		free(t->path);
		free(t->why);
	}
}

static void keep_trouble(const struct tally_module_info *module, void *arg)
{
	struct loaded *l = arg;

	keep(&l->troubles, &l->trouble_count, module->path, module->trouble, module->lookups);
}

static void keep_broken(const struct tally_unwinder_module *module, void *arg)
{
	struct loaded *l = arg;

	keep(&l->broken, &l->broken_count, module->path,
	     module->trouble ? module->trouble : "its unwind tables say nothing there",
	     module->broken);
}

static int compare_troubles(const void *left, const void *right)
{
	const struct trouble *a = left, *b = right;

	if (a->lookups != b->lookups)
		return a->lookups > b->lookups ? -1 : 1;
	return strcmp(a->path, b->path);
}

int profiles_load(struct loaded *out, struct filters *filters, const char *command)
{
	struct tally_error err;
	struct tally_load_opts opts = {
		.size = sizeof(opts),
		.symfs = filters->symfs,
		.trouble = keep_trouble,
		.arg = out,
		.broken = keep_broken,
	};
	struct span span;
	char health[256];

	*out = (struct loaded){ 0 };
	filters->query.size = sizeof(filters->query);
	if (!span_read(&span, filters->time, command))
		return EXIT_USAGE;
	if (filters->debuginfod)
		opts.symbolizer_flags |= TALLY_SYMBOLIZER_DEBUGINFOD;
	if (filters->inlined)
		opts.flags |= TALLY_LOADER_INLINE;
	/* Lines are looked up where they are shown. */
	if (filters->query.sort && strstr(filters->query.sort, "srcline"))
		opts.flags |= TALLY_LOADER_LINES;
	opts.from = span.from;
	opts.to = span.to;
	opts.relative = span.relative;
	int r = tally_profile_new(&out->profile, &err);
	if (r == 0)
		r = tally_profile_load_file(out->profile,
					    filters->input ? filters->input : DEFAULT_INPUT, &opts,
					    &out->health, health, sizeof(health), &err);
	else
		health[0] = '\0';
	if (r < 0) {
		complain(command, "%s", err.text);
		if (r == -ENOENT && !filters->input)
			hint("'tally record -g -- CMD' makes one, -i names another");
		out->failed = true;
	}
	if (health[0])
		complain(command, "%s", health);
	if (out->trouble_count)
		qsort(out->troubles, out->trouble_count, sizeof(*out->troubles), compare_troubles);
	if (out->broken_count)
		qsort(out->broken, out->broken_count, sizeof(*out->broken), compare_troubles);
	if (r < 0 && out->health.samples)
		hint("shown are the samples that stand before the damage");
	return r < 0 && !out->health.samples ? EXIT_FAILED : EXIT_DONE;
}

static void free_troubles(struct trouble *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(list[i].path);
		free(list[i].why);
	}
	free(list);
}

void profiles_free(struct loaded *loaded)
{
	tally_profile_free(loaded->profile);
	free_troubles(loaded->troubles, loaded->trouble_count);
	free_troubles(loaded->broken, loaded->broken_count);
}

uint64_t profiles_stack_bytes(uint64_t wanted)
{
	const uint64_t step = 1024;
	uint64_t rounded = (wanted + step - 1) / step * step;

	if (!wanted || wanted > LARGEST_STACK)
		return 0;
	return rounded < LARGEST_STACK ? rounded : LARGEST_STACK;
}

void profiles_say_stacks(const struct tally_stacks *s, const char *command, const char *broken)
{
	uint64_t all = s->whole + s->cut + s->broken;

	if (!s->cut && !s->broken)
		return;
	fprintf(stderr, "tally %s: of %" PRIu64 " stacks %" PRIu64 " are whole", command, all,
		s->whole);
	if (s->cut)
		fprintf(stderr, ", %" PRIu64 " are cut where their copy ends", s->cut);
	if (s->broken)
		fprintf(stderr, ", %" PRIu64 " %s", s->broken, broken);
	fputc('\n', stderr);
	uint64_t enough = profiles_stack_bytes(s->wanted_bytes);
	if (s->cut && enough)
		hint("tally record --call-graph dwarf,%" PRIu64 " copies enough", enough);
	else if (s->cut && s->wanted_bytes)
		hint("the longest has %" PRIu64 " bytes, of which a sample holds %d: --call-graph "
		     "dwarf,%d, or fp",
		     s->wanted_bytes, LARGEST_STACK, LARGEST_STACK);
	if (s->cut_beyond)
		hint("%" PRIu64 " of them go on where no copy reaches: " BEYOND, s->cut_beyond);
}
