/* SPDX-License-Identifier: MIT */
/* Completing callchains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/unwinder.h"
#include "profile/stacks.h"

/* Frames of a stack that is unwound: a copy of 65,528 bytes has hardly more. */
#define MOST_FRAMES 8192

/* Of them so many, the outermost, are looked for among those of frame pointers. */
#define JOINT_FRAMES 16

static int add(struct stacks *s, uint64_t entry)
{
	uint64_t *slot = vec_push(&s->chain);

	if (!slot)
		return -ENOMEM;
	*slot = entry;
	return 0;
}

/* ---- deferred ---- */

static uint64_t deferred_key(const struct tally_record *rec, uint64_t cookie)
{
	return hash_u64(hash_u64((uint32_t)rec->id.tid) ^ cookie);
}

int stacks_defer(struct stacks *s, const struct tally_record *rec)
{
	const struct tally_record_deferred *d = &rec->deferred;
	uint32_t *at = map64_at(&s->deferred_at, deferred_key(rec, d->cookie));

	/* A record has 8,192 entries at most. */
	if (!at || !vec_reserve(&s->deferred, d->chain_len + 1))
		return -ENOMEM;
	/* Beyond what 32 bits count nothing is kept: 32 GiB of callchains. */
	if (s->deferred.count >= UINT32_MAX)
		return 0;
	*at = (uint32_t)s->deferred.count + 1;
	*vec_push(&s->deferred) = d->chain_len;
	for (uint64_t i = 0; i < d->chain_len; i++)
		*vec_push(&s->deferred) = tally_sample_ip(rec, i);
	return 0;
}

/* The part that a cookie stands for; false: it is not there. */
static int add_deferred(struct stacks *s, const struct tally_record *rec, uint64_t cookie,
			bool *found)
{
	uint32_t at = map64_get(&s->deferred_at, deferred_key(rec, cookie));
	int r = add(s, TALLY_CONTEXT_USER);

	*found = at != 0;
	if (!at)
		return r;
	uint64_t count = s->deferred.at[at - 1];
	for (uint64_t i = 0; i < count && r == 0; i++)
		if (i || s->deferred.at[at] != TALLY_CONTEXT_USER)
			r = add(s, s->deferred.at[at + i]);
	return r;
}

/* ---- the parts of a chain ---- */

/*
 * Its entries, with what was deferred; `user` tells where its part in user mode begins, SIZE_MAX:
 * it has none. A second mark of user mode at the end says that the stack went on.
 */
static int take_chain(struct stacks *s, const struct tally_record *rec, size_t *user,
		      enum stack_end *end)
{
	uint64_t count = rec->sample.chain_len;
	bool found = true;
	int r = 0;

	*user = SIZE_MAX;
	for (uint64_t i = 0; i < count && r == 0; i++) {
		uint64_t entry = tally_sample_ip(rec, i);
		bool deferred = entry == TALLY_CONTEXT_USER_DEFERRED && i + 1 < count;
		if (entry == TALLY_CONTEXT_USER && *user != SIZE_MAX && i + 1 == count)
			*end = STACK_CUT;
		if (*user == SIZE_MAX && (entry == TALLY_CONTEXT_USER || deferred))
			*user = s->chain.count;
		if (deferred)
			r = add_deferred(s, rec, tally_sample_ip(rec, ++i), &found);
		else
			r = add(s, entry);
	}
	if (!found)
		*end = STACK_BROKEN;
	return r;
}

/*
 * What frame pointers tell behind what registers and a short copy told, which has the leaf's caller
 * even where the leaf keeps no frame pointer. `old` begins with the leaf, as `found` does; how many
 * of `found` stay, and from which of `old` on it goes on.
 */
static void find_joint(const uint64_t *old, size_t old_count, const uint64_t *found,
		       size_t *found_count, size_t *from)
{
	size_t last = *found_count > JOINT_FRAMES ? *found_count - JOINT_FRAMES : 1;

	for (size_t k = *found_count; k-- > last;) {
		for (size_t j = 1; j < old_count; j++) {
			if (old[j] != found[k])
				continue;
			*found_count = k + 1;
			*from = j + 1;
			return;
		}
	}
	*from = 1;
}

/* Puts the frames that were found in the place of the part in user mode, which begins at `user`. */
static int replace(struct stacks *s, size_t user, const uint64_t *found, size_t count,
		   enum stack_end *end)
{
	size_t old_count = s->chain.count - user, from = old_count;

	/* A mark stands before it. */
	if (*end != STACK_WHOLE && old_count > 2) {
		find_joint(s->chain.at + user + 1, old_count - 1, found, &count, &from);
		from++;
	}
	size_t rest = old_count - from;
	if (!vec_reserve(&s->chain, count + 1))
		return -ENOMEM;
	uint64_t *to = s->chain.at + user;
	memmove(to + 1 + count, to + from, rest * sizeof(*to));
	memcpy(to + 1, found, count * sizeof(*to));
	*to = TALLY_CONTEXT_USER;
	s->chain.count = user + 1 + count + rest;
	s->unwound_from = user + 1;
	s->unwound_to = user + 1 + count;
	if (rest)
		*end = STACK_UNKNOWN;
	return 0;
}

