/* SPDX-License-Identifier: MIT */
/* What the timer knows of a clock beyond its contract. */
#ifndef EXACT_CLOCK_H
#define EXACT_CLOCK_H

#include <tally/clock.h>

/*
 * Changes whenever ticks were moved against those of the backend (set, adjust, a pause), so that an
 * interrupt that was armed before is due at another reading.
 */
uint32_t clock_epoch(const struct tally_clock *clock);

/* How many ticks of a semantics a step was. OTHER, and what is unknown: all that it retired. */
uint64_t clock_ticks_retired(uint32_t ticks, const struct tally_retired *retired);

#endif
