/* SPDX-License-Identifier: MIT */
/* The file that a reader reads, by position, and what is wrong with it without being fatal. */
#ifndef PERFDATA_SOURCE_H
#define PERFDATA_SOURCE_H

#include <stdbool.h>
#include <tally/error.h>

#include "perfdata/layout.h"

struct source {
	const char *name; /* for messages */
	int fd;
	bool swapped;  /* it has the other byte order */
	uint64_t size; /* bytes, when it was opened */
	char health[512];
};

/* Reads exactly `len` bytes; `what` is for messages. -EBADMSG when the file ends before. */
int source_read(const struct source *src, void *to, uint64_t offset, size_t len, const char *what,
		struct tally_error *err);

/* Whether the section lies inside the file. */
bool source_holds(const struct source *src, const struct file_section *section);

/* Adds a clause to the health text, once. */
TALLY_PRINTF(2, 3) void source_complain(struct source *src, const char *fmt, ...);

#endif
