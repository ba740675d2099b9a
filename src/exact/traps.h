/* SPDX-License-Identifier: MIT */
/* What of trapped instructions differs between architectures. */
#ifndef EXACT_TRAPS_H
#define EXACT_TRAPS_H

#include <stdint.h>

/* The system call that has CPUID trap, and its first argument; the second is 0. */
extern const long traps_cpuid_call;
extern const uint64_t traps_cpuid_what;

/* In a child: asks for the trap (enum tally_tracee_flags) and runs into it; returns if it can. */
int traps_try(uint32_t flag);

#endif
