/* SPDX-License-Identifier: MIT */
/*
 * A module: what a mapping's path names. Its file is looked for and read when an address in it is
 * first asked for.
 */
#ifndef IMAGE_MODULE_H
#define IMAGE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/build-id.h"
#include "image/debug-file.h"
#include "image/elf.h"
#include "image/file-find.h"

struct module {
	const char *path, *name;  /* as recorded, and for people; the owner's */
	struct build_id build_id; /* recorded, else the file's */
	struct elf_file file;
	char *opened; /* path at which the file was found; NULL: it is none */
	uint64_t device, inode;
	const char **functions; /* by index; NULL until asked for */
	uint32_t function_count;
	uint64_t lookups, misses;
	bool loaded;
	char trouble[384]; /* why it names nothing, or little; "": it does */
};

/*
 * Reads the module's symbols. Returns 0 with `trouble` set when there are none or few. -ENOMEM.
 * The second and later calls do nothing.
 */
int module_load(struct module *m, const struct file_search *where);

/*
 * Opens the file with the module's DWARF, once it is loaded. Errors: -ENOENT: there is none here, or
 * the module's file is gone since; -ENOMEM.
 */
int module_debug(const struct module *m, const struct file_search *where, struct debug_file *out);

/* The vdso of this process, which is that of all. NULL: the kernel gives none. */
const void *module_vdso(size_t *size);

/*
 * Opens the file (or the vdso, as one) that module_load() would read, for who wants something else of
 * it. -ENOENT; -ESTALE: it is of another build; -EACCES.
 */
int module_open(const char *path, const struct file_search *where);

/* A module that is no file and has no symbols, and why. */
void module_without_file(struct module *m, const char *trouble);

/* Why memory with such a name has no symbols; NULL: it is a file's, or the vdso. */
const char *module_not_a_file(const char *path);

void module_done(struct module *m);

#endif
