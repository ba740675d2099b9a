/* SPDX-License-Identifier: MIT */
/*
 * Which files were mapped while recording, and their build-ids at its end: for the BUILD_ID feature,
 * by which a report knows later that a file is still the one that ran.
 *
 * The kernel could put build-ids into MMAP2 itself (attr.build_id), but up to 6.18 it then marks
 * other listeners' MMAP2 records as having one, too, where they have an inode; perf 6.1 ends by
 * "stack smashing detected" over those. So nobody who records beside us may be made to get them.
 */
#ifndef RECORDER_MODULES_H
#define RECORDER_MODULES_H

#include <tally/record.h>
#include <tally/writer.h>

#include "base/hash.h"
#include "base/vec.h"

struct mapped_file {
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	int32_t pid;   /* of the process that mapped it first */
	bool replaced; /* the path stood for several files: no build-id is true for all */
};

struct modules {
	struct strings paths;
	VEC(struct mapped_file) files; /* by path id */
};

/* Takes an MMAP2 record; others are ignored. Errors: -ENOMEM. */
int modules_see(struct modules *m, const struct tally_record *rec);

/* Reads the build-ids of files that are still the mapped ones, and gives them to the writer. */
int modules_write(const struct modules *m, struct tally_writer *writer, const char *root);

void modules_done(struct modules *m);

#endif
