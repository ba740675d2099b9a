/* SPDX-License-Identifier: MIT */
/* Tar archives (POSIX ustar), as far as recordings are packed into them. */
#ifndef PROFILE_TAR_H
#define PROFILE_TAR_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/error.h>

/* Adds a file under a name, from memory or from a descriptor that has `size` bytes. 0 or -errno;
 * -ENAMETOOLONG, -EFBIG: it does not fit into the format, nothing was written. */
int tar_add_bytes(int to, const char *name, const void *bytes, uint64_t size);
int tar_add_fd(int to, const char *name, int fd, uint64_t size);
/* The two empty blocks. */
int tar_end(int to);

/* Whether the file begins with a header of such an archive. */
bool tar_is(const char *path);

/* Unpacks all regular files of an archive below a folder; names that lead out of it are refused. */
int tar_unpack(const char *path, const char *folder, struct tally_error *err);

#endif
