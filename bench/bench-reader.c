/* SPDX-License-Identifier: MIT */
/*
 * For bench-reader.py: makes a recording through the writer, or reads one by time.
 *
 *	bench-reader make FILE MEGABYTES
 *	bench-reader read FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/profiling.h>

enum {
	CPUS = 4,
	DEPTH = 12,
	ROUND = 1 << 20 /* bytes, as a recorder's rings give */
};

static int fail(const struct tally_error *err)
{
	fprintf(stderr, "bench-reader: %s\n", err->text);
	return 1;
}

/* SAMPLE {ip, tid, time, cpu, period, callchain}. */
struct sample {
	struct tally_record_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period, depth, chain[DEPTH];
};

/* A round: what each CPU sampled, one after the other. */
static size_t fill_round(struct sample *samples, size_t count, uint64_t *now)
{
	uint64_t each = count / CPUS, n = 0;

	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		uint64_t time = *now + cpu;
		for (uint64_t i = 0; i < each; i++, n++, time += 1000 + i % 7)
			samples[n] = (struct sample){
				.header = { TALLY_RECORD_SAMPLE, TALLY_MISC_USER,
					    sizeof(*samples) },
				.ip = 0x401000 + i % 4096,
				.pid = 100,
				.tid = 100 + cpu,
				.time = time,
				.cpu = cpu,
				.period = 1000000,
				.depth = DEPTH,
			};
	}
	*now += each * 1003;
	return n * sizeof(*samples);
}

static int make(const char *path, uint64_t bytes)
{
	struct tally_writer *w = NULL;
	struct tally_error err;
	struct tally_attr attr;
	const uint64_t id = 1;
	const size_t count = ROUND / sizeof(struct sample);
	struct sample *samples = calloc(count, sizeof(*samples));
	uint64_t now = 1000000;
	int r;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	attr.sample_period = 1000000;
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
			   TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CALLCHAIN;
	r = tally_writer_open(&w, path, TALLY_OPTS(writer, .flags = TALLY_WRITER_NO_OLD), &err);
	if (r == 0)
		r = tally_writer_event(w, "cpu-clock", &attr, &id, 1, &err);
	if (r == 0)
		r = tally_writer_begin(w, &err);
	while (r == 0 && samples && tally_writer_size(w) < bytes) {
		struct iovec span = { samples, fill_round(samples, count, &now) };
		tally_writer_append(w, &span, 1);
		r = tally_writer_round(w, &err);
	}
	if (r == 0)
		tally_writer_describe_machine(w, "");
	if (r == 0)
		r = tally_writer_finish(w, &err);
	tally_writer_close(w);
	free(samples);
	return r < 0 ? fail(&err) : 0;
}

/* Decodes all of them and sees that none comes before its time. */
static int read_by_time(const char *path)
{
	struct tally_reader *r;
	struct tally_reader_record item;
	struct tally_record rec;
	struct tally_error err;
	uint64_t samples = 0, last = 0, late = 0;
	int ret = tally_reader_open(&r, path, TALLY_OPTS(reader, .flags = TALLY_READER_TIME_ORDER),
				    &err);

	if (ret < 0)
		return fail(&err);
	while ((ret = tally_reader_next(r, &item, &err)) > 0) {
		if (item.type != TALLY_RECORD_SAMPLE ||
		    tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) < 0)
			continue;
		samples++;
		late += rec.id.time < last;
		last = rec.id.time;
	}
	tally_reader_close(r);
	printf("%" PRIu64 " samples, %" PRIu64 " late\n", samples, late);
	return ret < 0 ? fail(&err) : late != 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "make"))
		return make(argv[2], strtoull(argv[3], NULL, 10) << 20);
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_by_time(argv[2]);
	fprintf(stderr, "usage: bench-reader make FILE MEGABYTES | read FILE\n");
	return 2;
}
