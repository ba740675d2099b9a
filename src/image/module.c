/* SPDX-License-Identifier: MIT */
/* Reading the symbols of mapped files. */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "image/cache.h"
#include "image/module.h"

#define VDSO "[vdso]"

#define OS_RELEASE_LIMIT 65536

/* Addresses above it exist in 64-bit processes only. */
#define END_OF_32_BITS ((uint64_t)1 << 32)

#define NO_FILE                                                                                  \
	"memory that no file backs: code made at run time. Its names are in /tmp/perf-PID.map, " \
	"if the program is told to write it: node --perf-basic-prof, python -X perf, "           \
	"java -XX:+DumpPerfMapAtExit"

static const struct {
	const char *prefix, *why;
} not_files[] = {
	{ "//anon", NO_FILE },
	{ "[heap]", "the heap: code made at run time" },
	{ "[stack", "a stack" },
	{ "[anon", NO_FILE },
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

static void explain_not_found(struct module *m, const struct file_found *found)
{
	char a[BUILD_ID_TEXT], b[BUILD_ID_TEXT], path[PATH_MAX];

	if (found->other_build)
		snprintf(m->trouble, sizeof(m->trouble),
			 "the file there now is another build (build-id %s) than the recorded one "
			 "(%s): put the recorded file back, or below --symfs",
			 build_id_text(a, &found->id), build_id_text(b, &m->build_id));
	else if (found->replaced)
		snprintf(m->trouble, sizeof(m->trouble),
			 "the file there now is not the one that was mapped (another inode, and no "
			 "build-id tells otherwise): put the recorded file back below --symfs");
	else if (file_undeleted(path, m->path))
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
static int find_debug(const struct module *m, const struct file_search *where, int fd,
		      enum debug_part part, struct debug_file *out)
{
	char path[PATH_MAX], process[PATH_MAX];
	struct debug_search search = {
		.path = path,
		.opened = m->opened,
		.roots = { where->symfs, where->pid > 0 ? process : NULL, "" },
		.debuginfod = where->debuginfod,
	};

	file_undeleted(path, m->path);
	file_process_root(process, where);
	return debug_file_find(out, &search, fd, part);
}

static int add_debug_symbols(struct module *m, const struct file_search *where, int fd)
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

int module_debug(const struct module *m, const struct file_search *where, struct debug_file *out)
{
	struct stat st;

	if (!m->opened)
		return -ENOENT;
	int fd = file_open_regular(m->opened, &st);
	if (fd < 0)
		return -ENOENT;
	int r = -ENOENT;
	if (st.st_dev == m->device && st.st_ino == m->inode)
		r = find_debug(m, where, fd, DEBUG_DWARF, out);
	sys()->close(fd);
	return r;
}

/* What distributions call the packages that have what was stripped: by ID or ID_LIKE, os-release(5). */
static const struct {
	const char *distribution, *package;
} debug_packages[] = {
	{ "debian", "its -dbgsym package" },    { "ubuntu", "its -dbgsym package" },
	{ "fedora", "its -debuginfo package" }, { "rhel", "its -debuginfo package" },
	{ "suse", "its -debuginfo package" },   { "arch", "its -debug package" },
	{ "alpine", "its -dbg package" },
};

static const char *debug_package(const char *root)
{
	struct buf text = { 0 };
	const char *package = "its package with debugging information";

	if (proc_read(&text, root, "/etc/os-release", OS_RELEASE_LIMIT) == 0 && buf_text(&text))
		for (const char *line = text.at; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			if (strncmp(line, "ID", 2) != 0)
				continue;
			size_t len = strcspn(line, "\n");
			for (size_t i = 0; i < ARRAY_SIZE(debug_packages); i++)
				if (memmem(line, len, debug_packages[i].distribution,
					   strlen(debug_packages[i].distribution)))
					package = debug_packages[i].package;
		}
	buf_done(&text);
	return package;
}

static void explain_stripped(struct module *m, const struct file_search *where, size_t count)
{
	snprintf(m->trouble, sizeof(m->trouble), "%s: install %s%s, or build it without strip",
		 count ? "stripped, only exported functions have names" : "no symbol table",
		 debug_package(where->root),
		 where->debuginfod ? "" : ", ask servers for its symbols (--debuginfod)");
}

static int seal(struct module *m, const struct file_search *where)
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
		explain_stripped(m, where, count);
	return 0;
}

static int load_file(struct module *m, const struct file_search *where)
{
	struct file_found found;

	if (!file_find(&found, where)) {
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
	return r < 0 ? r : seal(m, where);
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

const void *module_vdso(size_t *size)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *image = (const void *)at; /* NOLINT: the kernel says where it is */

	*size = image ? image_size(image) : 0;
	return image;
}

/* That of another kernel, which a recording kept. -ENOENT: none did. */
static int load_kept_vdso(struct module *m, const struct file_search *where)
{
	char path[PATH_MAX];
	struct stat st;

	if (!where->cache || !cache_path(path, where->cache, CACHE_PROGRAM, &m->build_id))
		return -ENOENT;
	int fd = file_open_regular(path, &st);
	if (fd < 0)
		return -ENOENT;
	int r = elf_file_read(&m->file, fd);
	sys()->close(fd);
	if (r == 0 && !build_ids_match(&m->file.build_id, &m->build_id))
		r = -ENOENT;
	return r;
}

/* Every process of this kernel has the same vdso as we have, but for those of another word size. */
static int load_own_vdso(struct module *m, const struct file_search *where)
{
	size_t size;
	const void *image = module_vdso(&size);

	if (!image || (sizeof(long) == 8) != (where->map.start >= END_OF_32_BITS)) {
		snprintf(m->trouble, sizeof(m->trouble), "the vdso of a 32-bit program");
		return -ENOENT;
	}
	int r = elf_file_read_memory(&m->file, image, size);
	if (r == -ENOMEM || (r == 0 && !build_ids_differ(&m->file.build_id, &m->build_id)))
		return r;
	snprintf(m->trouble, sizeof(m->trouble), "the vdso of another kernel than the running one");
	return -ENOENT;
}

static int load_vdso(struct module *m, const struct file_search *where)
{
	int r = load_own_vdso(m, where);

	if (r < 0 && r != -ENOMEM) {
		elf_file_done(&m->file);
		r = load_kept_vdso(m, where);
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		elf_file_done(&m->file);
		return 0;
	}
	m->trouble[0] = '\0';
	m->file.has_symtab = true; /* it exports all that it has */
	return seal(m, where);
}

void module_done(struct module *m)
{
	elf_file_done(&m->file);
	free(m->functions);
	free(m->opened);
	m->functions = NULL;
	m->opened = NULL;
}

/* The vdso as a file of its own. */
static int open_vdso(const struct file_search *where)
{
	size_t size;
	const void *image = module_vdso(&size);
	bool same_words = (sizeof(long) == 8) == (where->map.start >= END_OF_32_BITS);
	int fd = image && same_words ? memfd_create("tally-vdso", MFD_CLOEXEC) : -1;
	struct build_id id = { 0 };

	if (fd < 0)
		return -ENOENT;
	if (sys_write_all(fd, image, size) == 0)
		id = elf_build_id(fd);
	if (id.len && !build_ids_differ(&id, &where->build_id))
		return fd;
	sys()->close(fd);
	return -ESTALE;
}

int module_open(const char *path, const struct file_search *where)
{
	struct file_found found = { .fd = -1 };

	if (!strcmp(path, VDSO))
		return open_vdso(where);
	if (file_find(&found, where))
		return found.fd;
	return found.other_build ? -ESTALE : found.denied ? -EACCES : -ENOENT;
}

int module_load(struct module *m, const struct file_search *where)
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
