/* SPDX-License-Identifier: MIT */
/*
 * elf, symtab, build-id: against a file made by the ELF specification, against nm(1) and objdump(1)
 * on this very program, and against every truncation and bit error of a small file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fakeelf.h"
#include "image/elf.h"
#include "tap.h"

#define BASE 0x401000

static const uint8_t an_id[20] = { 0xde, 0xad, 0xbe, 0xef, 5, 6, 7 };

static const char *name_at(const struct elf_file *f, uint64_t address)
{
	uint32_t index = symtab_find(&f->symtab, address);

	return index == SYMTAB_NONE ? "" : elf_file_name(f, index);
}

static int read_image(struct elf_file *f, const void *image, size_t size)
{
	*f = (struct elf_file){ 0 };
	int r = elf_file_read_memory(f, image, size);
	return r < 0 ? r : elf_file_seal(f);
}

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, bytes, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}

static void functions_cover_their_bytes(void)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "one", BASE, 0x20, STB_GLOBAL, STT_FUNC, 0, false },
		{ "two", BASE + 0x40, 0x10, STB_LOCAL, STT_FUNC, 0, false },
		{ "data", BASE + 0x60, 0x10, STB_GLOBAL, STT_OBJECT, 0, false },
		{ "needed", 0, 0, STB_GLOBAL, STT_FUNC, 0, true },
		{ "resolver", BASE + 0x80, 0x10, STB_GLOBAL, STT_GNU_IFUNC, 0, false },
	};
	struct fakeelf e;
	struct elf_file f;

	fakeelf_make(&e, BASE, an_id, SHT_SYMTAB, symbols, 5);
	require(read_image(&f, e.at, e.len) == 0);
	check_str(name_at(&f, BASE - 1), "");
	check_str(name_at(&f, BASE), "one");
	check_str(name_at(&f, BASE + 0x1f), "one");
	check_str(name_at(&f, BASE + 0x20), "");
	check_str(name_at(&f, BASE + 0x4f), "two");
	check_str(name_at(&f, BASE + 0x50), "");
	check_str(name_at(&f, BASE + 0x60), "");
	check_str(name_at(&f, BASE + 0x8f), "resolver");
	check_str(name_at(&f, 0), "");
	check_str(name_at(&f, UINT64_MAX), "");
	check_u64(f.symtab.symbols.count, 3);
	check(f.has_symtab);
	check_u64(f.build_id.len, 20);
	check_mem(f.build_id.bytes, an_id, 20);
	elf_file_done(&f);
}

static void labels_reach_to_the_next_symbol(void)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "label", BASE, 0, STB_LOCAL, STT_NOTYPE, 0, false },
		{ "hidden", BASE + 0x8, 0, STB_LOCAL, STT_NOTYPE, STV_HIDDEN, false },
		{ "sized", BASE + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0, false },
		{ "last", BASE + 0x30, 0, STB_GLOBAL, STT_FUNC, 0, false },
	};
	struct fakeelf e;
	struct elf_file f;

	fakeelf_make(&e, BASE, NULL, SHT_SYMTAB, symbols, 4);
	require(read_image(&f, e.at, e.len) == 0);
	check_str(name_at(&f, BASE + 0xf), "label");
	check_str(name_at(&f, BASE + 0x10), "sized");
	check_str(name_at(&f, BASE + 0x20), "");
	check_str(name_at(&f, BASE + FAKEELF_SIZE - 1), "last");
	check_str(name_at(&f, BASE + FAKEELF_SIZE), "");
	check_u64(f.build_id.len, 0);
	elf_file_done(&f);
}

/* The rule is perf's: size, then not weak, then global, then fewer underscores, then longer. */
static void aliases_have_one_winner(void)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "global_without_size", BASE, 0, STB_GLOBAL, STT_FUNC, 0, false },
		{ "weak_and_long", BASE, 8, STB_WEAK, STT_FUNC, 0, false },
		{ "local", BASE, 8, STB_LOCAL, STT_FUNC, 0, false },
		{ "___global", BASE, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "_global", BASE, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "__global_long", BASE, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "weak", BASE + 16, 8, STB_WEAK, STT_FUNC, 0, false },
		{ "local2", BASE + 16, 8, STB_LOCAL, STT_FUNC, 0, false },
		{ "short", BASE + 32, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "longer", BASE + 32, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "lonely", BASE + 64, 8, STB_GLOBAL, STT_FUNC, 0, false },
	};
	struct fakeelf e;
	struct elf_file f;

	fakeelf_make(&e, BASE, NULL, SHT_SYMTAB, symbols, 11);
	require(read_image(&f, e.at, e.len) == 0);
	check_str(name_at(&f, BASE), "_global");
	check_str(name_at(&f, BASE + 16), "local2");
	check_str(name_at(&f, BASE + 32), "longer");
	check_str(name_at(&f, BASE + 64), "lonely");
	check_u64(f.symtab.symbols.count, 4);
	elf_file_done(&f);
}

