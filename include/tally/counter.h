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
#include <tally/target.h>

TALLY_BEGIN_DECLS

struct tally_counter;

/* Those that contradict each other, or that the scope has no use for, are refused in words. */
enum tally_counter_flags {
	TALLY_COUNTER_ENABLED = 1u << 0, /* count from the open on; the default is disabled */
	TALLY_COUNTER_NO_INHERIT =
		1u << 1, /* PROCESS, COMMAND: do not follow new threads and children */
	/* SELF, THREAD: follow the threads and children that it starts from now on. */
	TALLY_COUNTER_INHERIT = 1u << 2,
	/* Follow new threads, but no child processes. Linux 5.13 */
	TALLY_COUNTER_INHERIT_THREAD = 1u << 3,
	/* An exec of the thread ends its counting. Linux 5.13 */
	TALLY_COUNTER_REMOVE_ON_EXEC = 1u << 4,
	/* Always on the PMU, or in state ERROR: it does not share counters. Of a group the leader. */
	TALLY_COUNTER_PINNED = 1u << 5,
	/* Alone on its PMU while it counts. Of a group: the group alone. */
	TALLY_COUNTER_EXCLUSIVE = 1u << 6,
	/* The next exec of the thread enables it; a COMMAND has that anyway. */
	TALLY_COUNTER_ENABLE_ON_EXEC = 1u << 7,
	/*
	 * Every `period` events the thread that caused them gets a SIGTRAP, at once, with `sig_data`
	 * in its siginfo (si_perf_data). It ends a process that does not handle it, so it is for
	 * threads of one's own. Implies REMOVE_ON_EXEC. Of a group: the leader. Linux 5.13
	 */
	TALLY_COUNTER_SIGTRAP = 1u << 9,
	/* Records of it carry times of the clock `clockid`. Linux 4.1 */
	TALLY_COUNTER_USE_CLOCKID = 1u << 10,
	/* PROCESS: do not stop it while counters are attached; the start is then not exact. */
	TALLY_COUNTER_NO_STOP = 1u << 11,
};

struct tally_freeze; /* freeze.h */

struct tally_counter_opts {
	uint32_t size, flags; /* enum tally_counter_flags */
	const char *root;     /* folder above /proc and /sys; NULL: the real one. Borrowed. */
	/*
	 * A signal, a refresh or a ring is served every so many events (of a group: of the leader's).
	 * 0: it only counts. Below 2^63.
	 */
	uint64_t period;
	uint64_t sig_data; /* with SIGTRAP */
	/* PROCESS: it is being held still for several counters. NULL: held for this one alone. */
	const struct tally_freeze *freeze;
	int32_t clockid; /* with USE_CLOCKID: a clock of clock_gettime(2) */
	uint32_t reserved;
};

/*
 * Opens the event on every place of the target, or none. It stays disabled, but for a COMMAND,
 * whose exec enables it, and with TALLY_COUNTER_ENABLED. `event` must outlive the counter.
 * What the kernel granted stands in the event afterwards; of an event of several parts, that of the
 * first part that was opened.
 *
 * An event of several parts is opened for each part, and their counts are one count. On CPUs each
 * part is opened where it counts. An event that counts packages rather than CPUs
 * (tally_event_per_package) is opened on one CPU of each.
 *
 * The threads of a PROCESS are held still while it is attached to (see freeze.h, with what that does
 * to the process), so that each of its threads has all its events from one moment on. Where that is
 * not possible it is attached to as it runs: tally_counter_start_exact() then says so, and so does
 * every reading.
 *
 * When file descriptors run out the soft RLIMIT_NOFILE is raised to the hard one, once.
 * Errors: every errno of perf_event_open(2), with its cause and remedy in words: -EACCES and -EPERM
 * (paranoid level, capability, seccomp), -ENOENT and -EOPNOTSUPP (no such event, no PMU), -ESRCH,
 * -EMFILE (with how many descriptors it takes in all), -EBUSY, -EINVAL (options that contradict each
 * other; an event that counts packages, on a task), -ENODEV (a CPU that is not online). CGROUP: also
 * -ENOENT, -ENOTDIR (no such group, with the nearest there is), -EBADF (a folder that is no cgroup),
 * -EOPNOTSUPP (no hierarchy with the controller is mounted). Since: 0.1
 */
TALLY_API int tally_counter_open(struct tally_counter **out, struct tally_event *event,
				 const struct tally_target *target,
				 const struct tally_counter_opts *opts, struct tally_error *err);

/*
 * How many file descriptors it takes to open all events of the list, groups as groups, on the target
 * as it is now. Nothing is opened. Errors: those of tally_counter_open that come from the options,
 * the target and how the two fit the events. Since: 0.1
 */
TALLY_API int tally_counter_cost(struct tally_events *events, const struct tally_target *target,
				 const struct tally_counter_opts *opts, uint64_t *fds,
				 struct tally_error *err);

/*
 * Whether all that is counted of a PROCESS is counted from one moment on. false: it ran while it was
 * attached to, so that a thread that started in that moment may be counted twice, or not from its
 * start. Always true of other scopes. Since: 0.1
 */
TALLY_API bool tally_counter_start_exact(const struct tally_counter *counter);

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
 * Reads one place alone, by its index in tally_counter_places(). Parts of an event are not joined:
 * on a CPU with two kinds of cores a thread has a place for each kind.
 * Errors: -EINVAL (no such place), those of tally_counter_read. Since: 0.1
 */
TALLY_API int tally_counter_read_place(struct tally_counter *counter, uint32_t place,
				       struct tally_count *out);

/* The places, and the file descriptor at each, for what this API lacks. Borrowed. Since: 0.1 */
TALLY_API uint32_t tally_counter_places(const struct tally_counter *counter,
					const struct tally_place **places);
TALLY_API int tally_counter_fd(const struct tally_counter *counter, uint32_t place);

/* Closes all descriptors. NULL is fine. Since: 0.1 */
TALLY_API void tally_counter_close(struct tally_counter *counter);

TALLY_END_DECLS

#endif
