/* SPDX-License-Identifier: MIT */
/* Skids, as timers count them. */
#ifndef EXACT_CALIBRATION_H
#define EXACT_CALIBRATION_H

#include <tally/calibration.h>

void skids_add(struct tally_skids *skids, uint64_t skid);

/* The least margin of the form 2^i - 1 that all but `above` of them kept to. */
uint64_t skids_bound(const struct tally_skids *skids, uint64_t above);

#endif
