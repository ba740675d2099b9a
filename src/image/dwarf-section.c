/* SPDX-License-Identifier: MIT */
/* Sections of debugging information, read or decompressed when they are first needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sys.h"
#include "image/bulk.h"
#include "image/dwarf-section.h"
#include "image/elf-content.h"

/* A system call costs less than reading as much; neighbours are asked for soon. */
#define CHUNK ((uint32_t)128 << 10)
#define SMALL ((uint32_t)4 << 10)
#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define HUGE_PAGES ((size_t)2 << 20)
#define CACHE_LINE 64

/* What is larger is never held whole. */
#define MOST_AT_ONCE ((uint64_t)64 << 20)

static int expand(struct dwarf_section *s, const struct elf_input *in, const GElf_Shdr *section)
{
	struct elf_content content;
	int r = elf_content_read(&content, in, section);

	/* What is broken, or larger than compression can make it, is left out. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	s->data = content.at;
	s->size = content.size;
	return 0;
}

static bool is_compressed(const struct elf_input *in, const GElf_Shdr *section)
{
	return section->sh_flags & SHF_COMPRESSED ||
	       !strncmp(elf_input_section_name(in, section), ".z", 2);
}

static bool stays_scattered(const GElf_Shdr *section, bool scattered)
{
	return scattered && section->sh_size > MOST_AT_ONCE;
}

uint64_t dwarf_section_room(const struct elf_input *in, const char *name, bool scattered)
{
	const GElf_Shdr *section = elf_content_find(in, name);

	if (!section || is_compressed(in, section) || stays_scattered(section, scattered))
		return 0;
	return align_up(section->sh_size, CACHE_LINE);
}

void dwarf_memory_reserve(struct dwarf_memory *m, uint64_t size)
{
	*m = (struct dwarf_memory){ 0 };
	if (!size || size > SIZE_MAX / 2)
		return;
	void *mapped = mmap(NULL, size + HUGE_PAGES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return;
	*m = (struct dwarf_memory){
		.at = (uint8_t *)align_up((uintptr_t)mapped, HUGE_PAGES),
		.left = size,
		.mapped = mapped,
		.size = size + HUGE_PAGES,
	};
	/* Advice: a refusal costs time alone. Half of the last page is used. */
	size_t huge = (size + HUGE_PAGES / 2) & ~(HUGE_PAGES - 1);
	if (huge)
		madvise(m->at, huge, MADV_HUGEPAGE);
}

void dwarf_memory_done(struct dwarf_memory *m)
{
	if (m->mapped)
		munmap(m->mapped, m->size);
	*m = (struct dwarf_memory){ 0 };
}

static bool take_memory(struct dwarf_section *s, struct dwarf_memory *memory, uint64_t size)
{
	uint64_t room = align_up(size, CACHE_LINE);

	if (memory && room <= memory->left) {
		s->data = memory->at;
		memory->at += room;
		memory->left -= room;
		s->borrowed = true;
		return true;
	}
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	s->data = at;
	s->mapped = size;
	return true;
}

int dwarf_section_open(struct dwarf_section *s, const struct elf_input *in, const char *name,
		       bool scattered, struct dwarf_memory *memory)
{
	const GElf_Shdr *section = elf_content_find(in, name);

	*s = (struct dwarf_section){ .swapped = elf_input_is_swapped(in) };
	if (!section || !section->sh_size)
		return 0;
	if (is_compressed(in, section))
		return expand(s, in, section);
	scattered = stays_scattered(section, scattered);
	/* Memory is filled as chunks are read. */
	s->chunk = scattered ? SMALL : CHUNK;
	s->have = calloc(section->sh_size / s->chunk + 1, 1);
	if (!s->have || !take_memory(s, scattered ? NULL : memory, section->sh_size)) {
		free(s->have);
		*s = (struct dwarf_section){ 0 };
		return -ENOMEM;
	}
	s->size = section->sh_size;
	s->fd = in->fd;
	s->offset = section->sh_offset;
	return 0;
}

