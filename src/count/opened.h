/* SPDX-License-Identifier: MIT */
/*
 * Events opened at the places of a target: what a counter (one event) and a group (several) are
 * made of. All of it is allocated when it is opened, so that reading allocates nothing.
 */
#ifndef COUNT_OPENED_H
#define COUNT_OPENED_H

#include <time.h>

#include <tally/count.h>
#include <tally/counter.h>

struct opened {
	uint32_t members;      /* how many events are opened at each place; the first one leads */
	uint32_t places_count; /* how many places are open */
	void *block;           /* holds all the arrays but attrs */
	struct tally_place *places; /* parts of an event at one thread or CPU follow each other */
	uint32_t flags;             /* of all readings, enum tally_count_flags */
	int32_t alone_bytes;        /* of the answer for an event that is read alone */
	bool has_lost;              /* the kernel tells lost samples (6.0) */
	bool shares_time; /* the parts at a thread take turns: their times are not added */
	bool has_cgroup;
	bool singly;              /* members are read one by one */
	struct tally_attr *attrs; /* [part * members + member]: what was asked for and granted */
	int cgroup;               /* with has_cgroup: the descriptor of its folder */
	int *fds;                 /* [place * members + member]; -1: it has no part there */
	uint64_t *ids;            /* the kernel's ids, by the same index; groups only */
	struct tally_count *base; /* what reset made the zero, by the same index */
	struct tally_count *now;  /* one place as it is just being read, by member */
	uint64_t *stretch; /* how long the thread that is being summed was enabled, by member */
	uint64_t *buffer;  /* room for one read(2) at a place */
	uintptr_t opener;  /* the thread pointer of the thread that opened it */
	clockid_t opener_clock;   /* and its CPU clock; see fast_thread_clock() */
	struct fast_pages *pages; /* mapped for fast reads; NULL: none was asked for */
};

/*
 * Opens `members` events at every place of the target, or none. `o` is zeroed by the caller, who calls
 * opened_close() in any case.
 *   opts  as options_read() gives them
 *   held  what holds a process still for several openings, or NULL before the first of them, which
 *         makes it where it is wanted; the caller closes it behind the last.
 * Errors: those of parts_init(), parts_spread(), cgroup_open(), tally_freeze_open(), target_places()
 * and event_open_at(), explained.
 */
int opened_open(struct opened *o, struct tally_event *const *events, uint32_t members,
		const struct tally_target *target, const struct tally_counter_opts *opts,
		struct tally_freeze **held, struct tally_error *err);

/* PERF_EVENT_IOC_ENABLE or _DISABLE on all places and members; the first error, having tried all. */
int opened_ioctl(struct opened *o, unsigned long request);

/* Enables what is disabled, of a control group, without the time that it was not watched. */
int opened_enable_stale(struct opened *o);

/* Reads one place into o->now, as the kernel tells it. */
int opened_fetch(struct opened *o, uint32_t place);

/* The descriptor of a member at a place. -ENOENT: it has no part there; -EINVAL: no such place. */
int opened_fd(const struct opened *o, uint32_t place, uint32_t member);

/* Reads all members, summed over the places. */
int opened_read(struct opened *o, struct tally_count *counts);

/* The same for a single event; `count` is written on success only. */
int opened_read_one(struct opened *o, struct tally_count *count);

/* Reads all members at one place, alone. -EINVAL: there is no such place. */
int opened_read_place(struct opened *o, uint32_t place, struct tally_count *counts);

/* Reads all members, summed over the places of the same thread and CPU as `at`; 0 where none is. */
int opened_read_at(struct opened *o, const struct tally_place *at, struct tally_count *counts);

/* Makes what is counted by now the zero of later reads. */
int opened_reset(struct opened *o);

/* Closes and frees all; takes a half-opened one. */
void opened_close(struct opened *o);

#endif
