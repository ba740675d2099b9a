/* SPDX-License-Identifier: MIT */
/* The modules whose unwind tables are in use. Each is read when an address in it is first met. */
#ifndef IMAGE_UNWIND_MODULES_H
#define IMAGE_UNWIND_MODULES_H

#include <tally/maps.h>

#include "image/builds.h"
#include "image/unwind-arch.h"
#include "image/unwind-table.h"

struct unwind_module {
	const char *path;
	struct unwind_table table;
	uint64_t broken;   /* stacks that ended in it */
	char trouble[192]; /* why it has no rules; "": it has */
};

/* Zeroed, but for the first four, is empty. */
struct unwind_modules {
	const char *root, *symfs, *cache; /* as in struct file_search */
	uint16_t machine;                 /* EM_* */
	VEC(struct unwind_module *) list;
	VEC(uint32_t) by_mapping; /* index + 1 */
	struct map64 by_file;     /* likewise, by a hash of path and inode */
	struct builds builds;
};

/*
 * The rules at an address in mapping number `mapping`, which is `map`, of process `pid`; NULL: none
 * are known. 0; 1: what is mapped there has no tables at all. -ENOMEM.
 */
int unwind_modules_rules(struct unwind_modules *m, const struct unwind_arch *arch, int32_t pid,
			 uint32_t mapping, const struct tally_mapping *map, uint64_t address,
			 const struct unwind_rules **rules);

/* Notes that a stack ended in a mapping; its module, UINT32_MAX: it has none. */
uint32_t unwind_modules_broken(struct unwind_modules *m, uint32_t mapping);

void unwind_modules_done(struct unwind_modules *m);

#endif
