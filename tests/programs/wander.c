/* SPDX-License-Identifier: MIT */
/* A few thousand branches that depend on numbers, the same in each run: more than a counter's skid. */
#include "guest.h"

static volatile uint32_t odd, large;

int guest_main(int argc, char **argv)
{
	uint32_t number = 1;

	for (int i = 0; i < 1000; i++) {
		number ^= number << 13;
		number ^= number >> 17;
		number ^= number << 5;
		if (number & 1)
			odd++;
		if (number > 0x40000000u)
			large += number & 7;
	}
	return (int)(odd + large) & 0x3f;
}
