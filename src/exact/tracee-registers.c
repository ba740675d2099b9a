/* SPDX-License-Identifier: MIT */
/* Registers of a stopped thread, read once a stop. */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* The words of both machines, wherever the registers come from. */
enum {
	X86_PC = 16,
	X86_SP = 19,
	ARM64_SP = 31,
	ARM64_PC = 32,
};

static uint64_t word_of(const struct tally_tracee_regs *regs, uint32_t x86, uint32_t arm64)
{
	if (regs->machine == EM_X86_64)
		return regs->word[x86];
	return regs->machine == EM_AARCH64 ? regs->word[arm64] : 0;
}

uint64_t tally_tracee_regs_pc(const struct tally_tracee_regs *regs)
{
	return word_of(regs, X86_PC, ARM64_PC);
}

uint64_t tally_tracee_regs_sp(const struct tally_tracee_regs *regs)
{
	return word_of(regs, X86_SP, ARM64_SP);
}

const char *tally_tracee_regs_name(uint32_t machine, uint32_t index)
{
	return machine == arch.machine && index < arch.words ? arch.names[index] : NULL;
}

int tracee_read_regs(struct tally_tracee *t)
{
	int r = t->regs_known ? 0 : arch_get_regs(t->tid, &t->regs);

	if (r < 0)
		return r;
	t->regs_known = t->pc_known = true;
	t->pc = t->regs.word[arch.pc];
	t->bits = arch_bits(&t->regs);
	return 0;
}

int tracee_read_pc(struct tally_tracee *t)
{
	return t->pc_known && t->bits ? 0 : tracee_read_regs(t);
}

int tracee_move_pc(struct tally_tracee *t, uint64_t pc)
{
	int r = tracee_read_regs(t);

	if (r < 0)
		return r;
	t->regs.word[arch.pc] = t->pc = pc;
	return arch_set_regs(t->tid, &t->regs);
}

int tally_tracee_regs(struct tally_tracee *tracee, struct tally_tracee_regs *regs)
{
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	int r = tracee_read_regs(tracee);
	if (r == 0)
		*regs = tracee->regs;
	return r;
}

int tally_tracee_set_regs(struct tally_tracee *tracee, const struct tally_tracee_regs *regs)
{
	if (tracee->state != TRACEE_STOPPED || regs->machine != arch.machine)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	int r = arch_set_regs(tracee->tid, regs);
	tracee->regs_known = tracee->pc_known = false;
	tracee->bits = 0;
	tracee->restarts = false;
	tracee->stop.kind = TALLY_STOP_NONE; /* a step will look at all of them */
	return r;
}

int tally_tracee_vector(struct tally_tracee *tracee, void *buf, size_t *len)
{
	struct iovec iov = { buf, *len };

	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	long r = sys()->ptrace(PTRACE_GETREGSET, tracee->tid, arch.vector_note,
			       (unsigned long)&iov);
	if (r < 0)
		return (int)r;
	/* A buffer that was filled to its end may have been too small: the kernel does not say. */
	if (iov.iov_len == *len)
		return -ENOBUFS;
	*len = iov.iov_len;
	return 0;
}

int tally_tracee_set_vector(struct tally_tracee *tracee, const void *buf, size_t len)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	return (int)sys()->ptrace(PTRACE_SETREGSET, tracee->tid, arch.vector_note,
				  (unsigned long)&iov);
}