/* The part in user mode anew, from registers and the copy of the stack, where there are some. */
static int unwind(struct stacks *s, const struct tally_record *rec, size_t user,
		  enum stack_end *end, uint64_t *wanted)
{
	static const enum stack_end ends[] = {
		[TALLY_UNWIND_WHOLE] = STACK_WHOLE,
		[TALLY_UNWIND_CUT] = STACK_CUT,
		[TALLY_UNWIND_BROKEN] = STACK_BROKEN,
		[TALLY_UNWIND_FULL] = STACK_BROKEN,
	};
	struct tally_unwound how;

	/*
	 * What ends in a second mark was unwound before; without a stack there is a chain to mend.
	 */
	if (!s->unwinder || *end == STACK_CUT || (!rec->sample.stack && user >= s->chain.count))
		return 0;
	if (!vec_reserve(&s->frames, MOST_FRAMES))
		return -ENOMEM;
	int r = tally_unwinder_sample(s->unwinder, rec, s->frames.at, MOST_FRAMES, &how);
	if (r <= 0)
		return r == -ENOMEM ? r : 0;
	*end = ends[how.end];
	*wanted = how.stack_bytes;
	/* Registers alone show where a stack begins, and not that it goes on. */
	if (!rec->sample.stack && *end != STACK_WHOLE)
		*end = STACK_UNKNOWN;
	r = replace(s, user < s->chain.count ? user : s->chain.count, s->frames.at, how.frames,
		    end);
	return r == 0 && *end == STACK_CUT ? add(s, TALLY_CONTEXT_USER) : r;
}

/* What was unwound while it was recorded tells by its registers how it ended. */
static bool was_unwound(const struct tally_record *rec)
{
	const uint64_t type = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER |
			      TALLY_SAMPLE_STACK_USER;

	return (rec->sample.sample_type & type) == type && !rec->sample.regs_user.abi &&
	       !rec->sample.stack_len;
}

/* Whether a signal handler is in the chain: what lies behind it may be on another stack. */
static bool is_interrupted(const struct stacks *s, const struct tally_record *rec)
{
	uint64_t time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : UINT64_MAX;

	for (size_t i = s->unwound_from; s->unwinder && i < s->unwound_to; i++)
		if (tally_unwinder_is_signal(s->unwinder, rec->id.pid, time, s->chain.at[i]) > 0)
			return true;
	return false;
}

int stacks_complete(struct stacks *s, struct tally_record *rec, enum stack_end *end,
		    uint64_t *wanted)
{
	const struct tally_record_sample *sample = &rec->sample;
	size_t user;

	*end = STACK_UNKNOWN;
	*wanted = 0;
	s->chain.count = s->unwound_from = s->unwound_to = 0;
	/* Nothing to add to what the kernel tells of frame pointers. */
	if (!(sample->sample_type & TALLY_SAMPLE_REGS_USER) &&
	    !(sample->branch_sample_type & TALLY_BRANCH_CALL_STACK) && !s->deferred.count)
		return 0;
	int r = take_chain(s, rec, &user, end);
	if (r == 0)
		r = unwind(s, rec, user, end, wanted);
	if (r == 0 && *end == STACK_UNKNOWN && user != SIZE_MAX && was_unwound(rec))
		*end = STACK_WHOLE;
	/* What ends in a second mark was, too. */
	if (user != SIZE_MAX && !s->unwound_to && (*end == STACK_WHOLE || *end == STACK_CUT)) {
		s->unwound_from = user + 1;
		s->unwound_to = s->chain.count;
	}
	if (r == 0 && *end == STACK_CUT && !*wanted && !is_interrupted(s, rec))
		*wanted = unwinder_stack_bytes(s->maps, rec);
	if (r == 0 && sample->branch_sample_type & TALLY_BRANCH_CALL_STACK) {
		s->unwound_to = 0;
		r = stacks_add_branches(s, rec);
	}
	if (r < 0)
		return r;
	rec->sample.chain = s->chain.at;
	rec->sample.chain_len = s->chain.count;
	/*
	 * These are in this machine's byte order; what else is borrowed stays in the recording's.
	 */
	if (rec->swapped)
		for (size_t i = 0; i < s->chain.count; i++)
			s->chain.at[i] = __builtin_bswap64(s->chain.at[i]);
	return 0;
}

void stacks_done(struct stacks *s)
{
	vec_each (&s->histories, history)
		vec_done(&history->calls);
	vec_done(&s->histories);
	vec_done(&s->chain);
	vec_done(&s->frames);
	vec_done(&s->calls);
	vec_done(&s->deferred);
	map64_done(&s->deferred_at);
	map64_done(&s->history_of);
}
