/* SPDX-License-Identifier: MIT */
/*
 * The records of many rings as one stream, in the order of their time. Rings are merged where the
 * records lie: nothing is copied, and what is not to be given yet stays in its ring.
 */
#ifndef SAMPLE_ORDER_H
#define SAMPLE_ORDER_H

#include <tally/sampler.h>

/* How far a ring has been given. */
struct cursor {
	const struct tally_record_header *next; /* the first that has not been given; NULL: none */
	uint64_t time;                          /* of `next` */
	uint64_t start, after; /* where `next` lies; where what is behind it begins */
	uint64_t released;     /* up to where the kernel has the space back */
	uint64_t end;          /* the head of this round */
	uint64_t due;          /* up to there all is given, whatever its time */
	uint64_t marked;       /* what is due next */
};

struct order {
	struct cursor *cursors; /* by ring */
	uint32_t *heap;         /* rings whose next record is due, the oldest first */
	uint32_t heap_count;
	uint32_t given; /* the ring whose record the caller has, UINT32_MAX: none */
	uint64_t bound; /* records up to this time are due */
	uint64_t looked_ns;
	uint64_t marked_ns;
	bool looked;        /* a round was begun at looked_ns */
	bool woken;         /* the round was begun by a watermark */
	bool kept;          /* such a round left something in a ring */
	uint64_t last_time; /* of the newest record that was given */
	uint32_t sample_time,
		tail_time; /* where TIME stands: from a sample's start; from the end */
	struct tally_sampled out;
	struct tally_record record;
};

int order_init(struct order *order, uint32_t rings, const struct tally_layout *layout,
	       struct tally_error *err);
void order_done(struct order *order);

#endif
