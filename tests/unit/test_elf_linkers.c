/* SPDX-License-Identifier: MIT */
/*
 * elf, elf-plt, elf-content: programs as the linkers at hand lay them out, and for other machines as
 * clang and lld do. What is right is told by nm(1) (functions), by objdump(1) (the slot that a stub
 * jumps through) and by readelf(1) (the function that the loader puts into a slot).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fakeroot.h"
#include "image/elf.h"
#include "shell.h"
#include "tap.h"

static const char source[] =
	"#include <math.h>\n#include <stdio.h>\n#include <string.h>\n"
	"__attribute__((noinline)) static double inner(double x) { return sin(x) * 2; }\n"
	"__attribute__((noinline, section(\".far\"))) int far(int n) { return printf(\"%d\", n); }\n"
	"int main(int c, char **v)\n"
	"{\n"
	"	int (*p)(const char *) = puts;\n"
	"	p(v[0]);\n"
	"	return far(c) + puts(\"\") + (int)inner(c) + (int)strlen(v[0]);\n"
	"}\n";

/* Of a machine that has no C library here. */
static const char bare_source[] = "extern int other(int), another(int);\n"
				  "static __attribute__((noinline)) int inner(int n)\n"
				  "{ return other(n) + 1; }\n"
				  "int outer(int n) { return inner(n) + another(n) + 2; }\n";

#define MAX_NAMES 8192

/* Addresses and names, as a tool tells them. */
struct told {
	struct {
		uint64_t address;
		char name[64];
	} at[MAX_NAMES];
	size_t count;
};

static void add(struct told *t, uint64_t address, const char *name)
{
	if (t->count == MAX_NAMES)
		return;
	t->at[t->count].address = address;
	snprintf(t->at[t->count++].name, sizeof(t->at[0].name), "%.*s", (int)strcspn(name, "@"),
		 name);
}

/* Whether `name` is one of those at that address. */
static bool is_told(const struct told *t, uint64_t address, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->at[i].address == address && !strcmp(t->at[i].name, name))
			return true;
	return false;
}

static bool has_address(const struct told *t, uint64_t address)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->at[i].address == address)
			return true;
	return false;
}

static void read_nm(struct told *t, const char *nm, const char *path)
{
	char line[1024], name[512], type;
	uint64_t address;
	FILE *f = open_shell("%s --defined-only %s 2>/dev/null", nm, path);

	t->count = 0;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) == 3 &&
		    strchr("tTiwW", type))
			add(t, address, name);
	close_shell(f);
}

/* Slots and what is put there; of one without a name the resolver's, from nm. */
static void read_relocations(struct told *t, const struct told *functions, const char *path)
{
	char line[1024], type[64], value[64], name[512];
	uint64_t slot;
	FILE *f = open_shell("readelf -rW %s 2>/dev/null", path);

	t->count = 0;
	while (f && fgets(line, sizeof(line), f)) {
		int n = sscanf(line, "%" SCNx64 " %*x %63s %63s %511s", &slot, type, value, name);
		if (n == 4)
			add(t, slot, name);
		if (n != 3 || !strstr(type, "IRELATIV"))
			continue;
		for (size_t i = 0; i < functions->count; i++)
			if (functions->at[i].address == strtoull(value, NULL, 16))
				add(t, slot, functions->at[i].name);
	}
	close_shell(f);
}

static const char *name_at(const struct elf_file *f, uint64_t address, bool *stub)
{
	uint32_t index = symtab_find(&f->symtab, address);

	*stub = index != SYMTAB_NONE && elf_file_is_plt(f, index);
	return index == SYMTAB_NONE ? "" : elf_file_name(f, index);
}

/* Labels within functions, and what the linker and crt files have beside functions, are no matter. */
static int check_functions(const struct elf_file *f, const struct told *functions)
{
	static const char *const ours[] = { "main", "inner", "far", "outer" };
	int found = 0;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		for (size_t k = 0; k < functions->count; k++) {
			bool stub;
			if (strcmp(functions->at[k].name, ours[i]) != 0)
				continue;
			check_str(name_at(f, functions->at[k].address + 1, &stub), ours[i]);
			check(!stub);
			found++;
		}
	return found;
}

/* Stubs of x86: objdump tells the slot behind "#". */
static int check_stubs(const struct elf_file *f, const struct told *functions,
		       const struct told *slots, const char *path)
{
	char line[1024];
	int found = 0;
	FILE *dump = open_shell("objdump -d --no-show-raw-insn -j .plt -j .plt.sec -j .plt.got "
				"-j .iplt %s 2>/dev/null",
				path);

	while (dump && fgets(line, sizeof(line), dump)) {
		const char *slot = strstr(line, "jmp") ? strstr(line, "# ") : NULL;
		uint64_t address = strtoull(line, NULL, 16);
		uint64_t at = slot ? strtoull(slot + 2, NULL, 16) : 0;
		bool stub;
		if (!slot || !has_address(slots, at))
			continue;
		const char *name = name_at(f, address, &stub);
		/* Where a program takes the address of such a function, its symbol is the stub's. */
		if (is_told(functions, address & ~(uint64_t)15, name))
			continue;
		if (!is_told(slots, at, name))
			check_str(name, "the name of that slot's function");
		check(stub);
		found++;
	}
	close_shell(dump);
	return found;
}

static bool read_file(struct elf_file *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -1 : elf_file_read(f, fd);

	if (fd >= 0)
		close(fd);
	return check_int(r, 0) && check_int(elf_file_seal(f), 0);
}

static struct told functions, slots;

