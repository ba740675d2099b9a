/* SPDX-License-Identifier: MIT */
/* Timers: what is asked of them, what they are told, how requests end. */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "exact/calibration.h"
#include "exact/clock.h"
#include "exact/point.h"
#include "exact/timer.h"

#define LATE_ONE_IN 1000

const char timer_was_behind[] = "it lay behind, or may have, when it was asked for";
const char timer_ran_on[] = "the interrupt came too late, or not at all";
const char timer_leapt[] = "it lies within what can only be executed as one step";

static const char *const outcome_names[] = {
	[TALLY_OUTCOME_NONE] = "none",
	[TALLY_OUTCOME_REACHED] = "reached",
	[TALLY_OUTCOME_LATE] = "late",
	[TALLY_OUTCOME_CANCELLED] = "cancelled",
	[TALLY_OUTCOME_EVENT] = "event",
	[TALLY_OUTCOME_EXITED] = "exited",
	[TALLY_OUTCOME_CLOCK_INVALID] = "clock invalid",
};

const char *tally_outcome_name(uint32_t outcome)
{
	return outcome < ARRAY_SIZE(outcome_names) ? outcome_names[outcome] : "?";
}

int tally_timer_new(struct tally_timer **out, struct tally_clock *clock,
		    const struct tally_timer_opts *opts, struct tally_error *err)
{
	struct tally_timer_opts known;

	int r = opts_read(&known, sizeof(known), TALLY_TIMER_CHECKPOINTS | TALLY_TIMER_FIXED_MARGIN,
			  opts, err);
	if (r < 0)
		return r;
	struct tally_timer *timer = calloc(1, sizeof(*timer));
	if (!timer)
		return error_nomem(err, "a timer");
	known.late_one_in = known.late_one_in ? known.late_one_in : LATE_ONE_IN;
	timer->clock = clock;
	timer->about = tally_clock_about(clock);
	timer->opts = known;
	*out = timer;
	return 0;
}

void tally_timer_free(struct tally_timer *timer)
{
	free(timer);
}

static bool needs_regs(uint32_t kind)
{
	return kind == TALLY_TIMER_ADDRESS || kind == TALLY_TIMER_POINT;
}

void timer_make_plan(struct tally_timer *timer)
{
	const struct tally_timer_opts *o = &timer->opts;

	if (timer->kind == TALLY_TIMER_AT_LEAST) {
		timer->plan = plan_at_least(timer->about);
		return;
	}
	timer->plan = plan_exact(&(struct plan_wish){
		.clock = timer->about,
		.seen = o->calibration ? tally_calibration_skids(o->calibration)
				       : &timer->stats.skids,
		.margin = o->margin,
		.fixed = o->flags & TALLY_TIMER_FIXED_MARGIN,
		.can_go_back = timer->checkpoint == CHECKPOINT_TAKEN,
		.late_one_in = o->late_one_in,
		.retries = timer->retries,
	});
}

static uint64_t *count_of(struct tally_timer_stats *stats, enum tally_outcome kind)
{
	switch (kind) {
	case TALLY_OUTCOME_REACHED:
		return &stats->reached;
	case TALLY_OUTCOME_LATE:
		return &stats->late;
	case TALLY_OUTCOME_CANCELLED:
		return &stats->cancelled;
	case TALLY_OUTCOME_EVENT:
		return &stats->events;
	case TALLY_OUTCOME_EXITED:
		return &stats->exited;
	default:
		return &stats->invalid;
	}
}

/* An outcome as of now. */
static void set_outcome(struct tally_timer *timer, enum tally_outcome kind, const char *why)
{
	++*count_of(&timer->stats, kind);
	timer->outcome = (struct tally_timer_outcome){
		.kind = kind, .clock = timer->now, .instructions = timer->done, .why = why
	};
}

