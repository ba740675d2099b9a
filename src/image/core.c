/* SPDX-License-Identifier: MIT */
/*
 * Core files: an ELF file of type ET_CORE, whose PT_LOAD segments are the memory and whose PT_NOTE
 * segment tells of threads and mappings. Anybody may have written it, so every place in it is
 * checked against the file's size.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/sys.h"
#include "image/build-id.h"
#include "image/core.h"

/* The kernel lets nobody have more mappings than that (vm.max_map_count is 65,530 at first). */
#define MOST_SEGMENTS ((uint64_t)1 << 21)

/* Of a mapped file, for its build-id. */
#define MOST_HEADERS 64
#define MOST_NOTES   4096

#define ANONYMOUS "//anon"
#define VDSO      "[vdso]"

int core_refuse(const struct tally_core *c, uint64_t at, const char *what, struct tally_error *err)
{
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT, "%s, byte %" PRIu64 ": %s", c->path,
			 at, what);
}

bool core_read(const struct tally_core *c, uint64_t offset, void *out, size_t len)
{
	return sys_pread_all(c->fd, out, len, offset, c->size);
}

/* ---- headers ---- */

static int check_head(struct tally_core *c, const Elf64_Ehdr *head, struct tally_error *err)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return error_set(err, -ENOEXEC, TALLY_CAUSE_ARGUMENT, "%s is no core file",
				 c->path);
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s is not of a 64-bit little-endian program", c->path);
	if (head->e_type != ET_CORE)
		return error_set(err, -ENOEXEC, TALLY_CAUSE_ARGUMENT,
				 "%s is an ELF file, but no core file", c->path);
	c->info.machine = head->e_machine == EM_X86_64    ? "x86_64"
			  : head->e_machine == EM_AARCH64 ? "aarch64"
							  : NULL;
	c->words = head->e_machine == EM_X86_64 ? PRSTATUS_X86_WORDS : PRSTATUS_ARM64_WORDS;
	if (!c->info.machine)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s is of ELF machine %u: those of x86_64 and aarch64 are read",
				 c->path, head->e_machine);
	if (head->e_phentsize != sizeof(Elf64_Phdr))
		return core_refuse(c, offsetof(Elf64_Ehdr, e_phentsize),
				   "program headers are of another size than 56", err);
	return 0;
}

/* Of very many segments the first section header has the number. */
static int count_segments(const struct tally_core *c, const Elf64_Ehdr *head, uint64_t *count,
			  struct tally_error *err)
{
	Elf64_Shdr first;

	*count = head->e_phnum;
	if (head->e_phnum != PN_XNUM)
		return 0;
	if (!core_read(c, head->e_shoff, &first, sizeof(first)))
		return core_refuse(c, offsetof(Elf64_Ehdr, e_shoff),
				   "the header that has the number of segments is not in the file",
				   err);
	*count = first.sh_info;
	return 0;
}

static int take_memory(struct tally_core *c, const Elf64_Phdr *p, uint64_t at,
		       struct tally_error *err)
{
	uint64_t there = p->p_offset < c->size ? c->size - p->p_offset : 0;

	if (p->p_filesz > p->p_memsz || p->p_memsz > UINT64_MAX - p->p_vaddr)
		return core_refuse(c, at, "a segment's size makes no sense", err);
	if (!p->p_memsz)
		return 0;
	struct core_segment *s = vec_push(&c->segments);
	if (!s)
		return error_nomem(err, "a core file");
	*s = (struct core_segment){
		.start = p->p_vaddr,
		.end = p->p_vaddr + p->p_memsz,
		.offset = p->p_offset,
		.kept = p->p_filesz < there ? p->p_filesz : there,
	};
	if (__builtin_add_overflow(c->info.missing, p->p_filesz - s->kept, &c->info.missing))
		c->info.missing = UINT64_MAX;
	return 0;
}

/* `*left` is what the file may have of notes: no byte belongs to two of their segments. */
static int take_segment(struct tally_core *c, const Elf64_Phdr *p, uint64_t at, uint64_t *left,
			struct tally_error *err)
{
	if (p->p_type == PT_LOAD)
		return take_memory(c, p, at, err);
	if (p->p_type != PT_NOTE)
		return 0;
	if (p->p_offset > c->size || p->p_filesz > c->size - p->p_offset)
		return core_refuse(c, at, "the notes reach beyond the end of the file: it was cut",
				   err);
	if (p->p_filesz > *left)
		return core_refuse(c, at, "notes lie over one another", err);
	*left -= p->p_filesz;
	return core_notes(c, p->p_offset, p->p_filesz, err);
}

