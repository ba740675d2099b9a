/* SPDX-License-Identifier: MIT */
/*
 * Finding the file that was mapped. A path alone is not enough: the process may have had another
 * root, the file may have been replaced or deleted since. Who looks through a process first makes
 * sure that it still has that very file; a build-id that differs rules a file out everywhere.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "image/module.h"

#define DELETED " (deleted)"
#define VDSO    "[vdso]"

/* Addresses above it exist in 64-bit processes only. */
#define END_OF_32_BITS ((uint64_t)1 << 32)

/* What came of one place. */
struct found {
	int fd; /* or negative: */
	bool other_build, denied;
	struct build_id id; /* of the other build */
	char path[PATH_MAX];
	struct stat st;
};

static const struct {
	const char *prefix, *why;
} not_files[] = {
	{ "//anon", "memory that no file backs: code made at run time" },
	{ "[heap]", "the heap: code made at run time" },
	{ "[stack", "a stack" },
	{ "[anon", "memory that no file backs: code made at run time" },
	{ "[vvar", "data of the kernel, no code" },
	{ "[vsyscall]", "the kernel's vsyscall page, which has no symbols" },
	{ "[uprobes]", "the kernel's copies of instructions under a uprobe" },
};

const char *module_not_a_file(const char *path)
{
	if (!*path)
		return not_files[0].why;
	for (size_t i = 0; i < ARRAY_SIZE(not_files); i++)
		if (!strncmp(path, not_files[i].prefix, strlen(not_files[i].prefix)))
			return not_files[i].why;
	return NULL;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

static bool same_inode(const struct stat *st, const struct tally_mapping *map)
{
	return map->inode && st->st_ino == map->inode && major(st->st_dev) == map->dev_major &&
	       minor(st->st_dev) == map->dev_minor;
}

/*
 * Opens a regular file (O_NONBLOCK: a path may name a FIFO or a device by now) that is not of
 * another build than recorded; with `prove`, one that is known to be the mapped one.
 */
static bool try_file(struct found *found, const char *path, bool prove, const struct module *m,
		     const struct tally_mapping *map)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	found->denied |= fd == -EACCES || fd == -EPERM;
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		struct build_id id = elf_build_id(fd);
		bool differ = build_ids_differ(&id, &m->build_id);
		bool proven = (id.len && m->build_id.len) || same_inode(&st, map);
		if (!differ && (proven || !prove)) {
			found->fd = fd;
			found->st = st;
			snprintf(found->path, sizeof(found->path), "%s", path);
			return true;
		}
		if (differ) {
			found->other_build = true;
			found->id = id;
		}
	}
	sys()->close(fd);
	return false;
}

/*
 * map_files/START-END leads to the mapped file itself, deleted or out of reach as it may be. That
 * the living process has this path in this place proves that it is the recorded one. Needs root.
 */
static bool try_map_files(struct found *found, const struct module *m,
			  const struct module_search *where)
{
	char name[128], link[PATH_MAX], target[PATH_MAX];
	const struct tally_mapping *map = &where->map;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, where->pid,
		 map->start, map->end);
	if (proc_path(link, sizeof(link), where->root, name) < 0)
		return false;
	ssize_t len = readlink(link, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return !strcmp(target, m->path) && try_file(found, link, false, m, map);
}

static bool try_process_root(struct found *found, const char *path, const struct module *m,
			     const struct module_search *where)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s/proc/%d/root%s", where->root ? where->root : "",
			 where->pid, path);

	return n > 0 && (size_t)n < sizeof(full) && try_file(found, full, true, m, &where->map);
}

static bool try_symfs(struct found *found, const char *path, const struct module *m,
		      const struct module_search *where)
{
	char full[PATH_MAX];

	return where->symfs && proc_path(full, sizeof(full), where->symfs, path) == 0 &&
	       try_file(found, full, false, m, &where->map);
}

/* The path that the file had while it existed; answers whether it is said to be deleted. */
static bool undeleted(char path[PATH_MAX], const char *recorded)
{
	bool deleted = ends_in(recorded, DELETED);
	size_t len = strlen(recorded) - (deleted ? strlen(DELETED) : 0);

	snprintf(path, PATH_MAX, "%.*s", len < PATH_MAX ? (int)len : PATH_MAX, recorded);
	return deleted;
}

static bool find_file(struct found *found, const struct module *m,
		      const struct module_search *where)
{
	char path[PATH_MAX];

	if (m->path[0] != '/' || strlen(m->path) >= sizeof(path))
		return false;
	bool deleted = undeleted(path, m->path);
	if (try_symfs(found, path, m, where))
		return true;
	if (where->pid > 0 &&
	    (try_process_root(found, path, m, where) || try_map_files(found, m, where)))
		return true;
	/* What took the place of a deleted file must show that it is the same. */
	return try_file(found, path, deleted, m, &where->map);
}

static void explain_not_found(struct module *m, const struct found *found)
{
	char a[BUILD_ID_TEXT], b[BUILD_ID_TEXT];

	if (found->other_build)
		snprintf(m->trouble, sizeof(m->trouble),
			 "the file there now is another build (build-id %s) than the recorded one "
			 "(%s): put the recorded file back, or below --symfs",
			 build_id_text(a, &found->id), build_id_text(b, &m->build_id));
	else if (ends_in(m->path, DELETED))
		snprintf(m->trouble, sizeof(m->trouble),
			 "the file was deleted or replaced while it was mapped: report while the "
			 "process runs, as root");
	else if (found->denied)
		snprintf(m->trouble, sizeof(m->trouble),
			 "the file may not be read by this user: report as root or as its owner");
	else
		snprintf(m->trouble, sizeof(m->trouble),
			 "no such file here: recorded in another place? Put a copy below --symfs");
}

