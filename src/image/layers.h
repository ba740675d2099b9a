/* SPDX-License-Identifier: MIT */
/*
 * Ranges of addresses that were laid over one another in time: code that is made at run time, thrown
 * away, and made anew in the same place. Ranges are added in the order of time; each look-up takes
 * the square of a logarithm, however many of them cover an address.
 */
#ifndef IMAGE_LAYERS_H
#define IMAGE_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct layer {
	uint64_t start, end; /* end exclusive, above start */
	uint64_t since;
};

#define LAYER_NONE UINT32_MAX

/* In lists of 2 * log2 nodes each they take 340 MB at most. */
#define LAYERS_MAX ((size_t)1 << 21)

/*
 * A tree over the pieces into which all starts and ends cut the addresses. A node lists the layers
 * that cover all of its pieces, but not all of its parent's; so each layer is in a few lists.
 */
struct layers {
	VEC(struct layer) added; /* by number; `since` ascends */
	VEC(uint64_t) changes;   /* when a layer was laid over an earlier one */
	uint64_t *cuts;          /* sorted; piece i is from cuts[i] to cuts[i + 1] */
	size_t pieces;
	uint32_t *lists, *first; /* of node i: from lists[first[i]] to lists[first[i + 1]] */
};

/* A `since` before that of the last one counts as that. false: no memory, or LAYERS_MAX. */
bool layers_add(struct layers *l, uint64_t start, uint64_t end, uint64_t since);

/* Makes what was added known to look-ups; more may be added and sealed again. false: no memory. */
bool layers_seal(struct layers *l);

/*
 * The number of the layer on top at that address and time; before the first one there, that one:
 * code is told of after it was made. LAYER_NONE: none ever was.
 */
uint32_t layers_find(const struct layers *l, uint64_t address, uint64_t time);

/* How often a layer was laid over an earlier one up to `time`. */
uint32_t layers_epoch(const struct layers *l, uint64_t time);

void layers_done(struct layers *l);

#endif
