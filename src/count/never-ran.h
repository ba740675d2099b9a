/* SPDX-License-Identifier: MIT */
/* Why an event that was enabled counted nothing: the likely cause, and what to do. */
#ifndef COUNT_NEVER_RAN_H
#define COUNT_NEVER_RAN_H

#include "count/set.h"

/*
 * Explains the first of `count` readings, of the members from `first` on, that is NEVER_RAN or
 * ERROR: a negative code with `err` filled in; 0 when there is none.
 */
int never_ran_explain(const struct set *s, uint32_t first, uint32_t count,
		      const struct tally_count *counts, struct tally_error *err);

#endif
