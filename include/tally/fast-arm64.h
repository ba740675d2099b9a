/* SPDX-License-Identifier: MIT */
/*
 * What <tally/fast.h> asks of the CPU: arm64. Included by it alone.
 *
 * Names with an underscore at their end are no part of the contract.
 */
#ifndef TALLY_FAST_ARM64_H
#define TALLY_FAST_ARM64_H

#include <tally/api.h>

/* The page's index is 1 more: 1 to 31 are event counters, 32 is the cycle counter. */
#define TALLY_FAST_CYCLE_COUNTER_ 31u

#define TALLY_FAST_MRS_(reg, to) __asm__ __volatile__("mrs %0, " reg : "=r"(*(to)))
#define TALLY_FAST_EVENT_COUNTER_(n)                          \
	case n:                                               \
		TALLY_FAST_MRS_("pmevcntr" #n "_el0", value); \
		return true

static inline uintptr_t tally_fast_thread_(void)
{
	uintptr_t self;

	TALLY_FAST_MRS_("tpidr_el0", &self);
	return self;
}

/*
 * The number of a counter is part of its register's name, so that each has its own instruction.
 * False for what is newer than these, as the instruction counter (PMICNTR_EL0, index 33).
 */
static inline bool tally_fast_counter_(uint32_t n, uint64_t *value)
{
	switch (n) {
		TALLY_FAST_EVENT_COUNTER_(0);
		TALLY_FAST_EVENT_COUNTER_(1);
		TALLY_FAST_EVENT_COUNTER_(2);
		TALLY_FAST_EVENT_COUNTER_(3);
		TALLY_FAST_EVENT_COUNTER_(4);
		TALLY_FAST_EVENT_COUNTER_(5);
		TALLY_FAST_EVENT_COUNTER_(6);
		TALLY_FAST_EVENT_COUNTER_(7);
		TALLY_FAST_EVENT_COUNTER_(8);
		TALLY_FAST_EVENT_COUNTER_(9);
		TALLY_FAST_EVENT_COUNTER_(10);
		TALLY_FAST_EVENT_COUNTER_(11);
		TALLY_FAST_EVENT_COUNTER_(12);
		TALLY_FAST_EVENT_COUNTER_(13);
		TALLY_FAST_EVENT_COUNTER_(14);
		TALLY_FAST_EVENT_COUNTER_(15);
		TALLY_FAST_EVENT_COUNTER_(16);
		TALLY_FAST_EVENT_COUNTER_(17);
		TALLY_FAST_EVENT_COUNTER_(18);
		TALLY_FAST_EVENT_COUNTER_(19);
		TALLY_FAST_EVENT_COUNTER_(20);
		TALLY_FAST_EVENT_COUNTER_(21);
		TALLY_FAST_EVENT_COUNTER_(22);
		TALLY_FAST_EVENT_COUNTER_(23);
		TALLY_FAST_EVENT_COUNTER_(24);
		TALLY_FAST_EVENT_COUNTER_(25);
		TALLY_FAST_EVENT_COUNTER_(26);
		TALLY_FAST_EVENT_COUNTER_(27);
		TALLY_FAST_EVENT_COUNTER_(28);
		TALLY_FAST_EVENT_COUNTER_(29);
		TALLY_FAST_EVENT_COUNTER_(30);
	case TALLY_FAST_CYCLE_COUNTER_:
		TALLY_FAST_MRS_("pmccntr_el0", value);
		return true;
	default:
		return false;
	}
}

/* The clock of the page's time fields: the generic timer. */
static inline bool tally_fast_clock_(uint64_t *cycles)
{
	TALLY_FAST_MRS_("cntvct_el0", cycles);
	return true;
}

#endif
