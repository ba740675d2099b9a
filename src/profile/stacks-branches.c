/* SPDX-License-Identifier: MIT */
/*
 * Callchains from call-stack branch records (LBR): the CPU drops a call's branch when it returns,
 * so what is left are the calls that have not. It keeps some thirty; of a deeper stack the outer
 * calls are those that the thread's sample before had at the same place, for as long as both agree.
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
 * Where in the history the calls go on behind the outermost ones of a sample, which both have; the
 * history's length where they do not.
 */
static size_t joint(const struct calls *before, const struct calls *now)
{
	for (size_t end = before->count; end >= LEAST_EQUAL; end--) {
		size_t equal = 0;
		while (equal < now->count && equal < end &&
		       before->at[end - 1 - equal] == now->at[now->count - 1 - equal])
			equal++;
		if (equal >= LEAST_EQUAL)
			return end;
	}
	return before->count;
}

/* The calls of a sample with those that the history has beyond them, into the history. */
static int stitch(struct stacks *s, struct branch_history *h, const struct tally_record *rec)
{
	struct calls *now = &s->calls;
	struct tally_branch branch;

	now->count = 0;
	if (!vec_reserve(now, rec->sample.branch_count + h->calls.count))
		return -ENOMEM;
	while (tally_sample_branch(rec, now->count, &branch))
		*vec_push(now) = branch.from;
	if (now->count >= s->most_branches) {
		s->most_branches = now->count;
		for (size_t i = joint(&h->calls, now);
		     i < h->calls.count && now->count < MOST_CALLS; i++)
			*vec_push(now) = h->calls.at[i];
	}
	struct calls before = h->calls;
	h->calls = *now;
	*now = before;
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
	if (!vec_reserve(&s->chain, h->calls.count + 2))
		return -ENOMEM;
	s->chain.count = user + 2 < s->chain.count ? user + 2 : s->chain.count;
	if (user >= s->chain.count)
		*vec_push(&s->chain) = TALLY_CONTEXT_USER;
	vec_each (&h->calls, call)
		*vec_push(&s->chain) = *call;
	return 0;
}
