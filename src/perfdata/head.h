/* SPDX-License-Identifier: MIT */
/* The header of a file and the events it describes. */
#ifndef PERFDATA_HEAD_H
#define PERFDATA_HEAD_H

#include "perfdata/events.h"

struct head {
	struct file_header file; /* in this machine's byte order; features 0 when it has none */
	bool piped;              /* no sections: everything is records */
};

/* Takes the header from the file's first bytes, and finds the byte order. */
int head_parse(struct head *head, struct source *src, const uint8_t *bytes, size_t len,
	       struct tally_error *err);
/* The same of a file. */
int head_read(struct head *head, struct source *src, struct tally_error *err);

/* Reads the attrs section and the ids that it points to. */
int head_read_events(const struct head *head, const struct source *src, struct events *events,
		     struct tally_error *err);

#endif
