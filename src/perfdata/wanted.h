/* SPDX-License-Identifier: MIT */
/* Which records of a file are kept when it is written anew. */
#ifndef PERFDATA_WANTED_H
#define PERFDATA_WANTED_H

#include <tally/reader.h>
#include <tally/rewrite.h>

#include "perfdata/comms.h"

struct wanted {
	const struct tally_rewrite_opts *opts;
	uint64_t from, to; /* of this file's clock; to 0: no end */
	struct comms comms;
};

/* -EINVAL: lists that are none. */
int wanted_check(const struct tally_rewrite_opts *opts, struct tally_error *err);

/* Whether the event is one of those asked for. */
bool wanted_event(const struct tally_rewrite_opts *opts, const char *name);

/* Whether anything may be dropped at all; and whether names have to be known beforehand. */
bool wanted_filters(const struct tally_rewrite_opts *opts);

/* Whether the record is kept; `event`: its event's name. */
bool wanted_record(struct wanted *w, const struct tally_record *rec, const char *event);

#endif
