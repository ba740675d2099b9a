/* SPDX-License-Identifier: MIT */
/* How far to run before the rest is stepped. */
#ifndef EXACT_TIMER_PLAN_H
#define EXACT_TIMER_PLAN_H

#include <tally/calibration.h>
#include <tally/clock.h>

/* Margins that shrink from `full` to `last` as the target comes nearer, and what arming can do. */
struct plan {
	uint64_t full, last;
	uint64_t least, most; /* periods */
};

struct plan_wish {
	const struct tally_clock_about *clock;
	const struct tally_skids *seen;
	uint64_t margin;      /* the caller's; 0: the clock's */
	bool fixed;           /* as it is, even 0 */
	bool can_go_back;     /* there is a checkpoint, so that LATE only costs time */
	uint32_t late_one_in; /* as in tally_timer_opts; not 0 */
	uint32_t retries;     /* how often it was LATE already */
};

/* For a target that must not be passed. */
struct plan plan_exact(const struct plan_wish *wish);
/* For one that only must not be missed: no margin. */
struct plan plan_at_least(const struct tally_clock_about *clock);

/* The period to arm for with so many ticks to go; 0: step. */
uint64_t plan_period(const struct plan *plan, uint64_t distance);

/* How long an interrupt may take before it is looked after. */
uint32_t plan_watch_ms(const struct tally_clock_about *clock, uint64_t period);

#endif
