/* SPDX-License-Identifier: MIT */
/* What needs care on x86 alone, for the other architectures. */
#include "exact/arch.h"

/* arm64: the kernel has moved the pc back already when a tracer sees it (do_signal()). */
bool arch_restarts(const struct tally_tracee_regs *regs)
{
	return false;
}

bool arch_steps_itself(const struct tally_tracee_regs *regs)
{
	return false;
}

uint64_t arch_repeats(const struct tally_tracee_regs *regs)
{
	return 0;
}

bool arch_repeat_writes(const struct tally_tracee_regs *regs, unsigned element, uint64_t address)
{
	return false;
}

bool arch_emulated(uint64_t pc)
{
	return false;
}
