/* SPDX-License-Identifier: MIT */
/* Points of an execution: taking them, and telling whether registers are those of one. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "exact/point.h"

/* By the kernel's user_regs_struct and user_pt_regs. */
static const struct machine {
	uint32_t machine, words, pc;
	uint32_t flags;       /* this word is compared but for some bits */
	uint64_t flags_apart; /* those that belong to the tracer */
	uint32_t apart;       /* this one is not compared: it is no register; == words: none */
} machines[] = {
	/* eflags: TF, RF. orig_rax is the kernel's note of the last system call. */
	{ EM_X86_64, 27, 16, 18, 1u << 8 | 1u << 16, 15 },
	/* pstate: SS. */
	{ EM_AARCH64, 34, 32, 33, 1u << 21, 34 },
};

static const struct machine *machine_of(const struct tally_tracee_regs *regs)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].machine == regs->machine && machines[i].words <= regs->count)
			return &machines[i];
	return NULL;
}

bool point_regs_known(const struct tally_tracee_regs *regs)
{
	return machine_of(regs);
}

uint64_t point_pc(const struct tally_tracee_regs *regs)
{
	const struct machine *m = machine_of(regs);

	return m ? regs->word[m->pc] : 0;
}

bool point_regs_equal(const struct tally_tracee_regs *a, const struct tally_tracee_regs *b)
{
	const struct machine *m = machine_of(a);

	if (!m || machine_of(b) != m || a->word[m->pc] != b->word[m->pc])
		return false;
	for (uint32_t i = 0; i < m->words; i++) {
		uint64_t differ = a->word[i] ^ b->word[i];
		if (i == m->flags)
			differ &= ~m->flags_apart;
		if (differ && i != m->apart)
			return false;
	}
	return true;
}

int tally_point_take(struct tally_point *out, struct tally_clock *clock,
		     const struct tally_tracee_regs *regs)
{
	const struct tally_clock_about *about = tally_clock_about(clock);
	struct tally_clock_value now;

	if (!regs || !point_regs_known(regs))
		return -EINVAL;
	tally_clock_read(clock, &now);
	if (now.validity)
		return now.error < 0 ? now.error : -EIO;
	*out = (struct tally_point){ .ticks = now.ticks,
				     .semantics = about->ticks,
				     .quirks = about->quirks,
				     .regs = *regs };
	return 0;
}