static void the_innermost_of_nested_functions(void)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "outer", BASE, 0x100, STB_GLOBAL, STT_FUNC, 0, false },
		{ "inner", BASE + 0x20, 0x10, STB_LOCAL, STT_FUNC, 0, false },
		{ "crossing", BASE + 0xf0, 0x20, STB_LOCAL, STT_FUNC, 0, false },
		{ "adjacent", BASE + 0x110, 0x10, STB_LOCAL, STT_FUNC, 0, false },
	};
	struct fakeelf e;
	struct elf_file f;

	fakeelf_make(&e, BASE, NULL, SHT_SYMTAB, symbols, 4);
	require(read_image(&f, e.at, e.len) == 0);
	check_str(name_at(&f, BASE + 0x1f), "outer");
	check_str(name_at(&f, BASE + 0x20), "inner");
	check_str(name_at(&f, BASE + 0x30), "outer");
	check_str(name_at(&f, BASE + 0xff), "crossing");
	check_str(name_at(&f, BASE + 0x10f), "crossing");
	check_str(name_at(&f, BASE + 0x110), "adjacent");
	check_str(name_at(&f, BASE + 0x120), "");
	elf_file_done(&f);
}

static void offsets_become_addresses_by_segment(void)
{
	struct elf_file f = { 0 };
	struct elf_segment segments[] = {
		{ 0, 0x1234, 0x400000, false },      /* a non-PIE's headers */
		{ 0x1240, 0x1000, 0x402240, true },  /* lld: code follows in the same page */
		{ 0x3000, 0x500, 0x10405000, true }, /* a second one, far away */
	};
	uint64_t address;

	f.segments.at = segments;
	f.segments.count = 3;
	check(elf_file_address(&f, 0x10, &address));
	check_u64(address, 0x400010);
	check(elf_file_address(&f, 0x1240, &address));
	check_u64(address, 0x402240);
	check(elf_file_address(&f, 0x34ff, &address));
	check_u64(address, 0x104054ff);
	/* Behind the end of a segment, but in its last page. */
	check(elf_file_address(&f, 0x3800, &address));
	check_u64(address, 0x10405800);
	check(!elf_file_address(&f, 0x5000, &address));
	check(!elf_file_address(&f, UINT64_MAX, &address));
}

static void check_code(const struct elf_file *f, uint64_t offset, uint64_t first, uint64_t last)
{
	uint64_t a, b, from, to = 0;

	check(elf_file_code(f, offset, &a, &b));
	check_u64(a, first);
	check_u64(b, last);
	/* One distance from end to end, and another one beyond. */
	check(elf_file_address(f, a, &from) && elf_file_address(f, b, &to));
	check_u64(to - from, b - a);
	if (b < UINT64_MAX && elf_file_address(f, b + 1, &to))
		check(to - from != b + 1 - a);
	if (a > 0 && elf_file_address(f, a - 1, &to))
		check(from - to != 1);
}

static void code_says_how_far_its_distance_holds(void)
{
	struct elf_file f = { 0 };
	struct elf_segment segments[] = {
		{ 0, 0x1234, 0x400000, false },
		{ 0x1240, 0x1000, 0x402240, true },
		{ 0x2000, 0x1000, 0x10405000, true },             /* begins within the one before */
		{ 0x5000, 0, 0x500000, true },                    /* empty */
		{ 0x1000, 0x10000, 0x20000000, true },            /* around all of them */
		{ 0x20000, UINT64_MAX - 0x10000, 0x30000, true }, /* to the end and beyond */
	};
	uint64_t first, last;

	f.segments.at = segments;
	f.segments.count = sizeof(segments) / sizeof(segments[0]);
	check_code(&f, 0x1240, 0x1240, 0x223f);
	check_code(&f, 0x223f, 0x1240, 0x223f);
	check_code(&f, 0x2240, 0x2240, 0x2fff);
	check_code(&f, 0x1100, 0x1000, 0x123f);
	check_code(&f, 0x5000, 0x3000, 0x10fff);
	check_code(&f, 0x20000, 0x20000, UINT64_MAX);
	check(!elf_file_code(&f, 0x800, &first, &last));
	check(!elf_file_code(&f, 0x11000, &first, &last));
}

