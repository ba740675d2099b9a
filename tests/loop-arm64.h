/* SPDX-License-Identifier: MIT */
/* loop.h for arm64. */
#ifndef TESTS_LOOP_ARM64_H
#define TESTS_LOOP_ARM64_H

#include <stdint.h>

#define LOOP_INSTRUCTIONS 2u
#define LOOP_REGISTER     "x0" /* has the rounds that are left */

static __attribute__((noinline)) void loop(uint64_t n)
{
	register uint64_t left __asm__("x0") = n;

	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(left) : : "cc");
}

/* Hints that have no meaning, by which tests/lab/referee.c knows them. */
static inline void mark_begin(void)
{
	__asm__ volatile("hint #126" : : : "memory");
}

static inline void mark_end(void)
{
	__asm__ volatile("hint #127" : : : "memory");
}

/* BR_RETIRED (Arm Architecture Reference Manual, D13.2.1): all branches, of which the loop has no others. */
static inline const char *loop_branches(void)
{
	return "r21:u";
}

#endif
