/* SPDX-License-Identifier: MIT */
/*
 * The margins of a timer. An interrupt comes later than it was asked for, by the CPU's skid, so it is
 * asked for earlier by a margin, and what is left is stepped. A small margin makes fewer steps and is
 * exceeded more often.
 */
#include "base/bytes.h"
#include "exact/calibration.h"
#include "exact/timer-plan.h"

/* Fewer ticks than these are stepped about as fast as an interrupt is programmed and taken. */
#define LEAST_RUN 6
/* What a margin shrinks by from one stage to the next, and grows by with each retry. */
#define STAGE 8
/* Ahead of a checkpoint a margin may shrink to its 64th without evidence, or to what one in 32
 * exceeds with it: going back costs no more than the steps that are spared. */
#define BOLD_SHARE  64
#define BOLD_ONE_IN 32
/* A watchdog waits so many times as long as the clock's rate says, between these bounds. */
#define WATCH_TIMES   4
#define WATCH_LEAST   20
#define WATCH_MOST    60000
#define WATCH_UNKNOWN 1000
#define MS_PER_SECOND 1000

static struct plan limits(const struct tally_clock_about *clock)
{
	uint64_t most = clock->max_period ? clock->max_period : UINT64_MAX;
	uint64_t least = clock->min_period > LEAST_RUN ? clock->min_period : LEAST_RUN;

	return (struct plan){ .least = least < most ? least : most, .most = most };
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

/* From evidence, where there is enough. A single outlier proves nothing; two raise the margin. */
static uint64_t full_margin(const struct plan_wish *wish)
{
	uint64_t stated = wish->margin ? wish->margin : wish->clock->margin;
	uint64_t learned = tally_skids_margin(wish->seen, wish->late_one_in);

	if (learned && !wish->margin)
		return learned;
	uint64_t seen = skids_bound(wish->seen, 1);
	return seen > stated ? seen : stated;
}

static uint64_t last_margin(const struct plan_wish *wish, uint64_t full)
{
	uint64_t learned = tally_skids_margin(wish->seen, BOLD_ONE_IN);

	if (!wish->can_go_back || wish->retries)
		return full;
	if (learned)
		return learned < full ? learned : full;
	return at_least_one(full / BOLD_SHARE);
}

struct plan plan_exact(const struct plan_wish *wish)
{
	struct plan plan = limits(wish->clock);

	if (wish->fixed) {
		plan.full = plan.last = wish->margin;
		return plan;
	}
	/* The last tick is always stepped to: a clock that reads the target does not tell for how
	 * long it has. */
	plan.full = at_least_one(full_margin(wish));
	for (uint32_t i = 0; i < wish->retries; i++)
		plan.full = plan.full > UINT64_MAX / STAGE ? UINT64_MAX : plan.full * STAGE;
	plan.last = last_margin(wish, plan.full);
	return plan;
}

struct plan plan_at_least(const struct tally_clock_about *clock)
{
	return limits(clock);
}

uint64_t plan_period(const struct plan *plan, uint64_t distance)
{
	uint64_t margin = plan->full;

	while (margin > plan->last && (distance < margin || distance - margin < plan->least)) {
		margin /= STAGE;
		margin = margin > plan->last ? margin : plan->last;
	}
	if (distance < margin || distance - margin < plan->least)
		return 0;
	return distance - margin < plan->most ? distance - margin : plan->most;
}

uint32_t plan_watch_ms(const struct tally_clock_about *clock, uint64_t period)
{
	double ms = (double)period * WATCH_TIMES * MS_PER_SECOND / clock->rate;

	if (!(clock->rate > 0))
		return WATCH_UNKNOWN;
	if (ms < WATCH_LEAST)
		return WATCH_LEAST;
	return ms > WATCH_MOST ? WATCH_MOST : (uint32_t)ms;
}
