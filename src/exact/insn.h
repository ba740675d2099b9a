/* SPDX-License-Identifier: MIT */
/*
 * What an instruction is to a clock and to one who steps over it. Pure: bytes in, a class out. Both
 * architectures are there on both, so that each is tested everywhere.
 */
#ifndef EXACT_INSN_H
#define EXACT_INSN_H

#include <stddef.h>
#include <tally/tracee.h>

/* The longest instruction of x86 (Intel SDM vol. 2, 2.3.11). */
#define INSN_MAX 15

/* How a step over it goes (exact/tracee-step.c). */
enum insn_how {
	INSN_PLAIN,
	INSN_CALL,   /* a system call */
	INSN_REPEAT, /* each repetition is a trap */
	INSN_BEHIND, /* its trap gets lost: a breakpoint behind it */
	INSN_PUSHF,  /* stores the flags */
	INSN_REGION, /* does not complete when it is interrupted */
	INSN_HOWS,
};

struct insn {
	uint32_t flags;   /* enum tally_insn */
	uint8_t how;      /* enum insn_how */
	uint8_t len;      /* bytes; 0: they make no instruction that is known */
	bool anywhere;    /* may end elsewhere than behind itself without being a branch */
	bool traps;       /* it is there to raise SIGTRAP: INT3, BRK */
	bool shifts;      /* may change between 32 and 64 bits */
	bool loads_flags; /* POPF, IRET */
	bool announces;   /* may begin a restartable sequence: a store relative to FS */
	bool cpuid, tsc;
	bool relative;   /* a branch whose target is `target` from its own address */
	uint8_t element; /* a string instruction: the bytes of a repetition */
	int64_t target;
};

/* The instruction at the front of `bytes`; `bits`: 32 or 64. */
void insn_x86(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits);
void insn_arm64(struct insn *out, uint32_t word);

/* Whether it is the store-exclusive that ends a region. */
bool insn_arm64_ends_region(uint32_t word);

#endif
