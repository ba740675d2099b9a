/* SPDX-License-Identifier: MIT */
/* loop.h for x86-64. */
#ifndef TESTS_LOOP_X86_H
#define TESTS_LOOP_X86_H

#include <cpuid.h>
#include <stdint.h>

#define LOOP_INSTRUCTIONS 2u
#define LOOP_REGISTER     "rdi" /* has the rounds that are left */

static __attribute__((noinline)) void loop(uint64_t n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+D"(n) : : "cc");
}

/* Long nops, by whose operands tests/lab/referee.c knows them. */
static inline void mark_begin(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x01, 0xee, 0x11, 0x7a" : : : "memory");
}

static inline void mark_end(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x02, 0xee, 0x11, 0x7a" : : : "memory");
}

/* BR_INST_RETIRED.CONDITIONAL of Intel's cores since Nehalem, EX_RET_COND of AMD's since Zen. */
static inline const char *loop_branches(void)
{
	unsigned int highest, b, c, d;

	if (!__get_cpuid(0, &highest, &b, &c, &d))
		return "";
	return b == signature_AMD_ebx ? "rd1:u" : b == signature_INTEL_ebx ? "r1c4:u" : "";
}

#endif
