/* SPDX-License-Identifier: MIT */
/* Registers as they tell one point of an execution from another. */
#ifndef EXACT_POINT_H
#define EXACT_POINT_H

#include <tally/timer.h>

/* Whether these registers can be compared at all: a machine that is known, all its words. */
bool point_regs_known(const struct tally_tracee_regs *regs);
uint64_t point_pc(const struct tally_tracee_regs *regs);
/* Whether they are the same, but for what the kernel and the tracer leave in them. */
bool point_regs_equal(const struct tally_tracee_regs *a, const struct tally_tracee_regs *b);

#endif
