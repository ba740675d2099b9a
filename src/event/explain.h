/* SPDX-License-Identifier: MIT */
/*
 * An errno in words: what failed, on what, why, and what to do, with the figures that were read
 * (paranoid level, limits, capabilities). Nothing is read when `err` is NULL.
 */
#ifndef EVENT_EXPLAIN_H
#define EVENT_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <tally/attr.h>
#include <tally/error.h>

/*
 * perf_event_open(2) failed with `code` (negative). Fills in `err` and returns `code`.
 *   name      the event as the user wrote it
 *   attr      what was asked for last; after E2BIG with the size that the kernel wrote into it
 *   tid, cpu  where, as passed to the system call
 */
int explain_open(struct tally_error *err, int code, const char *name, const struct tally_attr *attr,
		 int32_t tid, int32_t cpu, const char *root);

/* As explain_open, when a group's further member was refused with EINVAL. */
int explain_member(struct tally_error *err, int code, const char *name,
		   const struct tally_attr *attr, int32_t tid, int32_t cpu, const char *root);

/* What no kernel takes of an attr, new or old, in words; NULL: nothing is known to be wrong. */
const char *invalid_anywhere(const struct tally_attr *attr);

/* mmap(2) of a ring of `bytes` data bytes failed. Fills in `err` and returns `code`. */
int explain_mmap(struct tally_error *err, int code, uint64_t bytes, const char *root);

/*
 * No descriptor is left, -EMFILE or -ENFILE, for what takes `needed` more. `what` could not be done, as
 * "cannot open faults"; events: each takes one for each thread and CPU. Fills in `err` and returns `code`.
 */
int explain_fds(struct tally_error *err, int code, const char *what, uint64_t needed, bool events,
		const char *root);

#endif
