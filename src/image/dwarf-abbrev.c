/* SPDX-License-Identifier: MIT */
/* Tables of abbreviations (DWARF 5, 7.5.3). */
#include <errno.h>
#include <stdlib.h>

#include "image/dwarf-abbrev.h"

/* Far more than any DIE has. */
#define MAX_ATTRS  1000
#define MAX_PREFIX 16000

static int add_attr(struct dwarf_abbrevs *a, struct dwarf_abbrev *abbrev, struct dwarf_attr attr,
		    const struct dwarf_encoding *e)
{
	int size = dwarf_form_size(attr.form, e);
	struct dwarf_attr *added = vec_push(&a->attrs);

	if (!added)
		return -ENOMEM;
	*added = attr;
	if (attr.form != DW_FORM_implicit_const)
		added->number = size;
	if (abbrev->variable == abbrev->count && size >= 0 && abbrev->prefix < MAX_PREFIX) {
		if (attr.name == DW_AT_sibling) {
			abbrev->sibling = (int16_t)abbrev->prefix;
			abbrev->sibling_size = (uint8_t)size;
		}
		abbrev->prefix += (uint16_t)size;
		abbrev->variable++;
	}
	abbrev->count++;
	return 0;
}

/* Of one entry. 0, also for what ends too early, which the cursor tells. */
static int read_attrs(struct dwarf_abbrevs *a, struct dwarf_abbrev *abbrev, struct dwarf_cursor *c,
		      const struct dwarf_encoding *e)
{
	int r = 0;

	while (r == 0 && abbrev->count < MAX_ATTRS) {
		uint64_t name = cursor_uleb(c), form = cursor_uleb(c);
		int64_t constant = form == DW_FORM_implicit_const ? cursor_sleb(c) : 0;
		if (c->failed || (!name && !form))
			break;
		/* Larger ones do not exist; they must not turn into others. */
		struct dwarf_attr attr = {
			.name = name > UINT16_MAX ? 0 : (uint16_t)name,
			.form = form > UINT16_MAX ? 0 : (uint16_t)form,
			.number = (int32_t)constant,
		};
		r = add_attr(a, abbrev, attr, e);
	}
	return r;
}

static int add_code(struct dwarf_abbrevs *a, size_t index)
{
	if (!a->by_code.room && a->list.at[index].code == index + 1)
		return 0;
	for (size_t i = a->by_code.room ? index : 0; i <= index; i++) {
		uint32_t *slot = map64_at(&a->by_code, a->list.at[i].code);
		if (!slot)
			return -ENOMEM;
		*slot = (uint32_t)i + 1;
	}
	return 0;
}

static void skip_attrs(struct dwarf_cursor *c)
{
	uint64_t name, form;

	do {
		name = cursor_uleb(c);
		form = cursor_uleb(c);
		if (form == DW_FORM_implicit_const)
			cursor_sleb(c);
	} while ((name || form) && !c->failed);
}

int dwarf_abbrevs_read(struct dwarf_abbrevs *a, struct dwarf_cursor *c, uint64_t only,
		       const struct dwarf_encoding *e)
{
	int r = 0;

	*a = (struct dwarf_abbrevs){ 0 };
	while (r == 0) {
		uint64_t code = cursor_uleb(c);
		if (c->failed || !code || code > UINT32_MAX)
			break;
		uint64_t tag = cursor_uleb(c);
		struct dwarf_abbrev abbrev = {
			.code = (uint32_t)code,
			.tag = tag > UINT16_MAX ? 0 : (uint16_t)tag,
			.has_children = cursor_u8(c) != 0,
			.first = (uint32_t)a->attrs.count,
			.sibling = -1,
		};
		if (only && code != only) {
			skip_attrs(c);
			continue;
		}
		r = read_attrs(a, &abbrev, c, e);
		if (c->failed || r < 0)
			break;
		struct dwarf_abbrev *added = vec_push(&a->list);
		if (!added)
			return -ENOMEM;
		*added = abbrev;
		r = add_code(a, a->list.count - 1);
		if (only)
			break;
	}
	vec_trim(&a->list);
	vec_trim(&a->attrs);
	return r;
}

const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *a, uint64_t code)
{
	if (!a->by_code.room)
		return code - 1 < a->list.count ? &a->list.at[code - 1] : NULL;
	uint32_t index = map64_get(&a->by_code, code);
	return index ? &a->list.at[index - 1] : NULL;
}

void dwarf_abbrevs_done(struct dwarf_abbrevs *a)
{
	vec_done(&a->list);
	vec_done(&a->attrs);
	map64_done(&a->by_code);
}

void dwarf_abbrev_skip(const struct dwarf_abbrevs *a, const struct dwarf_abbrev *abbrev,
		       struct dwarf_cursor *c, const struct dwarf_encoding *e)
{
	const struct dwarf_attr *attrs = dwarf_abbrev_attrs(a, abbrev);

	cursor_take(c, abbrev->prefix);
	for (uint32_t i = abbrev->variable; i < abbrev->count && !c->failed; i++)
		dwarf_attr_skip(c, &attrs[i], e);
}