/* A program at BASE, whose debug file is linked at `base`. */
static void check_debug_file(uint64_t base)
{
	static const struct fakeelf_symbol few[] = { { "exported", BASE, 8, STB_GLOBAL, STT_FUNC, 0,
						       false } };
	const struct fakeelf_symbol all[] = {
		{ "exported", base, 8, STB_GLOBAL, STT_FUNC, 0, false },
		{ "internal", base + 8, 8, STB_LOCAL, STT_FUNC, 0, false },
	};
	struct fakeelf stripped, debug;
	struct elf_file f = { 0 };

	fakeelf_make(&stripped, BASE, an_id, SHT_DYNSYM, few, 1);
	fakeelf_make(&debug, base, an_id, SHT_SYMTAB, all, 2);
	int fds[] = { file_of(stripped.at, stripped.len), file_of(debug.at, debug.len) };
	require(fds[0] >= 0 && fds[1] >= 0);
	check_int(elf_file_read(&f, fds[0]), 0);
	check(!f.has_symtab);
	check_int(elf_file_read_debug(&f, fds[1]), 0);
	check(f.has_symtab);
	check_int(elf_file_seal(&f), 0);
	check_str(name_at(&f, BASE), "exported");
	check_str(name_at(&f, BASE + 8), "internal");
	elf_file_done(&f);
	for (size_t i = 0; i < 2; i++)
		close(fds[i]);
}

static void symbols_of_a_debug_file_are_added(void)
{
	check_debug_file(BASE);
	/* prelink(8) moved the program after its debug file was made. */
	check_debug_file(0x1000);
}

/* Hand-written assembly has labels; within a function with a size they are places in it. */
static void labels_within_functions_name_nothing(void)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "whole", BASE, 0x100, STB_GLOBAL, STT_FUNC, 0, false },
		{ "place", BASE + 0x40, 0, STB_GLOBAL, STT_NOTYPE, 0, false },
		{ "entry", BASE + 0x80, 0, STB_GLOBAL, STT_FUNC, 0, false },
		{ "outside", BASE + 0x100, 0, STB_GLOBAL, STT_NOTYPE, 0, false },
	};
	struct fakeelf e;
	struct elf_file f;

	fakeelf_make(&e, BASE, NULL, SHT_SYMTAB, symbols, 4);
	require(read_image(&f, e.at, e.len) == 0);
	check_str(name_at(&f, BASE + 0x40), "whole");
	check_str(name_at(&f, BASE + 0x7f), "whole");
	check_str(name_at(&f, BASE + 0x80), "entry");
	check_str(name_at(&f, BASE + 0x100), "outside");
	elf_file_done(&f);
}

static void build_ids_compare(void)
{
	struct build_id a = build_id_from(an_id, 20), b = a, none = { 0 };
	char text[BUILD_ID_TEXT];

	check(!build_ids_differ(&a, &b));
	check(!build_ids_differ(&a, &none));
	b.bytes[19] = 1;
	check(build_ids_differ(&a, &b));
	/* A 7-byte one that was padded to 20. */
	b = build_id_from(an_id, 7);
	check(!build_ids_differ(&a, &b));
	b = build_id_from(an_id, 4);
	check(build_ids_differ(&a, &b));
	check_str(build_id_text(text, &b), "deadbeef");
	check_u64(build_id_from(NULL, 20).len, 0);
	check_u64(build_id_from_notes("", 0, false).len, 0);
}

/* `nm` names each function of this program; ours must begin where its does. */
static void own_symbols_agree_with_nm(void)
{
	struct elf_file f = { 0 };
	char command[64], line[512], name[256], type;
	uint64_t address;
	int compared = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	require(fd >= 0);
	check_int(elf_file_read(&f, fd), 0);
	check_int(elf_file_seal(&f), 0);
	close(fd);
	snprintf(command, sizeof(command), "nm --defined-only /proc/%d/exe 2>/dev/null", getpid());
	FILE *nm = popen(command, "re");
	require(nm);
	while (fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%" SCNx64 " %c %255s", &address, &type, name) != 3 ||
		    !strchr("tT", type) || strchr(name, '.'))
			continue;
		uint32_t index = symtab_find(&f.symtab, address);
		if (index == SYMTAB_NONE || symtab_start(&f.symtab, index) != address) {
			check_str(name, "a function");
			continue;
		}
		compared++;
	}
	pclose(nm);
	check(compared > 10 || compared == 0);
	if (!compared)
		tap_.skip = "no nm(1) here, or this program is stripped";
	elf_file_done(&f);
}

