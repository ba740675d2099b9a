/* SPDX-License-Identifier: MIT */
/* kernel: /proc/kallsyms, kptr_restrict and /sys/kernel/notes below a made-up root. */
#include <errno.h>
#include <stdlib.h>

#include "fakeelf.h"
#include "fakeroot.h"
#include "image/kernel.h"
#include "tap.h"

static const char symbols[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffffffff81000000 T _stext\n"
			      "ffffffff81000000 T _text\n"
			      "ffffffff81000100 t do_one\n"
			      "ffffffff81000200 W weak_alias\n"
			      "ffffffff81000200 T do_two\n"
			      "ffffffff81000300 D some_data\n"
			      "ffffffff81000310 T do_last\n"
			      "ffffffffc0001000 t mod_b\t[net_b]\n"
			      "ffffffffc0000000 t mod_a\t[net_a]\n"
			      "ffffffffc0000080 T mod_a2\t[net_a]\n";

/* Notes by the ELF specification: sizes of name and content, type 3, "GNU". */
static const unsigned char notes[] = { 4, 0, 0,   0,   4,   0, 0,    0,    6,    0,
				       0, 0, 'L', 'n', 'x', 0, 1,    2,    3,    4,
				       4, 0, 0,   0,   4,   0, 0,    0,    3,    0,
				       0, 0, 'G', 'N', 'U', 0, 0xca, 0xfe, 0xba, 0xbe };
static const uint8_t notes_id[] = { 0xca, 0xfe, 0xba, 0xbe };

static bool set_up(struct fakeroot *root, const char *kallsyms)
{
	return fakeroot_make(root) && fakeroot_file(root, "/proc/kallsyms", kallsyms) &&
	       fakeroot_bytes(root, "/sys/kernel/notes", notes, sizeof(notes));
}

static const struct file_search *below(const struct fakeroot *root)
{
	static struct file_search where;

	where = (struct file_search){ .root = root->path };
	return &where;
}

static void check_at(const struct kernel *k, uint64_t address, const char *function,
		     const char *module)
{
	uint32_t index = kernel_find(k, address);

	check_str(index == SYMTAB_NONE ? NULL : kernel_function(k, index), function);
	if (function && index != SYMTAB_NONE)
		check_str(kernel_module(k, index), module);
}

static void functions_and_modules(void)
{
	struct kernel_recorded recorded = { 0 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));

	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_str(k.trouble, "");
	check_at(&k, 0xffffffff80ffffff, NULL, NULL);
	check_at(&k, 0xffffffff81000000, "_text", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff810001ff, "do_one", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff81000200, "do_two", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff8100030f, "do_two", "[kernel.kallsyms]");
	/* The last one ends with a page, not where the first module begins. */
	check_at(&k, 0xffffffff81000fff, "do_last", "[kernel.kallsyms]");
	check_at(&k, 0xffffffffbfffffff, NULL, NULL);
	check_at(&k, 0xffffffffc000007f, "mod_a", "[net_a]");
	check_at(&k, 0xffffffffc0000fff, "mod_a2", "[net_a]");
	check_at(&k, 0xffffffffc0001000, "mod_b", "[net_b]");
	check_at(&k, 0, NULL, NULL);
	check_u64(kernel_count(&k, "[kernel.kallsyms]"), 4);
	check_u64(kernel_count(&k, "[net_a]"), 2);
	check_u64(kernel_count(&k, "[none]"), 0);
	check_u64(k.build_id.len, 4);
	check_mem(k.build_id.bytes, notes_id, 4);
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void hidden_addresses_are_explained(void)
{
	struct kernel_recorded recorded = { 0 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, "0000000000000000 T _text\n0000000000000000 t do_one\n"));
	require(fakeroot_file(&root, "/proc/sys/kernel/kptr_restrict", "1\n"));

	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "kernel.kptr_restrict is 1");
	check_has(k.trouble, "sysctl kernel.kptr_restrict=0");
	check_at(&k, 0, NULL, NULL);
	check_at(&k, 0xffffffff81000000, NULL, NULL);
	kernel_done(&k);

	require(fakeroot_file(&root, "/proc/sys/kernel/kptr_restrict", "0\n"));
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "perf_event_paranoid");
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void same_build_is_moved(void)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff9a000000 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));

	recorded.build_id = build_id_from(notes_id, 4);
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_str(k.trouble, "");
	check_at(&k, 0xffffffff9a000100, "do_one", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff81000100, NULL, NULL);
	/* Modules are loaded anywhere after a restart. */
	check_at(&k, 0xffffffffc0000000, NULL, NULL);
	check_at(&k, 0xffffffffc0000000 + 0x19000000, NULL, NULL);
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void other_build_is_refused(void)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff81000000 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));

	recorded.build_id = build_id_from((const uint8_t *)"abcd", 4);
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "another kernel (build-id 61626364)");
	check_has(k.trouble, "cafebabe");
	check_at(&k, 0xffffffff81000100, NULL, NULL);
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void unknown_build_is_moved_nowhere(void)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff9a000000 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));

	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "no build-id");
	check_at(&k, 0xffffffff9a000100, NULL, NULL);
	kernel_done(&k);
	recorded.address = 0xffffffff81000000;
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_str(k.trouble, "");
	check_at(&k, 0xffffffff81000100, "do_one", "[kernel.kallsyms]");
	kernel_done(&k);
	recorded.symbol = "_gone";
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "_gone");
	kernel_done(&k);
	fakeroot_remove(&root);
}

