/* SPDX-License-Identifier: MIT */
/*
 * A small x86-64 ELF file made in memory, by the ELF specification (System V gABI, chapters 4 and
 * 5): header, two program headers, a build-id note, a text section, and a symbol table.
 */
#ifndef TESTS_FAKEELF_H
#define TESTS_FAKEELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fakeelf_symbol {
	const char *name;
	uint64_t value, size;
	unsigned char bind, type, other;
	bool undefined;
};

enum {
	FAKEELF_ROOM = 16384,
	FAKEELF_TEXT = 4096,  /* offset of the text section in the file */
	FAKEELF_SIZE = 0x800, /* its length */
};

struct fakeelf {
	unsigned char at[FAKEELF_ROOM];
	size_t len;
};

/* The sections, in the order of their headers. */
enum {
	FAKEELF_S_NULL,
	FAKEELF_S_TEXT,
	FAKEELF_S_SYMTAB,
	FAKEELF_S_STRTAB,
	FAKEELF_S_COUNT
};

static inline size_t fakeelf_add_(struct fakeelf *e, const void *bytes, size_t len)
{
	size_t at = e->len;

	memcpy(e->at + at, bytes, len);
	e->len += len;
	return at;
}

static inline void fakeelf_align_(struct fakeelf *e)
{
	e->len = (e->len + 7) & ~(size_t)7;
}

static inline void fakeelf_note_(struct fakeelf *e, const uint8_t *build_id, Elf64_Phdr *note)
{
	Elf64_Nhdr head = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID };

	note->p_type = build_id ? PT_NOTE : PT_NULL;
	note->p_offset = fakeelf_add_(e, &head, sizeof(head));
	fakeelf_add_(e, "GNU", 4);
	fakeelf_add_(e, build_id ? build_id : (const uint8_t[20]){ 0 }, 20);
	note->p_filesz = note->p_memsz = e->len - note->p_offset;
}

static inline void fakeelf_symbols_(struct fakeelf *e, Elf64_Shdr *sections,
				    const struct fakeelf_symbol *symbols, size_t count)
{
	char names[2048] = "";
	size_t names_len = 1;
	Elf64_Sym table[64] = { { 0 } };

	for (size_t i = 0; i < count && i < 63; i++) {
		const struct fakeelf_symbol *s = &symbols[i];
		table[i + 1] = (Elf64_Sym){
			.st_name = (Elf64_Word)names_len,
			.st_info = ELF64_ST_INFO(s->bind, s->type),
			.st_other = s->other,
			.st_shndx = s->undefined ? SHN_UNDEF : FAKEELF_S_TEXT,
			.st_value = s->value,
			.st_size = s->size,
		};
		memcpy(names + names_len, s->name, strlen(s->name) + 1);
		names_len += strlen(s->name) + 1;
	}
	fakeelf_align_(e);
	sections[FAKEELF_S_SYMTAB].sh_size = (count + 1) * sizeof(*table);
	sections[FAKEELF_S_SYMTAB].sh_offset = fakeelf_add_(e, table, (count + 1) * sizeof(*table));
	sections[FAKEELF_S_STRTAB].sh_size = names_len;
	sections[FAKEELF_S_STRTAB].sh_offset = fakeelf_add_(e, names, names_len);
}

/*
 * Text is linked at `base` and lies at FAKEELF_TEXT. `table` is SHT_SYMTAB or SHT_DYNSYM;
 * `build_id` has 20 bytes, or is NULL.
 */
static inline void fakeelf_make(struct fakeelf *e, uint64_t base, const uint8_t *build_id,
				uint32_t table, const struct fakeelf_symbol *symbols, size_t count)
{
	Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = FAKEELF_S_COUNT,
	};
	Elf64_Phdr segments[2] = { {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = FAKEELF_TEXT,
		.p_vaddr = base,
		.p_filesz = FAKEELF_SIZE,
		.p_memsz = FAKEELF_SIZE,
		.p_align = 4096,
	} };
	Elf64_Shdr sections[FAKEELF_S_COUNT] = {
		[FAKEELF_S_TEXT] = { .sh_type = SHT_PROGBITS,
				     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				     .sh_addr = base,
				     .sh_offset = FAKEELF_TEXT,
				     .sh_size = FAKEELF_SIZE },
		[FAKEELF_S_SYMTAB] = { .sh_type = table,
				       .sh_link = FAKEELF_S_STRTAB,
				       .sh_entsize = sizeof(Elf64_Sym) },
		[FAKEELF_S_STRTAB] = { .sh_type = SHT_STRTAB },
	};

	memset(e, 0, sizeof(*e));
	e->len = sizeof(head) + sizeof(segments);
	fakeelf_note_(e, build_id, &segments[1]);
	e->len = FAKEELF_TEXT + FAKEELF_SIZE;
	fakeelf_symbols_(e, sections, symbols, count);
	fakeelf_align_(e);
	head.e_shoff = fakeelf_add_(e, sections, sizeof(sections));
	memcpy(e->at, &head, sizeof(head));
	memcpy(e->at + sizeof(head), segments, sizeof(segments));
}

#endif
