/* SPDX-License-Identifier: MIT */
/* Does perf_event_open(2) reach the kernel, or does a seccomp filter stand in front of it? */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "inspect/probe.h"

/*
 * The kernel refuses unknown flags with EINVAL before it looks at anything else, at the paranoid
 * level neither; whoever answers otherwise is not the kernel's perf. A filter may kill, so a child
 * asks: its exit status is the errno.
 */
static _Noreturn void ask(void)
{
	int r = sys()->perf_event_open(NULL, 0, -1, -1, ~0ul);

	if (r >= 0)
		_exit(EINVAL);
	_exit(-r > 255 ? EINVAL : -r);
}

int probe_reached(void)
{
	int status;
	pid_t child = fork(), r;

	if (child < 0)
		return -errno;
	if (child == 0)
		ask();
	do
		r = waitpid(child, &status, 0);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return errno == ECHILD ? 0
				       : -errno; /* SIGCHLD is ignored: later checks will tell */
	if (WIFSIGNALED(status))
		return -PROBE_KILLED;
	return WEXITSTATUS(status) == EINVAL ? 0 : -WEXITSTATUS(status);
}
