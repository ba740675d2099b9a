/* SPDX-License-Identifier: MIT */
/* The registers of NT_PRSTATUS, as ptrace(2) and core files give them. */
#ifndef IMAGE_PRSTATUS_H
#define IMAGE_PRSTATUS_H

#include <stddef.h>
#include <stdint.h>

#define PRSTATUS_X86_WORDS   27
#define PRSTATUS_ARM64_WORDS 34
#define PRSTATUS_MOST_WORDS  PRSTATUS_ARM64_WORDS

/*
 * Puts `count` words into the order of their bits in the kernel's perf_regs.h, at most as many, and
 * tells which bits there are; 0: of no program that is known, by their number.
 */
uint64_t prstatus_order(const uint64_t *words, size_t count, uint64_t *values);

#endif