void timer_finish(struct tally_timer *timer, enum tally_outcome kind, const char *why)
{
	bool behind = kind == TALLY_OUTCOME_LATE ||
		      (kind == TALLY_OUTCOME_REACHED && timer->kind == TALLY_TIMER_AT_LEAST);

	set_outcome(timer, kind, why);
	if (behind)
		timer->outcome.late_by = timer->now.ticks - timer->ticks;
	timer->open = false;
	timer->asked = 0;
}

static int refuse(struct tally_error *err, const char *why)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "a timer cannot be asked for this: %s",
			 why);
}

static int check_regs(const struct tally_timer_request *r, struct tally_error *err)
{
	if (!needs_regs(r->kind))
		return 0;
	if (!r->regs || !point_regs_known(r->regs))
		return refuse(err, "an address needs the thread's registers, of a known machine");
	if (r->kind != TALLY_TIMER_POINT)
		return 0;
	if (!r->point || r->point->regs.machine != r->regs->machine ||
	    !point_regs_known(&r->point->regs))
		return refuse(err, "the point is missing, or of another machine than the thread");
	return 0;
}

static int check_point(const struct tally_timer *timer, const struct tally_timer_request *r,
		       struct tally_error *err)
{
	struct tally_clock_about then = *timer->about;

	if (r->kind != TALLY_TIMER_POINT)
		return 0;
	then.ticks = r->point->semantics;
	then.quirks = r->point->quirks;
	return tally_clock_compare(&then, timer->about, err);
}

static int check_request(const struct tally_timer *timer, const struct tally_timer_request *r,
			 struct tally_error *err)
{
	bool counts = r->kind == TALLY_TIMER_INSTRUCTIONS || r->kind == TALLY_TIMER_WITHIN;
	bool here = r->kind == TALLY_TIMER_ADDRESS || (counts && r->instructions);

	if (!r->kind || r->kind > TALLY_TIMER_POINT)
		return refuse(err, "it is of no known kind");
	if (!(r->flags & TALLY_TIMER_ABSOLUTE) && r->kind != TALLY_TIMER_POINT && !r->ticks &&
	    !here)
		return refuse(err, "0 ticks from now on are here");
	if ((r->flags & TALLY_TIMER_SAME_TICK) && r->kind != TALLY_TIMER_ADDRESS)
		return refuse(err, "TALLY_TIMER_SAME_TICK is for an address");
	int code = check_regs(r, err);
	return code < 0 ? code : check_point(timer, r, err);
}

/* What the clock is to read. */
static int find_ticks(const struct tally_timer_request *r, uint64_t now, uint64_t *out,
		      struct tally_error *err)
{
	if (r->kind == TALLY_TIMER_POINT)
		*out = r->point->ticks;
	else if (r->flags & TALLY_TIMER_ABSOLUTE)
		*out = r->ticks;
	else if (__builtin_add_overflow(now, r->ticks, out))
		return error_set(err, -ERANGE, TALLY_CAUSE_ARGUMENT,
				 "a clock that reads %llu never gets %llu ticks further",
				 (unsigned long long)now, (unsigned long long)r->ticks);
	return 0;
}

/* Takes note of a request that was found sound. */
static void open_request(struct tally_timer *timer, const struct tally_timer_request *r,
			 uint64_t ticks)
{
	bool from_here = !(r->flags & TALLY_TIMER_ABSOLUTE) || (r->flags & TALLY_TIMER_FROM_HERE);

	timer->open = true;
	timer->kind = r->kind;
	timer->flags = r->flags;
	timer->ticks = ticks;
	timer->instructions = r->instructions;
	timer->address = r->address;
	if (needs_regs(r->kind))
		timer->regs = *r->regs;
	if (r->kind == TALLY_TIMER_POINT) {
		timer->wanted = r->point->regs;
		timer->address = point_pc(&timer->wanted);
	}
	timer->what = timer->asked = 0;
	timer->stepped = timer->done = 0;
	/* Where it stands is seen; whether the clock came to read this just here is not. */
	timer->gap = from_here ? NULL : timer_was_behind;
	timer->there = false;
	timer->rang = timer->watched = timer->armed = false;
	timer->checks = timer->untold = timer->returned = timer->withheld = false;
	timer->stepped_error = 0;
	timer->checkpoint = CHECKPOINT_NONE;
	timer->retries = 0;
	timer->outcome = (struct tally_timer_outcome){ .kind = TALLY_OUTCOME_NONE };
	timer->stats.requests++;
	timer_make_plan(timer);
}

