/* SPDX-License-Identifier: MIT */
/*
 * Split DWARF: what a program leaves in .dwo files, or in one package of them (.dwp). The program's
 * unit, the skeleton, names the file; the number in both tells that they belong together.
 */
#ifndef IMAGE_DWARF_SPLIT_H
#define IMAGE_DWARF_SPLIT_H

#include "image/dwarf-unit.h"

/* Zeroed but for these two, which outlive it. */
struct dwarf_split {
	const char *path;               /* of the program: beside it lies path.dwp */
	const char *symfs;              /* where files are looked for first; NULL: nowhere */
	VEC(struct dwarf_file *) files; /* .dwo files that were read */
	struct dwarf_package *package;
	bool package_looked_for;
};

/* The unit of which `skeleton` is the skeleton; NULL: not found. -ENOMEM. */
int dwarf_split_find(struct dwarf_split *s, struct dwarf_unit *skeleton, struct dwarf_unit **out);
void dwarf_split_done(struct dwarf_split *s);

#endif
