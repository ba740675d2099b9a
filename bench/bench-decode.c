/* SPDX-License-Identifier: MIT */
/*
 * Decoding, streamed from a file: every field of every sample and every address of its callchain.
 *
 *	bench-decode make FILE SAMPLES    samples of 5 to 20 frames, as of a busy server
 *	bench-decode read FILE            prints a sum of all that it decoded, and how many samples
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/profiling.h>

#define THREADS 4
#define ROUND   10000

static struct tally_error err;

static void must(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench-decode: %s\n", err.text);
	exit(1);
}

/* Knuth's MMIX: the same file on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void put_sample(struct tally_writer *writer, const struct tally_layout *layout, uint64_t i,
		       uint64_t *state)
{
	uint64_t chain[21] = { TALLY_CONTEXT_USER }, count = 6 + next_random(state) % 16;
	struct tally_record rec = {
		.type = TALLY_RECORD_SAMPLE,
		.misc = TALLY_MISC_USER,
		.id = { .pid = 100, .tid = 100 + (int32_t)(i % THREADS), .cpu = (int32_t)(i % 2) },
		.sample = { .period = 1000000, .chain = chain, .chain_len = count },
	};
	char bytes[512];

	for (uint64_t f = 1; f < count; f++)
		chain[f] = 0x400000 + next_random(state) % 0x100000;
	rec.id.time = 1000000000 + 250000 * i;
	rec.sample.ip = chain[1];
	int len = tally_record_encode(layout, &rec, bytes, sizeof(bytes));
	must(len);
	struct iovec span = { bytes, (size_t)len };
	must(tally_writer_append(writer, &span, 1));
}

static void make(const char *path, uint64_t samples)
{
	struct tally_writer *writer;
	struct tally_layout layout;
	struct tally_attr attr;
	uint64_t state = 1, id = 1;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
			   TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CALLCHAIN;
	attr.sample_period = 1000000;
	attr.flags = TALLY_ATTR_SAMPLE_ID_ALL;
	tally_layout_init(&layout, &attr, false);
	must(tally_writer_open(&writer, path, TALLY_OPTS(writer, .flags = TALLY_WRITER_NO_OLD),
			       &err));
	must(tally_writer_event(writer, "cpu-clock", &attr, &id, 1, &err));
	must(tally_writer_begin(writer, &err));
	for (uint64_t i = 0; i < samples; i++) {
		put_sample(writer, &layout, i, &state);
		if (i % ROUND == ROUND - 1)
			must(tally_writer_round(writer, &err));
	}
	must(tally_writer_describe_machine(writer, NULL));
	must(tally_writer_finish(writer, &err));
	tally_writer_close(writer);
}

/* All that a sample has, so that nothing is left undecoded. */
static uint64_t sum_of(const struct tally_record *rec)
{
	uint64_t sum = rec->sample.ip + rec->id.time + rec->sample.period + (uint64_t)rec->id.pid +
		       (uint64_t)rec->id.tid + (uint64_t)rec->id.cpu;
	const unsigned char *chain = rec->sample.chain;

	for (uint64_t i = 0; i < rec->sample.chain_len; i++, chain += sizeof(uint64_t)) {
		uint64_t ip;
		memcpy(&ip, chain, sizeof(ip)); /* the file is of this machine's byte order */
		sum += ip;
	}
	return sum;
}

static void read_all(const char *path)
{
	struct tally_reader_record item;
	struct tally_reader *reader;
	struct tally_record rec;
	uint64_t samples = 0, sum = 0;
	int r;

	must(tally_reader_open(&reader, path, NULL, &err));
	while ((r = tally_reader_next(reader, &item, &err)) > 0) {
		if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) < 0 ||
		    rec.type != TALLY_RECORD_SAMPLE)
			continue;
		samples++;
		sum += sum_of(&rec);
	}
	must(r);
	tally_reader_close(reader);
	printf("%" PRIu64 " samples, sum %" PRIx64 "\n", samples, sum);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "make"))
		make(argv[2], strtoull(argv[3], NULL, 10));
	else if (argc == 3 && !strcmp(argv[1], "read"))
		read_all(argv[2]);
	else
		return fprintf(stderr, "usage: bench-decode make FILE SAMPLES | read FILE\n"), 2;
	return 0;
}
