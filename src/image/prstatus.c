/* SPDX-License-Identifier: MIT */
/* From the order of struct user_regs_struct to that of perf_regs.h. */
#include "image/prstatus.h"

#define NONE 0xff

static const uint8_t x86_bits[PRSTATUS_X86_WORDS] = {
	23, 22,   21, 20, 6, 1, 19, 18,   17,   16,   0,    2,    3,   4,
	5,  NONE, 8,  10, 9, 7, 11, NONE, NONE, NONE, NONE, NONE, NONE
};

/* x0 to x30, sp and pc are in perf's order; pstate has no bit. */
#define ARM64_PSTATE (PRSTATUS_ARM64_WORDS - 1)

uint64_t prstatus_order(const uint64_t *words, size_t count, uint64_t *values)
{
	uint64_t mask = 0, at[64] = { 0 };

	for (size_t i = 0; i < count; i++) {
		uint8_t bit = (uint8_t)i;
		if (count == PRSTATUS_X86_WORDS)
			bit = x86_bits[i];
		else if (count != PRSTATUS_ARM64_WORDS || i == ARM64_PSTATE)
			bit = NONE;
		if (bit == NONE)
			continue;
		mask |= (uint64_t)1 << bit;
		at[bit] = words[i];
	}
	for (unsigned bit = 0; bit < 64; bit++)
		if (mask >> bit & 1)
			*values++ = at[bit];
	return mask;
}
