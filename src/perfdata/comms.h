/* SPDX-License-Identifier: MIT */
/* How each thread of a recording was called, and when, from its COMM and FORK records. */
#ifndef PERFDATA_COMMS_H
#define PERFDATA_COMMS_H

#include <tally/record.h>

#include "base/hash.h"
#include "base/vec.h"

struct comms {
	struct strings names;
	VEC(struct comms_change {
		uint64_t time;
		int32_t tid;
		int32_t parent; /* of a FORK; -1: a COMM */
		uint32_t name;  /* of a COMM */
		uint32_t order; /* as they came */
	})
	changes;
	bool sorted;
};

/* Takes COMM and FORK records, in any order; ignores others. -ENOMEM. */
int comms_see(struct comms *c, const struct tally_record *rec);

/* The name of a thread at a time; NULL: unknown. Valid until the next record is taken. */
const char *comms_find(struct comms *c, int32_t tid, uint64_t time);

void comms_done(struct comms *c);

#endif
