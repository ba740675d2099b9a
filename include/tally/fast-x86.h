/* SPDX-License-Identifier: MIT */
/*
 * What <tally/fast.h> asks of the CPU: x86. Included by it alone.
 *
 * Names with an underscore at their end are no part of the contract.
 */
#ifndef TALLY_FAST_X86_H
#define TALLY_FAST_X86_H

#include <tally/api.h>

/* PERF_METRICS, Intel's top-down shares: four fractions in one register, no count. */
#define TALLY_FAST_METRICS_ (1u << 29)

/* The thread pointer: the first word of the thread's own block, by the psABI its own address. */
static inline uintptr_t tally_fast_thread_(void)
{
	uintptr_t self;

#if defined(__x86_64__)
	__asm__ __volatile__("mov %%fs:0, %0" : "=r"(self));
#else
	__asm__ __volatile__("mov %%gs:0, %0" : "=r"(self));
#endif
	return self;
}

/* Counter `n` by RDPMC; false for what is none. Bit 30 of `n` selects the fixed counters. */
static inline bool tally_fast_counter_(uint32_t n, uint64_t *value)
{
	uint32_t low, high;

	if (n & TALLY_FAST_METRICS_)
		return false;
	__asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(n));
	*value = (uint64_t)high << 32 | low;
	return true;
}

/* The clock of the page's time fields: the TSC. */
static inline bool tally_fast_clock_(uint64_t *cycles)
{
	uint32_t low, high;

	__asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
	*cycles = (uint64_t)high << 32 | low;
	return true;
}

#endif