static int compare_segments(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int read_all(struct tally_core *c, struct tally_error *err)
{
	Elf64_Ehdr head = { 0 };
	uint64_t count, left = c->size;
	int r;

	if (!core_read(c, 0, &head, sizeof(head)))
		memset(&head, 0, sizeof(head));
	if ((r = check_head(c, &head, err)) < 0 || (r = count_segments(c, &head, &count, err)) < 0)
		return r;
	if (head.e_phoff > c->size || count > (c->size - head.e_phoff) / sizeof(Elf64_Phdr) ||
	    count > MOST_SEGMENTS)
		return core_refuse(c, offsetof(Elf64_Ehdr, e_phoff),
				   "the program headers are not all in the file", err);
	for (uint64_t i = 0; i < count && r == 0; i++) {
		uint64_t at = head.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr p;
		r = core_read(c, at, &p, sizeof(p)) ? take_segment(c, &p, at, &left, err)
						    : core_refuse(c, at, "it cannot be read", err);
	}
	if (r == 0 && !c->threads.count)
		r = core_refuse(c, head.e_phoff, "no note tells of a thread", err);
	return r;
}

static int open_file(struct tally_core *c, struct tally_error *err)
{
	struct stat st;

	c->fd = sys()->open(c->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (c->fd < 0)
		return error_set(err, c->fd,
				 c->fd == -ENOENT   ? TALLY_CAUSE_NO_FILE
				 : c->fd == -EACCES ? TALLY_CAUSE_PERMISSION
						    : TALLY_CAUSE_IO,
				 "%s: %s", c->path, strerror(-c->fd));
	if (fstat(c->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return error_set(err, -ENOEXEC, TALLY_CAUSE_ARGUMENT,
				 "%s is no file that can be read at any place", c->path);
	c->size = (uint64_t)st.st_size;
	return 0;
}

int tally_core_open(struct tally_core **out, const char *path, struct tally_error *err)
{
	struct tally_core *c = calloc(1, sizeof(*c));

	if (!c)
		return error_nomem(err, "a core file");
	c->path = path;
	int r = open_file(c, err);
	if (r == 0)
		r = read_all(c, err);
	if (r < 0) {
		tally_core_close(c);
		return r;
	}
	if (c->segments.count)
		qsort(c->segments.at, c->segments.count, sizeof(*c->segments.at), compare_segments);
	c->path = NULL;
	c->info.comm = c->comm;
	c->info.threads = (uint32_t)c->threads.count;
	if (!c->info.pid)
		c->info.pid = c->threads.at[0].tid;
	*out = c;
	return 0;
}

void tally_core_close(struct tally_core *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		sys()->close(c->fd);
	vec_done(&c->segments);
	vec_done(&c->threads);
	vec_done(&c->files);
	buf_done(&c->names);
	free(c);
}

const struct tally_core_info *tally_core_info(const struct tally_core *c)
{
	return &c->info;
}

/* ---- memory ---- */

static const struct core_segment *segment_at(const struct tally_core *c, uint64_t address)
{
	size_t low = 0, high = c->segments.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->segments.at[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < c->segments.at[low - 1].end ? &c->segments.at[low - 1] : NULL;
}

static bool read_memory(const struct tally_core *c, uint64_t address, void *out, size_t len)
{
	const struct core_segment *s = segment_at(c, address);
	uint64_t at = s ? address - s->start : 0;

	return s && at <= s->kept && len <= s->kept - at && core_read(c, s->offset + at, out, len);
}

static bool read_word(void *arg, uint64_t address, uint64_t *out)
{
	return read_memory(arg, address, out, sizeof(*out));
}

int tally_core_thread(struct tally_core *c, uint32_t i, struct tally_core_thread *out)
{
	if (i >= c->threads.count)
		return -EINVAL;
	const struct core_thread *t = &c->threads.at[i];
	*out = (struct tally_core_thread){
		.tid = t->tid,
		.start = {
			.pid = c->info.pid,
			.time = UINT64_MAX,
			.mask = t->mask,
			.regs = t->regs,
			.read = read_word,
			.arg = c,
		},
	};
	return 0;
}

/* ---- mappings ---- */

/* Of the ELF file whose first page is at that address; len 0: unknown. */
static struct build_id build_id_at(const struct tally_core *c, uint64_t address)
{
	struct build_id id = { 0 };
	uint8_t notes[MOST_NOTES];
	Elf64_Ehdr head;
	Elf64_Phdr p;

	if (!read_memory(c, address, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(p))
		return id;
	for (unsigned i = 0; i < head.e_phnum && i < MOST_HEADERS && !id.len; i++)
		if (read_memory(c, address + head.e_phoff + i * sizeof(p), &p, sizeof(p)) &&
		    p.p_type == PT_NOTE && p.p_filesz <= sizeof(notes) &&
		    read_memory(c, address + p.p_offset, notes, p.p_filesz))
			id = build_id_from_notes(notes, p.p_filesz, false);
	return id;
}

static int add_map(const struct tally_core *c, struct tally_maps *maps, struct tally_mapping map,
		   const struct build_id *id)
{
	map.build_id = id->bytes;
	map.build_id_len = id->len;
	return tally_maps_add(maps, c->info.pid, 0, &map);
}

static int add_files(const struct tally_core *c, struct tally_maps *maps)
{
	const char *before = NULL;
	struct build_id id = { 0 };
	int r = 0;

	for (size_t i = 0; i < c->files.count && r == 0; i++) {
		const struct core_file *f = &c->files.at[i];
		const char *path = c->names.at + f->name;
		/* One file's mappings follow each other, and the first has the headers. */
		if (!before || strcmp(before, path) != 0)
			id = f->offset ? (struct build_id){ 0 } : build_id_at(c, f->start);
		before = path;
		r = add_map(c, maps,
			    (struct tally_mapping){
				    .start = f->start,
				    .end = f->end,
				    .pgoff = f->offset,
				    .path = path,
			    },
			    &id);
	}
	return r;
}

int tally_core_map(struct tally_core *c, struct tally_maps *maps)
{
	const struct core_segment *vdso = c->vdso ? segment_at(c, c->vdso) : NULL;
	const struct build_id none = { 0 };
	int r = 0;

	for (size_t i = 0; i < c->segments.count && r == 0; i++)
		r = add_map(c, maps,
			    (struct tally_mapping){
				    .start = c->segments.at[i].start,
				    .end = c->segments.at[i].end,
				    .path = ANONYMOUS,
			    },
			    &none);
	if (r == 0 && vdso) {
		const struct build_id id = build_id_at(c, c->vdso);
		r = add_map(
			c, maps,
			(struct tally_mapping){ .start = c->vdso, .end = vdso->end, .path = VDSO },
			&id);
	}
	return r < 0 ? r : add_files(c, maps);
}
