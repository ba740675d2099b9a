/* SPDX-License-Identifier: MIT */
/*
 * A module: what a mapping's path names. Its file is looked for and read when an address in it is
 * first asked for.
 */
#ifndef IMAGE_MODULE_H
#define IMAGE_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

#include "image/build-id.h"
#include "image/elf.h"

struct module {
	const char *path, *name;  /* as recorded, and for people; the owner's */
	struct build_id build_id; /* recorded, else the file's */
	struct elf_file file;
	const char **functions; /* by index; NULL until asked for */
	uint32_t function_count;
	uint64_t lookups, misses;
	bool loaded;
	char trouble[384]; /* why it names nothing, or little; "": it does */
};

/* Where to look. */
struct module_search {
	const char *root, *symfs;
	int32_t pid; /* that had it mapped so: */
	struct tally_mapping map;
};

/*
 * Reads the module's symbols. Returns 0 with `trouble` set when there are none or few. -ENOMEM.
 * The second and later calls do nothing.
 */
int module_load(struct module *m, const struct module_search *where);

/*
 * Opens the file (or the vdso, as one) that module_load() would read, for who wants something else of
 * it; `m` needs its path and build-id alone. -ENOENT; -ESTALE: it is of another build; -EACCES.
 */
int module_open(const struct module *m, const struct module_search *where);

/* A module that is no file and has no symbols, and why. */
void module_without_file(struct module *m, const char *trouble);

/* Why memory with such a name has no symbols; NULL: it is a file's, or the vdso. */
const char *module_not_a_file(const char *path);

void module_done(struct module *m);

#endif
