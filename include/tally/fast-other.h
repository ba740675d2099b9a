/* SPDX-License-Identifier: MIT */
/*
 * What <tally/fast.h> asks of the CPU, where it cannot be asked: every read is a read(2). Included
 * by it alone.
 *
 * Names with an underscore at their end are no part of the contract.
 */
#ifndef TALLY_FAST_OTHER_H
#define TALLY_FAST_OTHER_H

#include <tally/api.h>

/* Nobody's: no counter has it as its owner. */
static inline uintptr_t tally_fast_thread_(void)
{
	return 0;
}

static inline bool tally_fast_counter_(uint32_t n, uint64_t *value)
{
	(void)n, (void)value;
	return false;
}

static inline bool tally_fast_clock_(uint64_t *cycles)
{
	(void)cycles;
	return false;
}

#endif
