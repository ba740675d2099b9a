/* SPDX-License-Identifier: MIT */
/*
 * bench-unwind FILE: unwinds the stack copies of a recording, once cold and then again and again.
 * One line: "cold_ns_a_frame warm_ns_a_frame frames_a_sample samples".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/profiling.h>

#define ROUNDS      20
#define MOST_FRAMES 4096

struct samples {
	struct tally_record *at;
	size_t count, room;
};

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A record that outlives the reader's buffer. */
static int keep(struct samples *s, const struct tally_reader_record *item)
{
	void *bytes = malloc(item->len);

	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		struct tally_record *grown = realloc(s->at, s->room * sizeof(*grown));
		if (!grown)
			return -1;
		s->at = grown;
	}
	if (!bytes)
		return -1;
	memcpy(bytes, item->bytes, item->len);
	if (tally_record_decode(item->layout, bytes, item->len, &s->at[s->count], sizeof(*s->at)) >
	    0)
		s->count++;
	return 0;
}

static int load(const char *path, struct tally_maps *maps, struct samples *samples)
{
	struct tally_reader *reader;
	struct tally_reader_record item;
	struct tally_record rec;
	struct tally_error err;
	int r = 0;

	if (tally_reader_open(&reader, path, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	while (r == 0 && tally_reader_next(reader, &item, NULL) > 0)
		if (item.type == TALLY_RECORD_SAMPLE)
			r = keep(samples, &item);
		else if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) >
			 0)
			tally_maps_push(maps, &rec);
	/* The layouts are not needed any more: records are decoded. */
	tally_reader_close(reader);
	return r;
}

/* The frames of all samples. */
static uint64_t unwind(struct tally_unwinder *unwinder, const struct samples *samples)
{
	static uint64_t addresses[MOST_FRAMES];
	struct tally_unwound how;
	uint64_t frames = 0;

	for (size_t i = 0; i < samples->count; i++)
		if (tally_unwinder_sample(unwinder, &samples->at[i], addresses, MOST_FRAMES, &how) >
		    0)
			frames += how.frames;
	return frames;
}

int main(int argc, char **argv)
{
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	struct samples samples = { 0 };

	if (argc != 2 || tally_maps_new(&maps) < 0 ||
	    tally_unwinder_new(&unwinder, maps, NULL, NULL) < 0) {
		fprintf(stderr, "usage: bench-unwind FILE\n");
		return 2;
	}
	if (load(argv[1], maps, &samples) < 0 || !samples.count)
		return 1;
	double start = cpu_ns();
	uint64_t frames = unwind(unwinder, &samples);
	double cold = cpu_ns() - start;
	start = cpu_ns();
	for (int i = 0; i < ROUNDS; i++)
		unwind(unwinder, &samples);
	double warm = (cpu_ns() - start) / ROUNDS;
	printf("%.1f %.1f %.1f %zu\n", cold / (double)frames, warm / (double)frames,
	       (double)frames / (double)samples.count, samples.count);
	tally_unwinder_free(unwinder);
	tally_maps_free(maps);
	return 0;
}
