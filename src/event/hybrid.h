/* SPDX-License-Identifier: MIT */
/* Events of the cores on a machine whose cores are of several kinds, each with its own PMU. */
#ifndef EVENT_HYBRID_H
#define EVENT_HYBRID_H

#include "event/resolve.h"

/*
 * Gives each generic hardware or cache event and each raw one that names no PMU a part for each kind
 * of core, on a machine that has several. The word at `where` stands for them.
 * 0 or -errno explained.
 */
int hybrid_expand(const struct naming *n, const char *where, struct found *found);

#endif
