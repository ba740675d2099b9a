/* SPDX-License-Identifier: MIT */
/* Address ranges by unit (DWARF 5, 6.1.2). */
#include <errno.h>

#include "image/dwarf-aranges.h"

#define VERSION 2 /* of all versions of DWARF */

/* The index of the unit that begins at an offset; UINT32_MAX: none. */
static uint32_t unit_at(const struct dwarf_file *f, uint64_t offset)
{
	size_t low = 0, high = f->units.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->units.at[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < f->units.count && f->units.at[low].offset == offset;
	return found ? (uint32_t)low : UINT32_MAX;
}

/* One table; the cursor ends with it. */
static int read_table(const struct dwarf_file *f, struct cover *units, uint32_t rank,
		      struct dwarf_cursor *c, const uint8_t *start, bool is64)
{
	uint16_t version = cursor_u16(c);
	uint32_t unit = unit_at(f, cursor_offset(c, is64));
	uint8_t size = cursor_u8(c), selector = cursor_u8(c);

	if (c->failed || version != VERSION || unit == UINT32_MAX || selector ||
	    (size != 4 && size != 8))
		return 0;
	/* Tuples are aligned to their size, counted from the table's beginning. */
	size_t at = (size_t)(c->at - start), tuple = 2 * (size_t)size;
	cursor_take(c, align_up(at, tuple) - at);
	for (;;) {
		uint64_t low = cursor_address(c, size), len = cursor_address(c, size);
		if (c->failed || (!low && !len))
			return 0;
		/* What the linker left out has address 0, or a tombstone, and wraps. */
		if (low > 1 && len && low + len > low &&
		    !cover_add(units, low, low + len, unit, rank))
			return -ENOMEM;
	}
}

int dwarf_aranges_read(struct dwarf_file *f, struct cover *units, uint32_t rank)
{
	struct dwarf_section *section = &f->sections[DWARF_ARANGES];
	int r = 0;

	dwarf_section_finish(section);
	for (uint64_t at = 0; at < section->size && r == 0;) {
		struct dwarf_cursor c = dwarf_section_at(section, at, section->size);
		const uint8_t *start = c.at;
		bool is64 = cursor_unit(&c);
		if (c.failed)
			break;
		at += (uint64_t)(c.end - start);
		r = read_table(f, units, rank, &c, start, is64);
	}
	return r;
}
