/* SPDX-License-Identifier: MIT */
/* One walk over the DIEs of a unit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/dwarf-ranges.h"
#include "image/inline-index.h"
#include "image/line-table.h"

/* No compiler nests so deeply; what does was made to. */
#define MAX_DEPTH 2048

struct walk {
	struct inline_index *index;
	struct inline_scratch *scratch;
	struct dwarf_unit *unit;
	struct dwarf_cursor at;
	const uint8_t *start; /* of the unit's DIEs */
	struct dwarf_ranges ranges;
	VEC(uint32_t) owners; /* by depth: the node in which DIEs lie */
};

/* Of a function's DIE. */
struct attributes {
	struct dwarf_value low_pc, high_pc, ranges, call_file, call_line, call_column, origin;
};

static bool is_function(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* In what there may be functions. */
static bool may_hold_functions(const struct walk *w, uint16_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return !w->unit->has_plain_types;
	default:
		return false;
	}
}

static struct dwarf_value *wanted(struct attributes *a, uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return &a->low_pc;
	case DW_AT_high_pc:
		return &a->high_pc;
	case DW_AT_ranges:
		return &a->ranges;
	case DW_AT_call_file:
		return &a->call_file;
	case DW_AT_call_line:
		return &a->call_line;
	case DW_AT_call_column:
		return &a->call_column;
	case DW_AT_abstract_origin:
		return &a->origin;
	default:
		return NULL;
	}
}

static void read_attributes(struct walk *w, const struct dwarf_abbrev *abbrev, struct attributes *a)
{
	const struct dwarf_attr *attrs = dwarf_abbrev_attrs(w->unit->abbrevs, abbrev);
	const struct dwarf_encoding *e = &w->unit->encoding;

	/* Of each what says that it is not there: to clear all takes as long as to read them. */
	a->low_pc.form = a->high_pc.form = a->ranges.form = a->origin.form = 0;
	a->call_file.form = a->call_line.form = a->call_column.form = 0;
	for (uint32_t i = 0; i < abbrev->count && !w->at.failed; i++) {
		struct dwarf_value *to = wanted(a, attrs[i].name);
		if (to)
			dwarf_attr_read(to, &w->at, &attrs[i], e);
		else
			dwarf_attr_skip(&w->at, &attrs[i], e);
	}
}

/* 0 where there is none. */
static uint64_t number_of(const struct dwarf_value *v, uint64_t most, uint64_t beyond)
{
	if (!v->form)
		return 0;
	return v->number <= most ? v->number : beyond;
}

/*
 * Of a function without code: what is inlined into it may have some all the same, since DWARF 2 cannot
 * tell of code in several places. A function that was not inlined has nothing to do with the one around
 * it.
 */
static bool is_between(const struct dwarf_abbrev *abbrev, uint32_t owner)
{
	return abbrev->tag == DW_TAG_inlined_subroutine && abbrev->has_children &&
	       owner != INLINE_NONE;
}

/*
 * Where the name of a function is found. That of an inlined call stands with its abstract instance;
 * many calls share one, in few places of the file.
 */
static uint64_t named_by(const struct walk *w, const struct dwarf_abbrev *abbrev,
			 const struct attributes *a, uint64_t die)
{
	struct dwarf_unit *to;
	uint64_t origin;

	if (abbrev->tag != DW_TAG_inlined_subroutine ||
	    !dwarf_unit_reference(w->unit, &a->origin, &to, &origin) || to != w->unit)
		return die;
	return origin;
}

/* Adds a function. Its number, or INLINE_NONE: there is nothing to say of it. -ENOMEM. */
static int64_t add_function(struct walk *w, const struct dwarf_abbrev *abbrev, uint64_t die,
			    uint32_t owner, uint32_t depth)
{
	struct attributes a;

	read_attributes(w, abbrev, &a);
	w->ranges.list.count = 0;
	if (!w->at.failed && (a.low_pc.form || a.ranges.form) &&
	    dwarf_ranges_read(&w->ranges, w->unit, &a.low_pc, &a.high_pc, &a.ranges) < 0)
		return -ENOMEM;
	if (!w->ranges.list.count && !is_between(abbrev, owner))
		return INLINE_NONE;
	uint32_t number = (uint32_t)w->scratch->nodes.count;
	if (!vec_reserve(&w->scratch->nodes, 1))
		return -ENOMEM;
	w->scratch->nodes.at[w->scratch->nodes.count++] = (struct inline_node){
		.die = (uint32_t)named_by(w, abbrev, &a, die),
		.parent = abbrev->tag == DW_TAG_inlined_subroutine ? owner : INLINE_NONE,
		.call_line = (uint32_t)number_of(&a.call_line, UINT32_MAX, 0),
		.call_file = (uint16_t)number_of(&a.call_file, LINE_NO_FILE, LINE_NO_FILE),
		.call_column = (uint16_t)number_of(&a.call_column, UINT16_MAX, 0),
	};
	vec_each (&w->ranges.list, range)
		if (!cover_add(&w->index->cover, range->low, range->high, number, depth))
			return -ENOMEM;
	return number;
}

