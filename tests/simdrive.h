/* SPDX-License-Identifier: MIT */
/* A caller's loop around a timer on a simulated thread, for tests. */
#ifndef TESTS_SIMDRIVE_H
#define TESTS_SIMDRIVE_H

#include <string.h>

#include <tally/sim.h>
#include <tally/timer.h>

#define SIMDRIVE_PC 16 /* rip in the kernel's user_regs_struct */

struct simdrive {
	struct tally_sim *sim;
	struct tally_clock *clock;
	struct tally_timer *timer;
	struct tally_error err;
	uint64_t observed; /* kinds of stops that cancel, by bit */
	bool syscalls;     /* stop at them */
	int deliver;       /* the signal of the last stop */
	uint32_t events, actions;
};

static inline void simdrive_close(struct simdrive *d)
{
	tally_timer_free(d->timer);
	tally_clock_free(d->clock);
	tally_sim_free(d->sim);
	memset(d, 0, sizeof(*d));
}

static inline bool simdrive_open(struct simdrive *d, const struct tally_sim_insn *program,
				 uint32_t count, const struct tally_sim_opts *sim,
				 const struct tally_timer_opts *timer)
{
	memset(d, 0, sizeof(*d));
	if (tally_sim_new(&d->sim, program, count, sim, &d->err) == 0 &&
	    tally_sim_clock(&d->clock, d->sim, &d->err) == 0 &&
	    tally_timer_new(&d->timer, d->clock, timer, &d->err) == 0)
		return true;
	struct tally_error err = d->err;
	simdrive_close(d);
	d->err = err;
	return false;
}

static inline uint64_t simdrive_ticks(struct simdrive *d)
{
	struct tally_clock_value now;

	tally_clock_read(d->clock, &now);
	return now.validity ? UINT64_MAX : now.ticks;
}

static inline uint64_t simdrive_pc(const struct simdrive *d)
{
	struct tally_tracee_regs regs;

	tally_sim_regs(d->sim, &regs);
	return regs.word[SIMDRIVE_PC];
}

/* One action, and what stopped the thread then. False: there is none to perform. */
static inline bool simdrive_once(struct simdrive *d, struct tally_stop *stop)
{
	struct tally_timer_action action;
	struct tally_tracee_regs regs;

	if (tally_timer_next(d->timer, &action) < 0 || action.what == TALLY_TIMER_DONE ||
	    tally_sim_perform(d->sim, &action, d->deliver, d->syscalls, stop) < 0)
		return false;
	d->actions++;
	tally_sim_regs(d->sim, &regs);
	int ours = tally_timer_stopped(d->timer, stop, &regs);
	d->deliver = stop->kind == TALLY_STOP_SIGNAL && ours == 0 ? stop->signal : 0;
	if (ours == 0) {
		d->events++;
		if (d->observed & 1ull << stop->kind)
			tally_timer_observe(d->timer);
	}
	return ours >= 0;
}

/* Drives the request to its end. */
static inline const struct tally_timer_outcome *simdrive_go(struct simdrive *d)
{
	struct tally_stop stop;

	while (simdrive_once(d, &stop))
		;
	return tally_timer_outcome(d->timer);
}

/* Makes a request of `ticks` from now on. False: it was refused. */
static inline bool simdrive_begin(struct simdrive *d, uint32_t kind, uint32_t flags, uint64_t ticks)
{
	struct tally_timer_request request = {
		.size = sizeof(request), .flags = flags, .kind = kind, .ticks = ticks
	};

	return tally_timer_request(d->timer, &request, &d->err) == 0;
}

/* Makes a request and drives it to its end; NULL: it was refused. */
static inline const struct tally_timer_outcome *simdrive_ask(struct simdrive *d,
							     const struct tally_timer_request *wish)
{
	struct tally_timer_request request = *wish;
	struct tally_tracee_regs regs;

	tally_sim_regs(d->sim, &regs);
	request.size = sizeof(request);
	request.regs = &regs;
	return tally_timer_request(d->timer, &request, &d->err) < 0 ? NULL : simdrive_go(d);
}

/* Runs it to its end without a request; what stops it is shown to the timer. */
static inline void simdrive_run_out(struct simdrive *d)
{
	struct tally_stop stop = { 0 };

	while (tally_sim_resume(d->sim, TALLY_RESUME_RUN, d->deliver) == 0 &&
	       tally_sim_wait(d->sim, -1, &stop) == 0) {
		int ours = tally_timer_stopped(d->timer, &stop, NULL);
		d->deliver = stop.kind == TALLY_STOP_SIGNAL && ours == 0 ? stop.signal : 0;
	}
}

#endif
