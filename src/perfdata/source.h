/* SPDX-License-Identifier: MIT */
/* What a reader reads from, by position or once from front to back, and what is wrong with it
 * without being fatal. */
#ifndef PERFDATA_SOURCE_H
#define PERFDATA_SOURCE_H

#include <stdbool.h>
#include <tally/error.h>

#include "perfdata/layout.h"

#define HEALTH_TEXT 512

struct source {
	const char *name; /* for messages */
	const char
		*part; /* "data.3: " of a recording that is a folder, for the health text; or "" */
	int fd;
	bool swapped;  /* it has the other byte order */
	bool once;     /* has no positions: a pipe, a socket, a terminal */
	uint64_t size; /* bytes, when it was last looked at; UINT64_MAX: not known */
	char *health;  /* HEALTH_TEXT bytes, shared by all parts */
};

/* Reads exactly `len` bytes; `what` is for messages. -EBADMSG when the file ends before. */
int source_read(const struct source *src, void *to, uint64_t offset, size_t len, const char *what,
		struct tally_error *err);

/* Reads what there is: how many bytes, 0 at the end, or -errno. `offset` counts where there are
 * positions. */
int64_t source_take(const struct source *src, void *to, uint64_t offset, size_t len);

/* Whether the section lies inside the file. */
bool source_holds(const struct source *src, const struct file_section *section);

/* Adds a clause to the health text, once. */
TALLY_PRINTF(2, 3) void source_complain(struct source *src, const char *fmt, ...);

#endif
