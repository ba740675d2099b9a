/* SPDX-License-Identifier: MIT */
/*
 * The source of a module's addresses: the function, the file and line, and the calls that were
 * inlined there, from DWARF 2 to 5. Units are listed at once; of a unit the line table and the index
 * of its functions are made when an address in it is first asked for.
 */
#ifndef IMAGE_DEBUG_INFO_H
#define IMAGE_DEBUG_INFO_H

#include <stdint.h>

#include "base/vec.h"
#include "image/debug-file.h"
#include "image/cover.h"
#include "image/dwarf-split.h"
#include "image/inline-index.h"
#include "image/line-table.h"
#include "image/texts.h"

struct debug_place {
	const char *function;  /* NULL: DWARF names none */
	const char *file;      /* full path as the compiler was told; NULL: unknown */
	uint32_t line, column; /* 0: unknown */
	bool is_linkage;       /* the function's name is the linker's */
	bool inlined;          /* into what the next place is in */
};

struct debug_places {
	VEC(struct debug_place) list; /* innermost first */
	/* Asked with it: the name of the function that is no inlined call is not looked for. */
	bool without_outermost;
	bool no_function; /* asked with it: there is none, as the symbols tell */
};

struct debug_info {
	struct dwarf_file file, alt;
	struct dwarf_split split;
	struct cover units; /* index in file.units */
	VEC(struct line_table *) tables;
	struct map64 table_at; /* by offset in .debug_line: index + 1 */
	VEC(struct inline_index *) indexes;
	struct cover_ranges scratch; /* of the indexes */
	struct texts texts;          /* paths put together */
	struct debug_file opened;    /* to close, with */
	bool has_files;
};

/*
 * Reads what is needed to begin into a zeroed `*d`; the files in `from` are its own from then on,
 * also on failure. `path` is the program's, for what lies beside it, and `symfs` (NULL: none) a
 * folder to look in; both outlive it. -ENOMEM; debug_info_done() is the caller's in any case.
 */
int debug_info_open(struct debug_info *d, const struct debug_file *from, const char *path,
		    const char *symfs);
/* Sections in memory, with all of them borrowed: for those that have no file. */
int debug_info_start(struct debug_info *d);
void debug_info_done(struct debug_info *d);

/*
 * Appends the places of an address: the innermost, then what each was inlined into. None where
 * nothing is known. Texts live as long as `d`. -ENOMEM.
 */
int debug_info_find(struct debug_info *d, uint64_t address, struct debug_places *places);

#endif
