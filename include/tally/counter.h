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
 * counted at the same time, and signal.h for being told of overflows.
 *
 * A counter may also be the view of a group's member (tally_group_member): all that acts on one
 * event works on it, but not what acts on the whole group.
 *
 * In a signal handler: tally_counter_enable, _disable, _refresh, _set_period, _id, _places and _fd
 * are async-signal-safe (no allocation, no lock, system calls only). So is tally_counter_read,
 * unless the handler interrupted another call on the same counter or group, whose room for the
 * kernel's answer it would overwrite.
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

/*
 * Those that contradict each other are refused in words, as those of tasks are on CPUs. What a flag
 * is not for, by its words here, it leaves as it is.
 */
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
	 * Ask for reads from user space, see tally_counter_fast(). Needed on arm64 only, for
	 * hardware events (Linux 5.17); where it is refused the event is opened without.
	 */
	TALLY_COUNTER_FAST = 1u << 8,
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
	/*
	 * Groups: read members one by one instead of all at once, so that each has its own times,
	 * where a member was switched by descriptor or lost its place alone. A read(2) a member; the
	 * readings are not of one moment.
	 */
	TALLY_COUNTER_MEMBER_TIMES = 1u << 12,
	/*
	 * Groups: where the kernel says that the PMU can never count all of a group at once, or that
	 * it is too large to be read, open it as several smaller ones instead of failing. The modifier
	 * W asks for it too. See tally_group_is_split().
	 */
	TALLY_COUNTER_WEAK = 1u << 13,
};

struct tally_freeze; /* freeze.h */

struct tally_counter_opts {
	uint32_t size, flags; /* enum tally_counter_flags */
	const char *root;     /* folder above /proc and /sys; NULL: the real one. Borrowed. */
	/*
	 * A signal, a refresh or a ring is served every so many events, of a group's members of each.
	 * 0: as the event says, which mostly is a counter that never overflows. Below 2^63.
	 */
	uint64_t period;
	uint64_t sig_data; /* with SIGTRAP */
	/* PROCESS: it is being held still for several counters. NULL: held for this one alone. */
	const struct tally_freeze *freeze;
	int32_t clockid;   /* with USE_CLOCKID: a clock of clock_gettime(2) */
	uint32_t reserved; /* 0 */
};

/*
 * Opens the event on every place of the target, or none. It stays disabled, but for a COMMAND,
 * whose exec enables it, and with TALLY_COUNTER_ENABLED. `event` must outlive the counter, the target
 * and the options need not.
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

/*
 * Starts, stops counting, on all places. Errors: -EINVAL for the member of a group, which is
 * switched as a whole; -errno of ioctl(2). Since: 0.1
 */
TALLY_API int tally_counter_enable(struct tally_counter *counter);
TALLY_API int tally_counter_disable(struct tally_counter *counter);

/*
 * Makes now the zero of later readings: value, times and lost. It is a baseline kept here, because
 * the kernel's RESET clears no times, and the counts of ended children only where it swapped their
 * contexts with the parent's.
 * Errors: -EINVAL for the member of a group; those of tally_counter_read. Since: 0.1
 */
TALLY_API int tally_counter_reset(struct tally_counter *counter);

/*
 * Reads it. A counter whose pinned event lost its place answers 0 with state ERROR.
 * Errors: -errno of read(2). Since: 0.1
 */
TALLY_API int tally_counter_read(struct tally_counter *counter, struct tally_count *out);

/*
 * Reads one place alone, by its index in tally_counter_places(). Parts of an event are not joined:
 * on a CPU with two kinds of cores a thread has a place for each kind. What was counted there before
 * it was opened anew (tally_counter_generation) is in the whole reading only.
 * Errors: -EINVAL (no such place), those of tally_counter_read. Since: 0.1
 */
TALLY_API int tally_counter_read_place(struct tally_counter *counter, uint32_t place,
				       struct tally_count *out);

/*
 * Fills in `out` for reading it in this thread without a system call where that is possible; see
 * fast.h. Call it in the thread that opened the counter, for TALLY_SCOPE_SELF; for others, and
 * where the page cannot be mapped, `out` reads by read(2). It keeps a page mapped until the counter
 * closes, of this user's locked memory (kernel.perf_event_mlock_kb), and answers the same when
 * asked again. Errors: -EINVAL for a counter of several places. Since: 0.1
 */
TALLY_API int tally_counter_fast(struct tally_counter *counter, struct tally_fast *out,
				 struct tally_error *err);

/*
 * The places, and the file descriptor at each, for what this API lacks. Borrowed, until it is closed
 * or opened anew. Errors of the descriptor: -EINVAL beyond the places; -ENOENT where the member of a
 * group has no part, as its PMU is that of other places. Since: 0.1
 */
TALLY_API uint32_t tally_counter_places(const struct tally_counter *counter,
					const struct tally_place **places);
TALLY_API int tally_counter_fd(const struct tally_counter *counter, uint32_t place);

/*
 * The kernel's id of the event at a place, as records carry it. Errors: those of tally_counter_fd().
 * Since: 0.1
 */
TALLY_API int tally_counter_id(const struct tally_counter *counter, uint32_t place, uint64_t *id);

/*
 * How often the events have been opened anew (tally_counter_set_filter, tally_group_split): when it
 * changes, descriptors, ids, places, pages that were mapped, outputs, programs, limits and signals
 * have to be asked for or set up again. What was counted is kept. Since: 0.1
 */