/* Where the next sibling is, if the DIE tells; else NULL. */
static const uint8_t *sibling_of(const struct walk *w, const struct dwarf_abbrev *abbrev)
{
	struct dwarf_cursor c = w->at;
	uint64_t offset, here = w->unit->dies + (uint64_t)(w->at.at - w->start);

	if (abbrev->sibling < 0 || !cursor_take(&c, (uint64_t)abbrev->sibling))
		return NULL;
	offset = w->unit->offset;
	switch (abbrev->sibling_size) {
	case 1:
		offset += cursor_u8(&c);
		break;
	case 2:
		offset += cursor_u16(&c);
		break;
	case 4:
		offset += cursor_u32(&c);
		break;
	default:
		return NULL;
	}
	/* Forward alone: nothing is walked over twice. */
	if (c.failed || offset <= here || offset >= w->unit->end)
		return NULL;
	return w->start + (offset - w->unit->dies);
}

/* One DIE; pushes what its children lie in. 0, or -ENOMEM. */
static int visit(struct walk *w, const struct dwarf_abbrev *abbrev, uint64_t die)
{
	uint32_t depth = (uint32_t)w->owners.count;
	uint32_t owner = depth ? w->owners.at[depth - 1] : INLINE_NONE;

	if (is_function(abbrev->tag)) {
		int64_t r = add_function(w, abbrev, die, owner, depth);
		if (r < 0)
			return (int)r;
		owner = (uint32_t)r;
	} else {
		const uint8_t *sibling = NULL;
		if (abbrev->has_children && !may_hold_functions(w, abbrev->tag))
			sibling = sibling_of(w, abbrev);
		if (sibling) {
			w->at.at = sibling;
			return 0;
		}
		dwarf_abbrev_skip(w->unit->abbrevs, abbrev, &w->at, &w->unit->encoding);
	}
	if (!abbrev->has_children)
		return 0;
	uint32_t *level = vec_push(&w->owners);
	if (!level)
		return -ENOMEM;
	*level = owner;
	return 0;
}

static int walk_dies(struct walk *w)
{
	int r = 0;

	do {
		uint64_t die = w->unit->dies + (uint64_t)(w->at.at - w->start);
		uint64_t code = cursor_uleb(&w->at);
		if (!code) {
			if (w->owners.count)
				w->owners.count--;
			continue;
		}
		const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(w->unit->abbrevs, code);
		if (!abbrev)
			break;
		r = visit(w, abbrev, die);
	} while (r == 0 && w->owners.count && w->owners.count < MAX_DEPTH && !w->at.failed);
	return r;
}

/* What was found, in just the memory that it takes. false: no memory. */
static bool keep(struct inline_index *x, const struct inline_scratch *scratch)
{
	size_t count = scratch->nodes.count, len = count * sizeof(*x->nodes);

	if (!count)
		return true;
	x->nodes = malloc(len);
	if (!x->nodes)
		return false;
	memcpy(x->nodes, scratch->nodes.at, len);
	x->count = count;
	return cover_seal(&x->cover);
}

int inline_index_read(struct inline_index *x, struct dwarf_unit *u, struct inline_scratch *scratch)
{
	int r = dwarf_unit_abbrevs(u);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	struct dwarf_file *f = u->file;
	struct walk w = { .index = x, .scratch = scratch, .unit = u };
	scratch->nodes.count = 0;
	x->cover.ranges = scratch->ranges;
	w.at = dwarf_section_once(&f->sections[DWARF_INFO], u->dies, u->end, &f->scratch);
	w.start = w.at.at;
	if (!w.at.failed)
		r = walk_dies(&w);
	if (r == 0 && !keep(x, scratch))
		r = -ENOMEM;
	scratch->ranges = x->cover.ranges;
	scratch->ranges.count = 0;
	x->cover.ranges = (struct cover_ranges){ 0 };
	dwarf_ranges_done(&w.ranges);
	vec_done(&w.owners);
	return r;
}

void inline_scratch_done(struct inline_scratch *scratch)
{
	vec_done(&scratch->nodes);
	vec_done(&scratch->ranges);
}

void inline_index_done(struct inline_index *x)
{
	free(x->nodes);
	cover_done(&x->cover);
}

uint32_t inline_index_find(const struct inline_index *x, uint64_t address)
{
	return cover_find(&x->cover, address);
}
