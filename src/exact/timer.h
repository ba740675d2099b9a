/* SPDX-License-Identifier: MIT */
/*
 * A timer, inside: timer.c has requests, outcomes and what is told; timer-next.c finds out where the
 * thread is and what to do; timer-plan.c has the margins.
 */
#ifndef EXACT_TIMER_H
#define EXACT_TIMER_H

#include <tally/timer.h>

#include "exact/timer-plan.h"

enum checkpoint {
	CHECKPOINT_NONE, /* may be asked for */
	CHECKPOINT_TAKEN,
	CHECKPOINT_REFUSED,
};

struct tally_timer {
	struct tally_clock *clock;
	const struct tally_clock_about *about;
	struct tally_timer_opts opts;
	struct tally_timer_stats stats;
	struct tally_timer_outcome outcome;
	struct tally_clock_value now; /* as it was last read */

	/* The request. */
	bool open;
	uint32_t kind, flags;
	uint64_t ticks, instructions, address;
	struct tally_tracee_regs wanted, regs; /* POINT's; the thread's, of ADDRESS and POINT */
	struct plan plan;
	uint32_t what;  /* the last action */
	uint32_t asked; /* TAKE or GO_BACK, until it is answered */

	/* What is known of where the thread is. */
	uint64_t stepped; /* instructions since the clock was last looked at */
	/*
	 * Why it may have gone unseen through the place where the clock first read `ticks`; NULL: it has
	 * not.
	 */
	const char *gap;
	bool there; /* INSTRUCTIONS, WITHIN: it has been at that place, `done` steps ago */
	uint64_t done;

	/* The interrupt. */
	bool enabled; /* the backend may still have one ahead */
	bool armed;   /* it is for this request, when the clock reads `due` */
	uint32_t epoch;
	uint64_t due;
	bool rang, watched; /* since the clock was last looked at: it came; the watchdog looked */

	/* Steps against what they count, TALLY_CLOCK_FOLLOWS_STEPS. */
	bool checks;
	uint64_t expected;
	uint32_t checks_epoch;
	int stepped_error; /* of telling the clock */
	bool untold;       /* a step executed what could not be told */

	/* The checkpoint. */
	enum checkpoint checkpoint;
	uint64_t checkpoint_ticks;
	struct tally_tracee_regs checkpoint_regs;
	bool returned; /* just now */
	bool withheld; /* a stop behind the point was not told, since it may be undone: outcome.stop */
	uint32_t retries;
};

/* Reasons for a gap. */
extern const char timer_was_behind[], timer_ran_on[], timer_leapt[];

/* Ends the request. `why` may be NULL. */
void timer_finish(struct tally_timer *timer, enum tally_outcome kind, const char *why);
/* Tells the caller of `outcome.stop`. */
void timer_tell(struct tally_timer *timer);
/* Whether a wider margin could have kept it from being late, and still can. */
bool timer_can_go_back(const struct tally_timer *timer);
/* Anew from what has been seen by now. */
void timer_make_plan(struct tally_timer *timer);

#endif
