/* SPDX-License-Identifier: MIT */
/* What could harm the process that tries it, tried in a child. Only Linux and ptrace are needed. */
#ifndef INSPECT_PROBE_H
#define INSPECT_PROBE_H

#include <stdint.h>

/* A child was killed by SIGSYS: beyond the range of errno. */
#define PROBE_KILLED 10000

/*
 * Whether perf_event_open(2) reaches the kernel: 0; -PROBE_KILLED when a seccomp filter kills the
 * process that calls it; else the -errno with which it is refused before it is looked at, or with
 * which there was no child to try it in.
 */
int probe_reached(void);

/* ptrace(2) requests; glibc names the second on some architectures only. */
enum probe_step {
	PROBE_SINGLE_STEP = 9,
	PROBE_SINGLE_BLOCK = 33,
};

/* Instructions in the straight line that probe_steps has a child run, at least. */
#define PROBE_LINE 64

/*
 * Steps a child through PROBE_LINE instructions without a branch, and tells how many stops there
 * were in them: about one each for single steps, next to none for steps from branch to branch.
 * Errors: -errno of fork(2) or ptrace(2); -EIO when this machine has no such step; -ETIME when the
 * steps lead nowhere.
 */
int probe_steps(enum probe_step request);

#endif
