/* SPDX-License-Identifier: MIT */
/*
 * The functions of a unit and the calls that were inlined into them, by address: one walk over its
 * DIEs, which keeps of each what a look-up needs. Names are read when they are asked for.
 */
#ifndef IMAGE_INLINE_INDEX_H
#define IMAGE_INLINE_INDEX_H

#include <stdint.h>

#include "image/cover.h"
#include "image/dwarf-unit.h"

#define INLINE_NONE UINT32_MAX

/* Programs have millions of them. */
struct inline_node {
	uint32_t die;    /* that tells its name, in .debug_info; sections stay below 4 GiB */
	uint32_t parent; /* in which this was inlined; INLINE_NONE: a function of its own */
	uint32_t call_line;
	uint16_t call_file, call_column; /* larger ones: LINE_NO_FILE, 0 */
};

struct inline_index {
	struct inline_node *nodes;
	size_t count;
	struct cover cover; /* of nodes */
};

/* Memory that grows with the largest unit, instead of anew with each. Zeroed is empty. */
struct inline_scratch {
	VEC(struct inline_node) nodes;
	struct cover_ranges ranges;
};

/* Walks over the unit's DIEs, as far as they make sense, into a zeroed `*x`. -ENOMEM. */
int inline_index_read(struct inline_index *x, struct dwarf_unit *u, struct inline_scratch *scratch);
void inline_scratch_done(struct inline_scratch *scratch);
void inline_index_done(struct inline_index *x);

/* The innermost function or inlined call at an address; INLINE_NONE. Chains by `parent` end. */
uint32_t inline_index_find(const struct inline_index *x, uint64_t address);

#endif
