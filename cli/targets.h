/* SPDX-License-Identifier: MIT */
/* From -a, -C, -p and -t, which mean the same to every command, to targets. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include <stdbool.h>
#include <tally/tally.h>

#define MAX_TARGETS 64
#define MAX_CPUS    8192 /* the kernel's largest NR_CPUS */

/* What the options hold; fields are NULL or false when they were not given. */
struct target_args {
	const char *pids, *tids; /* numbers separated by commas */
	const char *cpus;        /* a list as 0-3,8 */
	bool all;                /* all CPUs */
};

struct targets {
	struct tally_target at[MAX_TARGETS];
	uint32_t count; /* 0: none of the options was given */
	int32_t cpus[MAX_CPUS];
};

/* A list of CPUs, as 0-3,8, with room for MAX_CPUS; false: it is none. */
bool cpus_parse(const char *text, int32_t *cpus, uint32_t *count);

/* false after an error, which was printed for `command`. */
bool targets_parse(struct targets *targets, const struct target_args *args, const char *command);

#endif
