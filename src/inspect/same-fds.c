/* SPDX-License-Identifier: MIT */
/*
 * The descriptors that the command was started with, through dup(2) and close(2). What is done to them
 * is done once, by the first run; the others are told what it was told.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/proc.h"
#include "inspect/same.h"

/* A poll of more is not looked at. */
#define POLLED_MAX 256

static void set(struct same_run *run, uint64_t fd, bool is)
{
	if (fd >= SAME_FDS)
		return;
	uint8_t bit = (uint8_t)(1u << (fd % 8));
	run->fds[fd / 8] = (uint8_t)(is ? run->fds[fd / 8] | bit : run->fds[fd / 8] & ~bit);
}

bool same_fds_has(const struct same_run *run, uint64_t fd)
{
	return fd < SAME_FDS && (run->fds[fd / 8] >> (fd % 8) & 1);
}

/* Behind an exec those are left that had been there and are still. */
int same_fds_start(struct same_run *run)
{
	char path[64];
	int32_t *list;
	size_t count;
	bool first = run->ticks == 0;
	uint8_t before[SAME_FDS / 8];

	snprintf(path, sizeof(path), "/proc/%d/fd", tally_tracee_pid(run->threads.at[0]->tracee));
	int r = proc_list_ids(&list, &count, NULL, path);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(before); i++) {
		before[i] = first ? 0xff : run->fds[i];
		run->fds[i] = 0;
	}
	for (size_t i = 0; i < count; i++)
		if (list[i] < SAME_FDS && (before[list[i] / 8] >> (list[i] % 8) & 1))
			set(run, (uint64_t)list[i], true);
	free(list);
	return 0;
}

static bool polls_one(struct same_run *run, struct same_thread *t)
{
	const uint64_t *args = t->pending.args;
	struct pollfd polled;

	for (uint64_t i = 0; i < args[1] && i < POLLED_MAX; i++) {
		if (tally_tracee_peek(t->tracee, args[0] + i * sizeof(polled), &polled,
				      sizeof(polled)) < 0)
			return false;
		if (polled.fd >= 0 && same_fds_has(run, (uint64_t)polled.fd))
			return true;
	}
	return false;
}

bool same_fds_concern(struct same_run *run, struct same_thread *t)
{
	const struct same_call *call = t->pending.call;

	if (!same_fixes(run->same, TALLY_SAME_IO))
		return false;
	if (call->kind == SAME_POLL || call->kind == SAME_POLL_TIME)
		return polls_one(run, t);
	return (call->flags & SAME_ONCE) && same_fds_has(run, t->pending.args[0]);
}

void same_fds_follow(struct same_run *run, const struct same_thread *t, int64_t result)
{
	const struct same_pending *p = &t->pending;
	bool dups = p->call->kind == SAME_DUP ||
		    (p->call->kind == SAME_FCNTL &&
		     (p->args[1] == F_DUPFD || p->args[1] == F_DUPFD_CLOEXEC));

	if (result < 0)
		return;
	if (dups)
		set(run, (uint64_t)result, same_fds_has(run, p->args[0]));
	else if (p->call->kind == SAME_CLOSE)
		set(run, p->args[0], false);
}
