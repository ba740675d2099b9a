/* SPDX-License-Identifier: MIT */
/* What of a sampler's events did not come: one account for each and one for all. */
#ifndef SAMPLE_ACCOUNT_H
#define SAMPLE_ACCOUNT_H

#include <tally/sampler.h>

struct account {
	struct tally_sampler_account *events; /* by event */
	struct tally_sampler_account all;
	uint64_t *throttled_since; /* by slot (sampler-inside.h); 0: it is not */
};

int account_init(struct account *account, uint32_t events, size_t slots, struct tally_error *err);
void account_done(struct account *account);

/* Takes a decoded record into account. */
void account_add(struct tally_sampler *s, uint32_t event, const struct tally_record *rec);

#endif
