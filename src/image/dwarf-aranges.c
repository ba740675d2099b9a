/* SPDX-License-Identifier: MIT */
/* Address ranges by unit (DWARF 5, 6.1.2). */
#include <errno.h>

#include "image/dwarf-aranges.h"

#define VERSION 2 /* of all versions of DWARF */

/* One table; the cursor ends with it. */
static int read_table(struct dwarf_file *f, struct cover *units, uint32_t rank,
		      struct dwarf_cursor *c, const uint8_t *start, bool is64)
{
	uint16_t version = cursor_u16(c);
	const struct dwarf_unit *unit = dwarf_file_unit_at(f, cursor_offset(c, is64));
	uint8_t size = cursor_u8(c), selector = cursor_u8(c);

	if (c->failed || version != VERSION || !unit || selector || (size != 4 && size != 8))
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
		    !cover_add(units, low, low + len, (uint32_t)(unit - f->units.at), rank))
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
