/* SPDX-License-Identifier: MIT */
/* Which fields of a sample are printed: perf script's -F, for each kind of event. */
#ifndef PROFILE_FIELDS_H
#define PROFILE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/error.h>
#include <tally/reader.h>

enum field {
	FIELD_COMM = 1u << 0,
	FIELD_TID = 1u << 1,
	FIELD_PID = 1u << 2,
	FIELD_MISC = 1u << 3,
	FIELD_TIME = 1u << 4,
	FIELD_CPU = 1u << 5,
	FIELD_PERIOD = 1u << 6,
	FIELD_EVENT = 1u << 7,
	FIELD_TRACE = 1u << 8,
	FIELD_ADDR = 1u << 9,
	FIELD_DATA_SRC = 1u << 10,
	FIELD_WEIGHT = 1u << 11,
	FIELD_INS_LAT = 1u << 12,
	FIELD_IP = 1u << 13,
	FIELD_SYM = 1u << 14,
	FIELD_SYMOFF = 1u << 15,
	FIELD_DSO = 1u << 16,
	FIELD_IREGS = 1u << 17,
	FIELD_UREGS = 1u << 18,
	FIELD_BRSTACK = 1u << 19,
	FIELD_BRSTACKSYM = 1u << 20,
	FIELD_BRSTACKOFF = 1u << 21,
	FIELD_BPF_OUTPUT = 1u << 22,
	FIELD_PHYS_ADDR = 1u << 23,
	FIELD_DATA_PAGE_SIZE = 1u << 24,
	FIELD_CODE_PAGE_SIZE = 1u << 25,
	FIELD_SRCLINE = 1u << 26,
};

/* Kinds of events that have fields of their own, as perf parts them. */
enum fields_kind {
	FIELDS_HW,
	FIELDS_SW,
	FIELDS_TRACE,
	FIELDS_CACHE,
	FIELDS_RAW,
	FIELDS_BREAKPOINT,
	FIELDS_OTHER, /* of PMUs */
	FIELDS_KINDS
};

struct fields {
	uint32_t shown[FIELDS_KINDS];
	uint32_t asked[FIELDS_KINDS]; /* of these: by name, so that a lack of them is an error */
	bool set[FIELDS_KINDS];       /* somebody chose */
};

enum fields_kind fields_kind(const struct tally_attr *attr);

/* perf's defaults. */
void fields_init(struct fields *f);

/*
 * Applies one -F: "[KIND:]FIELD,..." replaces, "+FIELD,-FIELD" changes. What a kind cannot have is
 * left out, unless that kind was named. Errors: -EINVAL, -EOPNOTSUPP for fields of perf that are
 * not to be had here.
 */
int fields_parse(struct fields *f, const char *text, struct tally_error *err);

/*
 * Takes away what the samples of a file do not carry; as in perf the first event of a kind decides
 * for all of it. `chains`: callchains are shown, which brings addresses to tracepoints that have
 * them. -EINVAL: it was asked for by name, and no event has it.
 */
int fields_settle(struct fields *f, const struct tally_reader *reader, bool chains,
		  struct tally_error *err);

#endif
