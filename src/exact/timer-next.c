/* SPDX-License-Identifier: MIT */
/*
 * What to do with a stopped thread: the clock tells how far it is, what it did since tells whether that
 * is known exactly, and the plan tells how to go on.
 *
 * The one rule for REACHED: the clock was seen below the target, and since then the thread has executed
 * one instruction, or none; or registers and clock are those of a point. So no fault of an interrupt
 * can lead to a wrong place: it only decides when the clock is looked at.
 */
#include <errno.h>

#include "base/bytes.h"
#include "exact/calibration.h"
#include "exact/clock.h"
#include "exact/point.h"
#include "exact/timer.h"

enum verdict {
	AHEAD, /* the target is yet to come */
	REACHED,
	LATE,
	BROKEN, /* the clock is */
};

struct look {
	enum verdict verdict;
	const char *why;
};

static const struct look ahead = { AHEAD, NULL };
static const struct look reached = { REACHED, NULL };
static const struct look late_tick = { LATE, "the next tick came first" };
static const struct look late_point = { LATE, "the registers were never these at this tick" };
static const struct look untold = { BROKEN, "a step executed what could not be told" };

static struct look late(const struct tally_timer *timer)
{
	return (struct look){ LATE, timer->gap ? timer->gap : timer_leapt };
}

/* Where the thread is to the place where the clock first reads the target. */
static struct look look_tick(struct tally_timer *timer)
{
	if (timer->now.ticks < timer->ticks)
		return ahead;
	if (timer->now.ticks > timer->ticks || timer->gap)
		return late(timer);
	return reached;
}

static struct look look_steps(struct tally_timer *timer)
{
	if (!timer->there) {
		struct look tick = look_tick(timer);
		if (tick.verdict != REACHED)
			return tick;
		timer->there = true;
	}
	if (timer->untold)
		return untold;
	if (timer->kind == TALLY_TIMER_WITHIN && timer->now.ticks > timer->ticks)
		return late_tick;
	if (timer->done > timer->instructions)
		return late(timer);
	return timer->done == timer->instructions ? reached : ahead;
}

static struct look look_address(struct tally_timer *timer)
{
	if (timer->now.ticks < timer->ticks)
		return ahead;
	if ((timer->flags & TALLY_TIMER_SAME_TICK) && timer->now.ticks > timer->ticks)
		return timer->gap ? late(timer) : late_tick;
	if (timer->gap)
		return late(timer);
	return point_pc(&timer->regs) == timer->address ? reached : ahead;
}

static struct look look_point(struct tally_timer *timer)
{
	if (timer->now.ticks < timer->ticks)
		return ahead;
	if (timer->now.ticks > timer->ticks)
		return timer->gap ? late(timer) : late_point;
	return point_regs_equal(&timer->regs, &timer->wanted) ? reached : ahead;
}

static struct look look_at_least(struct tally_timer *timer)
{
	return timer->now.ticks < timer->ticks ? ahead : reached;
}

static struct look look(struct tally_timer *timer)
{
	static struct look (*const by_kind[])(struct tally_timer *) = {
		[TALLY_TIMER_AT_LEAST] = look_at_least,  [TALLY_TIMER_EXACTLY] = look_tick,
		[TALLY_TIMER_INSTRUCTIONS] = look_steps, [TALLY_TIMER_WITHIN] = look_steps,
		[TALLY_TIMER_ADDRESS] = look_address,    [TALLY_TIMER_POINT] = look_point,
	};

	/* More than one instruction at once may have passed the place unseen. */
	if (timer->stepped > 1 && !timer->gap)
		timer->gap = timer_leapt;
	timer->stepped = 0;
	struct look l = by_kind[timer->kind](timer);
	if (timer->now.ticks < timer->ticks) {
		timer->gap = NULL;
		timer->untold = false;
	}
	return l;
}

