/* SPDX-License-Identifier: MIT */
/*
 * When something changed: a list of times, which part time into epochs. What was found out about a
 * process holds for its epoch, so an answer may be kept under (process, epoch) although names and
 * mappings come and go.
 */
#ifndef PROFILE_CHANGES_H
#define PROFILE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed is empty. */
struct changes {
	uint64_t *at;
	size_t count, room;
	uint64_t from, to; /* the epoch that was asked for last; from > to: none */
	uint32_t epoch;
	bool unsorted;
};

/* false: no memory. */
bool changes_add(struct changes *c, uint64_t time);
/* How many changes there were up to and at `time`. */
uint32_t changes_epoch(struct changes *c, uint64_t time);
void changes_done(struct changes *c);

#endif