/* `objdump` labels each stub of the procedure linkage table. */
static void own_stubs_agree_with_objdump(void)
{
	struct elf_file f = { 0 };
	char command[96], line[512], name[256];
	uint64_t address;
	int compared = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	require(fd >= 0);
	check_int(elf_file_read(&f, fd), 0);
	check_int(elf_file_seal(&f), 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "objdump -d -j .plt -j .plt.sec /proc/%d/exe 2>/dev/null", getpid());
	FILE *objdump = popen(command, "re");
	require(objdump);
	while (fgets(line, sizeof(line), objdump)) {
		if (sscanf(line, "%" SCNx64 " <%255[^@+]@plt>:", &address, name) != 2 ||
		    !strstr(line, "@plt>:") || name[0] == '*')
			continue;
		uint32_t index = symtab_find(&f.symtab, address + 1);
		check_str(index == SYMTAB_NONE ? NULL : elf_file_name(&f, index), name);
		check(index != SYMTAB_NONE && elf_file_is_plt(&f, index));
		compared++;
	}
	pclose(objdump);
	if (!compared)
		tap_.skip = "no objdump(1) here, or this program has no stubs";
	elf_file_done(&f);
}

static const struct fakeelf_symbol some_symbols[] = {
	{ "one", BASE, 0x20, STB_GLOBAL, STT_FUNC, 0, false },
	{ "alias", BASE, 0x20, STB_WEAK, STT_FUNC, 0, false },
	{ "two", BASE + 0x40, 0, STB_LOCAL, STT_FUNC, 0, false },
};

/* Whatever it holds, a file is read or refused, and look-ups answer. */
static void poke(const void *image, size_t size)
{
	struct elf_file f;
	uint64_t address;

	if (read_image(&f, image, size) == 0)
		for (uint64_t at = 0; at < 0x1000; at += 0x40) {
			const char *name = name_at(&f, BASE + at);
			check(strlen(name) < size + 1);
			elf_file_address(&f, FAKEELF_TEXT + at, &address);
		}
	elf_file_done(&f);
}

static void every_truncation_is_survived(void)
{
	struct fakeelf e;

	fakeelf_make(&e, BASE, an_id, SHT_SYMTAB, some_symbols, 3);
	for (size_t len = 0; len <= e.len; len++) {
		if (len > 512 && len < FAKEELF_TEXT + FAKEELF_SIZE - 8)
			continue; /* nothing but zeroes in between */
		/* Of its own, so that a sanitizer sees what reads behind the end. */
		unsigned char *cut = malloc(len + !len);
		require(cut);
		memcpy(cut, e.at, len);
		poke(cut, len);
		free(cut);
		int fd = file_of(e.at, len);
		require(fd >= 0);
		struct elf_file f = { 0 };
		if (elf_file_read(&f, fd) == 0)
			check_int(elf_file_seal(&f), 0);
		elf_file_done(&f);
		close(fd);
	}
}

static void every_wrong_byte_is_survived(void)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	struct fakeelf e;

	fakeelf_make(&e, BASE, an_id, SHT_SYMTAB, some_symbols, 3);
	for (size_t i = 0; i < e.len; i++) {
		if (i > 512 && i < FAKEELF_TEXT + FAKEELF_SIZE)
			continue;
		for (size_t k = 0; k < sizeof(flips); k++) {
			e.at[i] ^= flips[k];
			poke(e.at, e.len);
			e.at[i] ^= flips[k];
		}
	}
}

static void no_elf_is_refused(void)
{
	struct elf_file f = { 0 };
	char zeroes[64] = "";

	check_int(elf_file_read_memory(&f, "#!/bin/sh\n", 10), -ENOEXEC);
	elf_file_done(&f);
	check_int(elf_file_read_memory(&f, zeroes, sizeof(zeroes)), -ENOEXEC);
	elf_file_done(&f);
	int fd = file_of("!<arch>\n", 8);
	require(fd >= 0);
	check_int(elf_file_read(&f, fd), -ENOEXEC);
	check_u64(elf_build_id(fd).len, 0);
	elf_file_done(&f);
	close(fd);
}

