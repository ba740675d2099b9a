/* SPDX-License-Identifier: MIT */
/*
 * The functions of one module, sorted for look-ups. Filled in any order and sorted; then the owner
 * sets the sizes that nobody stated, which takes the neighbours; then sealed. Addresses are kept
 * as distances from a base, in 32 bits: half the memory to fill and to search. What lies more than
 * 4 GiB behind the base is left out; no code model reaches so far.
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
	uint32_t start;  /* from the base */
	uint32_t size;   /* 0: unknown; start + size does not wrap */
	uint32_t name;   /* the owner's: an offset in its string table */
	uint16_t group;  /* the owner's */
	uint8_t binding; /* enum symbol_binding */
	uint8_t kind;    /* the owner's */
};

#define SYMTAB_NONE UINT32_MAX

/*
 * From `start` to that of the next it is `owner`, or SYMTAB_NONE; with SYMTAB_AGAIN, which is no part
 * of its index, that began before, and another lay within it.
 */
#define SYMTAB_AGAIN 0x80000000u
struct symtab_cut {
	uint32_t start, owner;
};

struct symtab {
	uint64_t base;
	VEC(struct symbol) symbols; /* sorted by start; one for each start when sealed */
	/* The addresses cut where the innermost function changes; in sorting's scratch space. */
	struct symtab_cut *cuts;
	size_t cut_count;
	/*
	 * The cut that holds where a block of 1 << shift addresses begins. A block has about four
	 * cuts, so that a look-up reads an entry here and a line or two of cuts: halving all of
	 * them would miss the cache a dozen times.
	 */
	uint32_t *blocks;
	uint32_t block_count; /* and one more, for where the last one ends */
	unsigned shift;
};

/* The text of a symbol's name, for telling apart aliases. */
typedef const char *symtab_name_fn(const void *owner, const struct symbol *symbol);

/* Room for `more` symbols. false: no memory. */
bool symtab_reserve(struct symtab *t, size_t more);
/* `symbol` but for start and size, which are given as addresses. false: no memory. */
bool symtab_add(struct symtab *t, uint64_t start, uint64_t size, struct symbol symbol);
bool symtab_sort(struct symtab *t);
bool symtab_seal(struct symtab *t, symtab_name_fn *name, const void *owner);

/* The index of the function that covers `address`, or SYMTAB_NONE; `*start`: where it begins. */
uint32_t symtab_find_start(const struct symtab *t, uint64_t address, uint64_t *start);
uint32_t symtab_find(const struct symtab *t, uint64_t address);
uint64_t symtab_start(const struct symtab *t, uint32_t index);

void symtab_done(struct symtab *t);

#endif
