/* SPDX-License-Identifier: MIT */
/* From an address to its unit, its row, its functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sys.h"
#include "image/debug-info.h"
#include "image/dwarf-aranges.h"
#include "image/dwarf-ranges.h"
#include "image/inline-index.h"

/* What a unit says of itself counts for more than what stands elsewhere. */
#define ARANGES_RANK 0
#define ROOT_RANK    1

/* Where one address is, while it is looked up. */
struct spot {
	struct dwarf_unit *unit;  /* in the program: it has the lines */
	struct dwarf_unit *inner; /* it, or the one of a .dwo file: it has the functions */
	const struct line_table *table;
	uint64_t address;
};

static int open_sections(struct dwarf_file *f, int fd)
{
	struct elf_input in;
	int r = elf_input_open(&in, fd);

	if (r == 0)
		r = dwarf_file_open(f, &in, false);
	elf_input_done(&in);
	return r == -ENOMEM ? r : 0;
}

static int add_unit(struct debug_info *d, struct dwarf_ranges *ranges, uint32_t index)
{
	const struct dwarf_unit *u = &d->file.units.at[index];

	if (dwarf_ranges_read(ranges, u, &u->low_pc, &u->high_pc, &u->ranges) < 0)
		return -ENOMEM;
	vec_each (&ranges->list, range)
		if (!cover_add(&d->units, range->low, range->high, index, ROOT_RANK))
			return -ENOMEM;
	return 0;
}

int debug_info_start(struct debug_info *d)
{
	struct dwarf_ranges ranges = { 0 };
	int r = dwarf_file_list(&d->file);

	if (r == 0 && d->alt.sections[DWARF_INFO].size) {
		d->file.alt = &d->alt;
		r = dwarf_file_list(&d->alt);
	}
	for (uint32_t i = 0; i < d->file.units.count && r == 0; i++)
		r = add_unit(d, &ranges, i);
	if (r == 0)
		r = dwarf_aranges_read(&d->file, &d->units, ARANGES_RANK);
	dwarf_ranges_done(&ranges);
	if (r == 0 && !cover_seal(&d->units))
		r = -ENOMEM;
	vec_done(&d->units.ranges);
	return r;
}

int debug_info_open(struct debug_info *d, const struct debug_file *from, const char *path,
		    const char *symfs)
{
	d->opened = *from;
	d->has_files = true;
	d->split.path = path;
	d->split.symfs = symfs;
	int r = open_sections(&d->file, from->fd);
	if (r == 0 && from->alt >= 0)
		r = open_sections(&d->alt, from->alt);
	return r < 0 ? r : debug_info_start(d);
}

void debug_info_done(struct debug_info *d)
{
	vec_each (&d->tables, t) {
		line_table_done(*t);
		free(*t);
	}
	vec_each (&d->indexes, x) {
		inline_index_done(*x);
		free(*x);
	}
	vec_done(&d->tables);
	vec_done(&d->indexes);
	vec_done(&d->scratch);
	map64_done(&d->table_at);
	cover_done(&d->units);
	dwarf_split_done(&d->split);
	dwarf_file_done(&d->file);
	dwarf_file_done(&d->alt);
	texts_done(&d->texts);
	if (d->has_files)
		debug_file_done(&d->opened);
}

/* ---- what is made of a unit once ---- */

/* Units may share a table. */
static int read_lines(struct debug_info *d, struct dwarf_unit *u)
{
	uint64_t offset = u->stmt_list.number;
	uint32_t *index = map64_at(&d->table_at, offset);

	u->lines_read = true;
	if (!u->stmt_list.form)
		return 0;
	if (!index || !vec_reserve(&d->tables, 1))
		return -ENOMEM;
	if (!*index) {
		struct line_table *t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		d->tables.at[d->tables.count++] = t;
		*index = (uint32_t)d->tables.count;
		int r = line_table_read(t, u, offset);
		if (r < 0)
			return r;
	}
	u->lines = d->tables.at[*index - 1];
	return 0;
}

static int read_functions(struct debug_info *d, struct dwarf_unit *u)
{
	struct inline_index *x = calloc(1, sizeof(*x));

	u->inlines_read = true;
	if (!x || !vec_reserve(&d->indexes, 1)) {
		free(x);
		return -ENOMEM;
	}
	d->indexes.at[d->indexes.count++] = x;
	u->inlines = x;
	return inline_index_read(x, u, &d->scratch);
}

