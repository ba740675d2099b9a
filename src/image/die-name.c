/* SPDX-License-Identifier: MIT */
/* The name of a function, which may stand with its abstract instance or its declaration. */
#include <errno.h>

#include "image/dwarf-unit.h"

/* An inlined call, its abstract instance, the declaration that this completes: three in practice. */
#define MAX_HOPS 16

/* Longer ones are rare, and what is read of a file should be what is needed. */
#define USUAL 256

struct place {
	struct dwarf_unit *unit;
	uint64_t die;
};

/* One attribute. false: nothing better will be found. */
static bool take(struct die_name *name, struct dwarf_unit *u, uint16_t attribute,
		 const struct dwarf_value *v, struct place *next)
{
	switch (attribute) {
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		name->text = dwarf_unit_text(u, v);
		name->is_linkage = name->text != NULL;
		return !name->text;
	case DW_AT_name:
		if (!name->text)
			name->text = dwarf_unit_text(u, v);
		return true;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		if (!dwarf_unit_reference(u, v, &next->unit, &next->die))
			next->unit = NULL;
		return true;
	default:
		return true;
	}
}

/*
 * What one DIE says, if it lies in the next `len` bytes. `*next` is where more may be said; its unit
 * is NULL when nowhere. false: it is longer.
 */
static bool read_die(struct die_name *name, const struct place *at, uint64_t len,
		     struct place *next)
{
	struct dwarf_unit *u = at->unit;
	struct dwarf_cursor c = dwarf_unit_cursor(u, at->die, len);
	const struct dwarf_abbrev *abbrev = dwarf_abbrevs_find(u->abbrevs, cursor_uleb(&c));
	const struct dwarf_attr *attrs = abbrev ? dwarf_abbrev_attrs(u->abbrevs, abbrev) : NULL;

	next->unit = NULL;
	for (uint32_t i = 0; abbrev && i < abbrev->count && !c.failed; i++) {
		struct dwarf_value v = { 0 };
		dwarf_attr_read(&v, &c, &attrs[i], &u->encoding);
		if (v.form && !take(name, u, attrs[i].name, &v, next))
			return true;
	}
	return !c.failed;
}

static int find_name(struct die_name *name, struct dwarf_unit *u, uint64_t die)
{
	struct place at = { u, die }, next;

	*name = (struct die_name){ 0 };
	for (int hop = 0; hop < MAX_HOPS && at.unit && !name->is_linkage; hop++) {
		int r = dwarf_unit_abbrevs(at.unit);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		/* A unit of which others take names may not have been read itself: its text tables. */
		if (!at.unit->root_read && (r = dwarf_unit_root(at.unit)) < 0)
			return r;
		if (!read_die(name, &at, USUAL, &next))
			read_die(name, &at, UINT64_MAX, &next);
		at = next;
	}
	return 0;
}

/* What is inlined is inlined in many places. */
int die_name(struct die_name *name, struct dwarf_unit *u, uint64_t die)
{
	struct dwarf_file *f = u->file;
	uint32_t *index = map64_at(&f->names_at, die);

	if (!index || !vec_reserve(&f->names, 1))
		return -ENOMEM;
	if (!*index) {
		int r = find_name(&f->names.at[f->names.count], u, die);
		if (r < 0)
			return r;
		*index = (uint32_t)++f->names.count;
	}
	*name = f->names.at[*index - 1];
	return 0;
}
