/* SPDX-License-Identifier: MIT */
/* A file without a name, for what does not fit memory. */
#ifndef PERFDATA_TEMP_H
#define PERFDATA_TEMP_H

#include <stddef.h>
#include <stdint.h>
#include <tally/error.h>

/* In `folder`, else $TMPDIR, /var/tmp or /tmp. A descriptor or -errno. */
int temp_open(const char *folder, struct tally_error *err);
/* Writes all of it. */
int temp_write(int fd, const void *bytes, size_t len, uint64_t offset, struct tally_error *err);
/* Reads all of it. */
int temp_read(int fd, void *bytes, size_t len, uint64_t offset, struct tally_error *err);

#endif
