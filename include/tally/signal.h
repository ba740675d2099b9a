/* SPDX-License-Identifier: MIT */
/*
 * Signals at overflows: a thread is told when an event has counted its period.
 *
 *	tally_counter_open(&c, event, &self, TALLY_OPTS(counter, .period = 1000), &err);
 *	tally_counter_signal(c, TALLY_OPTS(signal, .signo = SIGUSR1), &err);
 *	tally_counter_refresh(c, 1);	// starts it; one signal, then it stops
 *
 * There are two kinds. Overflows of any event with a period may be sent as a signal to a thread of
 * your choice (tally_counter_signal); the kernel sends it soon after the overflow. And events that
 * are opened with TALLY_ATTR_SIGTRAP (Linux 5.13) send SIGTRAP to the very thread that overflowed,
 * before it executes on in user mode.
 */
#ifndef TALLY_SIGNAL_H
#define TALLY_SIGNAL_H

#include <signal.h>

#include <tally/api.h>
#include <tally/counter.h>

TALLY_BEGIN_DECLS

enum tally_signal_flags {
	/* Do not ask whether the owner catches, blocks or ignores the signal. */
	TALLY_SIGNAL_UNHANDLED = 1u << 0,
};

struct tally_signal_opts {
	uint32_t size, flags; /* enum tally_signal_flags */
	int32_t signo;        /* 0: SIGIO */
	int32_t owner;        /* the thread that it is sent to; 0: the caller */
};

/*
 * Has each overflow sent as a signal to one thread, from all places of the counter, until
 * tally_counter_unsignal() or until it is opened anew (tally_counter_generation). Take a real-time
 * signal (SIGRTMIN + n) where every overflow counts: others are merged while one is pending. When
 * too many are queued (RLIMIT_SIGPENDING) the kernel sends a plain SIGIO instead.
 *
 * The counter needs a period (tally_counter_opts.period), no ring, and may be enabled or not: it
 * counts on, and nothing is sent before owner and signal are both set. Called again it replaces
 * owner and signal in the same way. Descriptor flags of others stay.
 *
 * The default action of most signals ends the process. So the signal is refused when the owner
 * neither catches, blocks nor ignores it, by /proc/TID/status, and waits for none; where /proc
 * does not tell it is taken, and TALLY_SIGNAL_UNHANDLED skips the check. Overflows of threads and
 * children that a counter follows are sent to the same owner. A signal that was sent before may
 * still arrive after the counter is disabled or closed.
 *
 * Errors: -EINVAL (no such signal, SIGKILL, SIGSTOP), -E2BIG, -EPERM (the signal would end the
 * owner's process), -ESRCH (no such thread); those of fcntl(2). After an error nothing is sent.
 * Since: 0.1
 */
TALLY_API int tally_counter_signal(struct tally_counter *counter,
				   const struct tally_signal_opts *opts, struct tally_error *err);

/* No more of them. Async-signal-safe. Errors: those of fcntl(2). Since: 0.1 */
TALLY_API int tally_counter_unsignal(struct tally_counter *counter);

/*
 * Whether a signal that a handler or sigwaitinfo(2) got tells an overflow of the counter: POLL_IN
 * (1) for an overflow, POLL_HUP (6) for the last one of tally_counter_refresh(), after which the
 * event is disabled; 0 for any other signal. These are values of si_code, not the bits of poll(2).
 * Async-signal-safe, for any thread while the counter is open and not being opened anew.
 * Since: 0.1
 */
TALLY_API int tally_signal_is_overflow(const siginfo_t *info, const struct tally_counter *counter);

/* What a SIGTRAP of an event tells. */
struct tally_trap {
	uint64_t data;  /* attr.sig_data of the event, cut to an unsigned long */
	uint64_t addr;  /* the address that was accessed, where the event knows it */
	uint32_t type;  /* attr.type of the event */
	uint32_t flags; /* bit 0: it came late, since the thread had the signal blocked (6.1) */
};

/*
 * Whether a signal is the SIGTRAP of an event with TALLY_ATTR_SIGTRAP (Linux 5.13); fills in `out`
 * then. Async-signal-safe. Since: 0.1
 */
TALLY_API bool tally_signal_is_trap(const siginfo_t *info, struct tally_trap *out);

/*
 * Enables, disables all events that the calling thread has opened, by prctl(2): one call however
 * many there are. That is all of them: those of other libraries in this thread, those that measure
 * other threads and processes, and members of groups one by one. Counters do not take note of it,
 * and tally_counter_enable() and tally_group_enable() switch theirs on again. Events that other
 * threads opened go on, even where they measure this thread. Async-signal-safe.
 * Errors: -errno of prctl(2). Since: 0.1
 */
TALLY_API int tally_task_events_enable(void);
TALLY_API int tally_task_events_disable(void);

TALLY_END_DECLS

#endif
