/* SPDX-License-Identifier: MIT */
/* Headers of line programs (DWARF 4, 6.2.4; DWARF 5, 6.2.4). */
#include <errno.h>

#include "image/line-header.h"

/* The pairs (content, form) that describe an entry. */
#define MAX_CONTENTS 16

struct contents {
	uint8_t count;
	struct {
		uint16_t what, form;
	} at[MAX_CONTENTS];
};

bool line_header_old_file(struct dwarf_cursor *c, struct line_file *file)
{
	const char *name = cursor_text(c);

	if (!name || !*name)
		return false;
	*file = (struct line_file){ .name = name, .folder = (uint32_t)cursor_uleb(c) };
	cursor_uleb(c); /* when it was changed */
	cursor_uleb(c); /* its size */
	return !c->failed;
}

static int read_old_names(struct line_table *t, struct dwarf_cursor *c)
{
	struct line_file file;

	/* What the compiler's own folder is stands elsewhere, and files count from 1. */
	if (!vec_push(&t->folders) || !vec_push(&t->files))
		return -ENOMEM;
	for (const char *name; (name = cursor_text(c)) && *name;) {
		const char **folder = vec_push(&t->folders);
		if (!folder)
			return -ENOMEM;
		*folder = name;
	}
	while (line_header_old_file(c, &file)) {
		struct line_file *added = vec_push(&t->files);
		if (!added)
			return -ENOMEM;
		*added = file;
	}
	return 0;
}

static void read_contents(struct contents *contents, struct dwarf_cursor *c)
{
	contents->count = cursor_u8(c);
	if (contents->count > MAX_CONTENTS) {
		contents->count = 0;
		cursor_fail(c);
	}
	for (uint8_t i = 0; i < contents->count; i++) {
		contents->at[i].what = (uint16_t)cursor_uleb(c);
		contents->at[i].form = (uint16_t)cursor_uleb(c);
	}
}

static struct line_file read_entry(const struct contents *contents, const struct line_header *h,
				   const struct dwarf_unit *u, struct dwarf_cursor *c)
{
	struct line_file file = { 0 };

	for (uint8_t i = 0; i < contents->count && !c->failed; i++) {
		uint16_t what = contents->at[i].what;
		struct dwarf_value v = dwarf_form_read(c, contents->at[i].form, 0, &h->encoding);
		if (what == DW_LNCT_path)
			file.name = dwarf_unit_text(u, &v);
		else if (what == DW_LNCT_directory_index && dwarf_value_is_constant(&v))
			file.folder = (uint32_t)v.number;
	}
	return file;
}

/* An entry takes at least a byte: one of none would let a count make a table of any size. */
static bool is_sane(const struct contents *contents, uint64_t count, const struct dwarf_cursor *c)
{
	return !c->failed && contents->count && count <= cursor_left(c);
}

static int read_new_names(struct line_table *t, const struct line_header *h,
			  const struct dwarf_unit *u, struct dwarf_cursor *c)
{
	struct contents contents;

	read_contents(&contents, c);
	uint64_t count = cursor_uleb(c);
	if (count && !is_sane(&contents, count, c))
		return -EBADMSG;
	for (uint64_t i = 0; i < count && !c->failed; i++) {
		const char **folder = vec_push(&t->folders);
		if (!folder)
			return -ENOMEM;
		*folder = read_entry(&contents, h, u, c).name;
	}
	read_contents(&contents, c);
	count = cursor_uleb(c);
	if (count && !is_sane(&contents, count, c))
		return -EBADMSG;
	for (uint64_t i = 0; i < count && !c->failed; i++) {
		struct line_file *file = vec_push(&t->files);
		if (!file)
			return -ENOMEM;
		*file = read_entry(&contents, h, u, c);
	}
	return 0;
}

/* After the program's place is known: the fields that say how to run it. */
static void read_fields(struct line_header *h, struct dwarf_cursor *c)
{
	h->min_length = cursor_u8(c);
	h->max_ops = h->encoding.version >= 4 ? cursor_u8(c) : 1;
	cursor_u8(c); /* whether rows are statements at first */
	h->line_base = (int8_t)cursor_u8(c);
	h->line_range = cursor_u8(c);
	h->opcode_base = cursor_u8(c);
	h->operands = h->opcode_base ? cursor_take(c, h->opcode_base - 1u) : NULL;
	if (!h->max_ops)
		h->max_ops = 1;
}

int line_header_read(struct line_header *h, struct line_table *t, const struct dwarf_unit *u,
		     struct dwarf_cursor *c)
{
	h->encoding = u->encoding;
	h->encoding.is64 = cursor_unit(c);
	uint16_t version = cursor_u16(c);
	if (version < 2 || version > 5)
		return -EBADMSG;
	h->encoding.version = (uint8_t)version;
	t->version = version;
	if (version == 5) {
		h->encoding.address_size = cursor_u8(c);
		cursor_u8(c); /* segment selectors, which no machine has any more */
	}
	uint64_t len = cursor_offset(c, h->encoding.is64);
	if (c->failed || len > cursor_left(c))
		return -EBADMSG;
	struct dwarf_cursor header = *c;
	header.end = header.at + len;
	read_fields(h, &header);
	if (header.failed)
		return -EBADMSG;
	int r = version == 5 ? read_new_names(t, h, u, &header) : read_old_names(t, &header);
	cursor_take(c, len);
	return r;
}
