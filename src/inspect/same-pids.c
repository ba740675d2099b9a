/* SPDX-License-Identifier: MIT */
/*
 * Without pid namespaces: the threads of the other runs are told the numbers that those of the first one
 * have. What goes by numbers besides, as wait4(2) and what /proc shows, is not translated.
 */
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "inspect/same.h"

/* struct clone_args, clone(2). */
struct clone3_args {
	uint64_t flags, pidfd, child_tid, parent_tid;
};

static bool translates(const struct same_run *run)
{
	return run->index > 0 && run->same->tells_pids;
}

/* The number of the first run's thread for one of this run's, and back; else 0. */
static uint32_t translate(const struct same_run *from, const struct same_run *to, uint64_t id)
{
	for (size_t i = 0; i < from->threads.count && i < to->threads.count; i++)
		if (from->threads.at[i]->id == (uint32_t)id)
			return to->threads.at[i]->id;
	return 0;
}

bool same_pids_begin(struct same_run *run, const struct same_pending *p,
		     struct tally_tracee_regs *regs)
{
	const struct same_machine *m = same_machine(regs->machine);
	int count = p->call->args == 3 ? 2 : 1; /* tgkill(process, thread, signal) */
	bool changed = false;

	if (!translates(run) || !(p->call->flags & SAME_SENDS))
		return false;
	for (int i = 0; i < count; i++) {
		uint32_t id = translate(run->same->runs[0], run, p->args[i]);
		if (!id)
			continue;
		regs->word[m->arg[i]] = id;
		changed = true;
	}
	return changed;
}

static int tell_at(struct same_thread *t, uint64_t address, int64_t id)
{
	int32_t number = (int32_t)id;

	return address ? tally_tracee_poke(t->tracee, address, &number, sizeof(number)) : 0;
}

/* The kernel has written the new thread's number where the call said. */
static int tell_memory(struct same_thread *t, int64_t id)
{
	const struct same_pending *p = &t->pending;
	struct clone3_args args = { .flags = p->args[0], .parent_tid = p->args[2] };
	int r = 0;

	/* The order of the last two differs by machine. */
	args.child_tid = p->args[t->regs.machine == EM_X86_64 ? 3 : 4];
	if (p->number == SYS_clone3)
		r = tally_tracee_peek(t->tracee, p->args[0], &args, sizeof(args));
	if (r == 0 && (args.flags & CLONE_PARENT_SETTID))
		r = tell_at(t, args.parent_tid, id);
	if (r == 0 && (args.flags & CLONE_CHILD_SETTID))
		r = tell_at(t, args.child_tid, id);
	return r;
}

int same_pids_finish(struct same_run *run, struct same_thread *t, int64_t *result)
{
	const struct same_machine *m = same_machine(t->regs.machine);
	const struct same_pending *p = &t->pending;

	if (!translates(run) || *result < 0)
		return 0;
	if (p->call->flags & SAME_SENDS)
		for (int i = 0; i < 2; i++)
			t->regs.word[m->arg[i]] = p->args[i];
	if (p->call->kind != SAME_PID && p->call->kind != SAME_CHILD)
		return 0;
	uint32_t id = translate(run, run->same->runs[0], (uint64_t)*result);
	if (!id)
		return 0;
	*result = id;
	return p->call->kind == SAME_CHILD ? tell_memory(t, id) : 0;
}

/* A signal to itself tells who sent it. */
int same_pids_signal(struct same_run *run, struct same_thread *t)
{
	siginfo_t info;

	if (!translates(run) || t->stop.code > 0)
		return 0;
	int r = tally_tracee_siginfo(t->tracee, &info);
	uint32_t id = r == 0 ? translate(run, run->same->runs[0], (uint64_t)info.si_pid) : 0;
	if (!id)
		return r;
	info.si_pid = (pid_t)id;
	return tally_tracee_set_siginfo(t->tracee, &info);
}