int tally_timer_request(struct tally_timer *timer, const struct tally_timer_request *request,
			struct tally_error *err)
{
	struct tally_timer_request known;
	struct tally_clock_value now;
	uint64_t ticks;

	int r = opts_read(&known, sizeof(known), TALLY_TIMER_SAME_TICK * 2 - 1, request, err);
	if (r == 0)
		r = check_request(timer, &known, err);
	if (r < 0)
		return r;
	tally_clock_read(timer->clock, &now);
	if (now.validity)
		return error_set(err, now.error < 0 ? now.error : -EIO, TALLY_CAUSE_IO,
				 "the timer's clock does not hold: %s",
				 tally_clock_validity_name(now.validity));
	r = find_ticks(&known, now.ticks, &ticks, err);
	if (r < 0)
		return r;
	timer->now = now;
	open_request(timer, &known, ticks);
	return 0;
}

/* What steps retired before this stop. */
static void account(struct tally_timer *timer, const struct tally_stop *stop)
{
	uint64_t n = stop->retired.instructions;

	if (stop->insn & TALLY_INSN_UNKNOWN) {
		timer->untold = true;
		timer->gap = timer->gap ? timer->gap : timer_leapt;
		timer->checks = false;
	}
	timer->stepped += n;
	timer->stats.steps += n;
	if (timer->there)
		timer->done += n;
	timer->expected += clock_ticks_retired(timer->about->ticks, &stop->retired);
	int r = tally_clock_stepped(timer->clock, stop);
	if (r < 0)
		timer->stepped_error = r;
}

/* 1: a stop that the timer brought about. 0: one for the caller. */
static int judge(struct tally_timer *timer, const struct tally_stop *stop)
{
	bool runs = timer->what == TALLY_TIMER_RUN || timer->what == TALLY_TIMER_RUN_TO;

	switch (stop->kind) {
	case TALLY_STOP_STEP:
		return 1;
	case TALLY_STOP_BREAKPOINT:
		if (timer->what != TALLY_TIMER_RUN_TO || stop->pc != timer->address)
			return 0;
		timer->stats.breakpoints++;
		return 1;
	case TALLY_STOP_INTERRUPT:
		timer->watched = runs;
		return runs;
	default:
		return 0;
	}
}

static bool has_ended(const struct tally_stop *stop)
{
	return stop->kind == TALLY_STOP_EXITED || stop->kind == TALLY_STOP_KILLED ||
	       stop->kind == TALLY_STOP_GONE;
}

bool timer_can_go_back(const struct tally_timer *timer)
{
	/* Each time the margin grows, until all is stepped: then there is no such gap any more. */
	return timer->checkpoint == CHECKPOINT_TAKEN && timer->gap == timer_ran_on &&
	       !(timer->opts.flags & TALLY_TIMER_FIXED_MARGIN);
}

/* Where the thread is behind the point, or may be. */
static bool is_behind(const struct tally_timer *timer, const struct tally_clock_value *now)
{
	return now->validity || now->ticks >= timer->ticks;
}

void timer_tell(struct tally_timer *timer)
{
	struct tally_stop stop = timer->outcome.stop;
	struct tally_clock_value now;

	timer->withheld = false;
	tally_clock_read(timer->clock, &now);
	if (has_ended(&stop)) {
		timer->now = now;
		timer_finish(timer, TALLY_OUTCOME_EXITED,
			     is_behind(timer, &now) ? timer->gap : NULL);
	} else {
		set_outcome(timer, TALLY_OUTCOME_EVENT, NULL);
		timer->outcome.clock = now;
	}
	timer->outcome.stop = stop;
	if (timer->checkpoint == CHECKPOINT_TAKEN) {
		timer->checkpoint = CHECKPOINT_NONE;
		timer_make_plan(timer);
	}
}

