/* SPDX-License-Identifier: MIT */
/*
 * tally_timer: stops a thread at an exact point of its execution, and says what happened.
 *
 * The engine does no I/O: the caller owns ptrace and waitpid. It asks what to do with the stopped
 * thread, does that, waits, and tells what stopped.
 *
 *	tally_timer_request(timer, &request, &err);
 *	while (tally_timer_next(timer, &action) == 0 && action.what != TALLY_TIMER_DONE) {
 *		... perform the action on the thread, wait for its next stop ...
 *		tally_timer_stopped(timer, &stop, &regs);
 *	}
 *	outcome = tally_timer_outcome(timer);
 *
 * No outcome is a guess. REACHED means that the thread is exactly there: it was seen before the
 * point, and has been led to it by steps, or to the only place that looks like it. A value of the
 * clock alone is never taken for that, since the thread may have gone on behind the tick.
 *
 * How it gets there: it arms the clock for less than the distance, by a margin for the
 * interrupt's skid; arms it again, with a smaller margin, when much is left; steps the rest, or
 * runs to a breakpoint where the address is known. What is left below the clock's shortest period
 * is stepped from the start. An interrupt that does not come is found by a watchdog; where the
 * thread is, is told by the clock and not by the interrupt, so that early, late, doubled and old
 * ones do no harm. One that comes too late for its margin ends in LATE, from which the caller may
 * go back to a checkpoint.
 *
 * A request is cancelled by what the caller sees happen before its point: tally_timer_observe().
 *
 * The signal of the clock (tally_clock_about.signal) may come at any time, even when no request
 * is open: a caller shows each stop by that number to tally_timer_stopped(), and delivers what it
 * does not call its own. No call but _new and _free allocates, locks or formats.
 */
#ifndef TALLY_TIMER_H
#define TALLY_TIMER_H

#include <tally/api.h>
#include <tally/calibration.h>
#include <tally/clock.h>
#include <tally/error.h>
#include <tally/tracee.h>

TALLY_BEGIN_DECLS

struct tally_timer;

/*
 * A point of an execution, to be stored and reached again in another run. States with equal ticks
 * and registers can occur twice where no tick lies between; they differ in memory alone.
 */
struct tally_point {
	uint64_t ticks;
	uint32_t semantics; /* enum tally_ticks */
	uint32_t quirks;    /* enum tally_clock_quirks */
	struct tally_tracee_regs regs;
};

enum tally_timer_kind {
	TALLY_TIMER_AT_LEAST = 1, /* soon after the clock reads `ticks`, never before */
	TALLY_TIMER_EXACTLY,      /* where it first reads `ticks` */
	/* `instructions` steps behind where it first reads `ticks`, across further ticks. */
	TALLY_TIMER_INSTRUCTIONS,
	/* Likewise, but the order is lexicographic: the next tick ends it, LATE. */
	TALLY_TIMER_WITHIN,
	/* The first time at `address` with the clock at `ticks` or more; where it stands counts. */
	TALLY_TIMER_ADDRESS,
	TALLY_TIMER_POINT, /* at `point`: ticks and registers; `ticks` is not used */
};

enum tally_timer_request_flags {
	/* `ticks` is what the clock is to read; else how many from now on. POINT always is. */
	TALLY_TIMER_ABSOLUTE = 1u << 0,
	/* Events that are observed do not cancel it. */
	TALLY_TIMER_KEEP = 1u << 1,
	/*
	 * When the clock reads the absolute `ticks` already, the thread stands where it first
	 * did, as behind execve, or behind an EXACTLY that was REACHED. Without it that is LATE
	 * by 0.
	 */
	TALLY_TIMER_FROM_HERE = 1u << 2,
	/* ADDRESS: at just `ticks`; the next tick ends it, LATE. */
	TALLY_TIMER_SAME_TICK = 1u << 3,
};

struct tally_timer_request {
	uint32_t size, flags; /* enum tally_timer_request_flags */
	uint32_t kind;        /* enum tally_timer_kind */
	uint32_t reserved;    /* 0 */
	uint64_t ticks;
	uint64_t instructions;                /* INSTRUCTIONS, WITHIN */
	uint64_t address;                     /* ADDRESS */
	const struct tally_point *point;      /* POINT; copied */
	const struct tally_tracee_regs *regs; /* ADDRESS, POINT: those of now; copied */
};

enum tally_timer_what {
	TALLY_TIMER_DONE = 0, /* see tally_timer_outcome() */
	TALLY_TIMER_RUN,      /* resume; the clock has been armed */
	TALLY_TIMER_STEP,     /* execute one instruction */
	/* Resume with a breakpoint at `address`, which is to be gone at the next stop. */
	TALLY_TIMER_RUN_TO,
	/* With TALLY_TIMER_CHECKPOINTS: take one, go back to it; then tally_timer_answer(). */
	TALLY_TIMER_TAKE,
	TALLY_TIMER_GO_BACK,
};

