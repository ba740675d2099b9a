/* SPDX-License-Identifier: MIT */
/* Checks of what is counted beside own programs: a process that runs already, a control group. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/counter.h>
#include <tally/freeze.h>

#include "inspect/check.h"

/* A child that waits to be ended; it ends with this process as well. */
static pid_t start_waiting(int *keep)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -errno;
	pid_t child = fork();
	if (child == 0) {
		char byte;
		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	int code = errno;
	close(ends[0]);
	*keep = ends[1];
	if (child < 0)
		close(ends[1]);
	return child < 0 ? -code : child;
}

static void end_waiting(pid_t child, int keep)
{
	close(keep);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

void check_attach(const struct doctor *d, struct finding *f)
{
	struct tally_freeze *freeze;
	struct tally_error err;
	int keep = -1;
	pid_t child = start_waiting(&keep);

	if (child < 0) {
		finding_set(f, TALLY_FINDING_UNKNOWN, "no child process to try it with");
		finding_means(f,
			      "whether running processes can be attached to exactly is not known");
		return;
	}
	int r = tally_freeze_open(&freeze, child, NULL, &err);
	if (r == 0 && tally_freeze_holds(freeze)) {
		finding_set(f, TALLY_FINDING_OK, "a process is held still");
		finding_means(f, "running processes are counted from one moment on");
	} else {
		finding_set(f, TALLY_FINDING_LIMITED, "%s",
			    r < 0 ? err.text : tally_freeze_reason(freeze));
		finding_means(f,
			      "running processes are counted all the same, but threads that start "
			      "while counters are attached may be counted twice or late");
	}
	if (r == 0)
		tally_freeze_close(freeze);
	end_waiting(child, keep);
}

/* The root of the hierarchy, which is always there where there is one. */
void check_cgroups(const struct doctor *d, struct finding *f)
{
	struct tally_target target = { .scope = TALLY_SCOPE_CGROUP, .cgroup = "/" };
	struct tally_counter *counter;
	struct tally_events *events;
	struct tally_error err;

	/* Whoever asks may be killed. */
	if (d->reached < 0) {
		finding_set(f, TALLY_FINDING_FAILS, "not tried");
		finding_means(f, "no event can be opened, in a control group neither");
		return;
	}
	int r = tally_events_parse(&events, "cpu-clock", TALLY_OPTS(events, .root = d->root), &err);
	if (r == 0) {
		r = tally_counter_open(&counter, tally_events_at(events, 0), &target,
				       TALLY_OPTS(counter, .root = d->root), &err);
		if (r == 0)
			tally_counter_close(counter);
		tally_events_free(events);
	}
	if (r == 0) {
		finding_set(f, TALLY_FINDING_OK, "counted");
		finding_means(f, "control groups can be counted and sampled by themselves");
		return;
	}
	finding_set(f, TALLY_FINDING_LIMITED, "not counted");
	finding_means(f, "control groups cannot be counted (-G): %s", err.text);
}
