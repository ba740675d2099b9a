/* SPDX-License-Identifier: MIT */
/*
 * .debug_aranges: which addresses a unit has, beside its root DIE. Strict DWARF 2 can say there alone
 * that a unit's code lies in several places.
 */
#ifndef IMAGE_DWARF_ARANGES_H
#define IMAGE_DWARF_ARANGES_H

#include "image/cover.h"
#include "image/dwarf-unit.h"

/* Adds the ranges of all tables, as far as they make sense, by the index of their unit. -ENOMEM. */
int dwarf_aranges_read(struct dwarf_file *f, struct cover *units, uint32_t rank);

#endif
