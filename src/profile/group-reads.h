/* SPDX-License-Identifier: MIT */
/*
 * Groups whose leader samples for all (modifier S): each sample carries the counts of all members.
 * They only ever grow, so that what happened since the sample before is the difference.
 */
#ifndef PROFILE_GROUP_READS_H
#define PROFILE_GROUP_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"

struct group_reads {
	struct map64 event_of; /* by id: the event's number + 1 */
	struct map64 place;    /* by id and task: index + 1 in `last` */
	VEC(uint64_t) last;
	VEC(bool) per_task; /* by event */
};

/*
 * Adds the next event. per_task: it is inherited, so that those who inherit it have its id too, and
 * each its own count from 0 on (since Linux 6.13, which first allows that). Errors: -ENOMEM.
 */
int group_reads_add(struct group_reads *g, const uint64_t *ids, uint32_t count, bool per_task);

/*
 * What a count that was read with id and task adds to that of the sample before. Returns 1 with the
 * event's number; 0 when no event has the id. Errors: -ENOMEM.
 */
int group_reads_grown(struct group_reads *g, uint64_t id, int32_t tid, uint64_t count,
		      uint32_t *event, uint64_t *grown);

void group_reads_done(struct group_reads *g);

#endif
