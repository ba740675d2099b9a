/* SPDX-License-Identifier: MIT */
/* What a group is made of, for this room alone. */
#ifndef COUNT_GROUP_H
#define COUNT_GROUP_H

#include <tally/group.h>

#include "count/opened.h"

struct measured;

struct tally_group {
	struct opened opened;
	struct tally_event **events; /* its members, borrowed from their list */
	struct tally_count *counts;  /* a read that fails half-way is not seen by the caller */
	bool enabled;                /* by its verbs, or from the open on */
	struct measured *measured;   /* NULL before the first tally_measure() */
};

/* Frees what measuring keeps; NULL is fine. */
void measured_free(struct measured *measured);

#endif
