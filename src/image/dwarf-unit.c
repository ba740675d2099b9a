/* SPDX-License-Identifier: MIT */
/* Units, their root DIEs, and the meaning of values. */
#include <errno.h>
#include <stdlib.h>

#include "image/dwarf-unit.h"

/* No program has more; a table of them must stay far from wrapping. */
#define MAX_UNITS (1u << 24)

/* What honest files read more than once: a table for units of different sizes, shared lists. */
#define BUDGET(size) (8 * (size) + 65536)

/* Of a table of abbreviations one was read, for a root DIE. */
#define ONE_ENTRY UINT32_MAX

/* The longest header and root DIE that are read at once while units are listed. */
#define ROOT_READ 512
#define WINDOW    16384

static const struct {
	const char *program, *dwo;
} section_names[DWARF_SECTIONS] = {
	[DWARF_INFO] = { ".debug_info", ".debug_info.dwo" },
	[DWARF_ABBREV] = { ".debug_abbrev", ".debug_abbrev.dwo" },
	[DWARF_STR] = { ".debug_str", ".debug_str.dwo" },
	[DWARF_STR_OFFSETS] = { ".debug_str_offsets", ".debug_str_offsets.dwo" },
	[DWARF_RNGLISTS] = { ".debug_rnglists", ".debug_rnglists.dwo" },
	[DWARF_LINE_STR] = { ".debug_line_str", NULL },
	[DWARF_ADDR] = { ".debug_addr", NULL },
	[DWARF_RANGES] = { ".debug_ranges", NULL },
	[DWARF_LINE] = { ".debug_line", NULL },
	[DWARF_ARANGES] = { ".debug_aranges", NULL },
};

/* NULL: there is none. */
static const char *section_name(int i, bool is_dwo)
{
	return is_dwo ? section_names[i].dwo : section_names[i].program;
}

int dwarf_file_open(struct dwarf_file *f, const struct elf_input *in, bool is_dwo)
{
	uint64_t room = 0;
	int r = 0;

	f->is_dwo = is_dwo;
	for (int i = 0; i < DWARF_SECTIONS; i++)
		if (section_name(i, is_dwo))
			room += dwarf_section_room(in, section_name(i, is_dwo), i == DWARF_INFO);
	dwarf_memory_reserve(&f->memory, room);
	for (int i = 0; i < DWARF_SECTIONS && r == 0; i++)
		if (section_name(i, is_dwo))
			r = dwarf_section_open(&f->sections[i], in, section_name(i, is_dwo),
					       i == DWARF_INFO, &f->memory);
	return r;
}

void dwarf_file_finish(struct dwarf_file *f)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarf_section_finish(&f->sections[i]);
}

void dwarf_file_done(struct dwarf_file *f)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarf_section_done(&f->sections[i]);
	dwarf_memory_done(&f->memory);
	vec_each (&f->abbrevs, a) {
		dwarf_abbrevs_done(*a);
		free(*a);
	}
	vec_done(&f->abbrevs);
	map64_done(&f->abbrevs_at);
	vec_done(&f->units);
	vec_done(&f->names);
	map64_done(&f->names_at);
	free(f->scratch.at);
	free(f->window.at);
}

/* What follows the length of a unit. false: not one that we can read. */
static bool read_header(struct dwarf_unit *u, struct dwarf_cursor *c)
{
	uint16_t version = cursor_u16(c);

	if (version < 2 || version > 5)
		return false;
	u->encoding.version = (uint8_t)version;
	u->type = DW_UT_compile;
	if (version == 5) {
		u->type = cursor_u8(c);
		u->encoding.address_size = cursor_u8(c);
		u->abbrev_offset = cursor_offset(c, u->encoding.is64);
	} else {
		u->abbrev_offset = cursor_offset(c, u->encoding.is64);
		u->encoding.address_size = cursor_u8(c);
	}
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		u->dwo_id = cursor_u64(c);
	return !c->failed && (u->encoding.address_size == 4 || u->encoding.address_size == 8);
}

static bool is_type_unit(const struct dwarf_unit *u)
{
	return u->type == DW_UT_type || u->type == DW_UT_split_type;
}

/*
 * Bytes of .debug_info that are looked at once: they go through a small window, since memory of their
 * own, page by page, would cost more than reading them.
 */
static struct dwarf_cursor look(struct dwarf_file *f, uint64_t from, uint64_t to)
{
	struct dwarf_section *info = &f->sections[DWARF_INFO];
	struct dwarf_cursor c = { .swapped = info->swapped };

