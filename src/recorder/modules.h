/* SPDX-License-Identifier: MIT */
/*
 * Which files were mapped while recording, and their build-ids: for the BUILD_ID feature, by which a
 * report knows later that a file is still the one that ran. They are read when a file is first met,
 * since it may be replaced, and its inode used again, while the recording goes on. What will be gone
 * is put into a cache at the end: files that are not at their path here, since they are a container's
 * or were deleted, which are held open until then, and what processes told of the code that they made.
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
#include "image/build-id.h"

struct mapped_file {
	uint32_t path; /* in modules.paths */
	int32_t pid, last_pid;
	uint64_t inode, generation; /* of the inode; 0: unknown */
	uint32_t dev_major, dev_minor;
	uint64_t start, end; /* where last_pid has it */
	struct build_id id;  /* len 0: unknown, or it has none */
	int fd;              /* held, of what is not at its path or may be gone; or negative */
};

/* A process that mapped a file whose path stands for several. */
struct file_user {
	uint32_t file;
	int32_t pid;
};

/* Zeroed, but for the first, is empty. */
struct modules {
	const char *root; /* above /proc; NULL: the real one. Borrowed. */
	struct strings paths;
	VEC(struct mapped_file) files;
	VEC(struct file_user) users;
	VEC(uint32_t) files_of_path;             /* how many there are, by path id */
	VEC(int32_t) makers;                     /* processes with code that is in no file */
	struct map64 file_of, user_of, maker_of; /* index + 1 */
	uint32_t held_gone, held_new;            /* files */
	bool vdso;                               /* was mapped */
};

/* Takes an MMAP2 record; others are ignored. Errors: -ENOMEM. */
int modules_see(struct modules *m, const struct tally_record *rec);

/*
 * Gives the build-ids to the writer; with a folder `cache` also keeps what will be gone. Only errors of
 * the writer are errors.
 */
int modules_write(const struct modules *m, struct tally_writer *writer, const char *cache);

void modules_done(struct modules *m);

#endif