/* Another release is another kernel, even where the addresses agree; a build-id outranks it. */
static void another_release_is_refused(void)
{
	struct kernel_recorded recorded = { .symbol = "_text",
					    .address = 0xffffffff81000000,
					    .release = "4.16.18" };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));

	require(fakeroot_file(&root, "/proc/sys/kernel/osrelease", "6.18.44\n"));
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "4.16.18");
	check_has(k.trouble, "6.18.44");
	check_at(&k, 0xffffffff81000100, NULL, NULL);
	kernel_done(&k);
	require(fakeroot_file(&root, "/proc/sys/kernel/osrelease", "4.16.18\n"));
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_str(k.trouble, "");
	check_at(&k, 0xffffffff81000100, "do_one", "[kernel.kallsyms]");
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void no_kallsyms_is_explained(void)
{
	struct kernel_recorded recorded = { 0 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(fakeroot_make(&root));

	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "/proc/kallsyms cannot be read: No such file");
	kernel_done(&k);
	require(fakeroot_file(&root, "/proc/kallsyms", ""));
	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_has(k.trouble, "CONFIG_KALLSYMS");
	kernel_done(&k);
	fakeroot_remove(&root);
}

static void broken_lines_are_passed_over(void)
{
	static const char broken[] = "\n \nT\n T x\nzzzz T bad\nffffffff81000000 T\n"
				     "ffffffff81000000 T \nffffffff81000000 T \t[m]\n"
				     "ffffffff81000000T x\nffffffff81000000 TT x\n"
				     "ffffffffffffffffff81000040 T wide\n"
				     "ffffffffffffffff T end\n"
				     "ffffffff81000100 T cut_off";
	struct kernel_recorded recorded = { 0 };
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, broken));

	check_int(kernel_load(&k, below(&root), &recorded), 0);
	check_at(&k, 0xffffffff81000100, "cut_off", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff81000040, "wide", "[kernel.kallsyms]");
	check_at(&k, 0xffffffff81000000, NULL, NULL);
	kernel_done(&k);
	fakeroot_remove(&root);
}

/* Of the machine as it was; the one that reports runs another kernel, or shows no addresses. */
static void kept_symbols_are_moved_too(void)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff91000000 };
	struct kernel k = { 0 };
	struct fakeroot root, other;
	char cache[128];
	require(set_up(&root, symbols) && set_up(&other, "0000000000000000 T _text\n"));
	require(fakeroot_file(&root, "/proc/sys/kernel/random/boot_id", "a-boot\n"));
	snprintf(cache, sizeof(cache), "%s/cache", root.path);
	check_int(kernel_keep(root.path, cache), 0);
	recorded.build_id = build_id_from(notes_id, sizeof(notes_id));

	struct file_search where = { .root = other.path, .cache = cache };
	check_int(kernel_load(&k, &where, &recorded), 0);
	check_str(k.trouble, "");
	check(k.kept);
	check_at(&k, 0xffffffff91000100, "do_one", "[kernel.kallsyms]");
	check_at(&k, 0xffffffffd0000000, NULL, NULL); /* a module, after another boot */
	kernel_done(&k);

	/* Where it was not moved the modules may be the same. */
	recorded.address = 0xffffffff81000000;
	check_int(kernel_load(&k, &where, &recorded), 0);
	check_at(&k, 0xffffffffc0000010, "mod_a", "[net_a]");
	kernel_done(&k);

	/* Another build. */
	recorded.build_id.bytes[0] ^= 1;
	check_int(kernel_load(&k, &where, &recorded), 0);
	check_has(k.trouble, "another kernel");
	kernel_done(&k);
	fakeroot_remove(&root);
	fakeroot_remove(&other);
}

