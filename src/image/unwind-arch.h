/* SPDX-License-Identifier: MIT */
/* What unwinding must know of an architecture. */
#ifndef IMAGE_UNWIND_ARCH_H
#define IMAGE_UNWIND_ARCH_H

#include "image/unwind-rules.h"

/*
 * Code that a signal handler returns to, where no table tells of it, and what it finds on the
 * stack.
 */
#define UNWIND_TRAMPOLINE_BYTES 16

struct unwind_arch {
	uint16_t machine;      /* EM_* */
	uint8_t pc, sp, fp;    /* registers */
	uint64_t kept;         /* by calls: those that tables do not mention are the caller's */
	uint64_t address_mask; /* what of a return address is no signature */
	uint8_t regs;          /* how many there are, by the numbers that DWARF gives them */
	uint8_t perf_bits[UNWIND_REGS]; /* of each in the masks of the kernel's perf_regs.h */
	uint8_t trampoline[UNWIND_TRAMPOLINE_BYTES];
	uint8_t trampoline_len;
	const struct unwind_rules *trampoline_rules;
	/* In a stub of a PLT, and behind its push of an index where it has one. */
	const struct unwind_rules *stub_rules, *pushed_rules;
	uint8_t stub_bytes,
		push_end; /* a stub's length, and where in it the push is done; 0: none */
};

/* NULL: none of that name. */
const struct unwind_arch *unwind_arch_named(const char *machine);

extern const struct unwind_arch unwind_x86_64, unwind_arm64;

#endif
