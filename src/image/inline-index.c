/* SPDX-License-Identifier: MIT */
/* Walks over the DIEs of a unit: for its functions, then into those that are asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/dwarf-ranges.h"
#include "image/inline-index.h"
#include "image/line-table.h"

/* No compiler nests so deeply; what does was made to. */
#define MAX_DEPTH 2048

struct level {
	uint32_t owner; /* node; INLINE_NONE */
	bool in_function;
};

struct walk {
	struct inline_index *index;
	struct cover *cover; /* of what is found */
	struct dwarf_unit *unit;
	struct dwarf_cursor at;
	const uint8_t *start; /* where the DIE at `from` is */
	uint64_t from;        /* in .debug_info */
	bool whole;           /* nothing is left for later */
	struct dwarf_ranges ranges;
	VEC(struct level) levels; /* by depth: in what DIEs lie */
	const uint8_t *sibling;   /* of the function at hand; NULL: it does not tell */
};

/* Of a function's DIE. */
struct attributes {
	struct dwarf_value low_pc, high_pc, ranges, call_file, call_line, call_column, origin,
		sibling;
};

static bool is_function(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* In what there may be functions. Those of a type in a function stand with it. */
static bool may_hold_functions(const struct walk *w, uint16_t tag, bool in_function)
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
		return in_function || !w->unit->has_plain_types;
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
	case DW_AT_sibling:
		return &a->sibling;
	default:
		return NULL;
	}
}

