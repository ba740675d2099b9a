/* SPDX-License-Identifier: MIT */
/*
 * elf-symbol: files made by the ELF specification (fakeelf.h, and one of 32 bits made here), so that
 * where each function lies in the file is known by construction.
 */
#include <errno.h>
#include <stdlib.h>

#include "event/elf-symbol.h"
#include "fakeelf.h"
#include "memfile.h"
#include "tap.h"

#define BASE     0x400000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct tally_error err;
static struct fakeelf file;

static const struct fakeelf_symbol symbols[] = {
	{ "first", BASE, 16, STB_GLOBAL, STT_FUNC, 0, false },
	{ "second", BASE + 0x40, 0x20, STB_LOCAL, STT_FUNC, 0, false },
	{ "second_again", BASE + 0x60, 8, STB_WEAK, STT_FUNC, 0, false },
	{ "untyped", BASE + 0x80, 8, STB_GLOBAL, STT_NOTYPE, 0, false },
	{ "no_size", BASE + 0x90, 0, STB_GLOBAL, STT_NOTYPE, 0, false },
	{ "data", BASE + 0xa0, 8, STB_GLOBAL, STT_OBJECT, 0, false },
	{ "elsewhere", 0, 0, STB_GLOBAL, STT_FUNC, 0, true },
	{ "chosen", BASE + 0xb0, 8, STB_GLOBAL, STT_GNU_IFUNC, 0, false },
	{ "twice", BASE + 0xc0, 8, STB_LOCAL, STT_FUNC, 0, false },
	{ "twice", BASE + 0xd0, 8, STB_LOCAL, STT_FUNC, 0, false },
	{ "weak_and_strong", BASE + 0xe0, 8, STB_WEAK, STT_FUNC, 0, false },
	{ "weak_and_strong", BASE + 0xf0, 9, STB_GLOBAL, STT_FUNC, 0, false },
	{ "weak_and_strong", BASE + 0x100, 8, STB_LOCAL, STT_FUNC, 0, false },
	{ "aliased", BASE + 0x110, 8, STB_GLOBAL, STT_FUNC, 0, false },
	{ "aliased", BASE + 0x110, 8, STB_GLOBAL, STT_FUNC, 0, false },
	{ "outside", BASE + FAKEELF_SIZE, 8, STB_GLOBAL, STT_FUNC, 0, false },
	{ "below", BASE - 1, 8, STB_GLOBAL, STT_FUNC, 0, false },
	{ "last_byte", BASE + FAKEELF_SIZE - 1, 1, STB_GLOBAL, STT_FUNC, 0, false },
};

static void load(const void *bytes, size_t len)
{
	memset(&memfile, 0, sizeof(memfile));
	memfile.at = bytes;
	memfile.len = len;
}

static void make(uint32_t table)
{
	fakeelf_make(&file, BASE, NULL, table, symbols, COUNT(symbols));
	load(file.at, file.len);
}

static int find(struct elf_function *f, const char *name)
{
	memset(&err, 0, sizeof(err));
	*f = (struct elf_function){ 0 };
	int r = elf_find_function(f, "/some/file", name, strlen(name), &err);
	check_int(memfile.open, 0);
	check_int(err.code, r);
	return r;
}

static void is_at(const char *name, uint64_t offset, uint64_t size)
{
	struct elf_function f;

	check_int(find(&f, name), 0);
	check_u64(f.offset, offset);
	check_u64(f.size, size);
}

static void refused(const char *name, const char *part)
{
	struct elf_function f;

	check_int(find(&f, name), -EINVAL);
	check_has(err.text, part);
	check_has(err.text, "/some/file");
}

static void functions_by_their_exact_name(void)
{
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };

	for (size_t i = 0; i < COUNT(tables); i++) {
		make(tables[i]);
		memfile.most = i ? 7 : 0; /* short reads are not the end */
		is_at("first", FAKEELF_TEXT, 16);
		is_at("second", FAKEELF_TEXT + 0x40, 0x20);
		is_at("second_again", FAKEELF_TEXT + 0x60, 8);
		is_at("untyped", FAKEELF_TEXT + 0x80, 8);
		is_at("aliased", FAKEELF_TEXT + 0x110, 8);
		is_at("last_byte", FAKEELF_TEXT + FAKEELF_SIZE - 1, 1);
		/* The strong one is what others are bound to. */
		is_at("weak_and_strong", FAKEELF_TEXT + 0xf0, 9);
	}
}

