/* SPDX-License-Identifier: MIT */
/* A traced program, a clock and a timer for it, and the loop that leads it from point to point. */
#ifndef EXACT_DRIVING_H
#define EXACT_DRIVING_H

#include <errno.h>
#include <string.h>

#include <tally/tally.h>

struct driven {
	struct tally_tracee *tracee;
	struct tally_clock *clock;
	struct tally_timer *timer;
	struct tally_tracee_regs regs; /* where it stands */
	struct tally_error err;
};

static inline void drive_end(struct driven *d)
{
	tally_timer_free(d->timer);
	tally_clock_free(d->clock);
	tally_tracee_free(d->tracee);
	d->tracee = NULL;
	d->clock = NULL;
	d->timer = NULL;
}

/* Starts a program, stopped, with an environment that is empty and addresses that are the same each time. */
static inline int drive_start(struct driven *d, char *const argv[])
{
	char *none[] = { NULL };

	memset(d, 0, sizeof(*d));
	return tally_tracee_launch(&d->tracee, argv,
				   TALLY_OPTS(tracee,
					      .flags = TALLY_TRACEE_NO_RANDOM | TALLY_TRACEE_PIN,
					      .envp = none),
				   &d->err);
}

/* A timer on its clock; the one before is gone. */
static inline int drive_time(struct driven *d, uint64_t margin, uint32_t flags)
{
	tally_timer_free(d->timer);
	d->timer = NULL;
	return tally_timer_new(&d->timer, d->clock,
			       TALLY_OPTS(timer, .margin = margin, .flags = flags), &d->err);
}

static inline int drive_resume(struct driven *d, const struct tally_timer_action *action,
			       int signal)
{
	uint32_t how = action->what == TALLY_TIMER_STEP ? TALLY_RESUME_STEP : TALLY_RESUME_RUN;

	if (action->what == TALLY_TIMER_RUN_TO &&
	    tally_tracee_break(d->tracee, action->address) < 0)
		how = TALLY_RESUME_STEP;
	return tally_tracee_resume(d->tracee, how, signal);
}

/* Its next stop; a watchdog interrupts it where the timer asks for one. */
static inline int drive_wait(struct driven *d, const struct tally_timer_action *action,
			     struct tally_stop *stop)
{
	int ms = action->what != TALLY_TIMER_STEP && action->watch_ms ? (int)action->watch_ms : -1;
	int r = tally_tracee_wait(d->tracee, ms, stop);

	if (r == 0 && stop->kind == TALLY_STOP_NONE) {
		tally_tracee_interrupt(d->tracee);
		r = tally_tracee_wait(d->tracee, -1, stop);
	}
	return r;
}

/* Leads it to a point. Signals that are its own are delivered, and other events passed over. */
static inline int drive_to(struct driven *d, struct tally_timer_request request)
{
	struct tally_timer_action action;
	struct tally_stop stop;
	int signal = 0, r;

	request.size = sizeof(request);
	r = tally_tracee_regs(d->tracee, &d->regs);
	request.regs = &d->regs;
	if (r == 0)
		r = tally_timer_request(d->timer, &request, &d->err);
	while (r >= 0) {
		r = tally_timer_next(d->timer, &action);
		if (r < 0 || action.what == TALLY_TIMER_DONE)
			break;
		r = drive_resume(d, &action, signal);
		if (r == 0)
			r = drive_wait(d, &action, &stop);
		if (r == 0)
			r = tally_tracee_regs(d->tracee, &d->regs);
		if (r == -ESRCH) /* it has ended, which the stop tells */
			r = 0;
		if (r == 0)
			r = tally_timer_stopped(d->timer, &stop, &d->regs);
		if (r == 0 && tally_timer_outcome(d->timer)->kind == TALLY_OUTCOME_EXITED)
			break;
		signal = r == 0 && stop.kind == TALLY_STOP_SIGNAL ? stop.signal : 0;
	}
	return r < 0 ? r : 0;
}

#endif
