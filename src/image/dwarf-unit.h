/* SPDX-License-Identifier: MIT */
/*
 * A file with debugging information, its units, and what their attributes mean. Nothing is believed:
 * references are looked up, offsets are checked, and what is read more than once is paid for from a
 * budget that grows with the file, so that a small file cannot make much work.
 */
#ifndef IMAGE_DWARF_UNIT_H
#define IMAGE_DWARF_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"
#include "image/dwarf-abbrev.h"
#include "image/dwarf-section.h"

enum dwarf_sections {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_STR_OFFSETS,
	DWARF_RNGLISTS,
	DWARF_LINE_STR, /* this and what follows a .dwo file leaves to its program */
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_LINE,
	DWARF_ARANGES,
	DWARF_SECTIONS,
};

struct line_table;
struct inline_index;

struct dwarf_unit {
	struct dwarf_file *file;
	uint64_t offset, dies, end; /* in .debug_info: the header, the root DIE, behind the last */
	uint64_t root_at;           /* the values of the root DIE */
	uint64_t abbrev_offset;
	const struct dwarf_abbrevs *abbrevs; /* NULL until needed */
	struct dwarf_encoding encoding;
	uint8_t type;         /* enum dwarf_unit_type */
	bool has_plain_types; /* without code in them */
	bool is_split, root_read, lines_read, inlines_read, split_looked_for;
	/* From the root DIE. */
	uint16_t tag;
	struct dwarf_value comp_dir, dwo_name, low_pc, high_pc, ranges, stmt_list;
	uint64_t base; /* address from which range lists count */
	uint64_t addr_base, str_offsets_base, rnglists_base, ranges_base, dwo_id;
	/* Of a unit in a .dwo file: the one in the program, whose addresses it uses. */
	const struct dwarf_unit *skeleton;
	/* Filled in by others; the file's or the unit's. */
	struct line_table *lines;
	struct inline_index *inlines;
	struct dwarf_unit *split;
};

struct die_name {
	const char *text; /* in the sections; NULL: it has none */
	bool is_linkage;  /* as the linker knows it, maybe mangled */
};

struct dwarf_file {
	struct dwarf_section sections[DWARF_SECTIONS];
	struct dwarf_memory memory;   /* of these */
	struct dwarf_file *alt;       /* of dwz, with what several files share; NULL: none */
	VEC(struct dwarf_unit) units; /* by offset; they do not move any more */
	VEC(struct dwarf_abbrevs *) abbrevs;
	struct map64 abbrevs_at;                           /* by offset and encoding: index + 1 */
	uint64_t abbrev_budget, range_budget, line_budget; /* bytes that may yet be looked at */
	struct dwarf_scratch scratch, window;
	uint64_t window_from, window_to; /* what is in the window, of .debug_info */
	VEC(struct die_name) names;      /* that were asked for */
	struct map64 names_at;           /* by where the DIE is: index + 1 */
	bool is_dwo;
};

/*
 * The sections of an ELF file (of a .dwo file or a .dwp, with `is_dwo`), into a zeroed `*f`. The file
 * must stay open while it is read; dwarf_file_finish() reads all. -ENOMEM.
 */
int dwarf_file_open(struct dwarf_file *f, const struct elf_input *in, bool is_dwo);
void dwarf_file_finish(struct dwarf_file *f);
/* Lists the units and reads their root DIEs, once its sections are there. -ENOMEM. */
int dwarf_file_list(struct dwarf_file *f);
void dwarf_file_done(struct dwarf_file *f);

/* The unit that holds an offset of .debug_info; NULL: none. */
struct dwarf_unit *dwarf_file_unit(struct dwarf_file *f, uint64_t offset);
/* The unit whose header is at an offset; NULL: none is. */
struct dwarf_unit *dwarf_file_unit_at(struct dwarf_file *f, uint64_t offset);
/* Reads the root DIE, again after `skeleton` or a base has been set. -ENOMEM. */
int dwarf_unit_root(struct dwarf_unit *u);
/* Makes its abbreviations ready. -ENOMEM; -EBADMSG: it has none. */
int dwarf_unit_abbrevs(struct dwarf_unit *u);

/* Reads from an offset to the unit's end, or at most `len` bytes. */
struct dwarf_cursor dwarf_unit_cursor(const struct dwarf_unit *u, uint64_t offset, uint64_t len);

/* What a value means in its unit. NULL, false: not that, or it lies nowhere. */
const char *dwarf_unit_text(const struct dwarf_unit *u, const struct dwarf_value *v);
bool dwarf_unit_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *address);
/* The entry with that index in .debug_addr. */
bool dwarf_unit_indexed(const struct dwarf_unit *u, uint64_t index, uint64_t *address);
/* The DIE that is referred to, and its unit, maybe of another file. */
bool dwarf_unit_reference(struct dwarf_unit *u, const struct dwarf_value *v, struct dwarf_unit **to,
			  uint64_t *die);

/* The name of a function's DIE in that unit, by what it is an instance of too. -ENOMEM. */
int die_name(struct die_name *name, struct dwarf_unit *u, uint64_t die);

#endif
