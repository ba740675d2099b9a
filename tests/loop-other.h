/* SPDX-License-Identifier: MIT */
/* loop.h where nobody has written it in assembly: how many instructions it is nobody knows. */
#ifndef TESTS_LOOP_OTHER_H
#define TESTS_LOOP_OTHER_H

#include <stdint.h>

#define LOOP_INSTRUCTIONS 0u
#define LOOP_REGISTER     ""

static __attribute__((noinline)) void loop(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		;
}

static inline void mark_begin(void)
{
}

static inline void mark_end(void)
{
}

static inline const char *loop_branches(void)
{
	return "";
}

#endif
