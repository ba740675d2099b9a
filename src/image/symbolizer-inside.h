/* SPDX-License-Identifier: MIT */
/* What the parts of the symbolizer have of each other. */
#ifndef IMAGE_SYMBOLIZER_INSIDE_H
#define IMAGE_SYMBOLIZER_INSIDE_H

#include <tally/symbolizer.h>

#include "image/module.h"

/* ---- symbolizer-lines.c ---- */

/* The DWARF of modules, as far as it was asked for. */
struct source_lines;

/* NULL is fine. */
void source_lines_free(struct source_lines *lines);

/* ---- symbolizer.c ---- */

/* Where the symbolizer keeps it. */
struct source_lines **symbolizer_source_lines(struct tally_symbolizer *s);
/* Where it keeps the code of the last function that was asked for. */
uint8_t **symbolizer_code_bytes(struct tally_symbolizer *s);
/* By its number in frames. */
const struct module *symbolizer_module_at(const struct tally_symbolizer *s, uint32_t id);
/* A linker's name as people read it, interned; NULL: no memory. */
const char *symbolizer_readable(struct tally_symbolizer *s, const char *name);
/* Where to look for the file of an address; false: no file is mapped there. */
bool symbolizer_search(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
		       struct file_search *out);

#endif
