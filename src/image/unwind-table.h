/* SPDX-License-Identifier: MIT */
/*
 * The unwind tables of one ELF file. Where functions begin is known from .eh_frame_hdr or by a walk
 * through the entries; a function's program is run when an address in it is first asked for, and
 * leaves rows (address, rules), of which equal rules are one. A look-up is two binary searches
 * then.
 */
#ifndef IMAGE_UNWIND_TABLE_H
#define IMAGE_UNWIND_TABLE_H

#include "base/hash.h"
#include "base/vec.h"
#include "image/elf.h"
#include "image/unwind-cfi.h"

struct unwind_row {
	uint32_t start; /* from the function's */
	uint32_t rules; /* index */
};

/* A function whose program was run. */
struct unwind_flat {
	uint64_t start, end;
	uint32_t first, count; /* rows; none: it is broken */
};

struct unwind_entry {
	uint64_t start;
	uint32_t offset; /* in the section */
	uint32_t flat;   /* index + 1; 0: not yet run */
};

/* .eh_frame, or .debug_frame. */
struct unwind_part {
	struct cfi_section section;
	VEC(uint8_t) bytes;
	VEC(struct unwind_entry) entries; /* by start */
};

#define UNWIND_PARTS 2

/* Stubs that jump to functions of other files, of which not all linkers tell in .eh_frame. */
struct unwind_stubs {
	uint64_t start, end;
	bool lazy; /* .plt, whose stubs push an index until they are bound */
};

#define UNWIND_STUBS 4

/* Zeroed is empty. */
struct unwind_table {
	struct elf_file layout; /* segments alone */
	uint16_t machine;       /* EM_* */
	struct unwind_part parts[UNWIND_PARTS];
	struct unwind_stubs stubs[UNWIND_STUBS];
	unsigned stub_count;
	VEC(struct unwind_flat) flats;
	VEC(struct unwind_row) rows;
	VEC(struct unwind_rules *) rules;
	struct map64 by_hash; /* of rules: index + 1 */
};

/*
 * Reads an open file into a zeroed table; it may be closed afterwards. -ENOEXEC: not a 64-bit,
 * little-endian ELF file; -ENODATA: it has no unwind tables; -ENOMEM. unwind_table_done() is the
 * caller's in any case.
 */
int unwind_table_read(struct unwind_table *t, int fd);

/* The same of sections that are in memory already; for tests. `header` may be empty. */
int unwind_table_index(struct unwind_part *part, const struct cfi_section *header);

/*
 * The rules at an address of the linker's; NULL: none are known. -ENOMEM is told through `*error`.
 */
const struct unwind_rules *unwind_table_find(struct unwind_table *t, uint64_t address, int *error);

/* Which stubs an address is in; NULL: none. */
const struct unwind_stubs *unwind_table_stubs(const struct unwind_table *t, uint64_t address);

void unwind_table_done(struct unwind_table *t);

#endif
