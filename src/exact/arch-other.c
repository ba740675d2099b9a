/* SPDX-License-Identifier: MIT */
/* An architecture that is not known: nothing can be traced there, and it says so. */
#include <errno.h>
#include <string.h>

#include "exact/arch.h"

const struct arch arch = { .words = 0 };

int arch_get_regs(int32_t tid, struct tally_tracee_regs *regs)
{
	return -ENOTSUP;
}

int arch_set_regs(int32_t tid, const struct tally_tracee_regs *regs)
{
	return -ENOTSUP;
}

void arch_insn(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits)
{
	memset(out, 0, sizeof(*out));
	out->flags = TALLY_INSN_UNKNOWN;
}

unsigned arch_bits(const struct tally_tracee_regs *regs)
{
	return 64;
}

uint64_t arch_call_arg(const struct tally_tracee_regs *regs, int index)
{
	return 0;
}

void arch_prepare_call(struct tally_tracee_regs *regs, long number, const uint64_t args[6],
		       uint64_t at)
{
}

int arch_skip_call(int32_t tid, struct tally_tracee_regs *regs)
{
	return -ENOTSUP;
}