static void what_no_probe_can_be_put_on(void)
{
	make(SHT_SYMTAB);
	refused("no_size", "has no size");
	refused("data", "is data");
	refused("elsewhere", "another library's");
	refused("chosen", "ifunc");
	refused("outside", "mapped executable");
	refused("below", "mapped executable");
	refused("twice", "has 2 functions");
	check_has(err.text, "0x10c0 0x10d0"); /* FAKEELF_TEXT + 0xc0, 0xd0 */
	Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(file.at + sizeof(Elf64_Ehdr));
	segment->p_flags = PF_R | PF_W;
	refused("first", "mapped executable");
}

static void names_that_are_not_there(void)
{
	make(SHT_SYMTAB);
	refused("secnd", "the nearest is 'second'");
	refused("something_else", "'nm' lists");
	refused("", "no function");
	refused("firs", "the nearest is 'first'"); /* no prefix is enough */
	make(SHT_DYNSYM);
	refused("something_else", "stripped");
	fakeelf_make(&file, BASE, NULL, SHT_PROGBITS, symbols, COUNT(symbols));
	load(file.at, file.len);
	refused("first", "stripped");
}

static void versions_that_old_programs_are_bound_to(void)
{
	static const struct fakeelf_symbol versioned[] = {
		{ "wait", BASE + 0x10, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "wait", BASE + 0x20, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "copy", BASE + 0x30, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "copy", BASE + 0x40, 8, STB_GLOBAL, STT_GNU_IFUNC, 0, false },
	};
	/* Of the null symbol and of these four; bit 15 is VERSYM_HIDDEN of the gABI's extension. */
	static const uint16_t versions[] = { 0, 0x8002, 3, 0x8002, 4 };
	Elf64_Ehdr head;
	Elf64_Shdr *sections;

	fakeelf_make(&file, BASE, NULL, SHT_DYNSYM, versioned, COUNT(versioned));
	memcpy(&head, file.at, sizeof(head));
	sections = (Elf64_Shdr *)(void *)(file.at + head.e_shoff);
	/* The text's header gives its place: nothing here reads the text. */
	sections[FAKEELF_S_TEXT] = (Elf64_Shdr){ .sh_type = SHT_GNU_versym,
						 .sh_offset = file.len,
						 .sh_size = sizeof(versions) };
	fakeelf_add_(&file, versions, sizeof(versions));
	load(file.at, file.len);
	is_at("wait", FAKEELF_TEXT + 0x20, 8);
	refused("copy", "ifunc");
}

static void offsets_in_what_is_executable(void)
{
	make(SHT_SYMTAB);
	check_int(elf_check_offset("/f", FAKEELF_TEXT, &err), 0);
	check_int(elf_check_offset("/f", FAKEELF_TEXT + FAKEELF_SIZE - 1, &err), 0);
	check_int(elf_check_offset("/f", FAKEELF_TEXT + FAKEELF_SIZE, &err), -EINVAL);
	check_has(err.text, "0x1800");
	check_int(elf_check_offset("/f", FAKEELF_TEXT - 1, &err), -EINVAL);
	check_int(elf_check_offset("/f", UINT64_MAX, NULL), -EINVAL);
	check_int(memfile.open, 0);
}

static void files_that_are_none(void)
{
	static const char text[] =
		"#!/bin/sh\necho a file of more than sixty-four bytes, for a head\n";

	load(text, sizeof(text));
	refused("first", "no ELF file");
	load(text, 3);
	refused("first", "ends before");
	load(text, 0);
	refused("first", "ends before");
	make(SHT_SYMTAB);
	file.at[EI_DATA] = ELFDATA2MSB;
	refused("first", "byte order");
	file.at[EI_DATA] = ELFDATA2LSB;
	file.at[EI_CLASS] = 7;
	refused("first", "neither 32 nor 64");
	make(SHT_SYMTAB);
	((Elf64_Ehdr *)(void *)file.at)->e_phnum = 0;
	refused("first", "object file");
}

