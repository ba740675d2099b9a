/* SPDX-License-Identifier: MIT */
/*
 * The functions of a unit and the calls that were inlined into them, by address. A first walk over its
 * DIEs finds the functions; what lies in one is walked over when an address in it is asked for, call by
 * call, where the DIEs tell how long they are with their children: most of a unit is never looked at.
 * Names are read when they are asked for.
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
	uint32_t inside; /* the first of its children in .debug_info; 0: none, or they are known */
	uint32_t end;    /* of these */
	uint32_t
		inner; /* what covers which of its addresses, index + 1; 0: not known, or nothing */
	uint32_t call_line;
	uint16_t call_file, call_column; /* larger ones: LINE_NO_FILE, 0 */
};

struct inline_index {
	VEC(struct inline_node) nodes;
	struct cover cover; /* of those that lie in no other, or whose place in it is not told */
	VEC(struct cover) inner; /* of those in others */
	bool whole;              /* all was walked over at once */
};

/*
 * Finds the functions of the unit, as far as its DIEs make sense, into a zeroed `*x`. `scratch`, empty at
 * first, is memory that grows with the largest unit, instead of anew with each. -ENOMEM.
 */
int inline_index_read(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch);
void inline_index_done(struct inline_index *x);

/*
 * The innermost function or inlined call at an address, into `*node`; INLINE_NONE. Chains by `parent`
 * end. `is_function`: there may be one that the first walk did not find. -ENOMEM.
 */
int inline_index_find(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch,
		      uint64_t address, bool is_function, uint32_t *node);

#endif
