/* SPDX-License-Identifier: MIT */
/*
 * Load-exclusive ... store-exclusive of arm64: an exception in between clears the monitor, so that the
 * store fails and the program tries again, for ever when it is stepped (Arm ARM B2.9.5). The region is
 * run as a whole, with breakpoints wherever it can be left, and what was executed follows from where.
 */
#include <errno.h>
#include <string.h>

#include "exact/tracee.h"

/* A region has no more instructions than a line of any program has: B2.9.5 allows 128 bytes. */
#define REGION_MAX 32

static int leave(struct tally_tracee *t, uint64_t to, const struct tally_retired *retired)
{
	int at = breaks_hit(t, to + arch.break_moves);
	int r = at < 0 ? breaks_add(t, to) : 0;

	if (r < 0)
		return r;
	/* Two ways to one place: which was taken is not to be told. */
	if (at >= 0)
		t->breaks.at[at].unknown = true;
	else
		t->breaks.at[t->breaks.count - 1].retired = *retired;
	return 0;
}

/* Where the store-exclusive stands; 0: there is none near. */
static uint64_t find_end(struct tally_tracee *t)
{
	uint64_t pc = t->address + t->insn.len;
	uint32_t word;

	for (int i = 1; i < REGION_MAX; i++, pc += arch.break_len) {
		if (tally_tracee_peek(t, pc, &word, sizeof(word)) < 0)
			return 0;
		if (insn_arm64_ends_region(word))
			return pc;
	}
	return 0;
}

/* What is executed on the way to `end`; branches out of the region are places to stop at. */
static int walk(struct tally_tracee *t, uint64_t end, struct tally_retired *so_far, bool *loops)
{
	int r = 0;

	for (uint64_t pc = t->address + t->insn.len; r == 0 && pc < end; pc += arch.break_len) {
		struct insn insn;
		r = code_insn(t, pc, &insn);
		if (r < 0)
			return r;
		so_far->instructions++;
		if (insn.how != INSN_PLAIN || (insn.flags & TALLY_INSN_UNKNOWN))
			return -ENOENT;
		if (!(insn.flags & TALLY_INSN_BRANCH))
			continue;
		if (!(insn.flags & TALLY_INSN_CONDITIONAL))
			return -ENOENT; /* it goes elsewhere: no region that could be run */
		so_far->branches++;
		so_far->conditional++;
		struct tally_retired out = *so_far;
		uint64_t to = pc + (uint64_t)insn.target;
		out.taken++;
		if (to >= t->address && to <= end)
			*loops = true;
		else
			r = leave(t, to, &out);
	}
	return r;
}

int region_begin(struct tally_tracee *t)
{
	struct tally_retired so_far = { .instructions = 1 };
	uint64_t end = find_end(t);
	bool loops = false;

	t->breaks.count = 0;
	if (!end)
		return -ENOENT;
	int r = walk(t, end, &so_far, &loops);
	so_far.instructions++; /* the store */
	if (r == 0)
		r = leave(t, end + arch.break_len, &so_far);
	for (uint32_t i = 0; loops && i < t->breaks.count; i++)
		t->breaks.at[i].unknown = true;
	return r;
}