static void check_program(const char *path, const char *what)
{
	struct elf_file f = { 0 };
	int wrong = tap_.bad;

	read_nm(&functions, "nm", path);
	read_relocations(&slots, &functions, path);
	if (read_file(&f, path)) {
		check_int(check_functions(&f, &functions), 3);
		check(check_stubs(&f, &functions, &slots, path) >= 4);
	}
	elf_file_done(&f);
	if (tap_.bad != wrong)
		printf("# in a program by %s\n", what);
}

static void linkers_lay_out_programs_in_their_ways(void)
{
	static const char *const linkers[] = { "bfd", "gold", "lld", "mold" };
	static const char *const ways[] = {
		"",
		"-Wl,-z,ibtplt -fcf-protection=full",
		"-Wl,-z,now",
		"-no-pie -fno-pie",
		"-static",
		"-Wl,-z,separate-code",
		"-Wl,-z,noseparate-code",
		"-Wl,--section-start=.far=0x40000000",
	};
	struct fakeroot root;
	char path[128], what[128];
	int built = 0;
	require(fakeroot_make(&root) && fakeroot_file(&root, "/t.c", source));

	snprintf(path, sizeof(path), "%s/t", root.path);
	for (size_t l = 0; l < sizeof(linkers) / sizeof(linkers[0]); l++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
			snprintf(what, sizeof(what), "%s %s", linkers[l], ways[w]);
			if (!shell(&root, "gcc -O1 -fuse-ld=%s %s -o t t.c -lm", linkers[l],
				   ways[w]))
				continue;
			built++;
			check_program(path, what);
		}
	fakeroot_remove(&root);
	if (!built)
		tap_skip("there is no gcc");
}

/* A shared object of `bare_source` for another machine, read; false: it cannot be made here. */
static bool read_for(const struct fakeroot *root, const char *target, struct elf_file *f)
{
	char path[128];

	*f = (struct elf_file){ 0 };
	if (!shell(root,
		   "clang --target=%s -O1 -fPIC -c t.c && "
		   "ld.lld -shared -z now --build-id=0x12345678 -o t t.o",
		   target))
		return false;
	snprintf(path, sizeof(path), "%s/t", root->path);
	read_nm(&functions, "llvm-nm", path);
	return read_file(f, path);
}

static int count_stubs(const struct elf_file *f)
{
	int stubs = 0;

	for (size_t i = 0; i < f->symtab.symbols.count; i++) {
		const char *name = elf_file_name(f, (uint32_t)i);
		if (!elf_file_is_plt(f, (uint32_t)i))
			continue;
		check(!strcmp(name, "other") || !strcmp(name, "another"));
		stubs++;
	}
	return stubs;
}

/* Of how many there are functions (2, where they are not data), and of how many stubs. */
static const struct {
	const char *target;
	int functions, stubs;
} machines[] = {
	{ "aarch64-linux-gnu", 2, 2 },
	{ "i386-linux-gnu", 2, 2 },
	{ "armv7-linux-gnueabihf", 2, 2 },
	{ "riscv64-linux-gnu", 2, 2 },
	/* The other byte order, and 32 bits with it; their stubs are not told apart. */
	{ "powerpc-linux-gnu", 2, 0 },
	{ "mips-linux-gnu", 2, 0 },
	{ "powerpc64le-linux-gnu", 2, 0 },
	/* Its first ABI has descriptors of functions, which are data. */
	{ "powerpc64-linux-gnu", 0, 0 },
};

static void other_machines_are_read(void)
{
	struct fakeroot root;
	int built = 0;
	require(fakeroot_make(&root) && fakeroot_file(&root, "/t.c", bare_source));

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct elf_file f;
		if (read_for(&root, machines[i].target, &f)) {
			built++;
			bool ok = check_u64(f.build_id.len, 4);
			check_mem(f.build_id.bytes, "\x12\x34\x56\x78", 4);
			if (machines[i].functions)
				ok = check_int(check_functions(&f, &functions),
					       machines[i].functions) &&
				     ok;
			ok = check_int(count_stubs(&f), machines[i].stubs) && ok;
			if (!ok)
				printf("# for %s\n", machines[i].target);
		}
		elf_file_done(&f);
	}
	fakeroot_remove(&root);
	if (!built)
		tap_skip("there is no clang, or no lld");
}

/* As Fedora's find-debuginfo makes it: the functions of .symtab that .dynsym has not. */
static void mini_debug_information_names_functions(void)
{
	struct elf_file f = { 0 };
	struct fakeroot root;
	char path[128];
	require(fakeroot_make(&root) && fakeroot_file(&root, "/t.c", source));
	if (!shell(&root,
		   "gcc -O1 -o t t.c -lm && cp t whole && objcopy -S --remove-section .comment "
		   "--keep-symbol=inner --keep-symbol=far --keep-symbol=main t mini && "
		   "xz mini && strip t && objcopy --add-section .gnu_debugdata=mini.xz t")) {
		fakeroot_remove(&root);
		tap_skip("there is no gcc, objcopy or xz");
	}

	snprintf(path, sizeof(path), "%s/whole", root.path);
	read_nm(&functions, "nm", path);
	snprintf(path, sizeof(path), "%s/t", root.path);
	require(read_file(&f, path));
	check_int(check_functions(&f, &functions), 3);
	check(f.has_symtab);
	elf_file_done(&f);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(linkers_lay_out_programs_in_their_ways);
	tap_run(other_machines_are_read);
	tap_run(mini_debug_information_names_functions);
	return tap_end();
}
