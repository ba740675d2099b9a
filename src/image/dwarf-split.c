/* SPDX-License-Identifier: MIT */
/* Finding .dwo files, and units in packages of them (DWARF 5, 7.3.5; version 2 is GNU's). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sys.h"
#include "image/dwarf-split.h"

#define MAX_COLUMNS 16

/* Where the part of one unit lies in a section. */
struct part {
	uint64_t offset, size;
};

struct dwarf_package {
	struct dwarf_file file;
	struct dwarf_section index; /* .debug_cu_index */
	int fd;
	uint16_t version;
	uint32_t columns, rows, slots;
	uint64_t ids, hashes, numbers, offsets, sizes; /* where the tables lie in the index */
};

static int open_file(const char *path)
{
	return sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

/* ---- packages ---- */

static bool read_index(struct dwarf_package *p)
{
	struct dwarf_cursor c = dwarf_section_at(&p->index, 0, 16);
	uint32_t version = cursor_u32(&c);

	/* Version 5 has 16 bits of it, and 16 of nothing. */
	p->version = (uint16_t)(version == 2 ? 2 : version & 0xffff);
	if (p->index.swapped && version != 2)
		p->version = (uint16_t)(version >> 16);
	p->columns = cursor_u32(&c);
	p->rows = cursor_u32(&c);
	p->slots = cursor_u32(&c);
	if (c.failed || (p->version != 2 && p->version != 5) || p->columns > MAX_COLUMNS ||
	    p->slots & (p->slots - 1))
		return false;
	p->hashes = 16;
	p->numbers = p->hashes + (uint64_t)p->slots * 8;
	p->ids = p->numbers + (uint64_t)p->slots * 4;
	p->offsets = p->ids + p->columns * 4;
	p->sizes = p->offsets + (uint64_t)p->rows * p->columns * 4;
	return p->sizes + (uint64_t)p->rows * p->columns * 4 <= p->index.size;
}

static int read_package(struct dwarf_package *p, const struct elf_input *in)
{
	int r = dwarf_section_open(&p->index, in, ".debug_cu_index", false, NULL);

	if (r == 0 && !read_index(p))
		return -EBADMSG;
	if (r == 0)
		r = dwarf_file_open(&p->file, in, true);
	return r < 0 ? r : dwarf_file_list(&p->file);
}

static void free_package(struct dwarf_package *p)
{
	if (!p)
		return;
	dwarf_file_done(&p->file);
	dwarf_section_done(&p->index);
	sys()->close(p->fd);
	free(p);
}

/* -ENOMEM; 0 also when there is none. */
static int open_package(struct dwarf_split *s)
{
	char path[PATH_MAX];
	struct elf_input in;
	int n = snprintf(path, sizeof(path), "%s.dwp", s->path);
	int fd = n > 0 && (size_t)n < sizeof(path) ? open_file(path) : -1;

	s->package_looked_for = true;
	if (fd < 0)
		return 0;
	struct dwarf_package *p = calloc(1, sizeof(*p));
	if (!p) {
		sys()->close(fd);
		return -ENOMEM;
	}
	p->fd = fd;
	int r = elf_input_open(&in, fd);
	if (r == 0)
		r = read_package(p, &in);
	elf_input_done(&in);
	if (r == 0)
		s->package = p;
	else
		free_package(p);
	return r == -ENOMEM ? r : 0;
}

static uint32_t word_at(struct dwarf_package *p, uint64_t offset)
{
	struct dwarf_cursor c = dwarf_section_at(&p->index, offset, offset + 4);

	return cursor_u32(&c);
}

/* The row of a unit, from 1 on; 0: it is not there (DWARF 5, 7.3.5.3). */
static uint32_t find_row(struct dwarf_package *p, uint64_t id)
{
	uint32_t mask = p->slots - 1, slot = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t tries = 0; tries < p->slots; tries++, slot = (slot + step) & mask) {
		uint64_t at = p->hashes + (uint64_t)slot * 8;
		struct dwarf_cursor c = dwarf_section_at(&p->index, at, at + 8);
		uint64_t hash = cursor_u64(&c);
		uint32_t row = word_at(p, p->numbers + (uint64_t)slot * 4);
		if (!row || row > p->rows)
			return 0;
		if (hash == id)
			return row;
	}
	return 0;
}

static struct part find_part(struct dwarf_package *p, uint32_t row, uint32_t section)
{
	for (uint32_t i = 0; i < p->columns; i++) {
		uint64_t cell = ((uint64_t)(row - 1) * p->columns + i) * 4;
		if (word_at(p, p->ids + (uint64_t)i * 4) == section)
			return (struct part){ word_at(p, p->offsets + cell),
					      word_at(p, p->sizes + cell) };
	}
	return (struct part){ 0 };
}

