/* SPDX-License-Identifier: MIT */
/*
 * A system call made by the tracee from where it stands. The instruction for it is one in the vDSO,
 * which every process has, so that no code of the program's is touched. Signals are blocked meanwhile.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/proc.h"
#include "base/sys.h"
#include "exact/tracee.h"

#define VDSO_MAX 16384u /* the code of known ones is within their first two pages */

/* Where the vDSO is: the kernel tells the program by its auxiliary vector, proc_pid_auxv(5). */
static uint64_t find_vdso(struct tally_tracee *t)
{
	char path[64];
	uint64_t entry[2], found = 0;

	snprintf(path, sizeof(path), "/proc/%d/auxv", t->tid);
	buf_reset(&t->text);
	if (proc_read(&t->text, NULL, path, VDSO_MAX) < 0)
		return 0;
	for (size_t at = 0; at + sizeof(entry) <= t->text.len; at += sizeof(entry)) {
		memcpy(entry, t->text.at + at, sizeof(entry));
		if (entry[0] == AT_SYSINFO_EHDR)
			found = entry[1];
	}
	return found;
}

static int find_call(struct tally_tracee *t)
{
	uint64_t vdso = find_vdso(t);
	uint8_t bytes[256];

	for (uint64_t at = vdso; vdso && at < vdso + VDSO_MAX; at += sizeof(bytes) - 4) {
		if (tally_tracee_peek(t, at, bytes, sizeof(bytes)) < 0)
			break;
		const uint8_t *found = memmem(bytes, sizeof(bytes), arch.call_bytes, arch.call_len);
		if (found) {
			t->call_at = at + (uint64_t)(found - bytes);
			return 0;
		}
	}
	return -ENOTSUP;
}

/* The next stop of the call. What comes in between is asked for again later, or waits. */
static int await_call(struct tally_tracee *t, uint32_t kind, struct tally_stop *stop)
{
	int status, r;

	for (;;) {
		r = tracee_continue(t, PTRACE_SYSCALL, 0);
		if (r == 0)
			do
				r = tracee_await(t, -1, &status);
			while (r == -EINTR);
		if (r < 0)
			return r;
		r = stop_read(t, status, stop);
		if (t->state == TRACEE_GONE || stop->kind == TALLY_STOP_EXITING) {
			/* For the caller, who takes it for stopped, and asks for its next stop. */
			t->state = TRACEE_STOPPED;
			t->has_status = true;
			t->wait_status = status;
			return -ESRCH;
		}
		if (r < 0 || stop->kind == kind)
			return r;
		t->again |= stop->kind == TALLY_STOP_INTERRUPT || stop->kind == TALLY_STOP_GROUP;
	}
}

static int make_call(struct tally_tracee *t, const struct tally_tracee_regs *regs, int64_t *result)
{
	struct tally_stop stop;
	int r = arch_set_regs(t->tid, regs);

	if (r == 0)
		r = await_call(t, TALLY_STOP_SYSCALL_ENTRY, &stop);
	if (r == 0)
		r = await_call(t, TALLY_STOP_SYSCALL_EXIT, &stop);
	if (r == 0)
		*result = (int64_t)stop.value;
	return r;
}

int inject(struct tally_tracee *t, long number, const uint64_t args[6], int64_t *result)
{
	struct tally_tracee_regs regs;
	uint64_t mask, all = UINT64_MAX;
	int r = t->call_at ? 0 : find_call(t);

	if (r == 0)
		r = tracee_read_regs(t);
	if (r < 0)
		return r;
	if (t->bits == 32)
		return -ENOTSUP; /* it would be a call of another ABI */
	const struct tally_tracee_regs saved = t->regs;
	regs = saved;
	arch_prepare_call(&regs, number, args, t->call_at);
	r = (int)sys()->ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), (unsigned long)&mask);
	if (r == 0)
		r = (int)sys()->ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(all), (unsigned long)&all);
	if (r == 0)
		r = make_call(t, &regs, result);
	if (t->state != TRACEE_STOPPED || t->has_status)
		return r;
	int back = arch_set_regs(t->tid, &saved);
	if (back == 0)
		back = (int)sys()->ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask),
					  (unsigned long)&mask);
	t->regs = saved;
	t->regs_known = t->pc_known = true;
	t->pc = saved.word[arch.pc];
	return r < 0 ? r : back;
}

int tally_tracee_syscall(struct tally_tracee *tracee, long number, const uint64_t args[6],
			 int64_t *result)
{
	const struct tally_stop stop = tracee->stop;

	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	if (tracee->in_call || stop.kind == TALLY_STOP_GROUP)
		return -EINVAL;
	/* The signal of this stop is lost with the stop; it is sent again when it is delivered. */
	int r = 0;
	if (stop.kind == TALLY_STOP_SIGNAL && tracee->redeliver.state != HELD_TAKEN)
		r = held_take(tracee);
	if (r < 0)
		return r;
	r = inject(tracee, number, args, result);
	code_forget(tracee);
	return r;
}
