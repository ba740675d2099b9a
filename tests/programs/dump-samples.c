/* SPDX-License-Identifier: MIT */
/*
 * Prints every sample of a perf.data file: "tid time ip,ip,..." with the context markers left out,
 * as perf script shows them. With -x what else is in it, as NAME=HEX. The tests compare the two.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tally/profiling.h>

static void print_sample(const struct tally_record *rec)
{
	printf("%" PRId32 " %" PRIu64 " ", rec->id.tid, rec->id.time);
	if (!rec->sample.chain_len)
		printf("%" PRIx64, rec->sample.ip);
	const char *comma = "";
	for (uint64_t i = 0; i < rec->sample.chain_len; i++) {
		uint64_t ip = tally_sample_ip(rec, i);
		if (ip >= TALLY_CONTEXT_MAX)
			continue;
		printf("%s%" PRIx64, comma, ip);
		comma = ",";
	}
}

static void print_rest(const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	const struct {
		const char *name;
		uint64_t value;
	} rest[] = {
		{ "addr", s->addr },
		{ "phys", s->phys_addr },
		{ "data-page", s->data_page_size },
		{ "code-page", s->code_page_size },
		{ "weight", s->weight },
		{ "data-src", s->data_src },
		{ "cgroup", s->cgroup },
		{ "period", s->period },
		{ "raw", s->raw_len },
		{ "stack", s->stack_dyn_size },
		{ "counts", s->counts.count },
	};

	for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++)
		printf(" %s=%" PRIx64, rest[i].name, rest[i].value);
}

int main(int argc, char **argv)
{
	struct tally_reader *reader;
	struct tally_reader_record item;
	struct tally_record rec;
	struct tally_error err;
	int r;

	bool all = argc == 3 && !strcmp(argv[1], "-x");
	if (argc != 2 + all) {
		fprintf(stderr, "usage: dump-samples [-x] FILE\n");
		return 2;
	}
	if (tally_reader_open(&reader, argv[1 + all], NULL, &err) < 0) {
		fprintf(stderr, "dump-samples: %s\n", err.text);
		return 1;
	}
	while ((r = tally_reader_next(reader, &item, &err)) > 0) {
		if (item.type != TALLY_RECORD_SAMPLE ||
		    tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) <= 0)
			continue;
		print_sample(&rec);
		if (all)
			print_rest(&rec);
		putchar('\n');
	}
	if (r < 0)
		fprintf(stderr, "dump-samples: %s\n", err.text);
	else if (tally_reader_health(reader))
		fprintf(stderr, "dump-samples: %s\n", tally_reader_health(reader));
	tally_reader_close(reader);
	return r < 0;
}
