/* SPDX-License-Identifier: MIT */
/*
 * A question to a profile: which event, which rows, how much a row weighs, by what lines are told
 * apart. Every output asks through it, so that a filter means the same in all of them.
 */
#ifndef PROFILE_QUERY_H
#define PROFILE_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

enum query_key {
	QUERY_COMM,
	QUERY_DSO,
	QUERY_SYMBOL,
	QUERY_PID,
	QUERY_TID,
	QUERY_SRCLINE,
	QUERY_KEYS,
};

struct query {
	const struct tally_profile *profile;
	bool by_samples;
	double percent_limit;
	int32_t event;
	enum query_key sort[QUERY_KEYS]; /* in the order that was asked for */
	uint32_t sorts;
	bool sorts_by[QUERY_KEYS];
	uint8_t *threads;        /* by thread: it passes comm, pid and tid */
	uint8_t *leaves;         /* by function: it passes dso and symbol */
	uint64_t samples, total; /* of the event, whatever the filters; total by weight */
	uint64_t kept_samples, kept;
};

/* Errors: of the outputs in tally/profile.h; -ENODATA when it keeps no row. Nothing to free then. */
int query_open(struct query *q, const struct tally_profile *profile,
	       const struct tally_query_opts *opts, struct tally_error *err);
void query_done(struct query *q);

bool query_keeps(const struct query *q, const struct row *row);

static inline uint64_t query_weight(const struct query *q, const struct row *row)
{
	return q->by_samples ? row->samples : row->weight;
}

#endif