TALLY_API uint32_t tally_counter_generation(const struct tally_counter *counter);

/*
 * Starts it for so many overflows, at each place, after which the kernel disables it. Called again
 * it adds to what is left. The first member of a group starts and stops the whole group, others
 * themselves alone.
 * Errors: -EINVAL for 0 and beyond INT_MAX, for a counter without a period, and for one that
 * follows threads or children. Since: 0.1
 */
TALLY_API int tally_counter_refresh(struct tally_counter *counter, uint32_t overflows);

/*
 * Changes the period, in events an overflow, or samples a second where the event was opened with a
 * frequency. What was left of the old period is dropped: the next overflow is a whole new one away.
 * Software events and tracepoints that are counting overflow at their next event instead, and then
 * by the new period; disable the counter meanwhile where that matters.
 * Before Linux 3.14 (3.7 on Arm) it takes effect after the next overflow. Threads and children that
 * are followed already keep the old one.
 * Errors: -EINVAL for 0, for 2^63 and more, for a counter without a period. Since: 0.1
 */
TALLY_API int tally_counter_set_period(struct tally_counter *counter, uint64_t period);

/*
 * Sends the samples of one place to the ring of another event, whose descriptor is `ring_fd`, so
 * that they share it. That event must be mapped, and count on the same CPU or, where neither is
 * bound to one, the same task; use the same clock; and not write backward where this one does not.
 * This one must not be mapped itself. Detaching ends that; samples then go nowhere.
 * Errors: -EINVAL when one of these does not hold; -EBADF; those of tally_counter_fd(). Since: 0.1
 */
TALLY_API int tally_counter_set_output(struct tally_counter *counter, uint32_t place, int ring_fd);
TALLY_API int tally_counter_detach_output(struct tally_counter *counter, uint32_t place);

/*
 * Stops the kernel from writing to the rings of all places, and lets it go on; what comes meanwhile
 * counts as lost. Needs Linux 4.7. Errors: -EINVAL where a place has no ring. Since: 0.1
 */
TALLY_API int tally_counter_pause_output(struct tally_counter *counter, bool paused);

/*
 * Sets the filter of a tracepoint (the kernel's language, as "prev_pid == 1"); NULL removes it. The
 * event keeps it, as after tally_event_set_filter().
 *
 * The kernel takes one filter an event. A further one, or its removal, opens the event anew at all
 * places, with its whole group, and adds what was counted so far to what will be: sums stay exact,
 * but what happens in the moment between is not counted, and tally_counter_generation() goes up.
 * This cannot be done without losing them when it follows threads or children: -EBUSY once it has
 * counted.
 * Errors: -EINVAL (not a tracepoint, not a filter), -EBUSY, -ENOMEM; those of opening it. The
 * counter is as it was, but for -ENOMEM, after which some places may have the filter. Since: 0.1
 */
TALLY_API int tally_counter_set_filter(struct tally_counter *counter, const char *filter,
				       struct tally_error *err);

/*
 * Runs a BPF program, by its descriptor, at each event: on probes (Linux 4.1) and tracepoints
 * (4.7), where its answer 0 keeps the event from being counted, and on other events at each
 * overflow (4.9).
 * Errors: -EBADF, -EINVAL (not a program for this event), -EEXIST (an overflow has one), -E2BIG
 * (64 on a tracepoint), -EPERM. Since: 0.1
 */
TALLY_API int tally_counter_set_bpf(struct tally_counter *counter, int prog_fd);

/*
 * The ids of the BPF programs on the tracepoint that it counts, those of others too. Returns
 * how many there are, of which at most `room` are written (`ids` may be NULL for 0). Needs Linux
 * 4.16 and CAP_PERFMON.
 * Errors: -EINVAL (another kind of event), -EPERM; those of tally_counter_fd(). Since: 0.1
 */
TALLY_API int tally_counter_query_bpf(const struct tally_counter *counter, uint32_t place,
				      uint32_t *ids, uint32_t room);

/*
 * Moves a breakpoint: bp_type, config1 (address) and config2 (length) are taken from `attr`, whose
 * type must be TALLY_TYPE_BREAKPOINT; nothing else of it is looked at. What was counted stays, and
 * it counts on if it did. It fails at all places or at none. A group that is split afterwards
 * begins with the breakpoint as it was. Needs Linux 4.17.
 * Errors: -EOPNOTSUPP (not a breakpoint), -ENOTTY (older kernel), -EINVAL (no such breakpoint),
 * -ENOSPC (debug registers are used up); explained. Since: 0.1
 */
TALLY_API int tally_counter_modify(struct tally_counter *counter, const struct tally_attr *attr,
				   struct tally_error *err);

/*
 * Why a reading of this counter is NEVER_RAN or ERROR, and what to do about it, as far as can be
 * told: too short, no counter free (with kernel.nmi_watchdog), a group too large, a target that
 * did not run, a PMU of other CPUs, a pinned event that lost its place.
 * Returns 0 when the reading needs no explanation, else `err` is filled in and a code returned:
 * -EAGAIN, -EBUSY, -ENOSPC, -ENODATA, or the reading's error. Since: 0.1
 */
TALLY_API int tally_counter_explain(const struct tally_counter *counter,
				    const struct tally_count *count, struct tally_error *err);

/* Closes all descriptors. NULL is fine; the view of a member stays. Since: 0.1 */
TALLY_API void tally_counter_close(struct tally_counter *counter);

TALLY_END_DECLS

#endif
