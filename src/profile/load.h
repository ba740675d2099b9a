/* SPDX-License-Identifier: MIT */
/* What loading a file tells a loader beyond its records. */
#ifndef PROFILE_LOAD_H
#define PROFILE_LOAD_H

#include <stdbool.h>
#include <tally/profile.h>

/* All of enum tally_loader_flags. */
#define LOADER_FLAGS (TALLY_LOADER_LINES | TALLY_LOADER_INLINE)

/* Leaves out samples outside [from, to); to 0: no end. */
void loader_between(struct tally_loader *loader, uint64_t from, uint64_t to);

/* Gives it what to unwind copies of stacks by, borrowed; for a file tells on which machine it was made. */
void loader_unwinds(struct tally_loader *loader, struct tally_unwinder *unwinder);

/* Counts a record that could not be decoded. */
void loader_undecodable(struct tally_loader *loader);

/* Remembers for each location one address and time at which it was met. */
void loader_keep_sightings(struct tally_loader *loader);
/* false: it was not met. */
bool loader_sighting(const struct tally_loader *loader, uint32_t location,
		     struct tally_symbolizer_query *out);

/* What else is done with a recording that was loaded, while its symbolizer is still there. */
struct load_then {
	int (*call)(const struct tally_loader *loader, struct tally_symbolizer *symbolizer,
		    const struct tally_profile *profile, void *arg, struct tally_error *err);
	void *arg;
};

/*
 * As tally_profile_load_file(), with sightings, and what `then` does. An error of the file after which
 * there are samples all the same is told in `health`, and none here.
 */
int load_file_then(struct tally_profile *profile, const char *path,
		   const struct tally_load_opts *opts, const struct load_then *then, char *health,
		   size_t health_size, struct tally_error *err);

#endif
