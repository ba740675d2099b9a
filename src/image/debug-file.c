/* SPDX-License-Identifier: MIT */
/* The places of separate debug files, and the proof that one belongs to a program. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "image/debug-file.h"
#include "image/debuginfod.h"
#include "image/dwarf-cursor.h"
#include "image/elf-content.h"
#include "image/file-find.h"

#define DEBUG_ROOT "/usr/lib/debug"

#define SUP_VERSION 5

/* Checksums are taken of so many bytes at once. */
#define CRC_PIECE 16384

/* What a program says of the file that was split off from it. */
struct program {
	struct build_id id;
	char link[NAME_MAX + 1]; /* name in .gnu_debuglink; "": none */
	uint32_t crc;
	struct stat st;
};

/* One way to look: where, for what. */
struct look {
	const struct debug_search *where;
	const struct program *program;
	enum debug_part part;
	struct debug_file *out;
};

static bool has_bytes(const struct elf_input *in, const char *name)
{
	const GElf_Shdr *section = elf_content_find(in, name);

	return section && section->sh_size;
}

static bool has_part(const struct elf_input *in, enum debug_part part)
{
	if (part == DEBUG_DWARF)
		return has_bytes(in, ".debug_info") || has_bytes(in, ".debug_line");
	for (size_t i = 1; i < in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(in, i);
		if (section && section->sh_type == SHT_SYMTAB && section->sh_size)
			return true;
	}
	return false;
}

/* "name\0", padding to 4, CRC in the file's byte order: binutils, bfd/opncls.c. */
static void read_link(struct program *p, const struct elf_input *in)
{
	const GElf_Shdr *section = elf_content_find(in, ".gnu_debuglink");
	struct elf_content link;

	if (!section || elf_content_read(&link, in, section) < 0)
		return;
	size_t len = link.size ? strnlen((const char *)link.at, link.size) : 0;
	size_t crc = align_up(len + 1, 4);
	if (len && len < sizeof(p->link) && crc + 4 <= link.size && !memchr(link.at, '/', len)) {
		memcpy(p->link, link.at, len + 1);
		p->crc = load_u32(link.at + crc, elf_input_is_swapped(in));
	}
	elf_content_done(&link);
}

static bool crc_of(int fd, uint64_t size, uint32_t *crc)
{
	unsigned char piece[CRC_PIECE];
	uLong sum = crc32(0, NULL, 0);

	for (uint64_t at = 0; at < size;) {
		ssize_t n = sys()->pread(fd, piece, sizeof(piece), (off_t)at);
		if (n <= 0)
			return false;
		sum = crc32(sum, piece, (uInt)n);
		at += (uint64_t)n;
	}
	*crc = (uint32_t)sum;
	return true;
}

/* Whether an open file was split off from the program, and has what is looked for. */
static bool belongs(const struct look *l, int fd, const struct stat *st, bool by_crc)
{
	struct elf_input in;
	bool fits = false;
	uint32_t crc;

	/* A link may lead to the program itself. */
	if (st->st_dev == l->program->st.st_dev && st->st_ino == l->program->st.st_ino)
		return false;
	if (elf_input_open(&in, fd) == 0 && has_part(&in, l->part)) {
		struct build_id id = elf_input_build_id(&in);
		fits = build_ids_match(&id, &l->program->id);
		if (!fits && by_crc && !build_ids_differ(&id, &l->program->id))
			fits = crc_of(fd, in.size, &crc) && crc == l->program->crc;
	}
	elf_input_done(&in);
	return fits;
}

static bool try_path(const struct look *l, const char *path, bool by_crc)
{
	struct stat st;
	int fd = file_open_regular(path, &st);

	if (fd < 0)
		return false;
	if (!belongs(l, fd, &st, by_crc)) {
		sys()->close(fd);
		return false;
	}
	l->out->fd = fd;
	snprintf(l->out->path, sizeof(l->out->path), "%s", path);
	return true;
}

/* .build-id/ab/cdef....debug below a root. false: it does not fit, or there is no build-id. */
static bool build_id_path(char path[PATH_MAX], const char *root, const struct build_id *id)
{
	char text[BUILD_ID_TEXT];

	if (id->len < 2)
		return false;
	build_id_text(text, id);
	int n = snprintf(path, PATH_MAX, "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug", root, text,
			 text + 2);
	return n > 0 && n < PATH_MAX;
}

