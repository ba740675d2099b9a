/* SPDX-License-Identifier: MIT */
/* Code whose branches are known: none, on architectures that have no such code here. */
#include "exact/loads.h"

const struct tally_retired load_each[LOADS];

void load_run(enum load load, uint64_t n)
{
}
