/* SPDX-License-Identifier: MIT */
/* A short list: a thread has as many samples in it as it takes between two returns to user mode. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/awaited.h"

/* Threads that are in the kernel for long, or parts that were lost. */
#define MOST 4096

bool awaited_cookie(const struct tally_record *rec, uint64_t *cookie)
{
	uint64_t count = rec->type == TALLY_RECORD_SAMPLE ? rec->sample.chain_len : 0;

	/* It stands at the end. */
	if (count < 2 || tally_sample_ip(rec, count - 2) != TALLY_CONTEXT_USER_DEFERRED)
		return false;
	*cookie = tally_sample_ip(rec, count - 1);
	return true;
}

int awaited_add(struct awaited *a, const struct tally_reader_record *item, int32_t tid,
		uint64_t cookie)
{
	void *bytes = malloc(item->len);

	if (!bytes || !vec_reserve(&a->list, 1)) {
		free(bytes);
		return -ENOMEM;
	}
	memcpy(bytes, item->bytes, item->len);
	struct awaited_sample *s = &a->list.at[a->list.count++];
	*s = (struct awaited_sample){ .item = *item, .cookie = cookie, .tid = tid };
	s->item.bytes = bytes;
	return 0;
}

bool awaited_is_full(const struct awaited *a)
{
	return a->list.count >= MOST;
}

static void drop(struct awaited_sample *s)
{
	free((void *)(uintptr_t)s->item.bytes); /* const for who reads it */
}

int awaited_give(struct awaited *a, int32_t tid, uint64_t cookie, awaited_fn *call, void *arg)
{
	struct awaited_sample *kept = a->list.at;
	int r = 0;

	vec_each (&a->list, s) {
		if (s->tid != tid || s->cookie != cookie || r < 0) {
			*kept++ = *s;
			continue;
		}
		r = call(&s->item, arg);
		drop(s);
	}
	if (kept)
		a->list.count = (size_t)(kept - a->list.at);
	return r < 0 ? r : 0;
}

int awaited_give_all(struct awaited *a, awaited_fn *call, void *arg)
{
	int r = 0;

	vec_each (&a->list, s) {
		if (r >= 0)
			r = call(&s->item, arg);
		drop(s);
	}
	a->list.count = 0;
	return r < 0 ? r : 0;
}

void awaited_done(struct awaited *a)
{
	vec_each (&a->list, s)
		drop(s);
	vec_done(&a->list);
}
