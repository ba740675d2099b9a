/* SPDX-License-Identifier: MIT */
/*
 * From the rings of a recording into its file, byte by byte as the kernel wrote them. Forward rings
 * are emptied round by round; overwrite rings only when a snapshot of them is asked for.
 */
#ifndef RECORDER_DRAIN_H
#define RECORDER_DRAIN_H

#include <stdbool.h>
#include <tally/error.h>
#include <tally/ring.h>
#include <tally/sampler.h>
#include <tally/writer.h>

#include "recorder/tallier.h"
#include "recorder/unwinding.h"

struct drain {
	struct tally_writer *writer; /* may change from round to round */
	struct tallier *seen;
	struct unwinding *unwinding; /* NULL: samples stay as the kernel wrote them */
	const char *path;            /* of the file, for messages */
	struct tally_ring **forward, **overwrite;
	uint32_t forward_count, overwrite_count;
	uint64_t *heads; /* one a forward ring */
	char *buffer;    /* room for one overwrite ring */
	size_t buffer_size;
};

/* Takes the rings of a sampler, which is borrowed; all of them are of one kind. Errors: -ENOMEM. */
int drain_add(struct drain *d, const struct tally_sampler *sampler, bool overwrite,
	      struct tally_error *err);

/*
 * Moves what is in the forward rings: all heads are taken first, so that no record is newer than the
 * heads of all rings. Errors: of tally_writer_append(); -EBADMSG for bytes that are no records.
 */
int drain_round(struct drain *d, struct tally_error *err);

/* Moves what is in the overwrite rings, each ring's oldest record first. Errors as drain_round(). */
int drain_snapshot(struct drain *d, struct tally_error *err);

void drain_done(struct drain *d);

#endif