/* Offsets in a package count from the unit's own parts. */
static struct dwarf_unit *unit_in_package(struct dwarf_package *p, uint64_t id)
{
	uint32_t row = p->slots ? find_row(p, id) : 0;
	struct dwarf_unit *u = row ? dwarf_file_unit_at(&p->file,
							find_part(p, row, DW_SECT_INFO).offset)
				   : NULL;

	if (!u || u->skeleton) /* it was taken before */
		return u;
	bool is64 = u->encoding.is64;
	u->abbrev_offset += find_part(p, row, DW_SECT_ABBREV).offset;
	u->str_offsets_base = find_part(p, row, DW_SECT_STR_OFFSETS).offset;
	if (u->encoding.version >= 5) {
		u->str_offsets_base += is64 ? 16 : 8;
		u->rnglists_base = find_part(p, row, DW_SECT_RNGLISTS).offset + (is64 ? 20 : 12);
	}
	return u;
}

/* ---- files ---- */

/* Reads all of a .dwo file: there may be more of them than files may be open. */
static int read_dwo(struct dwarf_split *s, int fd, struct dwarf_file **out)
{
	struct elf_input in;
	struct dwarf_file *f = calloc(1, sizeof(*f));

	*out = NULL;
	if (!f || !vec_reserve(&s->files, 1)) {
		free(f);
		return -ENOMEM;
	}
	int r = elf_input_open(&in, fd);
	if (r == 0)
		r = dwarf_file_open(f, &in, true);
	if (r == 0) {
		dwarf_file_finish(f);
		r = dwarf_file_list(f);
	}
	elf_input_done(&in);
	if (r == 0) {
		s->files.at[s->files.count++] = f;
		*out = f;
		return 0;
	}
	dwarf_file_done(f);
	free(f);
	return r == -ENOMEM ? r : 0;
}

/* Which of the places that a .dwo file may be in; false: there are no more. */
static bool dwo_path(char path[PATH_MAX], const struct dwarf_split *s, const char *folder,
		     const char *name, int which)
{
	const char *slash = strrchr(s->path, '/'), *base = strrchr(name, '/');
	bool absolute = name[0] == '/';
	int n;

	base = base ? base + 1 : name;
	switch (which) {
	case 0:
		n = s->symfs ? snprintf(path, PATH_MAX, "%s%s%s%s", s->symfs,
					absolute ? "" : folder, absolute ? "" : "/", name)
			     : 0;
		break;
	case 1:
		n = snprintf(path, PATH_MAX, "%s%s%s", absolute ? "" : folder, absolute ? "" : "/",
			     name);
		break;
	case 2: /* moved together with its program */
		n = slash ? snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - s->path), s->path,
				     name)
			  : 0;
		break;
	case 3:
		n = slash ? snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - s->path), s->path,
				     base)
			  : 0;
		break;
	default:
		return false;
	}
	if (n <= 0 || n >= PATH_MAX)
		path[0] = '\0';
	return true;
}

static int unit_in_file(struct dwarf_split *s, const char *path, uint64_t id,
			struct dwarf_unit **out)
{
	struct dwarf_file *f;
	int fd = *path ? open_file(path) : -1;

	if (fd < 0)
		return 0;
	int r = read_dwo(s, fd, &f);
	sys()->close(fd);
	for (size_t i = 0; r == 0 && f && i < f->units.count && !*out; i++) {
		struct dwarf_unit *u = &f->units.at[i];
		/* Before version 5 the number stands in the root DIE. */
		r = u->encoding.version >= 5 ? 0 : dwarf_unit_root(u);
		if (r == 0 && u->dwo_id == id)
			*out = u;
	}
	return r;
}

int dwarf_split_find(struct dwarf_split *s, struct dwarf_unit *skeleton, struct dwarf_unit **out)
{
	const char *name = dwarf_unit_text(skeleton, &skeleton->dwo_name);
	const char *folder = dwarf_unit_text(skeleton, &skeleton->comp_dir);
	char path[PATH_MAX];
	int r = s->package_looked_for ? 0 : open_package(s);

	*out = r == 0 && s->package ? unit_in_package(s->package, skeleton->dwo_id) : NULL;
	for (int i = 0; r == 0 && !*out && name && dwo_path(path, s, folder ? folder : "", name, i);
	     i++)
		r = unit_in_file(s, path, skeleton->dwo_id, out);
	if (r < 0 || !*out)
		return r;
	(*out)->skeleton = skeleton;
	return dwarf_unit_root(*out);
}

void dwarf_split_done(struct dwarf_split *s)
{
	vec_each (&s->files, f) {
		dwarf_file_done(*f);
		free(*f);
	}
	vec_done(&s->files);
	free_package(s->package);
	s->package = NULL;
}
