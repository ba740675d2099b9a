/* SPDX-License-Identifier: MIT */
/*
 * Callchains from call-stack branch records (LBR): the CPU drops a call's branch when it returns, so what
 * is left are the calls that have not. It keeps some thirty; of a deeper stack the outer calls are those
 * that the thread's sample before had at the same place, for as long as both agree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/stacks.h"

/* A few calls may be equal by chance, in a recursion. */
#define LEAST_EQUAL 4

/* What was stitched stays within a callchain's bounds. */
#define MOST_CALLS 1024

static struct branch_history *history_of(struct stacks *s, int32_t tid)
{
	uint32_t *at = map64_at(&s->history_of, (uint32_t)tid);

	if (!at)
		return NULL;
	if (!*at) {
		struct branch_history *added = vec_push(&s->histories);
		if (!added)
			return NULL;
		added->tid = tid;
		*at = (uint32_t)s->histories.count;
	}
	return &s->histories.at[*at - 1];
}

/*
 * Where in the history the calls go on behind the `count` outermost ones of `calls`, which both have;
 * the history's length where they do not.
 */
static size_t joint(const struct branch_history *h, const uint64_t *calls, size_t count)
{
	for (size_t end = h->from.count; end >= LEAST_EQUAL; end--) {
		size_t equal = 0;
		while (equal < count && equal < end &&
		       h->from.at[end - 1 - equal] == calls[count - 1 - equal])
			equal++;
		if (equal >= LEAST_EQUAL)
			return end;
	}
	return h->from.count;
}

/* The calls of a sample with those that the history has beyond them, into the history. */
static int stitch(struct stacks *s, struct branch_history *h, const struct tally_record *rec)
{
	VEC(uint64_t) calls = { 0 };
	struct tally_branch branch;
	uint64_t count = rec->sample.branch_count;

	if (!vec_reserve(&calls, count + h->from.count))
		return -ENOMEM;
	while (tally_sample_branch(rec, calls.count, &branch))
		*vec_push(&calls) = branch.from;
	if (calls.count >= s->most_branches) {
		s->most_branches = calls.count;
		for (size_t i = joint(h, calls.at, calls.count);
		     i < h->from.count && calls.count < MOST_CALLS; i++)
			*vec_push(&calls) = h->from.at[i];
	}
	vec_done(&h->from);
	memcpy(&h->from, &calls, sizeof(calls));
	return 0;
}

int stacks_add_branches(struct stacks *s, const struct tally_record *rec)
{
	size_t user = 0;

	if (!rec->sample.branch_count)
		return 0;
	struct branch_history *h = history_of(s, rec->id.tid);
	if (!h || stitch(s, h, rec) < 0)
		return -ENOMEM;
	while (user < s->chain.count && s->chain.at[user] != TALLY_CONTEXT_USER)
		user++;
	/* Of the part in user mode only where it is: frame pointers may have led astray. */
	if (!vec_reserve(&s->chain, h->from.count + 2))
		return -ENOMEM;
	s->chain.count = user + 2 < s->chain.count ? user + 2 : s->chain.count;
	if (user >= s->chain.count)
		*vec_push(&s->chain) = TALLY_CONTEXT_USER;
	vec_each (&h->from, from)
		*vec_push(&s->chain) = *from;
	return 0;
}
