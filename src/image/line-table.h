/* SPDX-License-Identifier: MIT */
/* The line table of a unit: the rows that its line program makes, sorted for look-ups. */
#ifndef IMAGE_LINE_TABLE_H
#define IMAGE_LINE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/dwarf-unit.h"

/* No compiler's table has so many files. */
#define LINE_NO_FILE UINT16_MAX

struct line_row {
	uint32_t at; /* from its sequence's start */
	uint32_t line;
	uint16_t file, column; /* larger ones: LINE_NO_FILE, 0 */
};

/* Rows of addresses that rise, of one piece of code. */
struct line_sequence {
	uint64_t low, high;
	size_t first, count;
};

struct line_file {
	const char *name; /* in the sections */
	const char *path; /* of whom the table is: in full; NULL until it is put together */
	uint32_t folder;
};

struct line_table {
	const struct dwarf_unit *unit; /* the first of those whose table it is */
	uint16_t version;
	VEC(const char *)
	folders; /* from 0, the compiler's own, on; NULL: the unit's DW_AT_comp_dir */
	VEC(struct line_file) files;         /* from 0 on; before version 5 that is none */
	VEC(struct line_sequence) sequences; /* by low, then high */
	VEC(struct line_row) rows;
};

/*
 * Reads the table at an offset of .debug_line into a zeroed `*t`. What is broken ends it: the rows
 * before that are there. `u` tells how texts are found. -ENOMEM.
 */
int line_table_read(struct line_table *t, const struct dwarf_unit *u, uint64_t offset);
void line_table_done(struct line_table *t);

/* The row that holds for an address; NULL: none. */
const struct line_row *line_table_find(const struct line_table *t, uint64_t address);
/* NULL: no such file. */
struct line_file *line_table_file(const struct line_table *t, uint32_t file);

#endif
