/* SPDX-License-Identifier: MIT */
/*
 * The recorded kernel's functions, moved to where it had them: from /proc/kallsyms when it still
 * runs, else from what a recording kept of it, else from its vmlinux.
 */
#ifndef IMAGE_KERNEL_H
#define IMAGE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "image/build-id.h"
#include "image/file-find.h"
#include "image/symtab.h"
#include "image/texts.h"

#define KERNEL_NAME "[kernel.kallsyms]" /* perf's name for it */

/* The recorded kernel, as far as the recording says. */
struct kernel_recorded {
	const char *symbol; /* "_text", or another; NULL: unknown */
	uint64_t address;   /* its address there; 0: unknown */
	struct build_id build_id;
	char release[64]; /* "": unknown */
};

struct kernel {
	struct symtab symtab; /* group 0: the kernel itself; else a module, + 1 */
	char *names;
	struct texts modules;     /* "[ext4]" */
	VEC(uint32_t) counts;     /* of functions in each group */
	uint64_t delta;           /* recorded address - running address */
	struct build_id build_id; /* of the one that they are from */
	bool kept;                /* they are not from the running one */
	char trouble[384];        /* why there are no symbols; "": there are */
};

/*
 * Reads the symbols into a zeroed `*k`: below the root, in the cache, below symfs, from servers, as
 * far as `where` has these. Returns 0 with `trouble` set when there are none to use. -ENOMEM.
 */
int kernel_load(struct kernel *k, const struct file_search *where,
		const struct kernel_recorded *recorded);

/* As kernel_load, from a malloc'ed text, which becomes the kernel's. -ENOMEM. */
int kernel_parse(struct kernel *k, char *text, size_t len, const char *root,
		 const struct kernel_recorded *recorded);

/* The build-id of the kernel below `root`; len 0: it does not tell. */
struct build_id kernel_build_id(const char *root);

/*
 * Keeps the running kernel's symbols for kernel_load() in the cache, unless they are there as they
 * are now. 0, or -errno: they cannot be read, or not be kept.
 */
int kernel_keep(const char *root, const char *cache);

/* The function that covers a recorded address, or SYMTAB_NONE. */
uint32_t kernel_find(const struct kernel *k, uint64_t address);

const char *kernel_function(const struct kernel *k, uint32_t index);
/* "[kernel.kallsyms]" or "[module]". */
const char *kernel_module(const struct kernel *k, uint32_t index);

/* How many functions a module of that name has. */
uint32_t kernel_count(const struct kernel *k, const char *module);

void kernel_done(struct kernel *k);

#endif
