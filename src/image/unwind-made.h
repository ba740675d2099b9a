/* SPDX-License-Identifier: MIT */
/* Unwinding through code that processes make at run time, by what their jitdumps tell of it. */
#ifndef IMAGE_UNWIND_MADE_H
#define IMAGE_UNWIND_MADE_H

#include "image/jit.h"
#include "image/unwind-rules.h"

/*
 * The rules at an address of `pid`, or of `owner` as for jit_find(); left as they are where none
 * are told, or of another machine than `machine` (EM_*). They hold until `jit` is asked next. 1, or
 * 0: no jitdump tells of code there, so far. -ENOMEM.
 */
int unwind_made_rules(struct jit *jit, int32_t pid, int32_t owner, uint64_t time, uint64_t address,
		      uint16_t machine, const struct unwind_rules **rules);

/* The same in one file that was read, of the function there. */
int unwind_made_rules_of(struct jit_file *f, const struct jit_code *code, uint64_t address,
			 const struct unwind_rules **rules);

#endif
