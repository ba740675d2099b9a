/* SPDX-License-Identifier: MIT */
/* What a sampler is made of, for its files: sampler.c, sampler-wait.c, verbs.c, order.c, account.c. */
#ifndef SAMPLE_SAMPLER_INSIDE_H
#define SAMPLE_SAMPLER_INSIDE_H

#include <poll.h>
#include <tally/sampler.h>

#include "base/hash.h"
#include "sample/account.h"
#include "sample/cancel.h"
#include "sample/order.h"
#include "sample/plan.h"

/*
 * Words of a read(2). One event: value, enabled, running, id, [lost]. A group: nr, enabled, running,
 * and value, id, [lost] of each member, its leader first.
 */
#define HEAD_WORDS   3
#define MEMBER_WORDS 3

/* A ring and whom it belongs to. */
struct shared_ring {
	struct tally_ring *ring;
	int32_t cpu;
	int fd;         /* the event that mapped it */
	size_t watched; /* which of the descriptors that write to it is polled */
};

struct tally_sampler {
	struct plan plan;
	struct tally_layout *layouts; /* by event */
	uint32_t places_count;        /* how many are open */
	struct tally_place *places;
	int *fds;             /* [place * streams + stream]; -1: it does not count there */
	uint64_t *ids;        /* by the same index */
	uint32_t *place_ring; /* which ring a place writes to */
	bool start_inexact;   /* the process ran while it was attached to */
	bool stopped;         /* disabled: nothing comes any more */
	int cgroup;           /* the descriptor of a cgroup's folder, -1: none */
	uint32_t rings_count, alive;
	struct shared_ring *rings;
	struct pollfd
		*polled; /* by ring; fd -1: all that wrote to it have ended; then that of cancel */
	struct cancel cancel;
	uint64_t *words;       /* room for one read(2) */
	bool ring_refused;     /* the kernel would not map a ring of that size */
	uint64_t *event_ids;   /* those of the 0th event, of the 1st ... */
	uint32_t *event_slots; /* by event: where its ids begin; one more behind the last */
	struct map64 by_id;    /* which index of `ids` has an id, plus 1 */
	struct account account;
	struct order order;
};

static inline size_t sampler_slots(const struct tally_sampler *s)
{
	return (size_t)s->places_count * s->plan.streams_count;
}

static inline struct plan_stream *sampler_stream(const struct tally_sampler *s, size_t slot)
{
	return &s->plan.streams[slot % s->plan.streams_count];
}

/* The slot that has an id; SIZE_MAX: none. */
static inline size_t sampler_slot_of(const struct tally_sampler *s, uint64_t id)
{
	uint32_t found = map64_get(&s->by_id, id);

	return found ? found - 1 : SIZE_MAX;
}

/* The event that a record is of, UINT32_MAX: it carries an id that none has. */
uint32_t sampler_event_of(const struct tally_sampler *s, const void *record, size_t len);

#endif
