/* SPDX-License-Identifier: MIT */
/*
 * tally_counter: one event on one target.
 *
 *	tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err);
 *	tally_counter_enable(counter);
 *	work();
 *	tally_counter_read(counter, &count);
 *
 * It opens as many file descriptors as the target has places (threads, CPUs) and sums them.
 * Reading is one read(2) a place, and allocates nothing. See group.h for events that must be
 * counted at the same time.
 */
#ifndef TALLY_COUNTER_H
#define TALLY_COUNTER_H

#include <tally/api.h>
#include <tally/count.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/fast.h>
#include <tally/target.h>

TALLY_BEGIN_DECLS

struct tally_counter;

enum tally_counter_flags {
	TALLY_COUNTER_ENABLED = 1u << 0, /* count from the open on; the default is disabled */
	TALLY_COUNTER_NO_INHERIT =
		1u << 1, /* PROCESS, COMMAND: do not follow new threads and children */
	/*
	 * Ask for reads from user space, see tally_counter_fast(). Needed on arm64 only, for
	 * hardware events (Linux 5.17); where it is refused the event is opened without.
	 */
	TALLY_COUNTER_FAST = 1u << 8,
};

struct tally_counter_opts {
	uint32_t size, flags; /* enum tally_counter_flags */
	const char *root;     /* folder above /proc and /sys; NULL: the real one. Borrowed. */
};

/*
 * Opens the event on every place of the target, or none. It stays disabled, but for a COMMAND,
 * whose exec enables it, and with TALLY_COUNTER_ENABLED. `event` must outlive the counter.
 * What the kernel granted stands in the event afterwards.
 * When file descriptors run out the soft RLIMIT_NOFILE is raised to the hard one, once.
 * Errors: every errno of perf_event_open(2), with its cause and remedy in words: -EACCES and -EPERM
 * (paranoid level, capability, seccomp), -ENOENT and -EOPNOTSUPP (no such event, no PMU), -ESRCH,
 * -EMFILE, -EBUSY, -EINVAL. Since: 0.1
 */
TALLY_API int tally_counter_open(struct tally_counter **out, struct tally_event *event,
				 const struct tally_target *target,
				 const struct tally_counter_opts *opts, struct tally_error *err);

/* Starts, stops counting, on all places. Errors: -errno of ioctl(2). Since: 0.1 */
TALLY_API int tally_counter_enable(struct tally_counter *counter);
TALLY_API int tally_counter_disable(struct tally_counter *counter);

/*
 * Makes now the zero of later readings: value, times and lost. It is a baseline kept here, because
 * the kernel's RESET clears neither the times nor the counts of ended children.
 * Errors: those of tally_counter_read. Since: 0.1
 */
TALLY_API int tally_counter_reset(struct tally_counter *counter);

/*
 * Reads it. A counter whose pinned event lost its place answers 0 with state ERROR.
 * Errors: -errno of read(2). Since: 0.1
 */
TALLY_API int tally_counter_read(struct tally_counter *counter, struct tally_count *out);

/*
 * Fills in `out` for reading it in this thread without a system call where that is possible; see
 * fast.h. Call it in the thread that opened the counter, for TALLY_SCOPE_SELF; for others, and
 * where the page cannot be mapped, `out` reads by read(2). It keeps a page mapped until the counter
 * closes, of this user's locked memory (kernel.perf_event_mlock_kb), and answers the same when
 * asked again. Errors: -EINVAL for a counter of several places. Since: 0.1
 */
TALLY_API int tally_counter_fast(struct tally_counter *counter, struct tally_fast *out,
				 struct tally_error *err);

/* The places, and the file descriptor at each, for what this API lacks. Borrowed. Since: 0.1 */
TALLY_API uint32_t tally_counter_places(const struct tally_counter *counter,
					const struct tally_place **places);
TALLY_API int tally_counter_fd(const struct tally_counter *counter, uint32_t place);

/* Closes all descriptors. NULL is fine. Since: 0.1 */
TALLY_API void tally_counter_close(struct tally_counter *counter);

TALLY_END_DECLS

#endif