static bool try_build_id(const struct look *l)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(l->where->roots); i++)
		if (l->where->roots[i] &&
		    build_id_path(path, l->where->roots[i], &l->program->id) &&
		    try_path(l, path, false))
			return true;
	return false;
}

/* The folder of a path, with its last '/'. */
static int folder_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) + 1 : 0;
}

/* In the program's folder, its .debug, and the same folder below the debug roots. */
static bool try_link_in(const struct look *l, const char *root, const char *path)
{
	static const struct {
		const char *above, *below;
	} places[] = { { "", "" },
		       { "", ".debug/" },
		       { DEBUG_ROOT, "" },
		       /* /lib may have become a link to usr/lib since. */
		       { DEBUG_ROOT "/usr", "" } };
	char full[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int n = snprintf(full, sizeof(full), "%s%s%.*s%s%s", root, places[i].above,
				 folder_len(path), path, places[i].below, l->program->link);
		if (n > 0 && (size_t)n < sizeof(full) && try_path(l, full, true))
			return true;
	}
	return false;
}

static bool try_link(const struct look *l)
{
	const struct debug_search *w = l->where;

	if (!l->program->link[0])
		return false;
	if (w->opened && w->opened[0] == '/' && try_link_in(l, "", w->opened))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(w->roots); i++)
		if (w->roots[i] && w->path && w->path[0] == '/' &&
		    try_link_in(l, w->roots[i], w->path))
			return true;
	return false;
}

static bool try_servers(const struct look *l)
{
	struct stat st;
	int fd = l->where->debuginfod
			 ? debuginfod_open(&l->program->id, DEBUGINFOD_DEBUG, l->out->path)
			 : -1;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !belongs(l, fd, &st, false)) {
		sys()->close(fd);
		return false;
	}
	l->out->fd = fd;
	return true;
}

/* What a file says of another one that it shares with more files, which dwz made. */
struct alt_link {
	const char *name;
	struct build_id id; /* the other's: a checksum in `sup` */
	bool sup;           /* by DWARF 5's .debug_sup, not by .gnu_debugaltlink */
};

/* .gnu_debugaltlink: "name\0", then the build-id. */
static bool parse_altlink(struct alt_link *link, const struct elf_content *c)
{
	size_t len = c->size ? strnlen((const char *)c->at, c->size) : 0;

	if (!len || len == c->size)
		return false;
	link->name = (const char *)c->at;
	link->id = build_id_from(c->at + len + 1, c->size - len - 1);
	return true;
}

/*
 * .debug_sup (DWARF 5, 7.3.6): the version, whether this is the shared file, the other's name in
 * those that are not, and a checksum with its length, which both have.
 */
static bool parse_sup(struct alt_link *link, const struct elf_content *c, bool swapped,
		      bool is_shared)
{
	struct dwarf_cursor in = { .at = c->at, .end = c->at + c->size, .swapped = swapped };
	bool known = cursor_u16(&in) == SUP_VERSION && cursor_u8(&in) == is_shared;

	link->name = cursor_text(&in);
	uint64_t len = cursor_uleb(&in);
	/* Longer ones would be compared in part. */
	if (!known || in.failed || !len || len > BUILD_ID_MAX || len > cursor_left(&in))
		return false;
	link->id = build_id_from(in.at, len);
	link->sup = true;
	return true;
}

/* The section's content; false: there is none. */
static bool read_named(struct elf_content *out, const struct elf_input *in, const char *name)
{
	const GElf_Shdr *section = elf_content_find(in, name);

	return section && elf_content_read(out, in, section) == 0;
}

/* Who its own note, or its own checksum, says that it is. */
static struct build_id alt_id(const struct elf_input *in, bool sup)
{
	struct elf_content content = { 0 };
	struct alt_link own = { 0 };

	if (!sup)
		return elf_input_build_id(in);
	if (read_named(&content, in, ".debug_sup"))
		parse_sup(&own, &content, elf_input_is_swapped(in), true);
	elf_content_done(&content);
	return own.id;
}