static int find_split(struct debug_info *d, struct dwarf_unit *u)
{
	u->split_looked_for = true;
	if (!u->dwo_name.form || !d->split.path)
		return 0;
	return dwarf_split_find(&d->split, u, &u->split);
}

static int prepare(struct debug_info *d, struct spot *spot)
{
	struct dwarf_unit *u = spot->unit;
	int r = u->lines_read ? 0 : read_lines(d, u);

	if (r == 0 && !u->split_looked_for)
		r = find_split(d, u);
	spot->inner = u->split ? u->split : u;
	spot->table = u->lines;
	if (r == 0 && !spot->inner->inlines_read)
		r = read_functions(d, spot->inner);
	return r;
}

/* ---- look-ups ---- */

static bool is_absolute(const char *path)
{
	return path && path[0] == '/';
}

/* A path of at most three parts, of which an absolute one drops those before it. */
static const char *join(struct debug_info *d, const char *const parts[3])
{
	struct buf path = { 0 };
	const char *text = NULL;

	for (int i = 0; i < 3; i++) {
		if (!parts[i] || !*parts[i])
			continue;
		if (is_absolute(parts[i]))
			buf_reset(&path);
		if (path.len && path.at[path.len - 1] != '/')
			buf_str(&path, "/");
		buf_str(&path, parts[i]);
	}
	if (!path.failed)
		text = texts_intern(&d->texts, buf_text(&path));
	buf_done(&path);
	return text;
}

/* NULL also for a file that has no name. */
static int file_path(struct debug_info *d, const struct spot *spot, uint32_t number,
		     const char **out)
{
	const struct line_table *t = spot->table;
	struct line_file *file = t ? line_table_file(t, number) : NULL;
	/* Units that share a table may have been compiled in different folders. */
	bool is_own = t && t->unit == spot->unit;

	*out = file && is_own ? file->path : NULL;
	if (!file || *out)
		return 0;
	const char *folder = file->folder < t->folders.count ? t->folders.at[file->folder] : NULL;
	const char *const parts[] = {
		dwarf_unit_text(spot->unit, &spot->unit->comp_dir),
		folder,
		file->name,
	};
	*out = join(d, parts);
	if (is_own)
		file->path = *out;
	return *out ? 0 : -ENOMEM;
}

/* A place in the source, by the number of its file. */
struct source_line {
	uint32_t file, line, column;
};

static int add_place(struct debug_info *d, const struct spot *spot, struct debug_places *places,
		     const struct source_line *at)
{
	struct debug_place *place = vec_push(&places->list);

	if (!place)
		return -ENOMEM;
	/* Line 0 is code that belongs to none. */
	place->line = at->line;
	place->column = at->column;
	return file_path(d, spot, at->file, &place->file);
}

static int name_place(struct debug_places *places, const struct spot *spot, uint64_t die)
{
	struct debug_place *place = &places->list.at[places->list.count - 1];
	struct die_name name;
	int r = die_name(&name, spot->inner, die);

	place->function = name.text;
	place->is_linkage = name.is_linkage;
	return r;
}

static int add_places(struct debug_info *d, const struct spot *spot, struct debug_places *places)
{
	struct inline_index *x = spot->inner->inlines;
	struct line_row row;
	bool has_row = spot->table && line_table_find(spot->table, spot->address, &row);
	uint32_t node;
	int r = inline_index_find(x, spot->inner, &d->scratch, spot->address, !places->no_function,
				  &node);

	if (r < 0 || (!has_row && node == INLINE_NONE))
		return r;
	struct source_line at = { .file = UINT32_MAX };
	if (has_row)
		at = (struct source_line){ row.file, row.line, row.column };
	r = add_place(d, spot, places, &at);
	while (r == 0 && node != INLINE_NONE) {
		const struct inline_node *n = &x->nodes.at[node];
		node = n->parent;
		if (node != INLINE_NONE || !places->without_outermost)
			r = name_place(places, spot, n->die);
		if (r < 0 || node == INLINE_NONE)
			break;
		places->list.at[places->list.count - 1].inlined = true;
		at = (struct source_line){ n->call_file, n->call_line, n->call_column };
		r = add_place(d, spot, places, &at);
	}
	return r;
}

int debug_info_find(struct debug_info *d, uint64_t address, struct debug_places *places)
{
	uint32_t index = cover_find(&d->units, address);

	if (index == COVER_NONE)
		return 0;
	struct spot spot = { .unit = &d->file.units.at[index], .address = address };
	int r = prepare(d, &spot);
	return r < 0 ? r : add_places(d, &spot, places);
}
