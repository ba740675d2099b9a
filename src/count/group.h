/* SPDX-License-Identifier: MIT */
/* What a group is made of, for this room alone. */
#ifndef COUNT_GROUP_H
#define COUNT_GROUP_H

#include <tally/group.h>

#include "count/set.h"

struct measured;

struct tally_group {
	struct set set;
	struct tally_counter *views; /* one a member */
	struct measured *measured;   /* NULL before the first tally_measure() */
};

/* Frees what measuring keeps; NULL is fine. */
void measured_free(struct measured *measured);

#endif
