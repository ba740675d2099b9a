/* SPDX-License-Identifier: MIT */
/*
 * What a set of regions keeps.
 *
 *	region.c       BEGIN and END, and what a thread has
 *	region-sums.c  sums of threads, put together
 *	region-set.c   starting and stopping, forks
 *	region-ask.c   what the environment asks for
 *	region-dump.c  the output
 *
 * Who may touch what: a thread's struct is written by itself alone, between region_enter() and
 * region_leave(). Its sums may be read by others at any time, under its sequence number. The list
 * of threads, the names and the sums of ended threads are under the state's lock. The state may be
 * touched by a thread that is inside (`busy`) or a visitor (`visitors`) and has then seen the set
 * on: stopping turns it off first and waits for both, so that it is alone afterwards.
 */
#ifndef COUNT_REGION_H
#define COUNT_REGION_H

#include <pthread.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/group.h>
#include <tally/region.h>

#include "base/buf.h"

/* What `*set->alive` says; fork makes it FORKED (MADV_WIPEONFORK). */
enum region_alive {
	REGION_FORKED = 0,
	REGION_ALIVE,
	REGION_RESTARTING
};

/* How long somebody is waited for who should be done in a microsecond: yields, and then sleeps. */
#define REGION_SPINS       100
#define REGION_PATIENCE_MS 1000

/*
 * Values are words: enabled ns, running ns, and a count for each member. A row of sums is calls,
 * failed calls, inclusive values, exclusive values.
 */
#define VALUE_ENABLED 0
#define VALUE_RUNNING 1
#define VALUE_MEMBERS 2
#define ROW_CALLS     0
#define ROW_FAILED    1
#define ROW_VALUES    2

/* Rows are allocated by the chunk, and never move: others may be reading them. */
#define ROWS_A_CHUNK 64
#define CHUNKS       (TALLY_REGION_NAMES / ROWS_A_CHUNK)

struct region_sums {
	uint64_t *chunks[CHUNKS];
};

/* What was asked for; it does not change once the set is on. */
struct region_config {
	struct tally_events *events; /* one group; NULL: none can be counted */
	uint32_t members;
	struct tally_result *blanks; /* by member: label, unit, scale */
	bool json;
	char *output;        /* NULL: standard error */
	struct buf troubles; /* lines about events that are not counted, or not as asked */
};

struct tally_regions_state {
	struct region_config *config;
	pthread_mutex_t lock;
	char *names[TALLY_REGION_NAMES]; /* by number; those below the count never change */
	uint32_t names_count;
	bool stopped;   /* and said what it had to say */
	bool restarted; /* in a forked child, whose number of visitors is its parent's too */
	struct tally_region_thread *threads;
	struct region_sums ended;         /* of threads that ended */
	struct tally_regions_notes notes; /* of threads that ended; `unopened` of all */
	struct tally_error first_error;   /* why a thread could not open its group */
	uint64_t unread;                  /* threads that stopping waited for in vain */
};

struct region_frame {
	uint32_t id;
	bool failed;      /* it could not be read at its beginning */
	uint64_t *start;  /* values at its beginning */
	uint64_t *inside; /* values of the regions in it; behind `start` */
};

struct tally_region_thread {
	struct tally_region_thread *next;
	struct tally_regions *set;
	uint64_t generation; /* of the set, when this was made */
	uint32_t busy;       /* inside BEGIN or END */
	uint32_t sequence;   /* odd while sums are being written */
	struct tally_group *group;
	uint32_t members;
	uint32_t depth;
	uint32_t skipped;  /* open BEGINs that were too deep */
	uint32_t forgiven; /* regions that were open when this process was forked */
	struct tally_count *counts;
	uint64_t *now;
	struct region_frame frames[TALLY_REGION_DEPTH];
	uint64_t *frame_values;
	struct region_sums sums;
	struct tally_regions_notes notes;
};

static inline uint32_t region_width(uint32_t members)
{
	return VALUE_MEMBERS + members;
}

static inline uint32_t region_row_words(uint32_t members)
{
	return ROW_VALUES + 2 * region_width(members);
}

/* region.c: a thread's struct; `lock` is held. NULL: no memory. */
struct tally_region_thread *region_thread_new(struct tally_regions *set);
/* Closes its counters; what is left is memory. */
void region_thread_close(struct tally_region_thread *t);
void region_thread_free(struct tally_region_thread *t);

/* region-sums.c: the row of a region, NULL when there is none yet. */
uint64_t *region_row(const struct region_sums *sums, uint32_t members, uint32_t id);
/* The same; allocated when there is none yet. NULL: no memory. */
uint64_t *region_row_make(struct region_sums *sums, uint32_t members, uint32_t id);
/* Adds all that `t` has to `sums` and `notes`. `ending`: it will not go on. */
void region_take(struct tally_region_thread *t, uint32_t names, struct region_sums *sums,
		 struct tally_regions_notes *notes);
void region_sums_free(struct region_sums *sums);
/* Gives the sums to `fn`; see tally_regions_read(). */
int region_each(const struct tally_regions_state *state, const struct region_sums *sums,
		int (*fn)(const struct tally_region_result *, void *), void *arg);

/* region-set.c: a thread that is not inside may look at the state between these. */
bool region_visit(struct tally_regions *set);
void region_leave_set(struct tally_regions *set);
/* As a visitor: makes the set this process's own after a fork. False: it is off. */
bool region_own(struct tally_regions *set);

/* region-ask.c: what the environment asks for; NULL: nothing, or no memory. */
struct region_config *region_config_read(void);
void region_config_free(struct region_config *config);

/* region-dump.c: writes the sums of all that ended where the environment wants it. */
void region_dump(const struct tally_regions_state *state);

#endif