/* An interrupt that came, or that the watchdog missed. */
static void settle_interrupt(struct tally_timer *timer)
{
	bool due = timer->armed && timer->now.ticks >= timer->due &&
		   timer->epoch == clock_epoch(timer->clock);

	if (timer->rang && due) {
		uint64_t skid = timer->now.ticks - timer->due;
		timer->stats.fired++;
		timer->enabled = false;
		skids_add(&timer->stats.skids, skid);
		if (timer->opts.calibration)
			tally_calibration_add(timer->opts.calibration, skid);
		timer_make_plan(timer);
	} else if (timer->rang && timer->armed) {
		timer->stats.early++;
	} else if (timer->rang) {
		timer->stats.unasked++;
	} else if (timer->watched && due) {
		timer->stats.lost++;
	}
	/* One that was early may have been the one, so that none would come any more. */
	if (timer->rang || due)
		timer->armed = false;
	timer->rang = timer->watched = false;
}

/* NULL, or what is wrong with the clock. */
static const char *read_clock(struct tally_timer *timer)
{
	uint64_t before = timer->now.ticks;
	uint32_t epoch = clock_epoch(timer->clock);
	bool checks = timer->checks && timer->checks_epoch == epoch;

	tally_clock_read(timer->clock, &timer->now);
	if (!timer->now.validity && timer->stepped_error)
		timer->now = (struct tally_clock_value){ .validity = TALLY_CLOCK_FAILED,
							 .error = timer->stepped_error };
	if (timer->now.validity)
		return tally_clock_validity_name(timer->now.validity);
	if (checks && timer->now.ticks - before != timer->expected)
		return "a step counted other than what it executed";
	if (timer->returned && timer->now.ticks != timer->checkpoint_ticks)
		return "it does not read what it read at the checkpoint";
	timer->expected = 0;
	timer->checks = false;
	timer->checks_epoch = epoch;
	return NULL;
}

/* The thread is back at the checkpoint. */
static void start_again(struct tally_timer *timer)
{
	timer->returned = timer->withheld = timer->there = false;
	timer->untold = timer->armed = false;
	timer->gap = NULL;
	timer->done = timer->stepped = 0;
	timer->regs = timer->checkpoint_regs;
	timer->retries++;
	timer->stats.retries++;
	timer_make_plan(timer);
}

static void disarm(struct tally_timer *timer)
{
	/* That it fails is found out when the clock is read: an interrupt more does no harm. */
	if (timer->enabled)
		tally_clock_disarm(timer->clock);
	timer->enabled = timer->armed = false;
}

/* Arms the clock, unless it is for this request already. False: it cannot be; the request ends. */
static bool arm(struct tally_timer *timer, uint64_t period)
{
	uint32_t epoch = clock_epoch(timer->clock);

	if (timer->armed && timer->epoch == epoch && timer->now.ticks < timer->due)
		return true;
	int r = tally_clock_arm(timer->clock, period);
	if (r < 0) {
		timer->now = (struct tally_clock_value){ .validity = TALLY_CLOCK_FAILED,
							 .error = r };
		timer_finish(timer, TALLY_OUTCOME_CLOCK_INVALID, "it could not be armed");
		return false;
	}
	timer->armed = timer->enabled = true;
	timer->epoch = epoch;
	timer->due = timer->now.ticks + period;
	timer->stats.programmed++;
	return true;
}

static uint32_t watch_ms(const struct tally_timer *timer)
{
	uint64_t period = timer->due - timer->now.ticks;

	return timer->opts.watch_ms ? timer->opts.watch_ms : plan_watch_ms(timer->about, period);
}

static void run(struct tally_timer *timer, uint64_t period, struct tally_timer_action *action)
{
	if (!arm(timer, period))
		return;
	timer->gap = timer_ran_on;
	action->what = TALLY_TIMER_RUN;
	action->watch_ms = watch_ms(timer);
}

static void step(struct tally_timer *timer, struct tally_timer_action *action)
{
	timer->checks = timer->about->can & TALLY_CLOCK_FOLLOWS_STEPS;
	action->what = TALLY_TIMER_STEP;
}

