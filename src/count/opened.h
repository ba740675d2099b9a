/* SPDX-License-Identifier: MIT */
/*
 * Events opened at the places of a target: what a counter (one event) and a group (several) are
 * made of. All of it is allocated when it is opened, so that reading allocates nothing.
 */
#ifndef COUNT_OPENED_H
#define COUNT_OPENED_H

#include <tally/count.h>
#include <tally/counter.h>

struct opened {
	uint32_t members;      /* how many events are opened at each place; the first one leads */
	uint32_t places_count; /* how many places are open */
	void *block;           /* holds all the arrays */
	struct tally_place *places;
	bool has_lost;            /* the kernel tells lost samples (6.0) */
	int *fds;                 /* [place * members + member] */
	uint64_t *ids;            /* the kernel's ids, by the same index; groups only */
	struct tally_count *base; /* what reset made the zero, by the same index */
	struct tally_count *now;  /* one place as it is just being read, by member */
	uint64_t *buffer;         /* room for one read(2) at a place */
	uintptr_t opener;         /* the thread pointer of the thread that opened it */
	struct fast_pages *pages; /* mapped for fast reads; NULL: none was asked for */
};

/*
 * Opens `members` events at every place of the target, or none. `o` is zeroed by the caller.
 * Errors: those of target_places() and event_open(), explained; opts_read()'s.
 */
int opened_open(struct opened *o, struct tally_event *const *events, uint32_t members,
		const struct tally_target *target, const struct tally_counter_opts *opts,
		struct tally_error *err);

/* PERF_EVENT_IOC_ENABLE or _DISABLE on all places and members; the first error, having tried all. */
int opened_ioctl(struct opened *o, unsigned long request);

/* Reads all members, summed over the places. */
int opened_read(struct opened *o, struct tally_count *counts);

/* The same for a single event; `count` is written on success only. */
int opened_read_one(struct opened *o, struct tally_count *count);

/* Makes what is counted by now the zero of later reads. */
int opened_reset(struct opened *o);

/* Closes and frees all; takes a half-opened one. */
void opened_close(struct opened *o);

#endif