	if (!info->have || to - from > WINDOW)
		return dwarf_section_at(info, from, to);
	if (from < f->window_from || to > f->window_to) {
		c = dwarf_section_once(info, from, from + WINDOW, &f->window);
		if (c.failed)
			return c;
		f->window_from = from;
		f->window_to = from + cursor_left(&c);
	}
	c.at = f->window.at + (from - f->window_from);
	c.end = f->window.at + ((to < f->window_to ? to : f->window_to) - f->window_from);
	return c;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What is no unit for us is passed over; what has no length ends the list. */
static int list_units(struct dwarf_file *f)
{
	const uint64_t size = f->sections[DWARF_INFO].size;
	int r = 0;

	for (uint64_t at = 0, end; r == 0 && at < size && f->units.count < MAX_UNITS; at = end) {
		struct dwarf_unit unit = { .file = f, .offset = at, .is_split = f->is_dwo };
		struct dwarf_cursor c = look(f, at, earlier(at + ROOT_READ, size));
		const uint8_t *start = c.at;
		uint64_t len = cursor_u32(&c);
		unit.encoding.is64 = len == 0xffffffff;
		if (unit.encoding.is64)
			len = cursor_u64(&c);
		else if (len >= 0xfffffff0) /* reserved */
			break;
		uint64_t head = unit.encoding.is64 ? 12 : 4;
		if (c.failed || len > size - at - head)
			break;
		unit.end = end = at + head + len;
		c.end = len < cursor_left(&c) ? c.at + len : c.end;
		if (!read_header(&unit, &c) || is_type_unit(&unit))
			continue;
		unit.dies = at + (uint64_t)(c.at - start);
		struct dwarf_unit *added = vec_push(&f->units);
		if (!added)
			return -ENOMEM;
		*added = unit;
		/* Those of .dwo files need their skeletons first. */
		r = f->is_dwo ? 0 : dwarf_unit_root(added);
	}
	return r;
}

int dwarf_file_list(struct dwarf_file *f)
{
	f->abbrev_budget = BUDGET(f->sections[DWARF_ABBREV].size);
	f->line_budget = BUDGET(f->sections[DWARF_LINE].size);
	f->range_budget = BUDGET(f->sections[DWARF_RANGES].size + f->sections[DWARF_RNGLISTS].size);
	return list_units(f);
}

/* The first unit that ends behind an offset; NULL: none does. */
static struct dwarf_unit *unit_behind(struct dwarf_file *f, uint64_t offset)
{
	size_t low = 0, high = f->units.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->units.at[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < f->units.count ? &f->units.at[low] : NULL;
}

struct dwarf_unit *dwarf_file_unit(struct dwarf_file *f, uint64_t offset)
{
	struct dwarf_unit *u = unit_behind(f, offset);

	return u && offset >= u->dies ? u : NULL;
}

struct dwarf_unit *dwarf_file_unit_at(struct dwarf_file *f, uint64_t offset)
{
	struct dwarf_unit *u = unit_behind(f, offset);

	return u && offset == u->offset ? u : NULL;
}

struct dwarf_cursor dwarf_unit_cursor(const struct dwarf_unit *u, uint64_t offset, uint64_t len)
{
	struct dwarf_cursor c = { .failed = true };