/* Up to behind the target's tick, so that it is noticed when a point does not come. */
static uint64_t period_behind(const struct tally_timer *timer)
{
	uint64_t period = timer->ticks - timer->now.ticks + 1;

	if (period < timer->plan.least)
		return timer->plan.least;
	return period < timer->plan.most ? period : timer->plan.most;
}

/* To an address. Where the thread stands at it, it is stepped on first. */
static void land(struct tally_timer *timer, struct tally_timer_action *action)
{
	bool ends = timer->kind == TALLY_TIMER_POINT || (timer->flags & TALLY_TIMER_SAME_TICK);

	if (!(timer->about->can & TALLY_CLOCK_COUNTS_FREE) ||
	    point_pc(&timer->regs) == timer->address) {
		step(timer, action);
		return;
	}
	if (!ends || !(timer->about->can & TALLY_CLOCK_INTERRUPTS))
		disarm(timer);
	else if (!arm(timer, period_behind(timer)))
		return;
	action->what = TALLY_TIMER_RUN_TO;
	action->address = timer->address;
	action->watch_ms = timer->armed ? watch_ms(timer) : 0;
}

static bool asks_for_checkpoint(const struct tally_timer *timer)
{
	return (timer->opts.flags & TALLY_TIMER_CHECKPOINTS) &&
	       timer->checkpoint == CHECKPOINT_NONE && timer->kind != TALLY_TIMER_AT_LEAST;
}

static void ask(struct tally_timer *timer, uint32_t what, struct tally_timer_action *action)
{
	timer->asked = what;
	action->what = what;
}

static void go_on(struct tally_timer *timer, struct tally_timer_action *action)
{
	bool lands = timer->kind == TALLY_TIMER_ADDRESS || timer->kind == TALLY_TIMER_POINT;
	uint64_t distance = timer->ticks > timer->now.ticks ? timer->ticks - timer->now.ticks : 0;
	uint64_t period = timer->about->can & TALLY_CLOCK_INTERRUPTS
				  ? plan_period(&timer->plan, distance)
				  : 0;

	action->needs_regs = lands;
	if (period && asks_for_checkpoint(timer)) {
		ask(timer, TALLY_TIMER_TAKE, action);
	} else if (period) {
		run(timer, period, action);
	} else if (lands) {
		land(timer, action);
	} else {
		disarm(timer);
		step(timer, action);
	}
}

static void conclude(struct tally_timer *timer, const struct look *l)
{
	static const enum tally_outcome outcomes[] = {
		[REACHED] = TALLY_OUTCOME_REACHED,
		[LATE] = TALLY_OUTCOME_LATE,
		[BROKEN] = TALLY_OUTCOME_CLOCK_INVALID,
	};

	disarm(timer);
	timer_finish(timer, outcomes[l->verdict], l->why);
}

int tally_timer_next(struct tally_timer *timer, struct tally_timer_action *action)
{
	*action = (struct tally_timer_action){ .what = TALLY_TIMER_DONE };
	if (timer->asked)
		return -EBUSY;
	if (!timer->open)
		return 0;
	timer->outcome.kind = TALLY_OUTCOME_NONE;
	if (timer->withheld && !timer->returned) {
		if (timer_can_go_back(timer))
			ask(timer, TALLY_TIMER_GO_BACK, action);
		else
			timer_tell(timer);
		return 0;
	}
	const char *broken = read_clock(timer);
	if (broken) {
		timer_finish(timer, TALLY_OUTCOME_CLOCK_INVALID, broken);
		return 0;
	}
	if (timer->returned)
		start_again(timer);
	settle_interrupt(timer);
	struct look l = look(timer);
	if (l.verdict == AHEAD)
		go_on(timer, action);
	else if (l.verdict == LATE && timer_can_go_back(timer))
		ask(timer, TALLY_TIMER_GO_BACK, action);
	else
		conclude(timer, &l);
	timer->what = action->what;
	return 0;
}
