/* SPDX-License-Identifier: MIT */
/*
 * Finding the file that was mapped. A path alone is not enough: the process may have had another
 * root, the file may have been replaced or deleted since. Who looks through a process first makes
 * sure that it still has that very file; a build-id that differs rules a file out everywhere.
 */
#ifndef IMAGE_FILE_FIND_H
#define IMAGE_FILE_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <tally/maps.h>

#include "base/hash.h"
#include "image/build-id.h"

#define FILE_DELETED " (deleted)"

/* Where to look. */
struct file_search {
	const char *root, *symfs;
	const char *cache; /* folder with what recordings kept; NULL: none */
	bool debuginfod;   /* ask servers too */
	int32_t pid;       /* that had it mapped so: */
	struct tally_mapping map;
	struct build_id build_id; /* as recorded; len 0: unknown */
};

/* What came of it. */
struct file_found {
	int fd;                             /* or negative: */
	bool other_build, replaced, denied; /* replaced: by its inode, no build-ids tell */
	struct build_id id;                 /* of the other build */
	char path[PATH_MAX];                /* at which it was opened */
	struct stat st;
};

/* Equal for mappings of one file. */
static inline uint64_t file_key(const struct tally_mapping *map)
{
	uint64_t device = (uint64_t)map->dev_major << 32 | map->dev_minor;

	return hash_u64(hash_u64(hash_u64(map->path_id) + map->inode) + device);
}

/* Whether it has the inode of the mapped file. */
bool file_is_mapped_one(const struct stat *st, const struct tally_mapping *map);

/* Opens the mapped file. false: `out` tells why not. */
bool file_find(struct file_found *out, const struct file_search *where);

/* The path that the file had while it existed; answers whether it is said to be deleted. */
bool file_undeleted(char path[PATH_MAX], const char *recorded);

/* The root folder of the process, "/proc/PID/root" below `root`. */
void file_process_root(char path[PATH_MAX], const struct file_search *where);

/*
 * Opens a regular file, whatever its path names by now: a FIFO would block, a device may do
 * anything. Its fd and state, or a negative errno.
 */
int file_open_regular(const char *path, struct stat *st);

#endif
