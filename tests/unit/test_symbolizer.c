/* SPDX-License-Identifier: MIT */
/*
 * symbolizer: this process's own addresses, as /proc/self/maps and dladdr(3) have them, and files
 * and kernels below a made-up root.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <tally/symbolizer.h>

#include "fakeelf.h"
#include "fakejit.h"
#include "fakeroot.h"
#include "tap.h"

/* Adds the executable mappings of /proc/self/maps, as a recorder does. */
static void add_own_maps(struct tally_maps *m)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4600], path[4200], perms[8];

	require(f);
	while (fgets(line, sizeof(line), f)) {
		struct tally_mapping map = { .path = path };
		path[0] = '\0';
		int n = sscanf(line,
			       "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64
			       " %4199[^\n]",
			       &map.start, &map.end, perms, &map.pgoff, &map.dev_major,
			       &map.dev_minor, &map.inode, path);
		if (n >= 7 && perms[2] == 'x')
			check_int(tally_maps_add(m, getpid(), 0, &map), 0);
	}
	fclose(f);
}

struct fixture {
	struct tally_maps *maps;
	struct tally_symbolizer *symbolizer;
};

static bool set_up(struct fixture *f, const struct tally_symbolizer_opts *opts)
{
	struct tally_error err = { 0 };

	return tally_maps_new(&f->maps) == 0 &&
	       check_int(tally_symbolizer_new(&f->symbolizer, f->maps, opts, &err), 0);
}

static void tear_down(struct fixture *f)
{
	tally_symbolizer_free(f->symbolizer);
	tally_maps_free(f->maps);
}

static int find_own(struct fixture *f, uint64_t address, struct tally_frame *out)
{
	return tally_symbolizer_find(f->symbolizer, getpid(), 0, address, TALLY_MODE_USER, out);
}

__attribute__((noinline)) static int a_local_function(int n)
{
	return n + (int)getpid();
}

static void own_functions_have_their_names(void)
{
	struct tally_frame frame;
	struct fixture f;
	require(set_up(&f, NULL));
	add_own_maps(f.maps);

	check(a_local_function(1) > 0);
	check_int(find_own(&f, (uintptr_t)a_local_function + 4, &frame), 1);
	check_str(frame.function, "a_local_function");
	check_str(frame.module, "test_symbolizer");
	check_u64(frame.offset, 4);
	check_u64(frame.address, (uintptr_t)a_local_function + 4);
	check_u64(frame.mode, TALLY_MODE_USER);
	/* A second time, from the cache. */
	const char *name = frame.function;
	check_int(find_own(&f, (uintptr_t)a_local_function + 4, &frame), 1);
	check(frame.function == name);
	struct tally_module_info info;
	check_int(tally_symbolizer_module(f.symbolizer, frame.module_id, &info), 0);
	check_str(info.trouble, NULL);
	check_u64(info.lookups, 2);
	check_u64(info.misses, 0);
	check(info.symbols > 10);
	tear_down(&f);
}

/*
 * The name without what only the file with debugging information has: "__GI_" before a name that
 * libc calls itself by, and the version behind it.
 */
static void strip(char *out, size_t size, const char *name)
{
	name += strncmp(name, "__GI_", 5) ? 0 : 5;
	snprintf(out, size, "%.*s", (int)strcspn(name, "@"), name);
}

/* dlsym(3) knows the exported names: strtoull may be called strtoul, which lies at its address. */
static void libc_agrees_with_dlsym(void)
{
	static const char *const names[] = { "strtoull", "getenv", "fopen", "popen", "fputs" };
	struct tally_frame frame;
	char name[256];
	struct fixture f;
	/* By its own handle: a sanitizer has functions of the same names before it. */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (!libc)
		tap_skip("there is no libc.so.6 in this process");
	require(set_up(&f, NULL));
	add_own_maps(f.maps);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const void *at = dlsym(libc, names[i]);
		Dl_info info;
		if (!at || !dladdr(at, &info) || !strstr(info.dli_fname, "libc.so"))
			continue;
		check_int(find_own(&f, (uintptr_t)at + 1, &frame), 1);
		require(frame.function);
		strip(name, sizeof(name), frame.function);
		check(dlsym(libc, name) == at);
		check_u64(frame.offset, 1);
		check_u64(frame.module_address - 1, (uintptr_t)at - (uintptr_t)info.dli_fbase);
		check_has(frame.path, frame.module);
	}
	tear_down(&f);
	dlclose(libc);
}

static void check_same_frame(const struct tally_frame *a, const struct tally_frame *b)
{
	check_str(a->function, b->function);
	check_str(a->path, b->path);
	check_u64(a->address, b->address);
	check_u64(a->offset, b->offset);
	check_u64(a->module_address, b->module_address);
	check_u64(a->function_id, b->function_id);
	check_u64(a->mode, b->mode);
}

