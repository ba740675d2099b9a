/* SPDX-License-Identifier: MIT */
/*
 * A reader of just so much of ELF as a uprobe needs: symbols and loaded segments, of 32 and 64
 * bits, in this machine's byte order (System V gABI, chapters 4 and 5). It trusts nothing that a
 * file says: what is read is read by pread(2), and memory grows with what the file really holds.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/vec.h"
#include "event/elf-symbol.h"
#include "event/nearest.h"

#define PIECE        65536u              /* bytes read at once; a multiple of both symbols' sizes */
#define MAX_STRINGS  (UINT64_C(1) << 31) /* of names; st_name has 32 bits */
#define SHOWN_PLACES 4

#define VERSION_HIDDEN 0x8000 /* of .gnu.version: not what new programs are bound to */

struct elf {
	int fd;
	const char *path;
	struct tally_error *err;
	bool wide; /* ELFCLASS64 */
	Elf64_Ehdr head;
	VEC(Elf64_Shdr) sections;
	VEC(Elf64_Phdr) segments;
};

/* What was found of a name. */
struct search {
	const char *name;
	size_t len;
	int rank; /* of the best binding so far */
	Elf64_Sym best;
	uint64_t places[SHOWN_PLACES];
	size_t count; /* of different places with the best binding */
	bool undefined, is_data, whole_table;
	bool suggests; /* the walk is one for the nearest name */
	struct nearest near;
};

static int fail(const struct elf *e, const char *why)
{
	return error_set(e->err, -EINVAL, TALLY_CAUSE_CORRUPT, "'%.200s' %s", e->path, why);
}

static int fail_io(const struct elf *e, int code)
{
	enum tally_cause cause = code == -ENOENT || code == -ENOTDIR ? TALLY_CAUSE_NO_FILE
				 : code == -EACCES                   ? TALLY_CAUSE_PERMISSION
								     : TALLY_CAUSE_IO;

	return error_set(e->err, code, cause, "cannot read '%.200s': %s", e->path, strerror(-code));
}

