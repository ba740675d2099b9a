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
};

struct tally_target {
	uint32_t scope;      /* enum tally_scope */
	int32_t id;          /* a tid or pid, by scope */
	const int32_t *cpus; /* TALLY_SCOPE_CPUS: borrowed until the open call returns */
	uint32_t cpu_count;
	uint32_t reserved;
};

/* One place where an event is opened: the pid and cpu of perf_event_open(2). -1: any. */
struct tally_place {
	int32_t tid, cpu;
};

TALLY_END_DECLS

#endif
