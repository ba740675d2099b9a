/* SPDX-License-Identifier: MIT */
/* What loading a file tells a loader beyond its records. */
#ifndef PROFILE_LOAD_H
#define PROFILE_LOAD_H

#include <tally/profile.h>

/* Leaves out samples outside [from, to); to 0: no end. */
void loader_between(struct tally_loader *loader, uint64_t from, uint64_t to);

/* Gives it what to unwind copies of stacks by, borrowed; for a file tells on which machine it was made. */
void loader_unwinds(struct tally_loader *loader, struct tally_unwinder *unwinder);

/* Counts a record that could not be decoded. */
void loader_undecodable(struct tally_loader *loader);

#endif