/* What was asked before, of this module or of others, is no part of an answer. */
static void answers_do_not_depend_on_earlier_ones(void)
{
	struct tally_frame one, other;
	struct fixture f, fresh;
	require(set_up(&f, NULL));
	add_own_maps(f.maps);
	/* More mappings than are looked into at a time, with nothing in them. */
	for (uint64_t i = 0; i < 600; i++) {
		const struct tally_mapping map = {
			.start = 0x100000 + (i << 12),
			.end = 0x101000 + (i << 12),
			.path = "/nowhere/at/all",
			.inode = i + 1,
		};
		check_int(tally_maps_add(f.maps, getpid(), 0, &map), 0);
	}
	const uintptr_t functions[] = { (uintptr_t)a_local_function, (uintptr_t)getenv,
					(uintptr_t)fopen };
	for (size_t i = 0; i < 3; i++) {
		for (uint64_t at = functions[i] - 256; at < functions[i] + 4096; at += 61) {
			uint32_t mode = at % 2 ? TALLY_MODE_USER : TALLY_MODE_UNKNOWN;
			require(set_up(&fresh, NULL));
			add_own_maps(fresh.maps);
			int r = tally_symbolizer_find(fresh.symbolizer, getpid(), 0, at, mode,
						      &one);
			check_int(
				tally_symbolizer_find(f.symbolizer, getpid(), 0, at, mode, &other),
				r);
			check_same_frame(&other, &one);
			tear_down(&fresh);
			check_int(find_own(&f, 0x100000 + (at % 600 << 12), &other), 0);
			check_str(other.module, "all");
		}
	}
	tear_down(&f);
}

static void vdso_functions_have_their_names(void)
{
	unsigned long start = getauxval(AT_SYSINFO_EHDR);
	struct tally_frame frame;
	struct fixture f;
	if (!start)
		tap_skip("this kernel gives no vdso");
	require(set_up(&f, NULL));
	add_own_maps(f.maps);

	const ElfW(Ehdr) *head = (const void *)start;
	check_int(head->e_ident[EI_MAG1], 'E');
	int named = 0;
	for (uint64_t at = start; at < start + 8192; at += 16) {
		int r = tally_symbolizer_find(f.symbolizer, getpid(), 0, at, TALLY_MODE_USER,
					      &frame);
		check_str(frame.module, "[vdso]");
		named += r == 1 && strstr(frame.function, "clock_gettime");
		if (frame.module[1] != 'v')
			break;
	}
	check(named > 0);
	tear_down(&f);
}

#define LIBRARY "/usr/lib/libmade-up.so"
#define START   0x7f0000001000 /* where it is mapped, from offset FAKEELF_TEXT */
#define BASE    0x401000       /* where it is linked */

static const uint8_t an_id[20] = { 0xab, 0xcd, 1 };
static const uint8_t other_id[20] = { 0xef };

static const struct fakeelf_symbol library_symbols[] = {
	{ "plain", BASE, 0x10, STB_GLOBAL, STT_FUNC, 0, false },
	{ "_ZN3foo3barEi", BASE + 0x10, 0x10, STB_GLOBAL, STT_FUNC, 0, false },
};

static bool put_library(const struct fakeroot *root, const char *path, const uint8_t *id)
{
	static struct fakeelf e;

	fakeelf_make(&e, BASE, id, SHT_SYMTAB, library_symbols, 2);
	return fakeroot_bytes(root, path, e.at, e.len);
}

static struct tally_mapping library_mapping(const char *path, const uint8_t *id)
{
	return (struct tally_mapping){
		.start = START,
		.end = START + FAKEELF_SIZE,
		.pgoff = FAKEELF_TEXT,
		.path = path,
		.build_id = id,
		.build_id_len = id ? 20 : 0,
	};
}

static bool open_below(struct fixture *f, const struct fakeroot *root, const char *symfs)
{
	struct tally_symbolizer_opts opts = { .size = sizeof(opts),
					      .root = root->path,
					      .symfs = symfs };

	return set_up(f, &opts);
}

/* Maps the library for pid 42 and names an address in its second function. */
static int find_in_library(struct fixture *f, const struct tally_mapping *map,
			   struct tally_frame *frame)
{
	check_int(tally_maps_add(f->maps, 42, 0, map), 0);
	return tally_symbolizer_find(f->symbolizer, 42, 0, START + 0x18, TALLY_MODE_USER, frame);
}

static const char *trouble_of(struct fixture *f, const struct tally_frame *frame)
{
	struct tally_module_info info;

	if (tally_symbolizer_module(f->symbolizer, frame->module_id, &info) < 0)
		return "no such module";
	return info.trouble;
}

static void process_root_comes_before_the_path(void)
{
	struct tally_mapping map = library_mapping(LIBRARY, an_id);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, "/proc/42/root" LIBRARY, an_id));
	require(open_below(&f, &root, NULL));

	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "foo::bar");
	check_u64(frame.offset, 8);
	check_u64(frame.module_address, BASE + 0x18);
	check_str(frame.module, "libmade-up.so");
	check_str(frame.path, LIBRARY);
	check_str(trouble_of(&f, &frame), NULL);
	tear_down(&f);
	fakeroot_remove(&root);
}

