/* SPDX-License-Identifier: MIT */
/* The line table of a unit: the rows that its line program makes, by address. */
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

/*
 * A row, and how the line program goes on behind it. To keep every row would take several times the
 * memory of the program that makes it; from a mark on a few are made again.
 */
struct line_mark {
	uint32_t at;      /* from its sequence's start */
	uint32_t program; /* offset in it */
	uint32_t file, line, column;
	uint32_t op; /* operation in a VLIW instruction */
};

/* Addresses of one piece of code. */
struct line_sequence {
	uint64_t low, high;
	size_t first, count; /* of its marks */
	bool marks_all;      /* each row: they do not rise in the program, or lie far apart there */
};

/* How a line program is encoded. */
struct line_header {
	struct dwarf_encoding encoding;
	uint8_t min_length, max_ops; /* of an instruction; operations in one, 1 but for VLIW */
	int8_t line_base;
	uint8_t line_range, opcode_base;
	const uint8_t *operands; /* of standard opcodes, from 1 on: how many */
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
	VEC(struct line_mark) marks;
	struct line_header head;
	struct dwarf_cursor program; /* in the section, which outlives it */
};

/*
 * Reads the table at an offset of .debug_line into a zeroed `*t`. What is broken ends it: the rows
 * before that are there. `u` tells how texts are found. -ENOMEM.
 */
int line_table_read(struct line_table *t, const struct dwarf_unit *u, uint64_t offset);
void line_table_done(struct line_table *t);

/* The row that holds for an address; false: none. */
bool line_table_find(const struct line_table *t, uint64_t address, struct line_row *row);
/* NULL: no such file. */
struct line_file *line_table_file(const struct line_table *t, uint32_t file);

#endif