static bool try_alt(struct debug_file *out, const char *path, const struct alt_link *link)
{
	struct elf_input in;
	struct stat st;
	int fd = file_open_regular(path, &st);

	if (fd < 0)
		return false;
	bool fits = false;
	if (elf_input_open(&in, fd) == 0) {
		struct build_id own = alt_id(&in, link->sup);
		fits = build_ids_match(&own, &link->id);
	}
	elf_input_done(&in);
	if (fits)
		out->alt = fd;
	else
		sys()->close(fd);
	return fits;
}

/* A name in the debug file's folder, or an absolute one, which dwz's -M gives. */
static bool try_alt_name(struct debug_file *out, const struct debug_search *where,
			 const struct alt_link *link)
{
	char path[PATH_MAX];

	if (link->name[0] != '/') {
		int n = snprintf(path, sizeof(path), "%.*s%s", folder_len(out->path), out->path,
				 link->name);
		return n > 0 && (size_t)n < sizeof(path) && try_alt(out, path, link);
	}
	for (size_t i = 0; i < ARRAY_SIZE(where->roots); i++) {
		if (!where->roots[i])
			continue;
		int n = snprintf(path, sizeof(path), "%s%s", where->roots[i], link->name);
		if (n > 0 && (size_t)n < sizeof(path) && try_alt(out, path, link))
			return true;
	}
	return false;
}

/* By its name, and where that is a build-id, by that. */
static void look_for_alt(struct debug_file *out, const struct debug_search *where,
			 const struct alt_link *link)
{
	char path[PATH_MAX];
	bool found = try_alt_name(out, where, link);

	for (size_t i = 0; i < ARRAY_SIZE(where->roots) && !found && !link->sup; i++)
		found = where->roots[i] && build_id_path(path, where->roots[i], &link->id) &&
			try_alt(out, path, link);
	if (!found && !link->sup && where->debuginfod)
		out->alt = debuginfod_open(&link->id, DEBUGINFOD_DEBUG, NULL);
}

static void find_alt(struct debug_file *out, const struct debug_search *where)
{
	struct elf_content altlink = { 0 }, sup = { 0 };
	struct alt_link link = { 0 };
	struct elf_input in;
	bool found = false;

	if (elf_input_open(&in, out->fd) == 0)
		found = (read_named(&altlink, &in, ".gnu_debugaltlink") &&
			 parse_altlink(&link, &altlink)) ||
			(read_named(&sup, &in, ".debug_sup") &&
			 parse_sup(&link, &sup, elf_input_is_swapped(&in), false));
	elf_input_done(&in);
	if (found)
		look_for_alt(out, where, &link);
	elf_content_done(&altlink);
	elf_content_done(&sup);
}

/* Reads what the program says; answers whether it has the part itself. */
static int read_program(struct program *p, int fd, enum debug_part part)
{
	struct elf_input in;
	int r = elf_input_open(&in, fd);

	if (r == 0 && fstat(fd, &p->st) < 0)
		r = -ENOEXEC;
	if (r == 0) {
		p->id = elf_input_build_id(&in);
		read_link(p, &in);
		r = has_part(&in, part);
	}
	elf_input_done(&in);
	return r;
}

int debug_file_find(struct debug_file *out, const struct debug_search *where, int fd,
		    enum debug_part part)
{
	struct debug_file found = { .fd = -1, .alt = -1 };
	struct program program = { 0 };
	int r = read_program(&program, fd, part);

	if (r < 0)
		return r;
	struct look look = { .where = where, .program = &program, .part = part, .out = &found };
	if (r > 0) {
		found.fd = sys()->fcntl(fd, F_DUPFD_CLOEXEC, 0);
		found.own = true;
		snprintf(found.path, sizeof(found.path), "%s", where->opened ? where->opened : "");
		if (found.fd < 0)
			return found.fd;
	} else if (!try_build_id(&look) && !try_link(&look) && !try_servers(&look)) {
		return -ENOENT;
	}
	if (part == DEBUG_DWARF)
		find_alt(&found, where);
	*out = found;
	return 0;
}

void debug_file_done(struct debug_file *file)
{
	if (file->fd >= 0)
		sys()->close(file->fd);
	if (file->alt >= 0)
		sys()->close(file->alt);
	*file = (struct debug_file){ .fd = -1, .alt = -1 };
}