struct tally_timer_action {
	uint32_t what;       /* enum tally_timer_what */
	uint32_t watch_ms;   /* RUN, RUN_TO: interrupt the thread after so long; 0: no need to */
	uint64_t address;    /* RUN_TO */
	uint32_t needs_regs; /* 1: tally_timer_stopped() needs registers */
	uint32_t reserved;
};

enum tally_outcome {
	TALLY_OUTCOME_NONE = 0,  /* a request is open, or none was made */
	TALLY_OUTCOME_REACHED,   /* the thread is exactly there; AT_LEAST: or behind it */
	TALLY_OUTCOME_LATE,      /* it went past, by `late_by` ticks: `why` */
	TALLY_OUTCOME_CANCELLED, /* by `cause` */
	TALLY_OUTCOME_EVENT,     /* something else stopped it on the way: `stop` */
	/* It ended: `stop`. With `why`: perhaps behind the point, which the clock tells when it holds. */
	TALLY_OUTCOME_EXITED,
	TALLY_OUTCOME_CLOCK_INVALID, /* the clock cannot be trusted: `clock`, `why` */
};

enum tally_timer_cause {
	TALLY_TIMER_BY_EVENT = 1, /* tally_timer_observe() */
	TALLY_TIMER_BY_CALLER,    /* tally_timer_cancel(), tally_timer_cancel_later() */
};

struct tally_timer_outcome {
	uint32_t kind;  /* enum tally_outcome */
	uint32_t cause; /* CANCELLED: enum tally_timer_cause */
	/* LATE, and REACHED of AT_LEAST: ticks behind the target. 0: the tick was right, and yet it is
	 * not known whether the thread had gone on behind it. */
	uint64_t late_by;
	struct tally_clock_value clock; /* where it is */
	uint64_t instructions;          /* INSTRUCTIONS, WITHIN: steps behind the tick so far */
	struct tally_stop stop;         /* EVENT, EXITED: what stopped it */
	const char *why; /* LATE, CLOCK_INVALID, EXITED: a phrase, or NULL; static storage */
};

/* What a timer did since it was made. */
struct tally_timer_stats {
	uint64_t requests, reached, late, cancelled, events, exited, invalid; /* how they ended */
	uint64_t programmed; /* the clock was armed */
	uint64_t fired;      /* its interrupt came, in time or late */
	uint64_t early;   /* an interrupt came before it was due: of an earlier arming, or wrong */
	uint64_t unasked; /* one came while none was awaited */
	uint64_t lost;    /* one was due, and the watchdog or another stop found that out */
	uint64_t steps;   /* instructions that were stepped */
	uint64_t breakpoints;          /* hits of its breakpoint */
	uint64_t checkpoints, retries; /* that were taken, gone back to */
	struct tally_skids skids;      /* how late interrupts came */
};

enum tally_timer_flags {
	/* It may ask for checkpoints (TALLY_TIMER_TAKE), and to go back to them behind LATE. */
	TALLY_TIMER_CHECKPOINTS = 1u << 0,
	/* `margin` is taken as it is, even 0, whatever has been seen: to try what happens. */
	TALLY_TIMER_FIXED_MARGIN = 1u << 1,
};

struct tally_timer_opts {
	uint32_t size, flags; /* enum tally_timer_flags */
	uint64_t margin;      /* ticks; 0: the clock's, adapted to what has been seen */
	/* One request in so many may come LATE, as far as experience goes; 0: 1000. */
	uint32_t late_one_in;
	uint32_t
		watch_ms; /* the watchdog's; 0: from the clock's rate, or a second; a minimum of 1 */
	/* What was seen on this machine; it learns. NULL: of this timer alone. Borrowed. */
	struct tally_calibration *calibration;
};

/*
 * A timer on a clock, which it borrows; one timer a clock. `opts` may be NULL.
 * Errors: -EINVAL (options), -E2BIG, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_timer_new(struct tally_timer **out, struct tally_clock *clock,
			      const struct tally_timer_opts *opts, struct tally_error *err);
/* Frees it; the clock stays armed if it was. NULL does nothing. Since: 0.1 */
TALLY_API void tally_timer_free(struct tally_timer *timer);

/*
 * Asks for a point. It replaces the request that was open, of which no outcome remains. A point
 * that lies behind is no error: it is LATE. `ticks` of a relative request may be 0 only for
 * INSTRUCTIONS and WITHIN, which then count `instructions` from here, and for ADDRESS.
 *
 * Errors, after which the request that was open still is: -EINVAL (an unknown kind or flag; 0
 * ticks; registers that are missing, or of another machine than the point's), -E2BIG (fields of a
 * later version), -ERANGE (more than 2^64 - 1 ticks), -EXDEV (a point of a clock that counts
 * otherwise), and the errno that the clock cannot be read by, or -EIO. Since: 0.1
 */