	if (offset < u->dies || offset >= u->end)
		return c;
	return dwarf_section_at(&u->file->sections[DWARF_INFO], offset,
				len < u->end - offset ? offset + len : u->end);
}

/* false: so much has been read of these tables that the file must be made to be slow. */
static bool spend(uint64_t *budget, uint64_t bytes)
{
	if (bytes > *budget)
		return false;
	*budget -= bytes;
	return true;
}

/* A table, or with `only` one entry of it. */
static int read_abbrevs(const struct dwarf_unit *u, struct dwarf_abbrevs *a, uint64_t only)
{
	struct dwarf_file *f = u->file;
	struct dwarf_section *section = &f->sections[DWARF_ABBREV];
	/* A table has no length to stop at, so all of them are read from the file at once. */
	dwarf_section_finish(section);
	struct dwarf_cursor c = dwarf_section_at(section, u->abbrev_offset, section->size);
	const uint8_t *start = c.at;

	if (!f->abbrev_budget)
		cursor_fail(&c);
	int r = dwarf_abbrevs_read(a, &c, only, &u->encoding);
	uint64_t used = start ? (uint64_t)(c.at - start) : 0;
	if (!spend(&f->abbrev_budget, used))
		f->abbrev_budget = 0;
	return r;
}

/* Where a table's index is, + 1; 0: nothing was read of it, ONE_ENTRY: one was. NULL: no memory. */
static uint32_t *abbrevs_slot(struct dwarf_unit *u)
{
	const struct dwarf_encoding *e = &u->encoding;
	uint64_t kind = (uint64_t)(e->version <= 2) << 63 | (uint64_t)(e->address_size == 8) << 62 |
			(uint64_t)e->is64 << 61;

	return map64_at(&u->file->abbrevs_at, u->abbrev_offset ^ kind);
}

int dwarf_unit_abbrevs(struct dwarf_unit *u)
{
	struct dwarf_file *f = u->file;

	if (u->abbrevs)
		return 0;
	uint32_t *index = abbrevs_slot(u);
	if (!index || !vec_reserve(&f->abbrevs, 1))
		return -ENOMEM;
	if (!*index || *index == ONE_ENTRY) {
		struct dwarf_abbrevs *a = calloc(1, sizeof(*a));
		int r = a ? read_abbrevs(u, a, 0) : -ENOMEM;
		if (r < 0) {
			if (a)
				dwarf_abbrevs_done(a);
			free(a);
			return r;
		}
		f->abbrevs.at[f->abbrevs.count++] = a;
		*index = (uint32_t)f->abbrevs.count;
	}
	u->abbrevs = f->abbrevs.at[*index - 1];
	return u->abbrevs->list.count ? 0 : -EBADMSG;
}

/* ---- the root DIE ---- */

struct root {
	struct dwarf_value low_pc, high_pc, ranges, stmt_list, comp_dir, dwo_name, language;
	struct dwarf_value addr_base, str_offsets_base, rnglists_base, ranges_base, dwo_id;
};

static struct dwarf_value *root_value(struct root *root, uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return &root->low_pc;
	case DW_AT_high_pc:
		return &root->high_pc;
	case DW_AT_ranges:
		return &root->ranges;
	case DW_AT_stmt_list:
		return &root->stmt_list;
	case DW_AT_language:
		return &root->language;
	case DW_AT_comp_dir:
		return &root->comp_dir;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return &root->dwo_name;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return &root->addr_base;
	case DW_AT_str_offsets_base:
		return &root->str_offsets_base;
	case DW_AT_rnglists_base:
		return &root->rnglists_base;
	case DW_AT_GNU_ranges_base:
		return &root->ranges_base;
	case DW_AT_GNU_dwo_id:
		return &root->dwo_id;
	default:
		return NULL;
	}
}

static void read_root(struct dwarf_unit *u, struct root *root, struct dwarf_cursor *c,
		      const struct dwarf_abbrevs *abbrevs, const struct dwarf_abbrev *abbrev)
{
	const struct dwarf_attr *attrs = dwarf_abbrev_attrs(abbrevs, abbrev);
	const uint8_t *start = c->at;

	u->tag = abbrev->tag;
	for (uint32_t i = 0; i < abbrev->count && !c->failed; i++) {
		struct dwarf_value *to = root_value(root, attrs[i].name);
		if (!to) {
			dwarf_attr_skip(c, &attrs[i], &u->encoding);
			continue;
		}
		dwarf_attr_read(to, c, &attrs[i], &u->encoding);
		/* The bytes do not stay, so a text is told by its place. */
		if (to->form == DW_FORM_string)
			*to = (struct dwarf_value){
				.form = DW_FORM_string,
				.number = u->root_at +
					  (uint64_t)((const uint8_t *)to->text - start),
			};
	}
}

/* A base that is not stated is behind the header of the section's first table (DWARF 5, 7.26 ff.). */
static uint64_t base_or(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t set,
			uint64_t without)
{
	if (v->form)
		return v->number;
	if (set)
		return set;
	return u->encoding.version >= 5 ? without : 0;
}

/* Compilers put functions into the types to which they belong for these alone if at all: Rust's do;
 * those of C++ leave declarations there, and C has nothing to put. */
static bool is_plain(uint64_t language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C99:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static void take_root(struct dwarf_unit *u, const struct root *root)
{
	bool is64 = u->encoding.is64;

	u->has_plain_types = is_plain(root->language.number);
	u->comp_dir = root->comp_dir;
	u->dwo_name = root->dwo_name;
	u->low_pc = root->low_pc;
	u->high_pc = root->high_pc;
	u->ranges = root->ranges;
	u->stmt_list = root->stmt_list;
	u->str_offsets_base = base_or(u, &root->str_offsets_base, u->str_offsets_base,
				      is64 ? 16 : 8);
	u->rnglists_base = base_or(u, &root->rnglists_base, u->rnglists_base, is64 ? 20 : 12);
	u->addr_base = base_or(u, &root->addr_base, 0, 8);
	u->ranges_base = root->ranges_base.number;
	if (root->dwo_id.form)
		u->dwo_id = root->dwo_id.number;
	if (u->skeleton) {
		u->addr_base = u->skeleton->addr_base;
		u->ranges_base = u->skeleton->ranges_base;
		u->base = u->skeleton->base;
	}
	dwarf_unit_address(u, &u->low_pc, &u->base);
}

/*
 * The abbreviations for a root DIE with that code: that one alone, where no other unit asked before, as
 * a unit that nobody looks into needs no more; else the table, which all have that share it. -ENOMEM.
 */
static int root_abbrevs(struct dwarf_unit *u, uint64_t code, struct dwarf_abbrevs *own,
			const struct dwarf_abbrevs **out)
{
	uint32_t *slot = abbrevs_slot(u);

	if (!slot)
		return -ENOMEM;
	if (!*slot) {
		*slot = ONE_ENTRY;
		*out = own;
		return read_abbrevs(u, own, code);
	}
	int r = dwarf_unit_abbrevs(u);
	*out = r == 0 ? u->abbrevs : own;
	return r == -ENOMEM ? r : 0;
}

int dwarf_unit_root(struct dwarf_unit *u)
{
	struct dwarf_abbrevs own = { 0 };
	const struct dwarf_abbrevs *abbrevs;
	struct root root = { 0 };
	struct dwarf_cursor c = look(u->file, u->dies, earlier(u->dies + ROOT_READ, u->end));
	const uint8_t *start = c.at;
	uint64_t code = cursor_uleb(&c);

	u->root_read = true;
	if (!code)
		return 0;
	u->root_at = u->dies + (uint64_t)(c.at - start);
	int r = root_abbrevs(u, code, &own, &abbrevs);
	const struct dwarf_abbrev *abbrev = r == 0 ? dwarf_abbrevs_find(abbrevs, code) : NULL;
	if (abbrev) {
		read_root(u, &root, &c, abbrevs, abbrev);
		/* With texts in it a root may be longer than what was read. */
		if (c.failed) {
			c = dwarf_unit_cursor(u, u->root_at, UINT64_MAX);
			root = (struct root){ 0 };
			read_root(u, &root, &c, abbrevs, abbrev);
		}
		take_root(u, &root);
	}
	dwarf_abbrevs_done(&own);
	return r;
}

/* ---- values ---- */

/* An entry of a table of offsets. */
static const char *text_by_index(const struct dwarf_unit *u, uint64_t index)
{
	struct dwarf_file *f = u->file;
	uint64_t size = u->encoding.is64 ? 8 : 4;
	struct dwarf_section *offsets = &f->sections[DWARF_STR_OFFSETS];

	if (index > offsets->size / size)
		return NULL;
	uint64_t at = u->str_offsets_base + index * size;
	struct dwarf_cursor c = dwarf_section_at(offsets, at, at + size);
	uint64_t offset = cursor_offset(&c, u->encoding.is64);
	return c.failed ? NULL : dwarf_section_text(&f->sections[DWARF_STR], offset);
}

const char *dwarf_unit_text(const struct dwarf_unit *u, const struct dwarf_value *v)
{
	struct dwarf_file *f = u->file;

	switch (v->form) {
	case DW_FORM_string:
		return v->text ? v->text : dwarf_section_text(&f->sections[DWARF_INFO], v->number);
	case DW_FORM_strp:
		return dwarf_section_text(&f->sections[DWARF_STR], v->number);
	case DW_FORM_line_strp:
		return dwarf_section_text(&f->sections[DWARF_LINE_STR], v->number);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return f->alt ? dwarf_section_text(&f->alt->sections[DWARF_STR], v->number) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return text_by_index(u, v->number);
	default:
		return NULL;
	}
}

bool dwarf_unit_indexed(const struct dwarf_unit *u, uint64_t index, uint64_t *address)
{
	struct dwarf_file *f = u->skeleton ? u->skeleton->file : u->file;
	struct dwarf_section *section = &f->sections[DWARF_ADDR];
	uint8_t size = u->encoding.address_size;

	if (index > section->size / size)
		return false;
	uint64_t at = u->addr_base + index * size;
	struct dwarf_cursor c = dwarf_section_at(section, at, at + size);
	uint64_t value = cursor_address(&c, size);
	if (!c.failed)
		*address = value;
	return !c.failed;
}

bool dwarf_unit_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *address)
{
	switch (v->form) {
	case DW_FORM_addr:
		*address = v->number;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return dwarf_unit_indexed(u, v->number, address);
	default:
		return false;
	}
}

bool dwarf_unit_reference(struct dwarf_unit *u, const struct dwarf_value *v, struct dwarf_unit **to,
			  uint64_t *die)
{
	struct dwarf_file *f = u->file;

	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*die = u->offset + v->number;
		break;
	case DW_FORM_ref_addr:
		*die = v->number;
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		f = f->alt;
		*die = v->number;
		break;
	default:
		return false;
	}
	/* Most stay in their unit. */
	if (f == u->file && *die >= u->dies && *die < u->end)
		*to = u;
	else
		*to = f ? dwarf_file_unit(f, *die) : NULL;
	return *to != NULL;
}