static void errnos_of_the_file(void)
{
	static const struct {
		int code;
		enum tally_cause cause;
	} codes[] = { { -ENOENT, TALLY_CAUSE_NO_FILE },
		      { -EACCES, TALLY_CAUSE_PERMISSION },
		      { -EIO, TALLY_CAUSE_IO } };
	struct elf_function f;

	for (size_t i = 0; i < COUNT(codes); i++) {
		make(SHT_SYMTAB);
		memfile.refuse_open = codes[i].code;
		check_int(find(&f, "first"), codes[i].code);
		check_int(err.cause, codes[i].cause);
	}
	for (int n = 1; n < 100; n++) {
		make(SHT_SYMTAB);
		memfile.fail_pread_after = n;
		int r = find(&f, "first");
		check(r == -EIO || (r == 0 && memfile.preads < n));
	}
}

/* A 32-bit file: the ELF header, a segment, sections, two symbols and their names. */
struct narrow {
	Elf32_Ehdr head;
	Elf32_Phdr segment;
	Elf32_Shdr sections[3];
	Elf32_Sym symbols[3];
	char names[16];
};

static struct narrow make_narrow(uint16_t machine)
{
	struct narrow n = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32,
				       ELFDATA2LSB },
			  .e_machine = machine,
			  .e_phoff = offsetof(struct narrow, segment),
			  .e_shoff = offsetof(struct narrow, sections),
			  .e_phentsize = sizeof(Elf32_Phdr),
			  .e_phnum = 1,
			  .e_shentsize = sizeof(Elf32_Shdr),
			  .e_shnum = 3 },
		.segment = { .p_type = PT_LOAD,
			     .p_offset = 0x200,
			     .p_vaddr = 0x8000,
			     .p_filesz = 0x100,
			     .p_flags = PF_X },
		.sections = { { 0 },
			      { .sh_type = SHT_SYMTAB,
				.sh_offset = offsetof(struct narrow, symbols),
				.sh_size = 3 * sizeof(Elf32_Sym),
				.sh_entsize = sizeof(Elf32_Sym),
				.sh_link = 2 },
			      { .sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct narrow, names),
				.sh_size = 11 } },
		.symbols = { { 0 },
			     { .st_name = 1,
			       .st_value = 0x8011,
			       .st_size = 4,
			       .st_shndx = 1,
			       .st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC) },
			     { .st_name = 6, /* its end is the table's, not a NUL */
			       .st_value = 0x8020,
			       .st_size = 4,
			       .st_shndx = 1,
			       .st_info = ELF32_ST_INFO(STB_GLOBAL, STT_FUNC) } },
		.names = "\0odd_\0even!!!!!",
	};

	return n;
}

static void files_of_32_bits(void)
{
	struct narrow n = make_narrow(EM_386);

	load(&n, sizeof(n));
	is_at("odd_", 0x211, 4);
	is_at("even!", 0x220, 4);
	n = make_narrow(EM_ARM); /* the lowest bit is no part of the address there */
	is_at("odd_", 0x210, 4);
}

/* Whatever a byte is changed to and wherever the file ends, there is an answer, and no leak. */
static void damage(void)
{
	struct elf_function f;
	unsigned char *copy = malloc(FAKEELF_ROOM);

	require(copy);
	make(SHT_SYMTAB);
	size_t len = file.len;
	for (size_t cut = 0; cut < len;
	     cut += cut < 300 || cut > FAKEELF_TEXT + FAKEELF_SIZE ? 1 : 97) {
		unsigned char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees the end */
		require(exact);
		memcpy(exact, file.at, cut);
		load(exact, cut);
		check_int(find(&f, "first"), -EINVAL); /* the section headers come last */
		free(exact);
	}
	for (size_t at = 0; at < len; at++) {
		if (at == 300)
			at = FAKEELF_TEXT + FAKEELF_SIZE;
		memcpy(copy, file.at, len);
		copy[at] ^= 0xff;
		load(copy, len);
		int r = find(&f, "first");
		check(r == 0 || r == -EINVAL);
	}
	free(copy);
}

int main(void)
{
	tap_run(functions_by_their_exact_name);
	tap_run(what_no_probe_can_be_put_on);
	tap_run(names_that_are_not_there);
	tap_run(versions_that_old_programs_are_bound_to);
	tap_run(offsets_in_what_is_executable);
	tap_run(files_that_are_none);
	tap_run(errnos_of_the_file);
	tap_run(files_of_32_bits);
	tap_run(damage);
	return tap_end();
}
