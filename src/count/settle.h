/* SPDX-License-Identifier: MIT */
/* What readings are made with, in line: a counter is read in little more time than its system call. */
#ifndef COUNT_SETTLE_H
#define COUNT_SETTLE_H

#include <tally/count.h>

#include "base/bytes.h"

/* For what cannot be negative: the kernel's sums may step back a little between two readings. */
static inline uint64_t clamped_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* tally_count_settle(). */
static inline void count_settle(struct tally_count *count)
{
	count->value = 0;
	if (count->error < 0) {
		count->state = TALLY_COUNT_ERROR;
	} else if (count->running_ns >= count->enabled_ns) {
		count->state = TALLY_COUNT_EXACT;
		count->value = count->raw;
	} else if (!count->running_ns) {
		count->state = TALLY_COUNT_NEVER_RAN;
	} else {
		count->state = TALLY_COUNT_SCALED;
		count->value = mul_div(count->raw, count->enabled_ns, count->running_ns);
	}
}

#endif