/* Without a build-id only the same inode shows that a process's file is the recorded one. */
static void another_file_in_the_process_root_is_not_used(void)
{
	struct tally_mapping map = library_mapping(LIBRARY, NULL);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	struct stat st;
	char full[256];
	require(fakeroot_make(&root) && put_library(&root, "/proc/42/root" LIBRARY, NULL));
	snprintf(full, sizeof(full), "%s/proc/42/root" LIBRARY, root.path);
	require(stat(full, &st) == 0);
	map.dev_major = major(st.st_dev);
	map.dev_minor = minor(st.st_dev);

	map.inode = st.st_ino + 1;
	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 0);
	check_str(frame.function, NULL);
	check_u64(frame.function_id, UINT32_MAX);
	check_str(frame.module, "libmade-up.so");
	check_has(trouble_of(&f, &frame), "no such file here");
	tear_down(&f);

	map.inode = st.st_ino;
	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "foo::bar");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void another_build_is_not_used(void)
{
	struct tally_mapping map = library_mapping(LIBRARY, other_id);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, LIBRARY, an_id));
	require(open_below(&f, &root, root.path));

	check_int(find_in_library(&f, &map, &frame), 0);
	check_str(frame.function, NULL);
	check_has(trouble_of(&f, &frame), "another build (build-id abcd01");
	check_has(trouble_of(&f, &frame), "(ef00");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void build_ids_may_come_from_the_feature(void)
{
	struct tally_mapping map = library_mapping(LIBRARY, NULL);
	struct tally_frame frame;
	struct tally_module_info info;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, LIBRARY, an_id));

	require(open_below(&f, &root, root.path));
	check_int(tally_symbolizer_build_id(f.symbolizer, -1, LIBRARY, other_id, 20), 0);
	check_int(find_in_library(&f, &map, &frame), 0);
	check_has(trouble_of(&f, &frame), "another build");
	tear_down(&f);

	require(open_below(&f, &root, root.path));
	check_int(tally_symbolizer_build_id(f.symbolizer, -1, LIBRARY, an_id, 20), 0);
	check_int(find_in_library(&f, &map, &frame), 1);
	check_int(tally_symbolizer_module(f.symbolizer, frame.module_id, &info), 0);
	check_u64(info.build_id_len, 20);
	check_mem(info.build_id, an_id, 20);
	check_u64(info.symbols, 2);
	tear_down(&f);
	fakeroot_remove(&root);
}

static void mangled_names_on_demand(void)
{
	struct tally_symbolizer_opts opts = { .size = sizeof(opts),
					      .flags = TALLY_SYMBOLIZER_MANGLED };
	struct tally_mapping map = library_mapping(LIBRARY, an_id);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, LIBRARY, an_id));
	opts.symfs = root.path;
	require(set_up(&f, &opts));

	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "_ZN3foo3barEi");
	tear_down(&f);
	fakeroot_remove(&root);
}

/* map_files leads to the file itself; the target is the path as the kernel prints it. */
static void deleted_files_are_found_while_the_process_lives(void)
{
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	char path[256], link[256];
	require(fakeroot_make(&root) && put_library(&root, "/gone.so (deleted)", NULL));
	require(fakeroot_file(&root, "/proc/42/map_files/.keep", ""));
	snprintf(path, sizeof(path), "%s/gone.so (deleted)", root.path);
	struct tally_mapping map = library_mapping(path, NULL);

	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 0);
	check_has(trouble_of(&f, &frame), "deleted or replaced");
	tear_down(&f);

	snprintf(link, sizeof(link), "%s/proc/42/map_files/%" PRIx64 "-%" PRIx64, root.path,
		 map.start, map.end);
	require(symlink(path, link) == 0);
	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "foo::bar");
	check_str(frame.module, "gone.so (deleted)");
	tear_down(&f);
	fakeroot_remove(&root);
}

/* The program itself can be read by who may not read map_files. */
static void a_deleted_program_is_found_while_it_runs(void)
{
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	struct stat st;
	char path[256], link[256], moved[256];
	require(fakeroot_make(&root) && put_library(&root, "/kept", an_id));
	require(fakeroot_file(&root, "/proc/42/.keep", ""));
	/* As the kernel's link: it names what is gone, and opens what is kept. */
	snprintf(moved, sizeof(moved), "%s/kept", root.path);
	snprintf(path, sizeof(path), "%s/program (deleted)", root.path);
	snprintf(link, sizeof(link), "%s/proc/42/exe", root.path);
	require(rename(moved, path) == 0 && symlink(path, link) == 0 && stat(path, &st) == 0);

	/* Of the same build, of the same inode, or of neither. */
	for (int proof = 0; proof < 3; proof++) {
		struct tally_mapping map = library_mapping(path, proof == 0 ? an_id : NULL);
		if (proof == 1) {
			map.inode = st.st_ino;
			map.dev_major = major(st.st_dev);
			map.dev_minor = minor(st.st_dev);
		}
		require(open_below(&f, &root, NULL));
		check_int(find_in_library(&f, &map, &frame), proof < 2);
		tear_down(&f);
	}
	fakeroot_remove(&root);
}

