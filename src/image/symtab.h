/* SPDX-License-Identifier: MIT */
/*
 * The functions of one module, sorted for look-ups. Filled in any order and sorted; then the owner
 * sets the ends that nobody stated, which takes the neighbours; then sealed.
 */
#ifndef IMAGE_SYMTAB_H
#define IMAGE_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum symbol_binding {
	SYMBOL_WEAK,
	SYMBOL_LOCAL,
	SYMBOL_GLOBAL
}; /* the best last */

struct symbol {
	uint64_t start, end; /* end exclusive; equal to start: no size */
	uint32_t name;       /* the owner's: an offset in its string table */
	uint16_t group;      /* the owner's */
	uint8_t binding;     /* enum symbol_binding */
	uint8_t kind;        /* the owner's */
};

#define SYMTAB_NONE UINT32_MAX

struct symtab {
	VEC(struct symbol) symbols; /* sorted by start; one for each start when sealed */
	/*
	 * Addresses cut where the innermost function changes: from starts[i] to starts[i + 1] it is
	 * owners[i], or SYMTAB_NONE.
	 */
	uint64_t *starts;
	uint32_t *owners;
	size_t cuts;
};

/* The text of a symbol's name, for telling apart aliases. */
typedef const char *symtab_name_fn(const void *owner, const struct symbol *symbol);

/* false: no memory. */
bool symtab_add(struct symtab *t, const struct symbol *symbol);
bool symtab_sort(struct symtab *t);
bool symtab_seal(struct symtab *t, symtab_name_fn *name, const void *owner);

/* The index of the function that covers `address`, or SYMTAB_NONE. */
uint32_t symtab_find(const struct symtab *t, uint64_t address);

void symtab_done(struct symtab *t);

#endif
