/* SPDX-License-Identifier: MIT */
/*
 * tally_launch: a command that is started, waits before its exec until counters are attached, and
 * is then let go.
 *
 *	tally_launch_start(&launch, argv, &err);
 *	target = { .scope = TALLY_SCOPE_COMMAND, .id = tally_launch_pid(launch) };
 *	... open counters on target ...
 *	tally_launch_go(launch, &err);
 *	tally_launch_wait(launch, &end, &err);
 *	tally_launch_close(launch);
 *
 * All calls come from the thread that started it.
 */
#ifndef TALLY_LAUNCH_H
#define TALLY_LAUNCH_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_launch;

/* How a command ended. */
struct tally_exit {
	int32_t status;   /* what a shell would report: the exit status, or 128 + the signal */
	int32_t signal;   /* the signal that ended it, or 0 */
	uint64_t wall_ns; /* from its release by tally_launch_go to when wait saw its end */
	uint64_t user_ns, sys_ns; /* of the command and the children that it waited for */
	uint64_t max_rss_bytes;
};

/*
 * Forks a child that waits. argv[0] is looked up in PATH at the exec, as execvp(3) does; argv is
 * copied by the fork. The child dies with the caller as long as it waits. It stays in the caller's
 * process group and session, has the signal mask that the calling thread has now, and the default
 * for each signal that the caller handles; ignored signals stay ignored.
 * Errors: -EINVAL for an empty argv, -EAGAIN, -ENOMEM, -EMFILE. Since: 0.1
 */
TALLY_API int tally_launch_start(struct tally_launch **out, char *const argv[],
				 struct tally_error *err);

/* The child's pid, for a target. Since: 0.1 */
TALLY_API int32_t tally_launch_pid(const struct tally_launch *launch);

/*
 * Lets it exec, and waits until that has succeeded or failed.
 * Errors, with TALLY_CAUSE_EXEC: those of execvp(3). A shell's status for them is 127 for -ENOENT
 * and 126 for the others. Since: 0.1
 */
TALLY_API int tally_launch_go(struct tally_launch *launch, struct tally_error *err);

/*
 * Waits for its end; `timeout_ms` < 0 waits for ever. Returns 1 when it ended (then and later
 * `*end` is filled in), 0 on time-out. Errors: -EINTR when a signal came first: the caller decides;
 * -ECHILD when it has ended and somebody else has its status: SIGCHLD is ignored, or another wait
 * of this process took it. Since: 0.1
 */
TALLY_API int tally_launch_wait(struct tally_launch *launch, int timeout_ms, struct tally_exit *end,
				struct tally_error *err);

/* A pidfd that polls readable when the command has ended, -1 before Linux 5.3. Borrowed. Since: 0.1
 */
TALLY_API int tally_launch_fd(const struct tally_launch *launch);

/* Sends it a signal, if it has not been waited for. Errors: those of kill(2). Since: 0.1 */
TALLY_API int tally_launch_kill(struct tally_launch *launch, int signal);

/*
 * Frees it. A child that still waits is ended and reaped; one that runs is left running, as a shell
 * would; kill it first if it should not. NULL is fine. Since: 0.1
 */
TALLY_API void tally_launch_close(struct tally_launch *launch);

TALLY_END_DECLS

#endif
