/* SPDX-License-Identifier: MIT */
/*
 * Code that does not complete when it is interrupted, and tries again for ever when it is stepped:
 *  - load-exclusive ... store-exclusive of arm64, whose monitor an exception clears (Arm ARM B2.9.5);
 *  - a restartable sequence, rseq(2), which the kernel ends behind each stop (kernel/rseq.c).
 * It is run as a whole, with breakpoints wherever it can be left; what was executed follows from where.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* A region has no more instructions than that: B2.9.5 allows 128 bytes. */
#define REGION_MAX 32

/* Linux 5.13, include/uapi/linux/ptrace.h */
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t area;
	uint32_t size, signature, flags, pad;
};

/* include/uapi/linux/rseq.h: where the thread's area points to the sequence that it is in. */
#define RSEQ_CS 8u
struct sequence {
	uint32_t version, flags;
	uint64_t start, len, abort;
};

/* It may begin a little behind the store that announces it. */
#define RSEQ_NEAR 64u

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

/* A branch on the way: `*loops` when it stays within, so that what is executed cannot be told. */
static int branch(struct tally_tracee *t, uint64_t pc, uint64_t end, const struct insn *insn,
		  struct tally_retired *so_far, bool *loops)
{
	bool conditional = insn->flags & TALLY_INSN_CONDITIONAL;
	uint64_t to = pc + (uint64_t)insn->target;

	if (!insn->relative)
		return -ENOENT; /* it goes wherever */
	so_far->branches++;
	so_far->conditional += conditional;
	struct tally_retired out = *so_far;
	out.taken++;
	if (to - t->address < end - t->address) {
		*loops = true;
		return 0;
	}
	return leave(t, to, &out);
}

/* What is executed from the instruction that begins it to `end`, and where else it may be left. */
static int walk(struct tally_tracee *t, uint64_t end)
{
	struct tally_retired so_far = { .instructions = 1 };
	uint64_t pc = t->address + t->insn.len;
	bool loops = false;
	int r = 0;

	t->breaks.count = 0;
	while (r == 0 && pc < end) {
		struct insn insn;
		r = code_insn(t, pc, &insn);
		if (r < 0)
			return r;
		if (insn.how != INSN_PLAIN || !insn.len || so_far.instructions > 4 * REGION_MAX)
			return -ENOENT;
		so_far.instructions++;
		if (insn.flags & TALLY_INSN_BRANCH)
			r = branch(t, pc, end, &insn, &so_far, &loops);
		pc += insn.len;
	}
	if (r == 0)
		r = leave(t, end, &so_far);
	for (uint32_t i = 0; loops && i < t->breaks.count; i++)
		t->breaks.at[i].unknown = true;
	return r;
}

/* Behind the store-exclusive; 0: there is none near. */
static uint64_t find_end(struct tally_tracee *t)
{
	uint64_t pc = t->address + t->insn.len;
	uint32_t word;

	for (int i = 1; i < REGION_MAX; i++, pc += sizeof(word)) {
		if (tally_tracee_peek(t, pc, &word, sizeof(word)) < 0)
			return 0;
		if (insn_arm64_ends_region(word))
			return pc + sizeof(word);
	}
	return 0;
}

int region_begin(struct tally_tracee *t)
{
	uint64_t end = find_end(t);

	return end ? walk(t, end) : -ENOENT;
}

static bool read_sequence(struct tally_tracee *t, uint64_t *area, struct sequence *out)
{
	struct rseq_configuration config = { 0 };
	uint64_t at = 0;
	long r = sys()->ptrace(GET_RSEQ_CONFIGURATION, t->tid, sizeof(config),
			       (unsigned long)&config);

	*area = config.area;
	return r >= 0 && config.area &&
	       tally_tracee_peek(t, config.area + RSEQ_CS, &at, sizeof(at)) == 0 && at &&
	       tally_tracee_peek(t, at, out, sizeof(*out)) == 0 && out->version == 0;
}

/*
 * Whether the store that was just stepped has announced a sequence. Then the thread is put back to the
 * store, as if it had not been executed, and all is planned to be run at once. 1; 0: no; or -errno.
 */
int region_announced(struct tally_tracee *t)
{
	static const uint64_t none = 0;
	struct sequence sequence;
	uint64_t area;

	if (!t->facts.alone || !read_sequence(t, &area, &sequence))
		return 0;
	uint64_t end = sequence.start + sequence.len;
	if (t->pc >= end || t->pc + RSEQ_NEAR < sequence.start || walk(t, end) < 0)
		return 0;
	/* When the thread is preempted meanwhile, it is not known where. */
	int r = leave(t, sequence.abort, &(struct tally_retired){ 0 });
	if (r == 0)
		t->breaks.at[breaks_hit(t, sequence.abort + arch.break_moves)].unknown = true;
	if (r == 0)
		r = tally_tracee_poke(t, area + RSEQ_CS, &none, sizeof(none));
	if (r == 0)
		r = tracee_move_pc(t, t->address);
	t->insn.how = INSN_REGION;
	return r < 0 ? r : 1;
}
