/* SPDX-License-Identifier: MIT */
/*
 * The whole callchain of a sample, whatever it was recorded by: a copy of the stack is unwound, a
 * chain by frame pointers gets the leaf's caller where registers tell it, the part that the kernel
 * deferred to the return to user mode is joined, call-stack branches are taken as the calls that
 * they are.
 */
#ifndef PROFILE_STACKS_H
#define PROFILE_STACKS_H

#include <tally/record.h>
#include <tally/unwinder.h>

#include "base/hash.h"
#include "base/vec.h"

enum stack_end {
	STACK_UNKNOWN, /* nobody tells: by frame pointers */
	STACK_WHOLE,
	STACK_CUT, /* where its copy ends */
	STACK_BROKEN,
};

/* Where calls are, innermost first. */
struct calls {
	uint64_t *at;
	size_t count, room;
};

/* The branches of a thread's last sample, with what was stitched to them. */
struct branch_history {
	int32_t tid;
	struct calls calls;
};

/* Zeroed, but for the first two, is empty. */
struct stacks {
	struct tally_unwinder *unwinder; /* borrowed; NULL: copies of stacks are not unwound */
	struct tally_maps *maps;         /* borrowed */
	VEC(uint64_t) chain;             /* of the sample at hand */
	size_t unwound_from, unwound_to; /* those of its entries that unwind tables led to */
	VEC(uint64_t) frames;            /* of it, as they are unwound */
	VEC(uint64_t) deferred;          /* parts: how many addresses, then these */
	struct map64 deferred_at;        /* by thread and cookie: where in `deferred`, + 1 */
	struct calls calls;              /* of the sample at hand */
	VEC(struct branch_history) histories;
	struct map64 history_of; /* by thread: index + 1 */
	uint64_t
		most_branches; /* in a sample so far: when it has so many there may have been more */
};

/* Takes a CALLCHAIN_DEFERRED record, before the samples that it is for. -ENOMEM. */
int stacks_defer(struct stacks *s, const struct tally_record *rec);

/*
 * Gives the sample its whole callchain, which is borrowed until the next call, and tells how it
 * ends. `*wanted` is how long a copy of the stack would have had to be, of one that is CUT; 0:
 * unknown. -ENOMEM.
 */
int stacks_complete(struct stacks *s, struct tally_record *rec, enum stack_end *end,
		    uint64_t *wanted);

/* Stitches the branches of a sample (TALLY_BRANCH_CALL_STACK) to `chain`. -ENOMEM. */
int stacks_add_branches(struct stacks *s, const struct tally_record *rec);

void stacks_done(struct stacks *s);

#endif
