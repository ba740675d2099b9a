/* SPDX-License-Identifier: MIT */
/*
 * tally_freeze: holds a process still while counters are attached to it.
 *
 * An event that is inherited covers what a thread starts later, never what already runs. So each thread
 * of a process gets its own, and while they are being opened one after the other, a thread that runs
 * may start another: one that inherits, and then is found and opened again, counts twice; one that is
 * not found does not count. A process all of whose threads stand still has neither. Opening a counter
 * on a process does this by itself; several counters share one stop:
 *
 *	tally_freeze_open(&freeze, pid, NULL, &err);
 *	for (...)
 *		tally_counter_open(&counter[i], event[i], &target,
 *				   TALLY_OPTS(counter, .freeze = freeze,
 *					      .flags = TALLY_COUNTER_ENABLED), &err);
 *	tally_freeze_close(freeze);
 *
 * It is done with ptrace(2) (PTRACE_SEIZE, PTRACE_INTERRUPT), from a thread of its own that ends with
 * the freeze, so that whatever happens no thread of the process is left stopped. What the process and
 * others see of it:
 *  - it stands still as long as the freeze is open: about 50 us a thread, and what is done meanwhile;
 *  - system calls that no SA_RESTART restarts fail once with EINTR, as at any stop: epoll_wait(2),
 *    poll(2), nanosleep(2) and others, signal(7) "Interruption of system calls ... by stop signals";
 *  - signals that arrive meanwhile are delivered afterwards; a process that was stopped (SIGSTOP,
 *    SIGTSTP) stays so;
 *  - the caller gets a SIGCHLD for each thread that stops, as any tracer; and a waitpid(-1) of another
 *    of the caller's threads may see it, so do not wait for any child while a freeze is open.
 */
#ifndef TALLY_FREEZE_H
#define TALLY_FREEZE_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_freeze;

struct tally_freeze_opts {
	uint32_t size, flags; /* no flags yet */
	/*
	 * How long a thread that does not stop, since it waits uninterruptibly in the kernel (for a
	 * disk, or in vfork(2) for its child), keeps the others waiting. 0: 200.
	 */
	uint32_t wait_ms;
	uint32_t reserved; /* 0 */
	const char *root;  /* folder above /proc; NULL: the real one. Borrowed for the call. */
};

/*
 * Stops all threads of process `pid`, the caller's own excepted: that one is left running, and still
 * counts as held when the caller is its only thread. Where some cannot be stopped (ptrace is refused,
 * a debugger has them, one waits in the kernel) it succeeds all the same, and tally_freeze_holds()
 * tells. Linux 3.4.
 * Errors: -ESRCH (no such process), -EINVAL (a pid that is not positive, a flag, `reserved`), -E2BIG,
 * -EACCES and others of reading /proc/PID/task, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_freeze_open(struct tally_freeze **out, int32_t pid,
				const struct tally_freeze_opts *opts, struct tally_error *err);

/* Whether all threads are held. Since: 0.1 */
TALLY_API bool tally_freeze_holds(const struct tally_freeze *freeze);

/* How many threads are held. Since: 0.1 */
TALLY_API uint32_t tally_freeze_threads(const struct tally_freeze *freeze);

/* Why not all are held, as a sentence for people; NULL when all are. Borrowed. Since: 0.1 */
TALLY_API const char *tally_freeze_reason(const struct tally_freeze *freeze);

/* Lets all go on. Any thread may do it. NULL is fine. Since: 0.1 */
TALLY_API void tally_freeze_close(struct tally_freeze *freeze);

TALLY_END_DECLS

#endif
