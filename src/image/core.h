/* SPDX-License-Identifier: MIT */
/* A core file, and its notes. */
#ifndef IMAGE_CORE_H
#define IMAGE_CORE_H

#include <tally/core.h>

#include "base/buf.h"
#include "base/vec.h"
#include "image/prstatus.h"

/* A stretch of memory; the file may keep none of it, or its beginning. */
struct core_segment {
	uint64_t start, end; /* addresses */
	uint64_t offset, kept;
};

/* A mapping of a file. */
struct core_file {
	uint64_t start, end, offset;
	size_t name; /* in tally_core.names */
};

struct core_thread {
	int32_t tid;
	uint64_t mask;
	uint64_t regs[PRSTATUS_MOST_WORDS];
};

struct tally_core {
	struct tally_core_info info;
	const char *path; /* borrowed while it is opened, for errors */
	int fd;
	uint64_t size;
	size_t words; /* of a thread's registers */
	char comm[16];
	VEC(struct core_segment) segments; /* by start */
	VEC(struct core_thread) threads;
	VEC(struct core_file) files;
	struct buf names;
	uint64_t vdso; /* 0: none is told */
};

/* Exactly these bytes of the file. false: there are not so many. */
bool core_read(const struct tally_core *core, uint64_t offset, void *out, size_t len);

/* -EBADMSG: what is wrong `at` which byte. */
int core_refuse(const struct tally_core *core, uint64_t at, const char *what,
		struct tally_error *err);

/*
 * Takes what the notes in `len` bytes at `offset` tell, which lie in the file. -EBADMSG, -ENOMEM.
 */
int core_notes(struct tally_core *core, uint64_t offset, uint64_t len, struct tally_error *err);

#endif
