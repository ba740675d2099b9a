/* SPDX-License-Identifier: MIT */
/*
 * The frame of programs that unwind the samples of a recording, each with another unwinder, and
 * print "tid time address,address,..." for each, innermost first. So their answers can be compared.
 */
#ifndef PROGRAMS_UNWINDING_H
#define PROGRAMS_UNWINDING_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/profiling.h>

#define MOST_FRAMES 4096

/* Numbers of the x86-64 registers in the kernel's perf_regs.h, by their DWARF numbers. */
static const unsigned char perf_bits[17] __attribute__((unused)) = {
	0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8,
};

/* A word from the copy of the stack in a sample. */
static inline bool stack_word(const struct tally_record *rec, uint64_t address, uint64_t *out)
{
	const struct tally_record_sample *s = &rec->sample;
	uint64_t start = 0;

	tally_regs_value(rec, &s->regs_user, perf_bits[7], &start);
	if (address < start || s->stack_dyn_size < sizeof(*out) ||
	    address - start > s->stack_dyn_size - sizeof(*out))
		return false;
	memcpy(out, (const char *)s->stack + (address - start), sizeof(*out));
	return true;
}

static inline bool has_stack(const struct tally_record *rec)
{
	return rec->type == TALLY_RECORD_SAMPLE && rec->sample.regs_user.abi && rec->sample.stack;
}

/* Calls `take` for every record: twice, first for those of mappings and then for samples. */
static inline int for_records(const char *path,
			      void (*take)(void *arg, const struct tally_record *rec), void *arg)
{
	struct tally_reader *reader;
	struct tally_reader_record item;
	struct tally_record rec;
	struct tally_error err;

	if (tally_reader_open(&reader, path, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int pass = 0; pass < 2; pass++) {
		while (tally_reader_next(reader, &item, NULL) > 0)
			if ((item.type == TALLY_RECORD_SAMPLE) == pass &&
			    tally_record_decode(item.layout, item.bytes, item.len, &rec,
						sizeof(rec)) > 0)
				take(arg, &rec);
		if (tally_reader_rewind(reader, NULL) < 0)
			break;
	}
	tally_reader_close(reader);
	return 0;
}

static inline void print_frames(const struct tally_record *rec, const uint64_t *frames,
				size_t count, const char *end)
{
	printf("%" PRId32 " %" PRIu64 " ", rec->id.tid, rec->id.time);
	for (size_t i = 0; i < count; i++)
		printf("%s%" PRIx64, i ? "," : "", frames[i]);
	printf(" %s\n", end);
}

#endif