/* A new file in the place of a deleted one, without a build-id to tell. */
static void replaced_file_is_not_used(void)
{
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	char path[256];
	require(fakeroot_make(&root) && put_library(&root, "/again.so", NULL));
	snprintf(path, sizeof(path), "%s/again.so (deleted)", root.path);
	struct tally_mapping map = library_mapping(path, NULL);

	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 0);
	check_has(trouble_of(&f, &frame), "deleted or replaced");
	tear_down(&f);
	fakeroot_remove(&root);
}

/* Compiled anew since, without a build-id to tell: the inode does, on the same file system. */
static void another_inode_is_not_used_without_a_build_id(void)
{
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	struct stat st;
	char path[256], symfs[300];
	require(fakeroot_make(&root) && put_library(&root, "/new.so", NULL));
	snprintf(path, sizeof(path), "%s/new.so", root.path);
	require(stat(path, &st) == 0);
	struct tally_mapping map = library_mapping(path, NULL);
	map.dev_major = major(st.st_dev);
	map.dev_minor = minor(st.st_dev);

	for (int other = 0; other < 2; other++) {
		map.inode = st.st_ino + (unsigned)other;
		require(open_below(&f, &root, NULL));
		check_int(find_in_library(&f, &map, &frame), !other);
		if (other)
			check_has(trouble_of(&f, &frame), "another inode");
		tear_down(&f);
	}
	/* On another machine its files may well be at these paths. */
	map.dev_minor++;
	require(open_below(&f, &root, NULL));
	check_int(find_in_library(&f, &map, &frame), 1);
	tear_down(&f);
	/* Who names a folder knows what is in it. */
	map.dev_minor--;
	snprintf(symfs, sizeof(symfs), "/symfs%s", path);
	require(put_library(&root, symfs, NULL));
	snprintf(symfs, sizeof(symfs), "%s/symfs", root.path);
	require(open_below(&f, &root, symfs));
	check_int(find_in_library(&f, &map, &frame), 1);
	tear_down(&f);
	fakeroot_remove(&root);
}

static void files_that_are_no_elf(void)
{
	static const struct {
		const char *path, *trouble;
	} cases[] = {
		{ "/script.sh", "not an ELF file" },
		{ "/folder", "no such file here" },
		{ "//anon", "memory that no file backs" },
		{ "", "memory that no file backs" },
		{ "[heap]", "the heap" },
		{ "[stack:1]", "a stack" },
		{ "[vsyscall]", "vsyscall" },
		{ "anon_inode:[perf_event]", "no such file" },
	};
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root));
	require(fakeroot_file(&root, "/script.sh", "#!/bin/sh\n"));
	require(fakeroot_file(&root, "/folder/file", ""));

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_mapping map = library_mapping(cases[i].path, NULL);
		require(open_below(&f, &root, root.path));
		check_int(find_in_library(&f, &map, &frame), 0);
		check_has(trouble_of(&f, &frame), cases[i].trouble);
		check_str(frame.path, cases[i].path);
		tear_down(&f);
	}
	fakeroot_remove(&root);
}

static void nothing_is_mapped(void)
{
	struct tally_frame frame;
	struct fixture f;
	require(set_up(&f, NULL));

	for (int i = 0; i < 2; i++) {
		check_int(
			tally_symbolizer_find(f.symbolizer, 1, 0, 0x1234, TALLY_MODE_USER, &frame),
			0);
		check_str(frame.module, "[unknown]");
		check_str(frame.function, NULL);
		check_u64(frame.address, 0x1234);
		check_u64(frame.offset, 0x1234);
		check(frame.module_id < tally_symbolizer_modules(f.symbolizer));
	}
	check_int(
		tally_symbolizer_find(f.symbolizer, 1, 0, 0x1234, TALLY_MODE_GUEST_KERNEL, &frame),
		0);
	check_str(frame.module, "[guest.kernel.kallsyms]");
	struct tally_module_info info;
	check_int(tally_symbolizer_module(f.symbolizer, 99, &info), -EINVAL);
	tear_down(&f);
}

static const char kallsyms[] = "ffffffff81000000 T _text\n"
			       "ffffffff81000100 T do_syscall_64\n"
			       "ffffffff81000200 T _etext\n"
			       "ffffffffc0000000 t ext4_one\t[ext4]\n";

