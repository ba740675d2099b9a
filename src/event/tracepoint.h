/* SPDX-License-Identifier: MIT */
/* Tracepoints by name, from tracefs. */
#ifndef EVENT_TRACEPOINT_H
#define EVENT_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/error.h>

#include "base/buf.h"

/* Whether tracefs is there and has such a group. */
bool tracepoint_has_group(const char *root, const char *group);

/*
 * The number of a tracepoint for attr.config. Errors: -EINVAL (no such tracepoint, with the nearest
 * one), -ENOENT (tracefs is not mounted), -EACCES, -ENOMEM.
 */
int tracepoint_id(uint64_t *id, const char *group, const char *name, const char *root,
		  struct tally_error *err);

/*
 * Calls `fn` with "group:name" and number of each whose group and name match the patterns
 * (fnmatch(3)), sorted, until it answers non-zero, which is then answered. Errors: those of
 * tracepoint_id(), -EINVAL when none matches.
 */
int tracepoint_match(const char *group, const char *name, const char *root,
		     int (*fn)(const char *name, uint64_t id, void *arg), void *arg,
		     struct tally_error *err);

/*
 * Calls `fn` with "group:name" of each, sorted, until it answers non-zero, which is then answered.
 * Nothing happens when tracefs cannot be read. Errors: -ENOMEM.
 */
int tracepoint_each(const char *root, int (*fn)(const char *name, void *arg), void *arg);

/* Appends the file that names the fields of "group:name". 0 or -errno. */
int tracepoint_format(struct buf *out, const char *full_name, const char *root);

#endif
