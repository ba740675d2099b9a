/* SPDX-License-Identifier: MIT */
/* Filling a struct tally_error. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <tally/error.h>

/*
 * Writes the error and returns `code`, so that a failing function can end in
 * `return error_set(err, -ENOENT, TALLY_CAUSE_NO_FILE, "...")`. `err` may be NULL. The text is cut
 * at the struct's end, on a UTF-8 boundary, and control characters in it become '?': names from
 * files are hostile and this line ends on a terminal.
 */
TALLY_PRINTF(4, 5)
int error_set(struct tally_error *err, int code, enum tally_cause cause, const char *fmt, ...);

/* For a failed allocation: -ENOMEM and what it was for. */
int error_nomem(struct tally_error *err, const char *what);

/* Puts "`prefix`: " before a text that is already there. */
TALLY_PRINTF(2, 3) void error_prefix(struct tally_error *err, const char *fmt, ...);

/*
 * Checks an options struct that the caller filled: `opts` may be NULL, its size must hold
 * {size, flags}, and bytes behind `known` must be zero. Copies min(size, known) bytes to `out`,
 * zeroes the rest of `out`. A bit of `flags`, its second word, that is not in `known_flags` is -EINVAL:
 * a caller that is newer than the library must not believe that it got what it asked for.
 * Errors: -EINVAL, -E2BIG.
 */
int opts_read(void *out, size_t known, uint32_t known_flags, const void *opts,
	      struct tally_error *err);

#endif