TALLY_API int tally_timer_request(struct tally_timer *timer,
				  const struct tally_timer_request *request,
				  struct tally_error *err);

/*
 * What to do with the stopped thread. Asked twice it answers the same. TALLY_TIMER_DONE: the request
 * has an outcome, or there is none. Behind the outcome EVENT it goes on with the request: deal with
 * the stop first, and when it was a signal, deliver it with the action. Otherwise the action is
 * performed without a signal. With checkpoints EVENT may come from here, too: stops behind the point
 * are told only when going back fails.
 * Errors: -EBUSY: TAKE or GO_BACK has not been answered. Since: 0.1
 */
TALLY_API int tally_timer_next(struct tally_timer *timer, struct tally_timer_action *action);

/*
 * What stopped the thread, after an action; at all other times stops by the clock's signal. `regs`:
 * where the action said that they are needed, else NULL will do. An interrupted RUN or RUN_TO
 * (TALLY_STOP_INTERRUPT) is taken for the watchdog's; a caller that interrupts the thread for other
 * purposes asks for the next action without telling of that.
 *
 * 1: it was the timer's own affair: go on with tally_timer_next(), and deliver no signal. 0: it
 * is the caller's, and with a request open its outcome says so: EVENT or EXITED. A stop that
 * belongs to no request is delivered or dealt with as if there were no timer.
 * Errors, after which nothing was taken note of: -EINVAL: registers are missing; -EAGAIN: it runs
 * (TALLY_STOP_NONE). Since: 0.1
 */
TALLY_API int tally_timer_stopped(struct tally_timer *timer, const struct tally_stop *stop,
				  const struct tally_tracee_regs *regs);

/*
 * The answer to TAKE and GO_BACK. 0: there is a checkpoint; the thread is back at it, and the
 * clock reads what it read then (tally_clock_set). Negative: there is none, which is asked for
 * only once a request; it cannot be gone back to, which leaves it LATE. Without such a question
 * nothing happens.
 *
 * A checkpoint is asked for before the clock is armed for a request the first time. It holds until
 * the request is done, or an EVENT is told, whose effects going back would not undo: drop it then.
 * Since: 0.1
 */
TALLY_API void tally_timer_answer(struct tally_timer *timer, int result);

/*
 * The thread is another one from now on, with a clock of its own that counts the same and reads
 * the same: a forked checkpoint, or the thread that an exec left. The old clock may be freed
 * afterwards. Errors: -EXDEV, with how they differ. Since: 0.1
 */
TALLY_API int tally_timer_move(struct tally_timer *timer, struct tally_clock *clock,
			       struct tally_error *err);

/*
 * So many instructions were executed for the thread since its last stop, by emulating them, as of
 * a CPUID that was trapped; `regs`: those of now, for ADDRESS and POINT, else NULL will do. The
 * clock's ticks, if any, are told by tally_clock_adjust(). Errors: -EINVAL: registers are missing, and
 * nothing was taken note of. Since: 0.1
 */
TALLY_API int tally_timer_emulated(struct tally_timer *timer, uint64_t instructions,
				   const struct tally_tracee_regs *regs);

/*
 * An event happened that is visible to whom the timer serves. It cancels the open request, since it
 * came before the point, unless TALLY_TIMER_KEEP: the outcome is CANCELLED, BY_EVENT. Nothing is said
 * to the clock, so it is cheap, and an interrupt may still come; tally_timer_stopped() takes it.
 * Since: 0.1
 */
TALLY_API void tally_timer_observe(struct tally_timer *timer);

/*
 * Cancels the request, if one is open, and disarms the clock. Errors: those of disarming; it is
 * cancelled all the same. Since: 0.1
 */
TALLY_API int tally_timer_cancel(struct tally_timer *timer);
/*
 * Likewise without a word to the clock, which is cheaper when another request follows: the interrupt
 * may still come. Since: 0.1
 */
TALLY_API void tally_timer_cancel_later(struct tally_timer *timer);

/* How the last request ended, or stands. Lives as long as the timer. Since: 0.1 */
TALLY_API const struct tally_timer_outcome *tally_timer_outcome(const struct tally_timer *timer);
TALLY_API const struct tally_timer_stats *tally_timer_stats(const struct tally_timer *timer);

/*
 * The point where the thread stands, by its clock and registers.
 * Errors: -EINVAL (no registers), -EIO: the clock does not hold, or the errno of that. Since: 0.1
 */
TALLY_API int tally_point_take(struct tally_point *out, struct tally_clock *clock,
			       const struct tally_tracee_regs *regs);

/* The outcome as a word ("reached", "clock invalid"). "?" for an unknown value. Since: 0.1 */
TALLY_API const char *tally_outcome_name(uint32_t outcome);

TALLY_END_DECLS

#endif
