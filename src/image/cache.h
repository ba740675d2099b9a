/* SPDX-License-Identifier: MIT */
/*
 * What a recording keeps because it would be gone when somebody reports: programs of containers and
 * deleted ones, what processes told of the code that they made, and the kernel's symbols. Each is a
 * file below one folder, named by what it is and its build-id; it is written aside and renamed, so
 * that it is whole or not there.
 */
#ifndef IMAGE_CACHE_H
#define IMAGE_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "image/build-id.h"

enum cache_kind {
	CACHE_PROGRAM, /* an ELF file, by its build-id */
	CACHE_CODE,    /* a perf map or jitdump, by cache_content_id() */
	CACHE_KERNEL,  /* symbols, by the kernel's build-id */
};

/* $XDG_CACHE_HOME/tally, or ~/.cache/tally. false: neither is set, or it is too long. */
bool cache_folder(char path[PATH_MAX]);

/* Where a file of that id is, if it is. false: the path is too long, or there is no id. */
bool cache_path(char path[PATH_MAX], const char *folder, enum cache_kind kind,
		const struct build_id *id);

/*
 * Where perf(1) keeps a file of that build, if it does: `name` is "elf", "kallsyms" or "vdso".
 * perf-archive takes these to other machines. false: as above, or there is no home.
 */
bool cache_perf_path(char path[PATH_MAX], const struct build_id *id, const char *name);

/* An id for `len` bytes of a file without one, by their number and a hash. false: there are fewer. */
bool cache_content_id(struct build_id *out, int fd, uint64_t len);
/* How many bytes the id was made of. 0: it is no such id. */
uint64_t cache_content_len(const struct build_id *id);

/*
 * Keeps `len` bytes of an open file, unless there is such a file already. Errors: -errno of making
 * folders and files.
 */
int cache_keep(const char *folder, enum cache_kind kind, const struct build_id *id, int fd,
	       uint64_t len);
/* Likewise, of bytes in memory. */
int cache_keep_bytes(const char *folder, enum cache_kind kind, const struct build_id *id,
		     const void *bytes, size_t len);
/* Keeps bytes in memory, in place of what was there. */
int cache_replace(const char *folder, enum cache_kind kind, const struct build_id *id,
		  const void *bytes, size_t len);

/* Removes the oldest files until they have CACHE_LIMIT bytes together at most. */
#define CACHE_LIMIT ((uint64_t)1 << 30)
void cache_trim(const char *folder);

/* A hash that stays the same between versions (FNV-1a), of bytes behind others. */
#define CACHE_HASH_START 0xcbf29ce484222325u
uint64_t cache_hash(uint64_t before, const void *bytes, size_t len);

#endif
