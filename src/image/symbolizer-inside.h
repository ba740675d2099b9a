/* SPDX-License-Identifier: MIT */
/* What the parts of the symbolizer have of each other. */
#ifndef IMAGE_SYMBOLIZER_INSIDE_H
#define IMAGE_SYMBOLIZER_INSIDE_H

#include <limits.h>
#include <tally/symbolizer.h>

#include "base/hash.h"
#include "base/vec.h"
#include "image/builds.h"
#include "image/jit.h"
#include "image/kernel.h"
#include "image/maps.h"
#include "image/module.h"
#include "image/texts.h"

/* Sets of two answers: with one place each, a quarter of 1,000 hot addresses would meet another. */
#define CACHE_BITS 11
#define CACHE_WAYS 2

/* Mappings that are looked into at a time, by their numbers. */
#define SHORTCUTS 256

#define UNMAPPED      "[unknown]" /* perf's word */
#define NOTHING_THERE "nothing is mapped there"

/* Numbers of functions in modules whose functions are known by their names alone. */
#define BY_NAME 0x80000000u

struct answer {
	struct tally_frame frame;
	uint32_t mapping, mode; /* mode as asked for */
	bool used;
};

/*
 * Of a mapped file with symbols: the module, and how addresses in part of the mapping become its own.
 * A search in a sealed symtab touches less memory than a kept answer.
 */
struct shortcut {
	uint32_t mapping; /* 0: none */
	uint32_t module;  /* number + 1 */
	uint64_t first, last, bias;
};

/* The DWARF of modules, as far as it was asked for: symbolizer-lines.c. */
struct source_lines;

struct tally_symbolizer {
	struct tally_symbolizer_opts opts;
	struct tally_maps *maps;
	struct texts texts;
	VEC(struct module *) modules;
	struct map64 by_file; /* hash of path_id and inode -> module + 1 */
	struct map64 by_name; /* index in texts -> module + 1, for what is no file */
	struct builds builds;
	struct jit jit;
	struct kernel kernel;
	struct kernel_recorded recorded;
	const char **kernel_functions; /* by index; NULL until asked for */
	bool kernel_loaded;
	bool fleeting; /* the answer at hand may be another one soon */
	char cache_folder[PATH_MAX];
	struct shortcut shortcuts[SHORTCUTS];
	struct answer_set { /* of what has no shortcut */
		struct answer way[CACHE_WAYS];
		uint32_t next; /* the way that gives place */
	} cache[1 << CACHE_BITS];
	struct source_lines *lines; /* NULL until asked for */
	uint8_t *code;              /* of the last function that was asked for */
};

/* ---- symbolizer.c ---- */

/* The number + 1 of the module that is no file; 0: no memory. */
uint32_t symbolizer_module_by_name(struct tally_symbolizer *s, const char *path,
				   const char *trouble);
/* `module` is its number + 1. */
void symbolizer_fill(const struct tally_symbolizer *s, struct tally_frame *out, uint32_t module);
/* A linker's name as people read it, interned; NULL: no memory. */
const char *symbolizer_readable(struct tally_symbolizer *s, const char *name, bool is_plt);
/* By its name alone; the text stands for the function. 1, -ENOMEM. */
int symbolizer_name_function(struct tally_symbolizer *s, const char *name, uint64_t start,
			     struct tally_frame *out);
/* Where to look for the file of an address; false: no file is mapped there. */
bool symbolizer_search(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
		       struct file_search *out);

/* ---- symbolizer-kernel.c ---- */

/* As tally_symbolizer_find(); `mapping` 0: none is known there. */
int symbolizer_name_kernel(struct tally_symbolizer *s, uint32_t mapping, struct tally_frame *out);
/* The kernel's names are loaded anew when they are next needed. */
void symbolizer_forget_kernel(struct tally_symbolizer *s);

/* ---- symbolizer-made.c ---- */

/*
 * As tally_symbolizer_find(), for memory of `owner` that is module `m`, which has no symbols. What it
 * answers may be another thing soon.
 */
int symbolizer_name_made(struct tally_symbolizer *s, int32_t pid, int32_t owner, uint64_t time,
			 struct module *m, struct tally_frame *out);
/* The line of such code. 1, or 0: none is told; -ENOMEM. */
int symbolizer_made_line(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
			 const char **file, uint32_t *line);

/* ---- symbolizer-lines.c ---- */

/* NULL is fine. */
void source_lines_free(struct source_lines *lines);

#endif