/* Fills `to`; -EINVAL where the file ends before. */
static int read_exactly(const struct elf *e, void *to, size_t len, uint64_t offset)
{
	char *at = to;

	while (len) {
		if (offset > INT64_MAX - len)
			return fail(e, "names a place beyond any file's end");
		ssize_t n = sys()->pread(e->fd, at, len, (off_t)offset);
		if (n < 0)
			return fail_io(e, (int)n);
		if (!n)
			return fail(e, "ends before what its headers name");
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Appends `len` bytes in pieces: a file cannot ask for more memory than it has bytes. */
static int read_range(const struct elf *e, struct buf *out, uint64_t offset, uint64_t len)
{
	char piece[4096];

	while (len) {
		size_t part = len < sizeof(piece) ? (size_t)len : sizeof(piece);
		int r = read_exactly(e, piece, part, offset);
		if (r < 0)
			return r;
		buf_add(out, piece, part);
		offset += part;
		len -= part;
	}
	return out->failed ? error_nomem(e->err, "a file's symbols") : 0;
}

/* -- both classes as the wider one ----------------------------------------------------------- */

static Elf64_Ehdr widen_head(const Elf32_Ehdr *h)
{
	return (Elf64_Ehdr){ .e_type = h->e_type,
			     .e_machine = h->e_machine,
			     .e_phoff = h->e_phoff,
			     .e_shoff = h->e_shoff,
			     .e_phentsize = h->e_phentsize,
			     .e_phnum = h->e_phnum,
			     .e_shentsize = h->e_shentsize,
			     .e_shnum = h->e_shnum };
}

static Elf64_Shdr load_section(const struct elf *e, const char *at)
{
	Elf64_Shdr wide;
	Elf32_Shdr h;

	if (e->wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&h, at, sizeof(h));
	return (Elf64_Shdr){ .sh_type = h.sh_type,
			     .sh_offset = h.sh_offset,
			     .sh_size = h.sh_size,
			     .sh_link = h.sh_link,
			     .sh_entsize = h.sh_entsize };
}

static Elf64_Phdr load_segment(const struct elf *e, const char *at)
{
	Elf64_Phdr wide;
	Elf32_Phdr h;

	if (e->wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&h, at, sizeof(h));
	return (Elf64_Phdr){ .p_type = h.p_type,
			     .p_flags = h.p_flags,
			     .p_offset = h.p_offset,
			     .p_vaddr = h.p_vaddr,
			     .p_filesz = h.p_filesz };
}

static Elf64_Sym load_symbol(const struct elf *e, const char *at)
{
	Elf64_Sym wide;
	Elf32_Sym s;

	if (e->wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&s, at, sizeof(s));
	return (Elf64_Sym){ .st_name = s.st_name,
			    .st_info = s.st_info,
			    .st_other = s.st_other,
			    .st_shndx = s.st_shndx,
			    .st_value = s.st_value,
			    .st_size = s.st_size };
}

static size_t symbol_size(const struct elf *e)
{
	return e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

/* -- headers ----------------------------------------------------------------------------------- */

static int read_head(struct elf *e)
{
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr narrow;
	int r = read_exactly(e, ident, sizeof(ident), 0);

	if (r < 0)
		return r;
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return fail(e, "is no ELF file: a probe needs the program or library itself");
	e->wide = ident[EI_CLASS] == ELFCLASS64;
	if (!e->wide && ident[EI_CLASS] != ELFCLASS32)
		return fail(e, "is an ELF file of neither 32 nor 64 bits");
	if (ident[EI_DATA] != ELFDATA2LSB)
		return fail(e, "is for machines of the other byte order");
	if (e->wide)
		return read_exactly(e, &e->head, sizeof(e->head), 0);
	r = read_exactly(e, &narrow, sizeof(narrow), 0);
	if (r == 0)
		e->head = widen_head(&narrow);
	return r;
}

static int read_segments(struct elf *e)
{
	size_t size = e->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	struct buf bytes = { 0 };

	if (!e->head.e_phnum)
		return fail(e, "has no segments: it is an object file, which nothing runs");
	if (e->head.e_phentsize != size)
		return fail(e, "has program headers of a strange size");
	int r = read_range(e, &bytes, e->head.e_phoff, (uint64_t)size * e->head.e_phnum);
	for (size_t i = 0; r == 0 && i < e->head.e_phnum; i++) {
		Elf64_Phdr *segment = vec_push(&e->segments);
		if (segment)
			*segment = load_segment(e, bytes.at + i * size);
		else
			r = error_nomem(e->err, "a file's segments");
	}
	buf_done(&bytes);
	return r;
}

/* More than 65,279 sections are counted elsewhere; no program has them. */
static int read_sections(struct elf *e)
{
	size_t size = e->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	struct buf bytes = { 0 };

	if (!e->head.e_shnum)
		return 0;
	if (e->head.e_shentsize != size)
		return fail(e, "has section headers of a strange size");
	int r = read_range(e, &bytes, e->head.e_shoff, (uint64_t)size * e->head.e_shnum);
	for (size_t i = 0; r == 0 && i < e->head.e_shnum; i++) {
		Elf64_Shdr *section = vec_push(&e->sections);
		if (section)
			*section = load_section(e, bytes.at + i * size);
		else
			r = error_nomem(e->err, "a file's sections");
	}
	buf_done(&bytes);
	return r;
}

/* Not blocking: a pipe's other end may never come. */
static int open_elf(struct elf *e, const char *path, struct tally_error *err)
{
	*e = (struct elf){ .path = path, .err = err };
	e->fd = sys()->open(path, O_RDONLY | O_NONBLOCK, 0);
	if (e->fd < 0)
		return fail_io(e, e->fd);
	int r = read_head(e);
	return r < 0 ? r : read_segments(e);
}

static void close_elf(struct elf *e)
{
	if (e->fd >= 0)
		sys()->close(e->fd);
	vec_done(&e->sections);
	vec_done(&e->segments);
}

static bool is_executable(const Elf64_Phdr *segment)
{
	return segment->p_type == PT_LOAD && segment->p_flags & PF_X;
}

/* -- symbols ----------------------------------------------------------------------------------- */

/* As the linker prefers them. The hidden versions are those that only old programs are bound to. */
static int rank_of(const Elf64_Sym *s, bool hidden)
{
	switch (ELF64_ST_BIND(s->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return hidden ? 4 : 6;
	case STB_WEAK:
		return hidden ? 3 : 5;
	default:
		return hidden ? 1 : 2;
	}
}

static void take_place(struct search *s, const Elf64_Sym *symbol, bool hidden)
{
	int rank = rank_of(symbol, hidden);

	if (rank < s->rank)
		return;
	if (rank > s->rank) {
		s->count = 0;
		s->best = *symbol;
		s->rank = rank;
	}
	for (size_t i = 0; i < s->count && i < SHOWN_PLACES; i++)
		if (s->places[i] == symbol->st_value)
			return;
	if (s->count < SHOWN_PLACES)
		s->places[s->count] = symbol->st_value;
	s->count++;
}

/* A symbol with the name. Hand-written functions often have no type. */
static void take_symbol(struct search *s, const Elf64_Sym *symbol, bool hidden)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF)
		s->undefined = true;
	else if (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC)
		take_place(s, symbol, hidden);
	else if (type == STT_OBJECT || type == STT_TLS)
		s->is_data = true;
}

/* `names` ends in a NUL of our own. */
static void look_at(struct search *s, const Elf64_Sym *symbol, const struct buf *names, bool hidden)
{
	if (symbol->st_name >= names->len || !names->at[symbol->st_name])
		return;
	const char *name = names->at + symbol->st_name;
	if (strncmp(name, s->name, s->len) == 0 && !name[s->len])
		take_symbol(s, symbol, hidden);
	else if (s->suggests && symbol->st_shndx != SHN_UNDEF &&
		 ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
		 strnlen(name, NEAREST_MAX + 1) <= NEAREST_MAX)
		nearest_offer(&s->near, name);
}

static const Elf64_Shdr *find_section(const struct elf *e, uint32_t type)
{
	for (size_t i = 0; i < e->sections.count; i++)
		if (e->sections.at[i].sh_type == type)
			return &e->sections.at[i];
	return NULL;
}

/* The versions of .dynsym, u16 each; none where the file has none. */
static int read_versions(const struct elf *e, const Elf64_Shdr *table, struct buf *out)
{
	const Elf64_Shdr *versions = find_section(e, SHT_GNU_versym);

	if (table->sh_type != SHT_DYNSYM || !versions)
		return 0;
	return read_range(e, out, versions->sh_offset, versions->sh_size);
}

static bool is_hidden(const struct buf *versions, uint64_t i)
{
	return i < versions->len / 2 && load_u16(versions->at + 2 * i, false) & VERSION_HIDDEN;
}

static int walk_symbols(const struct elf *e, const Elf64_Shdr *table, const struct buf *names,
			const struct buf *versions, struct search *s)
{
	size_t each = symbol_size(e), room = PIECE / each;
	uint64_t count = table->sh_size / each;
	char *piece = malloc(room * each);
	int r = piece ? 0 : error_nomem(e->err, "a file's symbols");

	for (uint64_t i = 0; r == 0 && i < count;) {
		size_t part = count - i < room ? (size_t)(count - i) : room;
		if (table->sh_offset > UINT64_MAX - i * each)
			r = fail(e, "names a place beyond any file's end");
		else
			r = read_exactly(e, piece, part * each, table->sh_offset + i * each);
		for (size_t k = 0; r == 0 && k < part; k++) {
			Elf64_Sym symbol = load_symbol(e, piece + k * each);
			look_at(s, &symbol, names, is_hidden(versions, i + k));
		}
		i += part;
	}
	free(piece);
	return r;
}

static int search_table(const struct elf *e, const Elf64_Shdr *table, struct search *s)
{
	struct buf names = { 0 }, versions = { 0 };

	if (table->sh_entsize != symbol_size(e))
		return fail(e, "has symbols of a strange size");
	if (table->sh_link >= e->sections.count)
		return fail(e, "has symbols without their names");
	const Elf64_Shdr *strings = &e->sections.at[table->sh_link];
	if (strings->sh_type != SHT_STRTAB || strings->sh_size > MAX_STRINGS)
		return fail(e, "has symbols without their names");
	int r = read_range(e, &names, strings->sh_offset, strings->sh_size);
	if (r == 0)
		r = read_versions(e, table, &versions);
	if (r == 0) {
		buf_zero(&names, 1);
		r = names.failed ? error_nomem(e->err, "a file's symbols")
				 : walk_symbols(e, table, &names, &versions, s);
	}
	buf_done(&names);
	buf_done(&versions);
	return r;
}

/* .symtab has all; what is stripped has only what it exports, in .dynsym. */
static int search(const struct elf *e, struct search *s)
{
	const Elf64_Shdr *all = find_section(e, SHT_SYMTAB);
	const Elf64_Shdr *exported = find_section(e, SHT_DYNSYM);
	int r = all ? search_table(e, all, s) : 0;

	s->whole_table = all;
	return r < 0 || s->count || !exported ? r : search_table(e, exported, s);
}

/* -- answers ----------------------------------------------------------------------------------- */

static int refuse(const struct elf *e, const struct search *s, const char *why)
{
	return error_set(e->err, -EINVAL, TALLY_CAUSE_UNKNOWN, "'%.*s' of '%.160s' %s", (int)s->len,
			 s->name, e->path, why);
}

static int refuse_missing(const struct elf *e, const struct search *s)
{
	if (s->is_data)
		return refuse(e, s, "is data and no function");
	if (s->undefined)
		return refuse(e, s,
			      "is used there, but is another library's: name that file ('ldd')");
	if (s->near.name[0])
		return error_set(e->err, -EINVAL, TALLY_CAUSE_UNKNOWN,
				 "there is no function '%.*s' in '%.160s', the nearest is '%s'",
				 (int)s->len, s->name, e->path, s->near.name);
	return error_set(e->err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			 "there is no function '%.*s' in '%.160s'%s", (int)s->len, s->name, e->path,
			 s->whole_table
				 ? ": 'nm' lists those there are"
				 : ", which is stripped of all but what it exports: give the "
				   "offset in the file instead, as PATH:0x1234");
}

/* The file's offset of an address, if a probe may be put there. */
static bool to_offset(const struct elf *e, uint64_t address, uint64_t *offset)
{
	for (size_t i = 0; i < e->segments.count; i++) {
		const Elf64_Phdr *segment = &e->segments.at[i];
		uint64_t inside = address - segment->p_vaddr;
		if (is_executable(segment) && address >= segment->p_vaddr &&
		    inside < segment->p_filesz && segment->p_offset <= INT64_MAX &&
		    inside <= INT64_MAX - segment->p_offset) {
			*offset = segment->p_offset + inside;
			return true;
		}
	}
	return false;
}

static int refuse_several(const struct elf *e, const struct search *s)
{
	char list[SHOWN_PLACES * 20] = "";
	size_t n = 0;
	uint64_t offset;

	for (size_t i = 0; i < s->count && i < SHOWN_PLACES; i++)
		if (to_offset(e, s->places[i], &offset))
			n += (size_t)snprintf(list + n, sizeof(list) - n, " %#llx",
					      (unsigned long long)offset);
	return error_set(e->err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			 "'%.160s' has %zu functions '%.*s': name one by its offset in the file, "
			 "as PATH:0x1234; there are%s%s",
			 e->path, s->count, (int)s->len, s->name, list,
			 s->count > SHOWN_PLACES ? " and others" : "");
}

static int answer(const struct elf *e, const struct search *s, struct elf_function *out)
{
	uint64_t address = s->best.st_value;

	if (!s->count)
		return refuse_missing(e, s);
	if (s->count > 1)
		return refuse_several(e, s);
	if (ELF64_ST_TYPE(s->best.st_info) == STT_GNU_IFUNC)
		return refuse(
			e, s,
			"is one of several functions, which is chosen when the program starts "
			"(ifunc): name one of them by its offset, as PATH:0x1234");
	if (!s->best.st_size)
		return refuse(e, s,
			      "has no size, so it may be no function: name the place by its offset "
			      "in the file, as PATH:0x1234");
	if (e->head.e_machine == EM_ARM)
		address &= ~UINT64_C(1); /* says that it is Thumb code */
	if (!to_offset(e, address, &out->offset))
		return refuse(e, s, "lies in no part of the file that is mapped executable");
	out->size = s->best.st_size;
	return 0;
}

int elf_find_function(struct elf_function *out, const char *path, const char *name, size_t len,
		      struct tally_error *err)
{
	struct search s = { .name = name, .len = len };
	struct elf e;

	nearest_init(&s.near, name, len);
	int r = open_elf(&e, path, err);
	if (r == 0)
		r = read_sections(&e);
	if (r == 0)
		r = search(&e, &s);
	if (r == 0 && !s.count) {
		s.suggests = true;
		r = search(&e, &s);
	}
	if (r == 0)
		r = answer(&e, &s, out);
	close_elf(&e);
	return r;
}

int elf_check_offset(const char *path, uint64_t offset, struct tally_error *err)
{
	struct elf e;
	bool found = false;
	int r = open_elf(&e, path, err);

	if (r == 0)
		vec_each (&e.segments, segment)
			found |= is_executable(segment) && offset >= segment->p_offset &&
				 offset - segment->p_offset < segment->p_filesz;
	close_elf(&e);
	if (r < 0 || found)
		return r;
	return error_set(
		err, -EINVAL, TALLY_CAUSE_ARGUMENT,
		"the offset %#llx of '%.200s' lies in nothing that is mapped executable: a "
		"probe there would change data",
		(unsigned long long)offset, path);
}
