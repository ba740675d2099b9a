/* SPDX-License-Identifier: MIT */
/*
 * Servers of debugging information, through elfutils' libdebuginfod, which is loaded when it is
 * first needed. It asks the servers in $DEBUGINFOD_URLS and keeps what they gave in its own cache.
 */
#ifndef IMAGE_DEBUGINFOD_H
#define IMAGE_DEBUGINFOD_H

#include "image/build-id.h"

enum debuginfod_kind {
	DEBUGINFOD_DEBUG, /* the file with separate debugging information */
	DEBUGINFOD_PROGRAM,
};

/*
 * A file descriptor of the file of that build, and with a `path` of PATH_MAX bytes where the library
 * keeps it. Errors: -ENOSYS: no servers are named, or the
 * library is not installed; -ENOENT and others: none of them has it, or they cannot be reached.
 */
int debuginfod_open(const struct build_id *id, enum debuginfod_kind kind, char *path);

#endif