/*
 * A stop for the caller, while a request is open. 1: it is not told, since it came behind the point,
 * and there is a checkpoint to go back to.
 */
static int tell(struct tally_timer *timer, const struct tally_stop *stop)
{
	struct tally_clock_value now;

	timer->outcome.stop = *stop;
	tally_clock_read(timer->clock, &now);
	timer->withheld = timer_can_go_back(timer) && is_behind(timer, &now);
	if (!timer->withheld)
		timer_tell(timer);
	return timer->withheld;
}

/* False: they are needed, and are not there. */
static bool take_regs(struct tally_timer *timer, const struct tally_tracee_regs *regs)
{
	if (!needs_regs(timer->kind))
		return true;
	if (!regs || !point_regs_known(regs))
		return false;
	timer->regs = *regs;
	return true;
}

int tally_timer_stopped(struct tally_timer *timer, const struct tally_stop *stop,
			const struct tally_tracee_regs *regs)
{
	bool ours = tally_clock_owns(timer->clock, stop);

	if (stop->kind == TALLY_STOP_NONE)
		return -EAGAIN;
	if (!timer->open) {
		timer->stats.unasked += ours;
		return ours;
	}
	if (!has_ended(stop) && !take_regs(timer, regs))
		return -EINVAL;
	account(timer, stop);
	timer->rang |= ours;
	return ours || judge(timer, stop) ? 1 : tell(timer, stop);
}

void tally_timer_answer(struct tally_timer *timer, int result)
{
	if (timer->asked == TALLY_TIMER_TAKE) {
		timer->checkpoint = result < 0 ? CHECKPOINT_REFUSED : CHECKPOINT_TAKEN;
		timer->checkpoint_ticks = timer->now.ticks;
		timer->checkpoint_regs = timer->regs;
		timer->stats.checkpoints += result >= 0;
		timer_make_plan(timer);
	} else if (timer->asked == TALLY_TIMER_GO_BACK) {
		if (result < 0)
			timer->checkpoint = CHECKPOINT_REFUSED;
		timer->returned = result >= 0;
	}
	timer->asked = 0;
}

int tally_timer_move(struct tally_timer *timer, struct tally_clock *clock, struct tally_error *err)
{
	int r = tally_clock_compare(timer->about, tally_clock_about(clock), err);

	if (r < 0)
		return r;
	timer->clock = clock;
	timer->about = tally_clock_about(clock);
	timer->armed = timer->enabled = timer->checks = false;
	return 0;
}

int tally_timer_emulated(struct tally_timer *timer, uint64_t instructions,
			 const struct tally_tracee_regs *regs)
{
	if (!timer->open)
		return 0;
	if (!take_regs(timer, regs))
		return -EINVAL;
	timer->stepped += instructions;
	timer->checks = false;
	if (timer->there)
		timer->done += instructions;
	return 0;
}

static void cancel(struct tally_timer *timer, enum tally_timer_cause cause)
{
	timer_finish(timer, TALLY_OUTCOME_CANCELLED, NULL);
	timer->outcome.cause = cause;
}

void tally_timer_observe(struct tally_timer *timer)
{
	if (timer->open && !(timer->flags & TALLY_TIMER_KEEP))
		cancel(timer, TALLY_TIMER_BY_EVENT);
}

void tally_timer_cancel_later(struct tally_timer *timer)
{
	if (timer->open)
		cancel(timer, TALLY_TIMER_BY_CALLER);
}

int tally_timer_cancel(struct tally_timer *timer)
{
	tally_timer_cancel_later(timer);
	if (!timer->enabled)
		return 0;
	timer->enabled = timer->armed = false;
	return tally_clock_disarm(timer->clock);
}

const struct tally_timer_outcome *tally_timer_outcome(const struct tally_timer *timer)
{
	return &timer->outcome;
}

const struct tally_timer_stats *tally_timer_stats(const struct tally_timer *timer)
{
	return &timer->stats;
}