static void kernel_functions_and_modules(void)
{
	static const struct tally_mapping core = {
		.start = 0xffffffff81000000,
		.end = 0xffffffff82000000,
		.pgoff = 0xffffffff81000000,
		.path = "[kernel.kallsyms]_text",
	};
	static const struct tally_mapping module = {
		.start = 0xffffffffc0000000,
		.end = 0xffffffffc0004000,
		.path = "/lib/modules/6.1/kernel/fs/ext4.ko.xz",
	};
	struct tally_frame frame;
	struct tally_module_info info;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && fakeroot_file(&root, "/proc/kallsyms", kallsyms));
	require(open_below(&f, &root, NULL));
	tally_maps_add(f.maps, TALLY_MAPS_KERNEL, 0, &core);
	tally_maps_add(f.maps, TALLY_MAPS_KERNEL, 0, &module);

	struct tally_symbolizer *s = f.symbolizer;
	check_int(tally_symbolizer_find(s, 1, 0, 0xffffffff81000104, TALLY_MODE_KERNEL, &frame), 1);
	check_str(frame.function, "do_syscall_64");
	check_str(frame.module, "[kernel.kallsyms]");
	check_u64(frame.offset, 4);
	check_int(tally_symbolizer_module(s, frame.module_id, &info), 0);
	check_u64(info.symbols, 3);
	check_str(info.trouble, NULL);
	/* A callchain says nothing of modes for each address. */
	check_int(tally_symbolizer_find(s, 1, 0, 0xffffffff81000104, TALLY_MODE_UNKNOWN, &frame),
		  1);
	check_u64(frame.mode, TALLY_MODE_KERNEL);
	check_int(tally_symbolizer_find(s, 1, 0, 0xffffffffc0000001, TALLY_MODE_KERNEL, &frame), 1);
	check_str(frame.function, "ext4_one");
	check_str(frame.module, "[ext4]");
	check_int(tally_symbolizer_find(s, 1, 0, 0xffffffffc0003000, TALLY_MODE_KERNEL, &frame), 0);
	check_str(frame.module, "[ext4]");
	check_int(tally_symbolizer_find(s, 1, 0, 0xffffffffd0003000, TALLY_MODE_KERNEL, &frame), 0);
	check_str(frame.module, "[unknown]");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void kernel_may_have_moved(void)
{
	/* Notes by the ELF specification: "GNU", type 3, four bytes. */
	static const unsigned char notes[] = { 4, 0, 0,   0,   4,   0, 0, 0, 3, 0,
					       0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4 };
	const uint64_t there = 0xffffffff9a000000;
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && fakeroot_file(&root, "/proc/kallsyms", kallsyms));
	require(fakeroot_bytes(&root, "/sys/kernel/notes", notes, sizeof(notes)));
	require(open_below(&f, &root, NULL));

	struct tally_symbolizer *s = f.symbolizer;
	check_int(tally_symbolizer_kernel(s, there, notes + 16, 4), 0);
	check_int(tally_symbolizer_find(s, 1, 0, there + 0x104, TALLY_MODE_KERNEL, &frame), 1);
	check_str(frame.function, "do_syscall_64");
	check_u64(frame.offset, 4);
	check_int(tally_symbolizer_kernel(s, there, (const uint8_t *)"else", 4), 0);
	check_int(tally_symbolizer_find(s, 1, 0, there + 0x104, TALLY_MODE_KERNEL, &frame), 0);
	check_str(frame.module, "[kernel.kallsyms]");
	check_has(trouble_of(&f, &frame), "another kernel");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void modules_are_told_apart(void)
{
	struct tally_mapping a = library_mapping(LIBRARY, an_id), b = a, c = a;
	struct tally_frame one, two, three;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, LIBRARY, an_id));
	require(open_below(&f, &root, root.path));

	/* The same file twice; then a file of another inode at the same path. */
	b.start += 0x100000;
	b.end += 0x100000;
	c.start += 0x200000;
	c.end += 0x200000;
	c.inode = 77;
	tally_maps_add(f.maps, 1, 0, &a);
	tally_maps_add(f.maps, 1, 0, &b);
	tally_maps_add(f.maps, 1, 0, &c);
	struct tally_symbolizer *s = f.symbolizer;
	check_int(tally_symbolizer_find(s, 1, 0, a.start, TALLY_MODE_USER, &one), 1);
	check_int(tally_symbolizer_find(s, 1, 0, b.start, TALLY_MODE_USER, &two), 1);
	check_int(tally_symbolizer_find(s, 1, 0, c.start, TALLY_MODE_USER, &three), 1);
	check(one.module_id == two.module_id && one.function_id == two.function_id);
	check(one.module_id != three.module_id);
	check_str(three.function, "plain");
	check_u64(tally_symbolizer_modules(s), 2);
	tear_down(&f);
	fakeroot_remove(&root);
}

#define CODE 0x7f1000000000 /* memory that no file backs */

static bool map_code(struct fixture *f, int32_t pid, const char *path)
{
	struct tally_mapping map = { .start = CODE, .end = CODE + 0x10000, .path = path };

	return check_int(tally_maps_add(f->maps, pid, 0, &map), 0);
}

static void check_code(struct fixture *f, int32_t pid, uint64_t time, uint64_t offset,
		       const char *function, const char *path)
{
	struct tally_frame frame;

	check_int(tally_symbolizer_find(f->symbolizer, pid, time, CODE + offset, TALLY_MODE_USER,
					&frame),
		  function != NULL);
	check_str(frame.function, function);
	check_str(frame.path, path);
}

