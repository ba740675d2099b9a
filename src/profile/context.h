/* SPDX-License-Identifier: MIT */
/* The marks in callchains. */
#ifndef PROFILE_CONTEXT_H
#define PROFILE_CONTEXT_H

#include <stdint.h>

/* In which mode the addresses behind a mark (TALLY_CONTEXT_KERNEL ...) are: enum tally_mode, UNKNOWN for none. */
uint32_t context_mode(uint64_t context);

#endif
