/* SPDX-License-Identifier: MIT */
/* What loading a file tells a loader beyond its records. */
#ifndef PROFILE_LOAD_H
#define PROFILE_LOAD_H

#include <tally/profile.h>

/* All of enum tally_loader_flags. */
#define LOADER_FLAGS (TALLY_LOADER_LINES | TALLY_LOADER_INLINE)

/* Leaves out samples outside [from, to); to 0: no end. */
void loader_between(struct tally_loader *loader, uint64_t from, uint64_t to);

/* Counts a record that could not be decoded. */
void loader_undecodable(struct tally_loader *loader);

#endif
