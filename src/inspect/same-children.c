/* SPDX-License-Identifier: MIT */
/*
 * Processes that a run makes. They run free and are not compared; before they begin they get back the
 * CPUs that their parent was taken from, and those of other runs than the first are kept from reading
 * and writing where the command was started: that is done once.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "inspect/same.h"

/* Below the stack pointer, and what may be used there without moving it (x86-64: 128 bytes). */
#define BELOW_STACK 512

static int call(struct tally_tracee *child, long number, uint64_t a, uint64_t b, uint64_t c,
		int64_t *result)
{
	const uint64_t args[6] = { a, b, c };
	int r = tally_tracee_syscall(child, number, args, result);

	return r < 0 ? r : *result < 0 ? (int)*result : 0;
}

/* `path` is in the child's memory. */
static int redirect(struct same_run *run, struct tally_tracee *child, uint64_t path)
{
	int64_t null, ignored;
	int r = call(child, SYS_openat, (uint64_t)AT_FDCWD, path, O_RDWR, &null);

	if (r < 0)
		return r;
	for (uint64_t fd = 0; fd < SAME_FDS; fd++)
		if (same_fds_has(run, fd) && fd != (uint64_t)null)
			call(child, SYS_dup3, (uint64_t)null, fd, 0, &ignored);
	return same_fds_has(run, (uint64_t)null)
		       ? 0
		       : call(child, SYS_close, (uint64_t)null, 0, 0, &ignored);
}

/* A child by vfork(2) has its parent's memory, which is left as it was. */
static int quieten(struct same_run *run, struct tally_tracee *child)
{
	static const char null[16] = "/dev/null";
	struct tally_tracee_regs regs;
	char saved[sizeof(null)];
	int r = tally_tracee_regs(child, &regs);
	uint64_t at = r == 0 ? (tally_tracee_regs_sp(&regs) - BELOW_STACK) & ~(uint64_t)15 : 0;

	if (r == 0)
		r = tally_tracee_peek(child, at, saved, sizeof(saved));
	if (r == 0)
		r = tally_tracee_poke(child, at, null, sizeof(null));
	if (r < 0)
		return r;
	r = redirect(run, child, at);
	int back = tally_tracee_poke(child, at, saved, sizeof(saved));
	return r < 0 ? r : back;
}

/* Whether parent and child have one table of descriptors: then it is left alone. */
static bool shares_files(struct same_thread *from)
{
	const struct same_pending *p = &from->pending;
	uint64_t flags = 0;

	if (!p->call)
		return true;
	if (p->number == SYS_clone)
		flags = p->args[0];
	else if (p->number == SYS_clone3 &&
		 tally_tracee_peek(from->tracee, p->args[0], &flags, sizeof(flags)) < 0)
		return true;
	return flags & CLONE_FILES;
}

int same_child(struct same_run *run, struct same_thread *from, struct tally_tracee *child)
{
	const struct tally_same *same = run->same;
	int r = 0;

	run->same->chances |= 1u << SAME_CHANCE_CHILD;
	if (same_fixes(same, TALLY_SAME_CPU))
		sched_setaffinity(tally_tracee_tid(child), sizeof(same->cpus), &same->cpus);
	if (run->index > 0 && same_fixes(same, TALLY_SAME_IO) && !shares_files(from))
		r = quieten(run, child);
	/* One that is killed meanwhile has nothing more to say. */
	if (r == 0)
		r = tally_tracee_detach(child, 0);
	tally_tracee_free(child);
	return r == -ESRCH ? 0 : r;
}
