/* SPDX-License-Identifier: MIT */
/* The addresses that a DIE covers: low and high pc, or a list. */
#ifndef IMAGE_DWARF_RANGES_H
#define IMAGE_DWARF_RANGES_H

#include "image/dwarf-unit.h"

struct dwarf_range {
	uint64_t low, high; /* low < high */
};

struct dwarf_ranges {
	VEC(struct dwarf_range) list;
};

/*
 * Fills in the ranges that these three values (of DW_AT_low_pc, high_pc, ranges) say; none when they
 * say none. Code that the linker left out has address 0 or a tombstone and is left out. -ENOMEM.
 */
int dwarf_ranges_read(struct dwarf_ranges *ranges, const struct dwarf_unit *u,
		      const struct dwarf_value *low, const struct dwarf_value *high,
		      const struct dwarf_value *list);
void dwarf_ranges_done(struct dwarf_ranges *ranges);

#endif
