/* SPDX-License-Identifier: MIT */
/*
 * The reader of ELF files. Whatever is read has sorted functions that do not wrap, look-ups that
 * agree with them, and names that end; sections, packed or not, are as long as they say, and no
 * longer than what packs them allows.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "image/debug-file.h"
#include "image/elf-content.h"
#include "image/elf.h"

/* Among the functions that begin before `address`, the last one that covers it. */
static uint32_t covering(const struct symtab *t, uint32_t distance)
{
	for (size_t i = t->symbols.count; i-- > 0;) {
		const struct symbol *s = &t->symbols.at[i];
		if (s->start <= distance && distance - s->start < s->size)
			return (uint32_t)i;
	}
	return SYMTAB_NONE;
}

/* In the cost of a look-up by walking lies the limit to so many. */
#define LOOKUPS 64

static void check_file(const struct elf_file *f)
{
	const struct symtab *t = &f->symtab;

	for (size_t i = 0; i < t->symbols.count; i++) {
		const struct symbol *s = &t->symbols.at[i];
		must(i == 0 || s[-1].start < s->start);
		must(s->size <= UINT32_MAX - s->start);
		must(strlen(elf_file_name(f, (uint32_t)i)) < f->names.count + f->plt_names.count);
	}
	for (size_t i = 0; i < t->symbols.count && i < LOOKUPS; i++) {
		const struct symbol *s = &t->symbols.at[i];
		uint32_t places[] = { s->start, s->start + s->size / 2, s->start + s->size };
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++)
			must(symtab_find(t, t->base + places[k]) == covering(t, places[k]) ||
			     t->base > UINT64_MAX - places[k]);
	}
}

/* Of a file with many sections that are the same bytes, so many. */
#define SECTIONS 8

static void read_sections(int fd, size_t size)
{
	struct elf_input in;
	struct elf_content content;

	if (elf_input_open(&in, fd) == 0)
		for (size_t i = 1; i < in.sections.count && i < SECTIONS; i++) {
			const GElf_Shdr *section = elf_input_section(&in, i);
			if (!section || elf_content_read(&content, &in, section) < 0)
				continue;
			must(content.size <= size * 1024 && (content.at || !content.size));
			if (content.size)
				must(content.at[0] + content.at[content.size - 1] >= 0);
			elf_content_done(&content);
		}
	elf_input_done(&in);
}

/* There is none to find; but where it is looked for stands in the file. */
static void find_debug_file(int fd)
{
	const struct debug_search nowhere = { .path = "/x" };
	struct debug_file found;

	if (debug_file_find(&found, &nowhere, fd, DEBUG_DWARF) == 0) {
		must(found.own);
		debug_file_done(&found);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file f = { 0 };
	uint64_t address;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	must(fd >= 0 && (!size || write(fd, data, size) == (ssize_t)size));
	if (elf_file_read(&f, fd) == 0 && elf_file_seal(&f) == 0) {
		check_file(&f);
		for (uint64_t offset = 0; offset <= size; offset += size / 16 + 1)
			elf_file_address(&f, offset, &address);
	}
	elf_file_done(&f);
	read_sections(fd, size);
	find_debug_file(fd);
	close(fd);
	return 0;
}