void dwarf_section_borrow(struct dwarf_section *s, const uint8_t *data, size_t size, bool swapped)
{
	*s = (struct dwarf_section){
		.data = (uint8_t *)(uintptr_t)data, /* read alone */
		.size = size,
		.borrowed = true,
		.swapped = swapped,
	};
}

void dwarf_section_done(struct dwarf_section *s)
{
	if (s->mapped)
		munmap(s->data, s->mapped);
	else if (!s->borrowed)
		free(s->data);
	free(s->have);
	*s = (struct dwarf_section){ 0 };
}

/* What cannot be read (the file was cut meanwhile) is zeroes, which DWARF takes for ends. */
static void read_bytes(const struct dwarf_section *s, uint8_t *to, uint64_t from, uint64_t len)
{
	while (len) {
		ssize_t n = sys()->pread(s->fd, to, len, (off_t)(s->offset + from));
		if (n <= 0) {
			memset(to, 0, len);
			return;
		}
		to += n;
		from += (uint64_t)n;
		len -= (uint64_t)n;
	}
}

static void read_chunk(struct dwarf_section *s, uint64_t chunk)
{
	uint64_t at = chunk * s->chunk;
	uint64_t len = s->size - at < s->chunk ? s->size - at : s->chunk;

	s->have[chunk] = 1;
	/* All its pages at once cost less than one after the other. */
	if (s->chunk > SMALL)
		madvise(s->data + at, len, MADV_POPULATE_WRITE);
	read_bytes(s, s->data + at, at, len);
}

/* from < to <= size */
static void need(struct dwarf_section *s, uint64_t from, uint64_t to)
{
	if (!s->have)
		return;
	for (uint64_t chunk = from / s->chunk; chunk <= (to - 1) / s->chunk; chunk++)
		if (!s->have[chunk])
			read_chunk(s, chunk);
}

void dwarf_section_finish(struct dwarf_section *s)
{
	if (!s->have)
		return;
	need(s, 0, s->size);
	free(s->have);
	s->have = NULL;
}

struct dwarf_cursor dwarf_section_at(struct dwarf_section *s, uint64_t from, uint64_t to)
{
	struct dwarf_cursor c = { .swapped = s->swapped };

	if (to > s->size)
		to = s->size;
	if (from >= to) {
		c.failed = true;
		return c;
	}
	need(s, from, to);
	c.at = s->data + from;
	c.end = s->data + to;
	return c;
}

struct dwarf_cursor dwarf_section_once(struct dwarf_section *s, uint64_t from, uint64_t to,
				       struct dwarf_scratch *scratch)
{
	struct dwarf_cursor c = { .swapped = s->swapped, .failed = true };

	if (!s->have)
		return dwarf_section_at(s, from, to);
	if (to > s->size)
		to = s->size;
	if (from >= to)
		return c;
	if (scratch->room < to - from) {
		free(scratch->at);
		scratch->room = to - from;
		scratch->at = bulk_alloc(scratch->room);
	}
	if (!scratch->at) {
		scratch->room = 0;
		return dwarf_section_at(s, from, to);
	}
	read_bytes(s, scratch->at, from, to - from);
	c.at = scratch->at;
	c.end = scratch->at + (to - from);
	c.failed = false;
	return c;
}

struct dwarf_cursor dwarf_section_pass(struct dwarf_section *s, uint64_t from, uint64_t to,
				       struct dwarf_scratch *scratch)
{
	return s->chunk == SMALL ? dwarf_section_once(s, from, to, scratch)
				 : dwarf_section_at(s, from, to);
}

const char *dwarf_section_text(struct dwarf_section *s, uint64_t offset)
{
	for (uint64_t at = offset; at < s->size;) {
		uint64_t end = s->have ? at - at % s->chunk + s->chunk : s->size;
		struct dwarf_cursor c = dwarf_section_at(s, at, end);
		if (memchr(c.at, 0, cursor_left(&c)))
			return (const char *)s->data + offset;
		at = end;
	}
	return NULL;
}