/* A process calls its map by the pid that it has in its own namespace: 7 in that of 42. */
static void code_is_named_by_the_perf_map(void)
{
	struct tally_module_info info;
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && open_below(&f, &root, NULL));
	require(fakeroot_file(&root, "/proc/42/status", "Name:\tnode\nNSpid:\t42\t7\nX:\t9\n"));
	require(fakeroot_file(&root, "/proc/42/root/tmp/perf-7.map",
			      "7f1000000100 40 JS:*add a.js:1\n7f1000000200 10 _ZN3foo3barEv\n"));
	require(map_code(&f, 42, "//anon"));

	check_code(&f, 42, 5, 0x120, "JS:*add a.js:1", "/tmp/perf-42.map");
	check_code(&f, 42, 5, 0x20f, "foo::bar", "/tmp/perf-42.map");
	check_code(&f, 42, 5, 0x300, NULL, "//anon");
	tally_symbolizer_find(f.symbolizer, 42, 5, CODE + 0x141, TALLY_MODE_USER, &frame);
	check_has(trouble_of(&f, &frame), "tells no name");
	tally_symbolizer_find(f.symbolizer, 42, 5, CODE + 0x104, TALLY_MODE_USER, &frame);
	check_u64(frame.offset, 4);
	check_str(frame.module, "perf-42.map");
	check_int(tally_symbolizer_module(f.symbolizer, frame.module_id, &info), 0);
	check_u64(info.symbols, 2);
	/* A child has what its parent mapped, and what that told of it. */
	check_int(tally_maps_fork(f.maps, 43, 43, 42, 42, 6), 0);
	check_code(&f, 43, 7, 0x120, "JS:*add a.js:1", "/tmp/perf-42.map");
	tear_down(&f);
	fakeroot_remove(&root);
}

