/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints in a program's code. They are there only while their tracee runs, and each stop takes
 * them away. Others of the family run into them, too: then their pc is put back.
 */
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "exact/tracee.h"

int breaks_add(struct tally_tracee *t, uint64_t address)
{
	struct breaks *b = &t->breaks;

	if (b->count == BREAKS_MAX)
		return -ENOSPC;
	memset(&b->at[b->count], 0, sizeof(b->at[0]));
	b->at[b->count++].address = address;
	return 0;
}

static int write_code(struct tally_tracee *t, uint64_t address, const uint8_t *bytes)
{
	ssize_t n = sys()->pwrite(t->mem, bytes, arch.break_len, (off_t)address);

	return n == arch.break_len ? 0 : n < 0 ? (int)n : -EFAULT;
}

/* Undoes the first `count`; -ESRCH is none when the process is gone, and its memory with it. */
static int take_out(struct tally_tracee *t, uint32_t count)
{
	int result = 0;

	for (uint32_t i = 0; i < count; i++) {
		int r = write_code(t, t->breaks.at[i].address, t->breaks.at[i].saved);
		if (r < 0 && result == 0)
			result = r;
	}
	t->breaks.in = false;
	return result;
}

int breaks_insert(struct tally_tracee *t)
{
	struct breaks *b = &t->breaks;
	int r = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		/* Through the family's eyes: what another one has put there is not to be kept. */
		r = tally_tracee_peek(t, b->at[i].address, b->at[i].saved, arch.break_len);
		if (r == 0)
			r = write_code(t, b->at[i].address, arch.break_bytes);
		if (r < 0) {
			take_out(t, i);
			return r == -EIO ? -EFAULT : r;
		}
	}
	b->in = b->count > 0;
	return 0;
}

int breaks_remove(struct tally_tracee *t)
{
	return t->breaks.in ? take_out(t, t->breaks.count) : 0;
}

int breaks_hit(const struct tally_tracee *t, uint64_t pc)
{
	for (uint32_t i = 0; i < t->breaks.count; i++)
		if (t->breaks.at[i].address + arch.break_moves == pc)
			return (int)i;
	return -1;
}

bool breaks_of_family(struct tally_tracee *t, uint64_t pc)
{
	struct insn insn;

	for (struct tally_tracee *o = t->next; o != t; o = o->next)
		if (o->breaks.in && breaks_hit(o, pc) >= 0)
			return true;
	/* Who was stopped by an instruction that is not there has met one that has been taken away. */
	for (uint64_t back = arch.break_moves; back <= 2u * arch.break_moves; back++)
		if (code_insn(t, pc - back, &insn) < 0 || insn.traps)
			return false;
	return true;
}

static void hide(const struct breaks *b, uint64_t address, uint8_t *buf, size_t len)
{
	for (uint32_t i = 0; i < b->count; i++)
		for (uint64_t k = 0; k < arch.break_len; k++)
			if (b->at[i].address + k - address < len)
				buf[b->at[i].address + k - address] = b->at[i].saved[k];
}

void breaks_hide(const struct tally_tracee *t, uint64_t address, uint8_t *buf, size_t len)
{
	const struct tally_tracee *o = t;

	do {
		if (o->breaks.in && o->pid == t->pid)
			hide(&o->breaks, address, buf, len);
		o = o->next;
	} while (o != t);
}

int tally_tracee_break(struct tally_tracee *tracee, uint64_t address)
{
	uint8_t bytes[sizeof(arch.break_bytes)];

	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	tracee->break_at = 0;
	if (!address)
		return 0;
	int r = code_facts(tracee);
	if (r < 0)
		return r;
	if (!tracee->facts.alone)
		return -EBUSY;
	r = tally_tracee_peek(tracee, address, bytes, arch.break_len);
	if (r == 0)
		tracee->break_at = address;
	return r;
}
