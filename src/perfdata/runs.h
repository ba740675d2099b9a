/* SPDX-License-Identifier: MIT */
/* Sorted runs of records in temporary files, merged as they are taken: what does not fit memory. */
#ifndef PERFDATA_RUNS_H
#define PERFDATA_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/error.h>

#include "base/vec.h"

/* A record that waits for its turn; its bytes follow. */
struct waiting {
	uint64_t time;
	uint64_t offset; /* where it stood in the recording */
	uint32_t len, type, event, part;
};

/* So many runs of one level become one of the next: memory stays the same for any number. */
#define RUNS_FAN_IN 32
#define RUNS_LEVELS 5

struct run {
	uint32_t level;
	uint64_t age;     /* those of older runs come first among equal times */
	uint64_t at, end; /* what is left of it in the level's file, behind the buffer */
	uint8_t *buf;
	size_t room, have, pos;
};

struct runs {
	const char *folder; /* for temporary files */
	struct run_level {
		int fd_plus_1;
		uint64_t size;
		uint32_t count; /* of runs that are not used up */
	} levels[RUNS_LEVELS];
	VEC(struct run *) heap; /* the earliest on top */
	uint64_t ages;
	struct run *writing; /* the one that is written; its buffer collects */
};

/* Begins a run. -ENOMEM, or of making a file. */
int runs_begin(struct runs *r, struct tally_error *err);
/* Appends to it, in order. Of writing a file. */
int runs_append(struct runs *r, const struct waiting *head, const void *bytes,
		struct tally_error *err);
/* Ends it; where there are too many runs, some become one. */
int runs_end(struct runs *r, struct tally_error *err);

/* The earliest record: its head; NULL when there is none. */
const struct waiting *runs_first(const struct runs *r);
const uint8_t *runs_first_bytes(const struct runs *r);
/* Drops it: its bytes are gone. Of reading a file. */
int runs_drop(struct runs *r, struct tally_error *err);

void runs_done(struct runs *r);

#endif
