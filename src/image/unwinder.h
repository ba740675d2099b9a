/* SPDX-License-Identifier: MIT */
/* What readers of recordings know of unwinding beyond its public header. */
#ifndef IMAGE_UNWINDER_H
#define IMAGE_UNWINDER_H

#include <tally/unwinder.h>

/*
 * Bytes from a sample's stack pointer to the end of its stack, by its mapping; 0: unknown. Of
 * samples whose copy of the stack was too short, and was left out.
 */
uint64_t unwinder_stack_bytes(struct tally_maps *maps, const struct tally_record *rec);

#endif
