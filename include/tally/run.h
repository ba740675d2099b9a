/* SPDX-License-Identifier: MIT */
/*
 * tally_tracee_run(): a command, run to an exact point of its execution or counted to its end, for
 * those who want no loop of their own.
 *
 *	struct tally_timer_request request = { .size = sizeof(request), .ticks = 1000,
 *					       .kind = TALLY_TIMER_EXACTLY };
 *	tally_tracee_run(&run, argv, TALLY_OPTS(run, .request = &request), &err);
 *	if (tally_run_outcome(run)->kind == TALLY_OUTCOME_REACHED)
 *		tally_tracee_regs(tally_run_tracee(run), &regs);
 *	tally_run_free(run);
 *
 * The point is one of the command's first thread. Its other threads run freely meanwhile, and stand
 * still with it at the end. To be counted, all threads are counted, each by a clock of its own; where
 * that is the step clock, they take turns, an instruction each. Children, by fork, are not followed.
 */
#ifndef TALLY_RUN_H
#define TALLY_RUN_H

#include <tally/api.h>
#include <tally/clock.h>
#include <tally/error.h>
#include <tally/timer.h>
#include <tally/tracee.h>

TALLY_BEGIN_DECLS

struct tally_run;

/* Who counts. */
enum tally_run_clock {
	TALLY_RUN_AUTO = 0, /* `pmu` where it has been tried out and counts exactly, else `step` */
	TALLY_RUN_PMU,
	TALLY_RUN_STEP,
};

enum tally_run_flags {
	/* It is not bound to one CPU (TALLY_TRACEE_PIN). */
	TALLY_RUN_NO_PIN = 1u << 0,
	/* Its addresses are randomised as usual; without it the same in each run. */
	TALLY_RUN_RANDOM = 1u << 1,
};

struct tally_run_opts {
	uint32_t size, flags;                      /* enum tally_run_flags */
	uint32_t clock;                            /* enum tally_run_clock */
	uint32_t ticks;                            /* enum tally_ticks; 0: conditional branches */
	const struct tally_timer_request *request; /* NULL: run to its end, and count. Borrowed. */
	char *const *envp;                         /* its environment; NULL: the caller's */
	uint64_t max_ms; /* it is given up after so long: -ETIME; 0: never */
	/*
	 * Called before the first instruction, with the clock that was chosen, and why it is not the
	 * PMU ("": it is, or was not to be). Not 0: it is not run, and tally_tracee_run() answers that.
	 */
	int (*begin)(void *arg, const struct tally_clock_about *clock, const char *why);
	void *arg;
};

/* A thread that was met. */
struct tally_run_thread {
	int32_t tid;
	uint32_t reserved;
	struct tally_clock_value clock; /* what it ticked */
	/* With the step clock: all that it retired. */
	struct tally_retired_total retired;
};

/*
 * Runs it, until the request is done or the command has ended. Signals go to it as they come.
 * Errors, behind which there is nothing to be freed: those of tally_tracee_launch(),
 * tally_clock_open_pmu() (with TALLY_RUN_PMU), tally_timer_request(), ptrace(2); -ETIME: `max_ms` has
 * passed; what `begin` answered. Since: 0.1
 */
TALLY_API int tally_tracee_run(struct tally_run **out, char *const argv[],
			       const struct tally_run_opts *opts, struct tally_error *err);

/* How the request ended; without one EXITED. Lives as long as the run. Since: 0.1 */
TALLY_API const struct tally_timer_outcome *tally_run_outcome(const struct tally_run *run);

/* The first thread, stopped where the request ended, and its clock. Borrowed. Since: 0.1 */
TALLY_API struct tally_tracee *tally_run_tracee(const struct tally_run *run);
TALLY_API struct tally_clock *tally_run_clock(const struct tally_run *run);

/* All threads that were met, the first one first; how many. Borrowed. Since: 0.1 */
TALLY_API uint32_t tally_run_threads(const struct tally_run *run,
				     const struct tally_run_thread **threads);

/* How the command ended, as a shell reports it (128 + a signal); -1: it has not. Since: 0.1 */
TALLY_API int tally_run_status(const struct tally_run *run);

/*
 * Lets go of all its threads. They are left stopped (SIGSTOP), as a debugger wants them that attaches
 * next, and SIGCONT lets them go on. Errors: those of ptrace(2). Since: 0.1
 */
TALLY_API int tally_run_detach(struct tally_run *run);

/* Ends the command, unless it was detached. NULL is fine. Since: 0.1 */
TALLY_API void tally_run_free(struct tally_run *run);

TALLY_END_DECLS

#endif
