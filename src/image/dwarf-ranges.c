/* SPDX-License-Identifier: MIT */
/* Range lists (DWARF 4, 2.17.3; DWARF 5, 2.17.3 and 7.25), with GNU's bases for split DWARF 4. */
#include <errno.h>
#include <stdlib.h>

#include "image/dwarf-ranges.h"

struct list {
	struct dwarf_ranges *ranges;
	const struct dwarf_unit *unit;
	uint64_t base, mask;
	bool dropped; /* the base is that of code that the linker left out */
	bool no_memory;
};

/* Linkers give code that they drop the address 0, or the highest ones (1 in .debug_ranges). */
static void add(struct list *l, uint64_t low, uint64_t high)
{
	low &= l->mask;
	high &= l->mask;
	if (low <= 1 || low >= high || low >= l->mask - 1)
		return;
	struct dwarf_range *range = vec_push(&l->ranges->list);
	if (range)
		*range = (struct dwarf_range){ low, high };
	l->no_memory |= !range;
}

static void set_base(struct list *l, uint64_t base)
{
	l->base = base;
	l->dropped = base <= 1 || (base & l->mask) >= l->mask - 1;
}

/* What cannot be paid is not read: lists that many DIEs share must not make the work of a square. */
static bool pay(const struct dwarf_unit *u, const uint8_t *from, const struct dwarf_cursor *c)
{
	uint64_t *budget = &u->file->range_budget, bytes = (uint64_t)(c->at - from);

	if (u->skeleton)
		budget = &u->skeleton->file->range_budget;
	*budget = bytes < *budget ? *budget - bytes : 0;
	return *budget > 0;
}

static void read_old(struct list *l, struct dwarf_cursor *c)
{
	uint8_t size = l->unit->encoding.address_size;

	for (;;) {
		const uint8_t *from = c->at;
		uint64_t low = cursor_address(c, size), high = cursor_address(c, size);
		if (c->failed || (!low && !high) || l->no_memory || !pay(l->unit, from, c))
			return;
		if (low == l->mask)
			set_base(l, high);
		else if (!l->dropped)
			add(l, l->base + low, l->base + high);
	}
}

static uint64_t indexed(struct list *l, struct dwarf_cursor *c)
{
	uint64_t address = 0;

	if (!dwarf_unit_indexed(l->unit, cursor_uleb(c), &address))
		address = 0;
	return address;
}

/* One entry; false: the list ends. */
static bool read_entry(struct list *l, struct dwarf_cursor *c)
{
	uint8_t size = l->unit->encoding.address_size;
	uint64_t low, high;

	switch (cursor_u8(c)) {
	case DW_RLE_base_addressx:
		set_base(l, indexed(l, c));
		return true;
	case DW_RLE_startx_endx:
		low = indexed(l, c);
		high = indexed(l, c);
		break;
	case DW_RLE_startx_length:
		low = indexed(l, c);
		high = low + cursor_uleb(c);
		break;
	case DW_RLE_offset_pair:
		low = l->base + cursor_uleb(c);
		high = l->base + cursor_uleb(c);
		if (l->dropped)
			low = high;
		break;
	case DW_RLE_base_address:
		set_base(l, cursor_address(c, size));
		return true;
	case DW_RLE_start_end:
		low = cursor_address(c, size);
		high = cursor_address(c, size);
		break;
	case DW_RLE_start_length:
		low = cursor_address(c, size);
		high = low + cursor_uleb(c);
		break;
	default: /* the end, or nothing that we know */
		return false;
	}
	if (!c->failed)
		add(l, low, high);
	return true;
}

static void read_new(struct list *l, struct dwarf_cursor *c)
{
	const uint8_t *from;

	do {
		from = c->at;
	} while (!c->failed && !l->no_memory && read_entry(l, c) && pay(l->unit, from, c));
}

/* Where a list begins in .debug_rnglists. */
static bool list_offset(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *offset)
{
	uint64_t size = u->encoding.is64 ? 8 : 4;
	struct dwarf_section *section = &u->file->sections[DWARF_RNGLISTS];

	if (v->form != DW_FORM_rnglistx) {
		*offset = v->number;
		return true;
	}
	if (v->number > section->size / size)
		return false;
	uint64_t at = u->rnglists_base + v->number * size;
	struct dwarf_cursor c = dwarf_section_at(section, at, at + size);
	*offset = u->rnglists_base + cursor_offset(&c, u->encoding.is64);
	return !c.failed;
}

/* Lists have no length to stop at, so all of the section is read once. */
static struct dwarf_cursor cursor_at(struct dwarf_section *s, uint64_t offset)
{
	dwarf_section_finish(s);
	return dwarf_section_at(s, offset, s->size);
}

static void read_list(struct list *l, const struct dwarf_value *v)
{
	const struct dwarf_unit *u = l->unit;
	struct dwarf_file *f = u->file;
	struct dwarf_cursor c;
	uint64_t offset;

	if (u->encoding.version >= 5) {
		if (!list_offset(u, v, &offset))
			return;
		c = cursor_at(&f->sections[DWARF_RNGLISTS], offset);
		read_new(l, &c);
		return;
	}
	offset = v->number;
	if (u->skeleton) {
		f = u->skeleton->file;
		offset += u->ranges_base;
	}
	c = cursor_at(&f->sections[DWARF_RANGES], offset);
	read_old(l, &c);
}

static bool names_list(const struct dwarf_value *v)
{
	return v->form == DW_FORM_sec_offset || v->form == DW_FORM_rnglistx ||
	       v->form == DW_FORM_data4 || v->form == DW_FORM_data8;
}

int dwarf_ranges_read(struct dwarf_ranges *ranges, const struct dwarf_unit *u,
		      const struct dwarf_value *low, const struct dwarf_value *high,
		      const struct dwarf_value *list)
{
	struct list l = {
		.ranges = ranges,
		.unit = u,
		.base = u->base,
		.mask = u->encoding.address_size == 4 ? UINT32_MAX : UINT64_MAX,
	};
	uint64_t from, to;

	ranges->list.count = 0;
	if (names_list(list)) {
		read_list(&l, list);
	} else if (high->form && dwarf_unit_address(u, low, &from)) {
		if (dwarf_value_is_constant(high))
			add(&l, from, from + high->number);
		else if (dwarf_unit_address(u, high, &to))
			add(&l, from, to);
	}
	return l.no_memory ? -ENOMEM : 0;
}

void dwarf_ranges_done(struct dwarf_ranges *ranges)
{
	vec_done(&ranges->list);
}
