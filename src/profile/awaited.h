/* SPDX-License-Identifier: MIT */
/*
 * Samples of a stream that wait for the part of their callchain that the kernel deferred to the
 * return to user mode: it comes behind them.
 */
#ifndef PROFILE_AWAITED_H
#define PROFILE_AWAITED_H

#include <stdbool.h>
#include <tally/reader.h>
#include <tally/record.h>

#include "base/vec.h"

struct awaited_sample {
	struct tally_reader_record item; /* of which the bytes are its own */
	uint64_t cookie;
	int32_t tid;
};

/* In the order in which they came. Zeroed is empty. */
struct awaited {
	VEC(struct awaited_sample) list;
};

/* Gets a sample that waits no more; an answer below 0 ends the giving. */
typedef int awaited_fn(const struct tally_reader_record *item, void *arg);

/* What a sample waits for, into `*cookie`; false: nothing. */
bool awaited_cookie(const struct tally_record *rec, uint64_t *cookie);
/* Keeps a copy. -ENOMEM. */
int awaited_add(struct awaited *a, const struct tally_reader_record *item, int32_t tid,
		uint64_t cookie);
/* Whether so many wait that they have to go without. */
bool awaited_is_full(const struct awaited *a);
/* Gives those of a thread and cookie; all. Answers what `call` did, or 0. */
int awaited_give(struct awaited *a, int32_t tid, uint64_t cookie, awaited_fn *call, void *arg);
int awaited_give_all(struct awaited *a, awaited_fn *call, void *arg);
void awaited_done(struct awaited *a);

#endif