/* While a process lives its map grows; what replaces other code counts from when it was seen. */
static void perf_map_is_read_again_when_it_grew(void)
{
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	char path[256];
	require(fakeroot_make(&root) && open_below(&f, &root, NULL));
	require(fakeroot_file(&root, "/proc/42/root/tmp/perf-42.map", "7f1000000100 40 old\n"));
	require(map_code(&f, 42, "//anon"));

	check_code(&f, 42, 5, 0x120, "old", "/tmp/perf-42.map");
	snprintf(path, sizeof(path), "%s/proc/42/root/tmp/perf-42.map", root.path);
	FILE *map = fopen(path, "a");
	require(map && fputs("7f1000000120 40 new\n", map) >= 0 && fclose(map) == 0);
	/* It is looked at some times in a second. */
	for (int i = 0; i < 200; i++) {
		tally_symbolizer_find(f.symbolizer, 42, 10, CODE + 0x120, TALLY_MODE_USER, &frame);
		if (frame.function && !strcmp(frame.function, "new"))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	check_code(&f, 42, 10, 0x120, "new", "/tmp/perf-42.map");
	check_code(&f, 42, 9, 0x120, "old", "/tmp/perf-42.map");
	check_code(&f, 42, 10, 0x11f, "old", "/tmp/perf-42.map");
	check(tally_symbolizer_epoch(f.symbolizer, 42, 9) !=
	      tally_symbolizer_epoch(f.symbolizer, 42, 10));
	tear_down(&f);
	fakeroot_remove(&root);
}

/* Also in memory that has a name, such as .NET's /memfd:doublemapper. */
static void code_is_named_by_the_jitdump_of_its_time(void)
{
	static struct fakejit j;
	struct tally_mapping dump = { .start = 0x7e0000000000,
				      .end = 0x7e0000001000,
				      .path = "/home/u/.debug/jit/jit-7.dump" };
	struct fakeroot root;
	struct fixture f;
	struct stat st;
	char full[256];
	fakejit_begin(&j, false, 0);
	fakejit_load(&j, 100, CODE + 0x1000, 0x100, "one");
	fakejit_load(&j, 200, CODE + 0x1000, 0x80, "two");
	require(fakeroot_make(&root) && open_below(&f, &root, NULL));
	require(fakeroot_bytes(&root, "/proc/42/root/home/u/.debug/jit/jit-7.dump", j.at, j.len));
	snprintf(full, sizeof(full), "%s/proc/42/root%s", root.path, dump.path);
	require(stat(full, &st) == 0);
	dump.inode = st.st_ino;
	dump.dev_major = major(st.st_dev);
	dump.dev_minor = minor(st.st_dev);
	require(fakeroot_file(&root, "/proc/42/root/tmp/perf-42.map",
			      "7f1000001000 100 less\n"
			      "7f1000002000 100 more\n"));
	require(map_code(&f, 42, "/memfd:doublemapper (deleted)"));
	check_int(tally_maps_add(f.maps, 42, 50, &dump), 0);

	check_int(tally_symbolizer_epoch(f.symbolizer, 42, 199),
		  tally_symbolizer_epoch(f.symbolizer, 42, 100));
	check(tally_symbolizer_epoch(f.symbolizer, 42, 200) !=
	      tally_symbolizer_epoch(f.symbolizer, 42, 199));
	check_code(&f, 42, 199, 0x1010, "one", dump.path);
	check_code(&f, 42, 200, 0x1010, "two", dump.path);
	check_code(&f, 42, 199, 0x1010, "one", dump.path);
	check_code(&f, 42, 200, 0x2010, "more", "/tmp/perf-42.map");
	/* Times of another clock do not compare with its own. */
	tally_symbolizer_clock(f.symbolizer, UINT32_MAX);
	check_code(&f, 42, 199, 0x1010, "two", dump.path);
	tear_down(&f);
	fakeroot_remove(&root);
}

/* A jitdump of V8 has lines behind the ELF header that perf inject would put before the code. */
static void check_line(uint64_t shift)
{
	const struct fakejit_line lines[] = { { CODE + 0x1000 + shift, 3, "a.js" },
					      { CODE + 0x1010 + shift, 5, "\xff" } };
	static struct fakejit j;
	struct tally_mapping dump = { .start = 0x7e0000000000,
				      .end = 0x7e0000001000,
				      .path = "/jit-7.dump" };
	struct tally_symbolizer_query query = { .pid = 42, .mode = TALLY_MODE_USER, .time = 200 };
	struct tally_symbolized out;
	struct fakeroot root;
	struct fixture f;
	fakejit_begin(&j, false, 0);
	fakejit_lines(&j, 100, CODE + 0x1000, lines, 2);
	fakejit_load(&j, 100, CODE + 0x1000, 0x100, "one");
	require(fakeroot_make(&root) && open_below(&f, &root, root.path));
	require(fakeroot_bytes(&root, dump.path, j.at, j.len));
	require(map_code(&f, 42, "//anon"));
	check_int(tally_maps_add(f.maps, 42, 50, &dump), 0);

	query.address = CODE + 0x1012;
	check_int(tally_symbolizer_lines(f.symbolizer, &query, 1, &out), 0);
	check_u64(out.source_count, 1);
	check_str(out.sources[0].function, "one");
	check_str(out.sources[0].file, "a.js");
	check_u64(out.sources[0].line, 5);
	query.address = CODE + 0x1002;
	check_int(tally_symbolizer_lines(f.symbolizer, &query, 1, &out), 0);
	check_u64(out.sources[0].line, 3);
	tear_down(&f);
	fakeroot_remove(&root);
}

static void made_code_has_lines_where_a_jitdump_tells(void)
{
	check_line(0);
	check_line(64);
}

#define PROG 0xffffffffc0100000

static void kernel_code_that_comes_and_goes(void)
{
	struct tally_mapping map = { .start = PROG,
				     .end = PROG + 0x100,
				     .path = "bpf_prog_6deef7357e7b4530_main",
				     .flags = TALLY_MAPPING_SYMBOL };
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && open_below(&f, &root, NULL));
	require(fakeroot_file(&root, "/proc/kallsyms",
			      "ffffffff81000000 T _text\nffffffffc0200000 t ext4_x\t[ext4]\n"));
	check_int(tally_maps_add(f.maps, TALLY_MAPS_KERNEL, 10, &map), 0);
	check_int(tally_maps_remove(f.maps, TALLY_MAPS_KERNEL, 20, PROG, PROG + 0x100), 0);
	map.path = "ftrace_trampoline";
	check_int(tally_maps_add(f.maps, TALLY_MAPS_KERNEL, 30, &map), 0);

	check_int(tally_symbolizer_find(f.symbolizer, -1, 5, PROG + 8, TALLY_MODE_KERNEL, &frame),
		  0);
	check_int(tally_symbolizer_find(f.symbolizer, -1, 10, PROG + 8, TALLY_MODE_KERNEL, &frame),
		  1);
	check_str(frame.function, "bpf_prog_6deef7357e7b4530_main");
	check_str(frame.module, "[bpf]");
	check_u64(frame.offset, 8);
	check_int(tally_symbolizer_find(f.symbolizer, -1, 25, PROG + 8, TALLY_MODE_KERNEL, &frame),
		  0);
	check_int(tally_symbolizer_find(f.symbolizer, -1, 30, PROG + 8, TALLY_MODE_KERNEL, &frame),
		  1);
	check_str(frame.function, "ftrace_trampoline");
	check_str(frame.module, "[__builtin__ftrace]");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void kept_programs_are_found_by_build_id(void)
{
	struct tally_mapping map = library_mapping("/in/a/container.so", an_id);
	struct tally_symbolizer_opts opts = { .size = sizeof(opts) };
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	char id[64] = "/program/";
	for (size_t i = 0; i < 20; i++)
		snprintf(id + 9 + 2 * i, 3, "%02x", an_id[i]);
	require(fakeroot_make(&root) && put_library(&root, id, an_id));
	opts.cache = root.path;

	require(set_up(&f, &opts));
	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "foo::bar");
	check_str(frame.path, "/in/a/container.so");
	tear_down(&f);

	opts.flags = TALLY_SYMBOLIZER_NO_CACHE;
	require(set_up(&f, &opts));
	check_int(find_in_library(&f, &map, &frame), 0);
	tear_down(&f);

	/* It is what its name says, or is not used. */
	opts.flags = 0;
	require(put_library(&root, id, other_id) && set_up(&f, &opts));
	check_int(find_in_library(&f, &map, &frame), 0);
	tear_down(&f);
	fakeroot_remove(&root);
}

