/* SPDX-License-Identifier: MIT */
/*
 * Records of a file by time. A FINISHED_ROUND promises that all that follows is newer than the newest
 * record before the FINISHED_ROUND before it; so records are held for two rounds, or to the end of
 * a file that has none. Records without a time (0, or all bits set) come as they are met, as in perf.
 */
#ifndef PROFILE_ROUNDS_H
#define PROFILE_ROUNDS_H

#include <stdbool.h>
#include <tally/reader.h>

#include "base/buf.h"
#include "base/vec.h"

struct held {
	uint64_t time, offset;
	size_t at; /* in the bytes */
	const struct tally_layout *layout;
	uint32_t len, type, event, reserved;
};

/* Zeroed, but for what is borrowed, stands before the first record. */
struct rounds {
	struct tally_reader *reader;
	bool (*wanted)(uint32_t type, void *arg); /* other records are passed over */
	void *arg;
	VEC(struct held) held;
	struct buf bytes;
	size_t next, ready; /* those between are due */
	uint64_t newest, promised;
	bool in_order; /* all that is wanted is known to come by time: nothing is held */
	bool ended;
	int status; /* how the reader ended */
	struct tally_error err;
};

/* As tally_reader_next; -ENOMEM. */
int rounds_next(struct rounds *r, struct tally_reader_record *out, struct tally_error *err);
/* When a record was made; 0: it does not tell. */
uint64_t rounds_time(const struct tally_reader_record *item);
void rounds_done(struct rounds *r);

#endif
