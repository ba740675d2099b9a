/* SPDX-License-Identifier: MIT */
/* Abbreviations: what attributes the DIEs with a code have. */
#ifndef IMAGE_DWARF_ABBREV_H
#define IMAGE_DWARF_ABBREV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"
#include "image/dwarf-form.h"

struct dwarf_attr {
	uint16_t name, form;
	/* Bytes of its values; -1: they differ. Of DW_FORM_implicit_const, which has none, the value,
	 * as far as 32 bits go: what we look at are lines and files. */
	int32_t number;
};

/* Many units have a table of their own, of which little is needed: it is kept small. */
struct dwarf_abbrev {
	uint32_t code;
	uint32_t first;    /* of its attributes */
	uint16_t count;    /* of them */
	uint16_t variable; /* the first whose size differs, counted from `first` */
	uint16_t prefix;   /* bytes of those before it */
	int16_t sibling;   /* where in the prefix DW_AT_sibling stands; -1: nowhere there */
	uint16_t tag;
	uint8_t sibling_size;
	bool has_children;
};

struct dwarf_abbrevs {
	VEC(struct dwarf_abbrev) list;
	VEC(struct dwarf_attr) attrs;
	struct map64 by_code; /* index + 1; empty while the codes count from 1 */
};

/*
 * Reads a table up to its end, or to where it makes no sense; with `only` not 0, just the entry with
 * that code. The sizes are those of units with this encoding. -ENOMEM.
 */
int dwarf_abbrevs_read(struct dwarf_abbrevs *a, struct dwarf_cursor *c, uint64_t only,
		       const struct dwarf_encoding *e);
/* NULL: there is none. */
const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *a, uint64_t code);
void dwarf_abbrevs_done(struct dwarf_abbrevs *a);

static inline const struct dwarf_attr *dwarf_abbrev_attrs(const struct dwarf_abbrevs *a,
							  const struct dwarf_abbrev *abbrev)
{
	return a->attrs.at ? a->attrs.at + abbrev->first : NULL;
}

/* Goes behind a value. */
static inline void dwarf_attr_skip(struct dwarf_cursor *c, const struct dwarf_attr *attr,
				   const struct dwarf_encoding *e)
{
	if (attr->form == DW_FORM_implicit_const)
		return;
	if (attr->number >= 0)
		cursor_take(c, (uint64_t)attr->number);
	else
		dwarf_form_skip(c, attr->form, e);
}

/*
 * A value. Most are numbers of a few bytes, for which nothing has to be looked up; and they are filled
 * in where they belong, since a copy of what was just written in parts would have to wait for it.
 */
static inline void dwarf_attr_read(struct dwarf_value *v, struct dwarf_cursor *c,
				   const struct dwarf_attr *attr, const struct dwarf_encoding *e)
{
	switch (attr->form == DW_FORM_implicit_const ? -1 : attr->number) {
	case 1:
		v->number = cursor_u8(c);
		break;
	case 2:
		v->number = cursor_u16(c);
		break;
	case 4:
		v->number = cursor_u32(c);
		break;
	case 8:
		v->number = cursor_u64(c);
		break;
	default:
		*v = dwarf_form_read(c, attr->form, attr->number, e);
		return;
	}
	v->form = c->failed ? 0 : attr->form;
}

/* Goes behind a DIE, whose code was read. */
void dwarf_abbrev_skip(const struct dwarf_abbrevs *a, const struct dwarf_abbrev *abbrev,
		       struct dwarf_cursor *c, const struct dwarf_encoding *e);

#endif
