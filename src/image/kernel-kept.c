/* SPDX-License-Identifier: MIT */
/*
 * Kernels that are gone: what a recording kept of /proc/kallsyms, packed with zstd, and the kernel's
 * own file, vmlinux, which distributions have in packages for debuggers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "image/cache.h"
#include "image/debuginfod.h"
#include "image/elf.h"
#include "image/kernel-kept.h"

#define KALLSYMS     "/proc/kallsyms"
#define MAX_KALLSYMS ((size_t)256 << 20)
#define MAX_MODULES  ((size_t)1 << 20)

/* Fast, and to a quarter. */
#define LEVEL 1

/* ---- what recordings kept ---- */

/* Unpacks a whole file; NULL in `at`: there is none, or it is broken. */
static struct buf read_kept(const char *path)
{
	struct buf packed = { 0 }, text = { 0 };

	if (proc_read(&packed, NULL, path, MAX_KALLSYMS) == 0) {
		unsigned long long size = ZSTD_getFrameContentSize(packed.at, packed.len);
		char *at = size && size <= MAX_KALLSYMS ? malloc(size) : NULL;
		if (at && ZSTD_decompress(at, size, packed.at, packed.len) == size)
			text = (struct buf){ .at = at, .len = size, .room = size };
		else
			free(at);
	}
	buf_done(&packed);
	return text;
}

static int load_text(struct kernel *k, const struct file_search *where,
		     const struct kernel_recorded *recorded, const struct build_id *id)
{
	char path[PATH_MAX];

	if (!where->cache || !recorded->address ||
	    !cache_path(path, where->cache, CACHE_KERNEL, id))
		return 0;
	struct buf text = read_kept(path);
	if (!text.at)
		return 0;
	k->build_id = *id;
	int r = kernel_parse(k, text.at, text.len, where->root, recorded);
	return r < 0 ? r : !k->trouble[0];
}

/* ---- vmlinux ---- */

/* By release, where distributions and builds put it: perf(1)'s list (util/symbol.c). */
static const struct {
	const char *before, *after;
} by_release[] = {
	{ "/boot/vmlinux-", "" },
	{ "/usr/lib/debug/boot/vmlinux-", "" },
	{ "/lib/modules/", "/build/vmlinux" },
	{ "/usr/lib/debug/lib/modules/", "/vmlinux" },
	{ "/usr/lib/debug/boot/vmlinux-", ".debug" },
};

/* An open file of that build, or a negative errno. */
static int open_proven(const char *root, const char *path, const struct build_id *id)
{
	char full[PATH_MAX];
	struct stat st;
	int fd = proc_path(full, sizeof(full), root, path) == 0 ? file_open_regular(full, &st)
								: -ENOENT;

	if (fd < 0)
		return fd;
	struct build_id own = elf_build_id(fd);
	if (build_ids_match(&own, id))
		return fd;
	sys()->close(fd);
	return -ENOENT;
}

static int find_below(const char *root, const char *release, const struct build_id *id)
{
	char path[PATH_MAX], text[BUILD_ID_TEXT];
	int fd = -ENOENT;

	build_id_text(text, id);
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", text, text + 2);
	fd = open_proven(root, path, id);
	for (size_t i = 0; i < ARRAY_SIZE(by_release) && fd < 0 && release[0]; i++) {
		snprintf(path, sizeof(path), "%s%s%s", by_release[i].before, release,
			 by_release[i].after);
		fd = open_proven(root, path, id);
	}
	return fd;
}

static int find_vmlinux(const struct file_search *where, const char *release,
			const struct build_id *id)
{
	char own[sizeof(((struct kernel_recorded *)NULL)->release)] = "";
	int fd = -ENOENT;

	if (!release[0] &&
	    proc_read_line(own, sizeof(own), where->root, "/proc/sys/kernel/osrelease") == 0)
		release = own;
	if (where->symfs)
		fd = find_below(where->symfs, release, id);
	if (fd < 0)
		fd = find_below(NULL, release, id);
	return fd < 0 && where->debuginfod ? debuginfod_open(id, DEBUGINFOD_DEBUG, NULL) : fd;
}

