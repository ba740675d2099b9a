/* SPDX-License-Identifier: MIT */
/* DWARF expressions in call frame information: PLT stubs, signal frames, realigned stacks. */
#ifndef IMAGE_UNWIND_EXPRESSION_H
#define IMAGE_UNWIND_EXPRESSION_H

#include "image/unwind-memory.h"
#include "image/unwind-rules.h"

/*
 * Evaluates the expression at `offset` of the rules' section, which begins with its length. `cfa`
 * is on the stack first, where it is not NULL. false: it is broken, takes too long, or asks for a
 * register or memory that is not there.
 */
bool unwind_evaluate(const struct unwind_rules *rules, int32_t offset,
		     const struct unwind_regs *regs, struct unwind_memory *memory,
		     const uint64_t *cfa, uint64_t *out);

#endif