/* A list is kept anew after a boot, or when modules changed; not else, for the kernel takes long. */
static void symbols_are_kept_once_a_boot(void)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff81000000 };
	struct fakeroot root, other;
	char cache[128];
	require(set_up(&root, symbols) && set_up(&other, "0000000000000000 T _text\n"));
	require(fakeroot_file(&root, "/proc/sys/kernel/random/boot_id", "a-boot\n") &&
		fakeroot_file(&root, "/proc/modules", "net_a 1 0 - Live 0x0\n"));
	snprintf(cache, sizeof(cache), "%s/cache", root.path);
	struct file_search where = { .root = other.path, .cache = cache };
	check_int(kernel_keep(root.path, cache), 0);

	for (int i = 0; i < 3; i++) {
		static const char *const want[] = { "do_one", "do_one", "renamed" };
		struct kernel k = { 0 };
		require(fakeroot_file(&root, "/proc/kallsyms",
				      "ffffffff81000000 T _text\nffffffff81000100 t renamed\n"));
		if (i == 2)
			require(fakeroot_file(&root, "/proc/modules", ""));
		check_int(i ? kernel_keep(root.path, cache) : 0, 0);
		check_int(kernel_load(&k, &where, &recorded), 0);
		check_at(&k, 0xffffffff81000180, want[i], "[kernel.kallsyms]");
		kernel_done(&k);
	}
	/* What is hidden is not worth keeping. */
	check_int(kernel_keep(other.path, cache), -ENOENT);
	require(fakeroot_file(&other, "/proc/sys/kernel/random/boot_id", "b\n"));
	check_int(kernel_keep(other.path, cache), -EACCES);
	fakeroot_remove(&root);
	fakeroot_remove(&other);
}

static void vmlinux_is_found_by_release_and_build_id(void)
{
	static const struct fakeelf_symbol functions[] = {
		{ "_text", 0xffffffff81000000, 0, STB_GLOBAL, STT_NOTYPE, 0, false },
		{ "start_kernel", 0xffffffff81000100, 0x80, STB_GLOBAL, STT_FUNC, 0, false },
	};
	static const uint8_t id[20] = { 7 }, other_id[20] = { 8 };
	struct kernel_recorded recorded = { .symbol = "_text",
					    .address = 0xffffffff91000000,
					    .release = "6.1.0-test" };
	static struct fakeelf e;
	struct kernel k = { 0 };
	struct fakeroot root;
	require(set_up(&root, symbols));
	struct file_search where = { .root = root.path, .symfs = root.path };
	recorded.build_id = build_id_from(id, 20);

	fakeelf_make(&e, 0xffffffff81000000, other_id, SHT_SYMTAB, functions, 2);
	require(fakeroot_bytes(&root, "/usr/lib/debug/boot/vmlinux-6.1.0-test", e.at, e.len));
	check_int(kernel_load(&k, &where, &recorded), 0);
	check_has(k.trouble, "vmlinux");
	kernel_done(&k);

	fakeelf_make(&e, 0xffffffff81000000, id, SHT_SYMTAB, functions, 2);
	require(fakeroot_bytes(&root, "/usr/lib/debug/boot/vmlinux-6.1.0-test", e.at, e.len));
	check_int(kernel_load(&k, &where, &recorded), 0);
	check_str(k.trouble, "");
	check_at(&k, 0xffffffff91000110, "start_kernel", "[kernel.kallsyms]");
	check_u64(kernel_count(&k, "[kernel.kallsyms]"), 2);
	kernel_done(&k);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(functions_and_modules);
	tap_run(hidden_addresses_are_explained);
	tap_run(same_build_is_moved);
	tap_run(other_build_is_refused);
	tap_run(unknown_build_is_moved_nowhere);
	tap_run(another_release_is_refused);
	tap_run(no_kallsyms_is_explained);
	tap_run(broken_lines_are_passed_over);
	tap_run(kept_symbols_are_moved_too);
	tap_run(symbols_are_kept_once_a_boot);
	tap_run(vmlinux_is_found_by_release_and_build_id);
	return tap_end();
}