static bool address_of(const struct elf_file *f, const char *name, uint64_t *address)
{
	for (size_t i = 0; i < f->symtab.symbols.count; i++)
		if (!strcmp(elf_file_name(f, (uint32_t)i), name)) {
			*address = symtab_start(&f->symtab, (uint32_t)i);
			return true;
		}
	return false;
}

static int load_vmlinux(struct kernel *k, const struct file_search *where,
			const struct kernel_recorded *recorded, const struct build_id *id)
{
	struct elf_file f = { 0 };
	uint64_t address;
	int fd = recorded->address ? find_vmlinux(where, recorded->release, id) : -ENOENT;

	if (fd < 0)
		return 0;
	int r = elf_file_read(&f, fd);
	sys()->close(fd);
	if (r == 0)
		r = elf_file_seal(&f);
	if (r == 0 && address_of(&f, recorded->symbol, &address)) {
		k->delta = recorded->address - address;
		k->build_id = *id;
		r = kernel_take(k, &f);
	}
	elf_file_done(&f);
	return r < 0 && r != -ENOMEM ? 0 : r;
}

int kernel_load_kept(struct kernel *k, const struct file_search *where,
		     const struct kernel_recorded *recorded, struct build_id id)
{
	if (!id.len || !recorded->symbol)
		return 0;
	int r = load_text(k, where, recorded, &id);
	if (r != 0)
		return r;
	kernel_done(k);
	k->kept = true;
	return load_vmlinux(k, where, recorded, &id);
}

/* ---- keeping ---- */

/* Changes with every boot and whenever a module comes or goes: "# boot hash". */
static int describe(struct buf *out, const char *root)
{
	char boot[64];
	struct buf modules = { 0 };
	int r = proc_read_line(boot, sizeof(boot), root, "/proc/sys/kernel/random/boot_id");

	/* There is no such file where the kernel is built without modules. */
	int none = r == 0 ? proc_read(&modules, root, "/proc/modules", MAX_MODULES) : 0;
	if (none < 0 && none != -ENOENT)
		r = none;
	uint64_t hash = cache_hash(CACHE_HASH_START, modules.at, modules.len);
	buf_printf(out, "# %s %016llx\n", boot, (unsigned long long)hash);
	buf_done(&modules);
	return r < 0 ? r : out->failed ? -ENOMEM : 0;
}

static bool is_kept(const char *path, const struct buf *head)
{
	struct buf text = read_kept(path);
	bool same = text.at && text.len >= head->len && !memcmp(text.at, head->at, head->len);

	buf_done(&text);
	return same;
}

/* Data symbols are two thirds of the list; what is not code in it names nothing here. */
static void keep_code(struct buf *text, size_t from)
{
	char *at = text->at + from, *end = text->at + text->len, *to = at;

	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		char *next = newline ? newline + 1 : end;
		const char *type = memchr(at, ' ', (size_t)(next - at));
		if (type && type + 1 < next && strchr("tTwW", type[1])) {
			memmove(to, at, (size_t)(next - at));
			to += next - at;
		}
		at = next;
	}
	text->len = (size_t)(to - text->at);
}

int kernel_keep(const char *root, const char *cache)
{
	struct build_id id = kernel_build_id(root);
	struct buf text = { 0 };
	char path[PATH_MAX];

	if (!cache_path(path, cache, CACHE_KERNEL, &id))
		return -ENOENT;
	int r = describe(&text, root);
	if (r < 0 || is_kept(path, &text)) {
		buf_done(&text);
		return r;
	}
	size_t head = text.len;
	r = proc_read(&text, root, KALLSYMS, MAX_KALLSYMS);
	if (r == 0)
		keep_code(&text, head);
	/* Hidden addresses are zeroes. */
	if (r == 0 && (text.len < head + 16 || !memcmp(text.at + head, "0000000000000000", 16)))
		r = -EACCES;
	if (r == 0) {
		size_t room = ZSTD_compressBound(text.len);
		char *packed = malloc(room);
		size_t len = packed ? ZSTD_compress(packed, room, text.at, text.len, LEVEL) : 0;
		r = !packed ? -ENOMEM : ZSTD_isError(len) ? -EIO : 0;
		if (r == 0)
			r = cache_replace(cache, CACHE_KERNEL, &id, packed, len);
		free(packed);
	}
	buf_done(&text);
	return r;
}