static void read_attributes(struct walk *w, const struct dwarf_abbrev *abbrev, struct attributes *a)
{
	const struct dwarf_attr *attrs = dwarf_abbrev_attrs(w->unit->abbrevs, abbrev);
	const struct dwarf_encoding *e = &w->unit->encoding;

	/* Of each what says that it is not there: to clear all takes as long as to read them. */
	a->low_pc.form = a->high_pc.form = a->ranges.form = a->origin.form = a->sibling.form = 0;
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

static uint64_t offset_of(const struct walk *w, const uint8_t *at)
{
	return w->from + (uint64_t)(at - w->start);
}

/* The place of a sibling. Forward alone, so that nothing is walked over twice; else NULL. */
static const uint8_t *forward(const struct walk *w, uint64_t offset)
{
	if (offset <= offset_of(w, w->at.at) || offset >= offset_of(w, w->at.end))
		return NULL;
	return w->start + (offset - w->from);
}

/* That of a function, whose attributes were read. */
static const uint8_t *told_sibling(const struct walk *w, const struct dwarf_value *v)
{
	struct dwarf_unit *to;
	uint64_t die;

	return dwarf_unit_reference(w->unit, v, &to, &die) && to == w->unit ? forward(w, die)
									    : NULL;
}

/* That of what is not looked at, where it stands in a place that is known. */
static const uint8_t *fixed_sibling(const struct walk *w, const struct dwarf_abbrev *abbrev)
{
	struct dwarf_cursor c = w->at;
	uint64_t offset;

	if (abbrev->sibling < 0 || !cursor_take(&c, (uint64_t)abbrev->sibling))
		return NULL;
	switch (abbrev->sibling_size) {
	case 1:
		offset = cursor_u8(&c);
		break;
	case 2:
		offset = cursor_u16(&c);
		break;
	case 4:
		offset = cursor_u32(&c);
		break;
	default:
		return NULL;
	}
	return c.failed ? NULL : forward(w, w->unit->offset + offset);
}

/* Adds a function. Its number, or INLINE_NONE: there is nothing to say of it. -ENOMEM. */
static int64_t add_function(struct walk *w, const struct dwarf_abbrev *abbrev, uint64_t die,
			    uint32_t owner, uint32_t depth)
{
	struct inline_index *x = w->index;
	struct attributes a;

	read_attributes(w, abbrev, &a);
	w->sibling = abbrev->has_children ? told_sibling(w, &a.sibling) : NULL;
	w->ranges.list.count = 0;
	if (!w->at.failed && (a.low_pc.form || a.ranges.form) &&
	    dwarf_ranges_read(&w->ranges, w->unit, &a.low_pc, &a.high_pc, &a.ranges) < 0)
		return -ENOMEM;
	if (!w->ranges.list.count && !is_between(abbrev, owner))
		return INLINE_NONE;
	uint32_t number = (uint32_t)x->nodes.count;
	if (!vec_reserve(&x->nodes, 1))
		return -ENOMEM;
	x->nodes.at[x->nodes.count++] = (struct inline_node){
		.die = (uint32_t)named_by(w, abbrev, &a, die),
		.parent = abbrev->tag == DW_TAG_inlined_subroutine ? owner : INLINE_NONE,
		.call_line = (uint32_t)number_of(&a.call_line, UINT32_MAX, 0),
		.call_file = (uint16_t)number_of(&a.call_file, LINE_NO_FILE, LINE_NO_FILE),
		.call_column = (uint16_t)number_of(&a.call_column, UINT16_MAX, 0),
	};
	vec_each (&w->ranges.list, range)
		if (!cover_add(w->cover, range->low, range->high, number, depth))
			return -ENOMEM;
	return number;
}

/*
 * What lies in a function is left for when it is asked for. false: it must be walked over now. Each
 * walk ends where it is said to, so whatever siblings say, no DIE is met in two of them.
 */
static bool leave(struct walk *w, uint32_t number, const uint8_t *sibling)
{
	if (w->whole || number == INLINE_NONE || !w->ranges.list.count || sibling <= w->at.at)
		return false;
	struct inline_node *node = &w->index->nodes.at[number];
	node->inside = (uint32_t)offset_of(w, w->at.at);
	node->end = (uint32_t)offset_of(w, sibling);
	w->at.at = sibling;
	return true;
}

static int enter(struct walk *w, uint32_t owner, bool in_function)
{
	struct level *level = vec_push(&w->levels);

	if (!level)
		return -ENOMEM;
	*level = (struct level){ owner, in_function };
	return 0;
}

/* One DIE; what has children is entered, or passed over. 0, or -ENOMEM. */
static int visit(struct walk *w, const struct dwarf_abbrev *abbrev, uint64_t die)
{
	uint32_t depth = (uint32_t)w->levels.count;
	struct level in = depth ? w->levels.at[depth - 1] : (struct level){ INLINE_NONE, false };

	if (is_function(abbrev->tag)) {
		int64_t r = add_function(w, abbrev, die, in.owner, depth);
		if (r < 0)
			return (int)r;
		in = (struct level){ (uint32_t)r, true };
		if (w->sibling && leave(w, in.owner, w->sibling))
			return 0;
	} else {
		const uint8_t *sibling = NULL;
		if (abbrev->has_children && !may_hold_functions(w, abbrev->tag, in.in_function))
			sibling = fixed_sibling(w, abbrev);
		if (sibling) {
			w->at.at = sibling;
			return 0;
		}
		dwarf_abbrev_skip(w->unit->abbrevs, abbrev, &w->at, &w->unit->encoding);
	}
	return abbrev->has_children ? enter(w, in.owner, in.in_function) : 0;
}

static int walk_dies(struct walk *w)
{
	int r = 0;

	do {
		uint64_t die = offset_of(w, w->at.at);
		uint64_t code = cursor_uleb(&w->at);
		if (!code) {
			if (w->levels.count)
				w->levels.count--;
			continue;
		}
		const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(w->unit->abbrevs, code);
		if (!abbrev)
			break;
		r = visit(w, abbrev, die);
	} while (r == 0 && w->levels.count && w->levels.count < MAX_DEPTH && !w->at.failed);
	return r;
}

/* Walks from `from` on, over what lies in `owner`, or with INLINE_NONE over the unit. */
static int walk(struct walk *w, struct cover_ranges *scratch, struct cover *cover, uint32_t owner)
{
	int r = 0;

	w->start = w->at.at;
	w->cover = cover;
	cover->ranges = *scratch;
	if (owner != INLINE_NONE)
		r = enter(w, owner, true);
	if (r == 0 && !w->at.failed)
		r = walk_dies(w);
	if (r == 0 && !cover_seal(cover))
		r = -ENOMEM;
	*scratch = cover->ranges;
	scratch->count = 0;
	cover->ranges = (struct cover_ranges){ 0 };
	dwarf_ranges_done(&w->ranges);
	vec_done(&w->levels);
	return r;
}

static int read_unit(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch,
		     bool whole)
{
	struct dwarf_file *f = u->file;
	struct walk w = { .index = x, .unit = u, .from = u->dies, .whole = whole };

	x->whole = whole;
	w.at = dwarf_section_pass(&f->sections[DWARF_INFO], u->dies, u->end, &f->scratch);
	int r = walk(&w, scratch, &x->cover, INLINE_NONE);
	vec_trim(&x->nodes);
	return r;
}

int inline_index_read(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch)
{
	int r = dwarf_unit_abbrevs(u);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	/* Before version 3 what lies in several places may be out of what it lies in. */
	return read_unit(x, u, scratch, u->encoding.version < 3);
}

/* Finds what lies in a node. */
static int look_into(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch,
		     uint32_t number)
{
	struct inline_node *node = &x->nodes.at[number];
	struct walk w = { .index = x, .unit = u, .from = node->inside };
	uint64_t len = node->end - node->inside;

	node->inside = 0;
	if (!vec_push(&x->inner))
		return -ENOMEM;
	node->inner = (uint32_t)x->inner.count;
	w.at = dwarf_unit_cursor(u, w.from, len);
	return walk(&w, scratch, &x->inner.at[x->inner.count - 1], number);
}

int inline_index_find(struct inline_index *x, struct dwarf_unit *u, struct cover_ranges *scratch,
		      uint64_t address, bool is_function, uint32_t *node)
{
	uint32_t number = cover_find(&x->cover, address);
	int r = 0;

	/* A function may be told of within another one, of which it is no part. */
	if (number == COVER_NONE && is_function && !x->whole && u->abbrevs) {
		inline_index_done(x);
		r = read_unit(x, u, scratch, true);
		number = cover_find(&x->cover, address);
	}
	*node = INLINE_NONE;
	for (int depth = 0; r == 0 && number != COVER_NONE && depth < MAX_DEPTH; depth++) {
		*node = number;
		if (x->nodes.at[number].inside)
			r = look_into(x, u, scratch, number);
		uint32_t inner = x->nodes.at[number].inner;
		number = inner ? cover_find(&x->inner.at[inner - 1], address) : COVER_NONE;
	}
	return r;
}

void inline_index_done(struct inline_index *x)
{
	vec_done(&x->nodes);
	cover_done(&x->cover);
	vec_each (&x->inner, inner)
		cover_done(inner);
	vec_done(&x->inner);
}