/* Finds what was taken out of the module's open file. */
static int find_debug(const struct module *m, const struct module_search *where, int fd,
		      enum debug_part part, struct debug_file *out)
{
	char path[PATH_MAX], process[PATH_MAX];
	struct debug_search search = {
		.path = path,
		.opened = m->opened,
		.roots = { where->symfs, where->pid > 0 ? process : NULL, "" },
		.debuginfod = where->debuginfod,
	};

	undeleted(path, m->path);
	snprintf(process, sizeof(process), "%s/proc/%d/root", where->root ? where->root : "",
		 where->pid);
	return debug_file_find(out, &search, fd, part);
}

static int add_debug_symbols(struct module *m, const struct module_search *where, int fd)
{
	struct debug_file debug;

	if (m->file.has_symtab)
		return 0;
	int r = find_debug(m, where, fd, DEBUG_SYMBOLS, &debug);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = elf_file_read_debug(&m->file, debug.fd);
	debug_file_done(&debug);
	return r == -ENOMEM ? r : 0;
}

int module_debug(const struct module *m, const struct module_search *where, struct debug_file *out)
{
	struct stat st;

	if (!m->opened)
		return -ENOENT;
	int fd = sys()->open(m->opened, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return -ENOENT;
	int r = -ENOENT;
	if (fstat(fd, &st) == 0 && st.st_dev == m->device && st.st_ino == m->inode)
		r = find_debug(m, where, fd, DEBUG_DWARF, out);
	sys()->close(fd);
	return r;
}

static int seal(struct module *m)
{
	if (elf_file_seal(&m->file) < 0)
		return -ENOMEM;
	size_t count = m->file.symtab.symbols.count;
	m->functions = count ? calloc(count, sizeof(*m->functions)) : NULL;
	if (count && !m->functions)
		return -ENOMEM;
	m->function_count = (uint32_t)count;
	if (!m->build_id.len)
		m->build_id = m->file.build_id;
	if (!m->file.has_symtab)
		snprintf(m->trouble, sizeof(m->trouble),
			 count ? "stripped, only exported functions have names: install its "
				 "-dbgsym package, or build without strip"
			       : "no symbol table: install its -dbgsym package, or build without "
				 "strip");
	return 0;
}

static int load_file(struct module *m, const struct module_search *where)
{
	struct found found = { .fd = -1 };

	if (!find_file(&found, m, where)) {
		explain_not_found(m, &found);
		return 0;
	}
	m->opened = strdup(found.path);
	m->device = found.st.st_dev;
	m->inode = found.st.st_ino;
	int r = m->opened ? elf_file_read(&m->file, found.fd) : -ENOMEM;
	if (r == 0)
		r = add_debug_symbols(m, where, found.fd);
	sys()->close(found.fd);
	if (r == -ENOEXEC) {
		elf_file_done(&m->file);
		snprintf(m->trouble, sizeof(m->trouble), "not an ELF file, or a broken one");
		return 0;
	}
	return r < 0 ? r : seal(m);
}

/* How far an image that the kernel made reaches. */
static size_t image_size(const ElfW(Ehdr) * head)
{
	const ElfW(Phdr) *segments = (const void *)((const char *)head + head->e_phoff);
	size_t size = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;

	for (size_t i = 0; i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_offset + segments[i].p_filesz > size)
			size = segments[i].p_offset + segments[i].p_filesz;
	return size;
}

/* Every process of this kernel has the same vdso as we have, but for those of another word size. */
static int load_vdso(struct module *m, const struct module_search *where)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);

	if (!at || (sizeof(long) == 8) != (where->map.start >= END_OF_32_BITS)) {
		snprintf(m->trouble, sizeof(m->trouble), "the vdso of a 32-bit program");
		return 0;
	}
	const ElfW(Ehdr) *image = (const void *)at; /* NOLINT: the kernel says where it is */
	int r = elf_file_read_memory(&m->file, image, image_size(image));
	if (r == -ENOMEM)
		return r;
	if (r < 0 || build_ids_differ(&m->file.build_id, &m->build_id)) {
		elf_file_done(&m->file);
		snprintf(m->trouble, sizeof(m->trouble),
			 "the vdso of another kernel than the running one");
		return 0;
	}
	m->file.has_symtab = true; /* it exports all that it has */
	return seal(m);
}

void module_done(struct module *m)
{
	elf_file_done(&m->file);
	free(m->functions);
	free(m->opened);
	m->functions = NULL;
	m->opened = NULL;
}

int module_load(struct module *m, const struct module_search *where)
{
	if (m->loaded)
		return 0;
	int r = !strcmp(m->path, VDSO) ? load_vdso(m, where) : load_file(m, where);
	if (r < 0) {
		module_done(m);
		return r;
	}
	m->loaded = true;
	return 0;
}

void module_without_file(struct module *m, const char *trouble)
{
	m->loaded = true;
	snprintf(m->trouble, sizeof(m->trouble), "%s", trouble);
}