/* perf-archive takes ~/.debug to the machine of the report. */
static void what_perf_keeps_is_found_by_build_id(void)
{
	struct tally_mapping map = library_mapping("/of/another/machine.so", an_id);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	char path[128] = "/.debug/.build-id/ab/";
	for (size_t i = 1; i < 20; i++)
		snprintf(path + 19 + 2 * i, 3, "%02x", an_id[i]);
	strcat(path, "/elf");
	require(fakeroot_make(&root) && put_library(&root, path, an_id));
	setenv("HOME", root.path, 1);

	require(set_up(&f, NULL));
	check_int(find_in_library(&f, &map, &frame), 1);
	check_str(frame.function, "foo::bar");
	tear_down(&f);
	fakeroot_remove(&root);
}

/* Two containers have a file of the same path each. */
static void build_ids_of_one_process_are_its_own(void)
{
	struct tally_mapping map = library_mapping(LIBRARY, NULL);
	struct tally_frame frame;
	struct fakeroot root;
	struct fixture f;
	require(fakeroot_make(&root) && put_library(&root, LIBRARY, an_id));
	require(open_below(&f, &root, root.path));
	check_int(tally_symbolizer_build_id(f.symbolizer, -1, LIBRARY, an_id, 20), 0);
	check_int(tally_symbolizer_build_id(f.symbolizer, 42, LIBRARY, other_id, 20), 0);
	check_int(tally_symbolizer_build_id(f.symbolizer, 43, LIBRARY, an_id, 20), 0);

	map.inode = 1;
	check_int(find_in_library(&f, &map, &frame), 0);
	check_has(trouble_of(&f, &frame), "another build");
	map.inode = 2;
	check_int(tally_maps_add(f.maps, 43, 0, &map), 0);
	check_int(tally_symbolizer_find(f.symbolizer, 43, 0, START + 0x18, TALLY_MODE_USER, &frame),
		  1);
	check_str(frame.function, "foo::bar");
	tear_down(&f);
	fakeroot_remove(&root);
}

static void bad_options_are_refused(void)
{
	struct tally_symbolizer_opts opts = { .size = sizeof(opts), .flags = 1u << 31 };
	struct tally_symbolizer *s;
	struct tally_error err = { 0 };
	struct tally_maps *maps;
	require(tally_maps_new(&maps) == 0);

	check_int(tally_symbolizer_new(&s, maps, &opts, &err), -EINVAL);
	check_has(err.text, "0x80000000");
	opts.size = 0;
	check_int(tally_symbolizer_new(&s, maps, &opts, &err), -EINVAL);
	check_int(tally_symbolizer_new(&s, NULL, NULL, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_ARGUMENT);
	tally_symbolizer_free(NULL);
	tally_maps_free(maps);
}

int main(void)
{
	tap_run(own_functions_have_their_names);
	tap_run(libc_agrees_with_dlsym);
	tap_run(answers_do_not_depend_on_earlier_ones);
	tap_run(vdso_functions_have_their_names);
	tap_run(process_root_comes_before_the_path);
	tap_run(another_file_in_the_process_root_is_not_used);
	tap_run(another_build_is_not_used);
	tap_run(build_ids_may_come_from_the_feature);
	tap_run(mangled_names_on_demand);
	tap_run(deleted_files_are_found_while_the_process_lives);
	tap_run(a_deleted_program_is_found_while_it_runs);
	tap_run(replaced_file_is_not_used);
	tap_run(another_inode_is_not_used_without_a_build_id);
	tap_run(files_that_are_no_elf);
	tap_run(nothing_is_mapped);
	tap_run(kernel_functions_and_modules);
	tap_run(kernel_may_have_moved);
	tap_run(modules_are_told_apart);
	tap_run(code_is_named_by_the_perf_map);
	tap_run(perf_map_is_read_again_when_it_grew);
	tap_run(code_is_named_by_the_jitdump_of_its_time);
	tap_run(made_code_has_lines_where_a_jitdump_tells);
	tap_run(kernel_code_that_comes_and_goes);
	tap_run(kept_programs_are_found_by_build_id);
	tap_run(what_perf_keeps_is_found_by_build_id);
	tap_run(build_ids_of_one_process_are_its_own);
	tap_run(bad_options_are_refused);
	return tap_end();
}
