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
	require(set_up(&f, NULL));
	add_own_maps(f.maps);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const void *at = dlsym(RTLD_DEFAULT, names[i]);
		Dl_info info;
		if (!at || !dladdr(at, &info) || !strstr(info.dli_fname, "libc.so"))
			continue;
		check_int(find_own(&f, (uintptr_t)at + 1, &frame), 1);
		require(frame.function);
		strip(name, sizeof(name), frame.function);
		check(dlsym(RTLD_DEFAULT, name) == at);
		check_u64(frame.offset, 1);
		check_u64(frame.module_address - 1, (uintptr_t)at - (uintptr_t)info.dli_fbase);
		check_has(frame.path, frame.module);
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

int main(void)
{
	tap_run(own_functions_have_their_names);
	tap_run(libc_agrees_with_dlsym);
	tap_run(vdso_functions_have_their_names);
	return tap_end();
}
