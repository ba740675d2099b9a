/* SPDX-License-Identifier: MIT */
/*
 * struct tally_target: whom to count or to sample, as an explicit scope. perf_event_open(2) takes
 * a pid and a cpu and leaves the rest to the caller; here a scope says what it covers.
 */
#ifndef TALLY_TARGET_H
#define TALLY_TARGET_H

#include <tally/api.h>

TALLY_BEGIN_DECLS

enum tally_scope {
	/* The calling thread alone. */
	TALLY_SCOPE_SELF = 0,
	/* The thread `id` alone: no children, no other threads. */
	TALLY_SCOPE_THREAD,
	/*
	 * The process `id`: all its threads, found by rescanning /proc/PID/task until it is stable,
	 * and all threads and children that any of them starts from then on.
	 */
	TALLY_SCOPE_PROCESS,
	/*
	 * A command that waits in a tally_launch, `id` being its pid: from its exec on, with all
	 * its threads and children. Counting starts in the kernel, at the exec.
	 */
	TALLY_SCOPE_COMMAND,
	/* Everything that runs on the CPUs of `cpus`; all that are online when `cpus` is NULL. */
	TALLY_SCOPE_CPUS,
	/* Everything that runs on this machine: TALLY_SCOPE_CPUS without a list. */
	TALLY_SCOPE_SYSTEM,
	/*
	 * What runs on the CPUs of `cpus`, or on all, while it belongs to the control group `cgroup`
	 * or to one below it. Threads come and go with the group, and nothing has to be followed.
	 * Linux 2.6.39, CONFIG_CGROUP_PERF.
	 */
	TALLY_SCOPE_CGROUP,
};

struct tally_target {
	uint32_t scope;      /* enum tally_scope */
	int32_t id;          /* a tid or pid, by scope */
	const int32_t *cpus; /* CPUS, CGROUP: borrowed until the open call returns */
	uint32_t cpu_count;
	uint32_t reserved; /* 0, else -EINVAL: initialise it as a whole */
	/*
	 * TALLY_SCOPE_CGROUP: a path below the mount of the hierarchy that has the perf_event
	 * controller ("system.slice/cron.service", with or without a leading slash, as
	 * /proc/PID/cgroup has it), or the absolute folder. Borrowed until the open call returns.
	 */
	const char *cgroup;
};

/*
 * One place where an event is opened; it does not grow. The pid and cpu of perf_event_open(2), -1 being any (or, on
 * CPUs, those of a cgroup), and which part of the event counts there (tally_event_part; in a group
 * the part that the others of this place go with).
 */
struct tally_place {
	int32_t tid, cpu;
	uint32_t part;
};

TALLY_END_DECLS

#endif