/* 100,000 functions inside of each other, and as many at one address. */
static void nests_and_piles_are_bounded(void)
{
	struct elf_file f = { 0 };
	const uint64_t many = 100000;
	uint64_t start;

	require(vec_reserve(&f.names, 2));
	memcpy(f.names.at, "f", 2);
	f.names.count = 2;
	for (uint64_t i = 0; i < many; i++)
		require(symtab_add(&f.symtab, i, 3 * many - 2 * i, (struct symbol){ 0 }) &&
			symtab_add(&f.symtab, 4 * many, i, (struct symbol){ 0 }));
	check_int(elf_file_seal(&f), 0);
	check_u64(symtab_find(&f.symtab, many / 2), many / 2);
	check_u64(symtab_find(&f.symtab, 3 * many - many / 2), many / 2 - 1);
	check_u64(symtab_find_start(&f.symtab, 3 * many - many / 2, &start), many / 2 - 1);
	check_u64(start, many / 2 - 1);
	check_u64(symtab_find_start(&f.symtab, many + 7, &start), many - 1);
	check_u64(start, many - 1);
	check_u64(symtab_find(&f.symtab, 4 * many), many);
	check_u64(symtab_find(&f.symtab, 3 * many + 1), SYMTAB_NONE);
	elf_file_done(&f);
}

static void find_both(const struct symtab *t, uint64_t address, uint32_t want, uint64_t start)
{
	uint64_t got = start;

	check_u64(symtab_find_start(t, address, &got), want);
	check_u64(got, start);
}

/* Blocks of addresses for the search: one function, two that are 4 GiB apart, most of them in one. */
static void addresses_may_be_anywhere(void)
{
	const uint64_t base = 0x5000, far = UINT32_MAX - 16;

	for (uint64_t near = 0; near <= 1000; near += 500) {
		struct elf_file f = { .symtab.base = base };
		require(vec_reserve(&f.names, 2));
		memcpy(f.names.at, "f", 2);
		f.names.count = 2;
		for (uint64_t i = 0; i < near; i++)
			require(symtab_add(&f.symtab, base + 8 + 4 * i, 3, (struct symbol){ 0 }));
		require(symtab_add(&f.symtab, base + far, 8, (struct symbol){ 0 }));
		check_int(elf_file_seal(&f), 0);
		for (uint64_t i = 0; i < near; i++) {
			find_both(&f.symtab, base + 8 + 4 * i + 2, (uint32_t)i, base + 8 + 4 * i);
			check_u64(symtab_find(&f.symtab, base + 8 + 4 * i + 3), SYMTAB_NONE);
		}
		check_u64(symtab_find(&f.symtab, base + 7), SYMTAB_NONE);
		check_u64(symtab_find(&f.symtab, base - 1), SYMTAB_NONE);
		check_u64(symtab_find(&f.symtab, base + far - 1), SYMTAB_NONE);
		find_both(&f.symtab, base + far, (uint32_t)near, base + far);
		find_both(&f.symtab, base + far + 7, (uint32_t)near, base + far);
		check_u64(symtab_find(&f.symtab, base + far + 8), SYMTAB_NONE);
		check_u64(symtab_find(&f.symtab, base + ((uint64_t)1 << 32)), SYMTAB_NONE);
		elf_file_done(&f);
	}
}

int main(void)
{
	tap_run(functions_cover_their_bytes);
	tap_run(labels_reach_to_the_next_symbol);
	tap_run(aliases_have_one_winner);
	tap_run(the_innermost_of_nested_functions);
	tap_run(offsets_become_addresses_by_segment);
	tap_run(code_says_how_far_its_distance_holds);
	tap_run(symbols_of_a_debug_file_are_added);
	tap_run(labels_within_functions_name_nothing);
	tap_run(build_ids_compare);
	tap_run(own_symbols_agree_with_nm);
	tap_run(own_stubs_agree_with_objdump);
	tap_run(every_truncation_is_survived);
	tap_run(every_wrong_byte_is_survived);
	tap_run(no_elf_is_refused);
	tap_run(nests_and_piles_are_bounded);
	tap_run(addresses_may_be_anywhere);
	return tap_end();
}
