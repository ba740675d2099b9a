/* SPDX-License-Identifier: MIT */
/*
 * How a function's caller is found from a place in it: where the call frame address (CFA) is, and
 * where each register of the caller is kept. Registers are numbered as the architecture's DWARF
 * does; 32 is the program counter of arm64, which has no number of its own there.
 */
#ifndef IMAGE_UNWIND_RULES_H
#define IMAGE_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_REGS 33

enum unwind_rule_kind {
	RULE_BY_ABI, /* nothing is said: kept if calls keep it, else lost */
	RULE_LOST,
	RULE_KEPT,
	RULE_AT,            /* saved at CFA + offset */
	RULE_IS,            /* it is CFA + offset */
	RULE_REGISTER,      /* it is in another register; of the CFA: that register + offset */
	RULE_AT_EXPRESSION, /* saved where an expression says, which stands at `offset` */
	RULE_IS_EXPRESSION,
};

struct unwind_rule {
	uint8_t kind; /* enum unwind_rule_kind */
	uint8_t reg;  /* whose rule it is */
	uint8_t other;
	uint8_t reserved;
	int32_t offset;
};

/* The registers at a place; those that are not in `known` were lost on the way. */
struct unwind_regs {
	uint64_t at[UNWIND_REGS];
	uint64_t known;
};

struct unwind_rules {
	struct unwind_rule cfa; /* REGISTER or IS_EXPRESSION */
	uint8_t ra;             /* which register becomes the caller's program counter */
	uint8_t count;
	bool outermost; /* there is no caller */
	bool signal; /* the caller was interrupted: it stands at its address, not behind a call */
	bool plain;  /* all of `saved` are AT and LOST */
	uint8_t reserved[3];
	/* Of the expressions. */
	const uint8_t *bytes;
	size_t len;
	const struct unwind_rule *saved;
};

#endif
