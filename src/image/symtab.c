/* SPDX-License-Identifier: MIT */
/* Sorting functions, choosing among aliases, and searching. */
#include <stdlib.h>
#include <string.h>

#include "image/symtab.h"

#define DIGIT_BITS 8
#define DIGITS     (1 << DIGIT_BITS)

struct key {
	uint64_t start;
	uint32_t index;
};

bool symtab_add(struct symtab *t, const struct symbol *symbol)
{
	struct symbol *slot = t->symbols.count < SYMTAB_NONE - 1 ? vec_push(&t->symbols) : NULL;

	if (!slot)
		return false;
	*slot = *symbol;
	return true;
}

/* One pass of a radix sort, stable, from `a` to `b` by the digit at `shift`. */
static void sort_digit(const struct key *a, struct key *b, size_t count, unsigned shift)
{
	size_t at[DIGITS + 1] = { 0 };

	for (size_t i = 0; i < count; i++)
		at[(a[i].start >> shift & (DIGITS - 1)) + 1]++;
	for (size_t i = 1; i < DIGITS; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < count; i++)
		b[at[a[i].start >> shift & (DIGITS - 1)]++] = a[i];
}

/* Sorts keys[0..count) with keys[count..2 count) as scratch space; returns where they are. */
static struct key *sort_keys(struct key *keys, size_t count)
{
	struct key *from = keys, *to = keys + count;
	uint64_t differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= keys[i].start ^ keys[0].start;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		sort_digit(from, to, count, shift);
		struct key *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

bool symtab_sort(struct symtab *t)
{
	size_t count = t->symbols.count;
	if (count < 2)
		return true;
	struct key *keys = calloc(count, 2 * sizeof(*keys));
	struct symbol *sorted = calloc(count, sizeof(*sorted));
	if (!keys || !sorted) {
		free(keys);
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct key){ t->symbols.at[i].start, (uint32_t)i };
	const struct key *order = sort_keys(keys, count);
	for (size_t i = 0; i < count; i++)
		sorted[i] = t->symbols.at[order[i].index];
	free(keys);
	free(t->symbols.at);
	t->symbols.at = sorted;
	t->symbols.room = count;
	return true;
}

/*
 * Whether `b` names their common address better than `a`, which came before. What perf(1) shows
 * decides, so that reports agree: a symbol with a size, then one that is not weak, then a global
 * one, then the one with fewer leading underscores, then the longer name.
 */
static bool is_better(const struct symbol *b, const struct symbol *a, symtab_name_fn *name,
		      const void *owner)
{
	bool a_sized = a->end > a->start, b_sized = b->end > b->start;

	if (a_sized != b_sized)
		return b_sized;
	if (a->binding != b->binding)
		return b->binding > a->binding;
	const char *a_name = name(owner, a), *b_name = name(owner, b);
	size_t a_bars = strspn(a_name, "_"), b_bars = strspn(b_name, "_");
	if (a_bars != b_bars)
		return b_bars < a_bars;
	return strlen(b_name) > strlen(a_name);
}

static void choose_aliases(struct symtab *t, symtab_name_fn *name, const void *owner)
{
	struct symbol *kept = t->symbols.at;

	for (size_t i = 1; i < t->symbols.count; i++) {
		const struct symbol *s = &t->symbols.at[i];
		if (s->start != kept->start)
			*++kept = *s;
		else if (is_better(s, kept, name, owner))
			*kept = *s;
	}
	if (t->symbols.count)
		t->symbols.count = (size_t)(kept - t->symbols.at) + 1;
}

static void cut(struct symtab *t, uint64_t start, uint32_t owner)
{
	/* A function that begins where another ended. */
	if (t->cuts && t->starts[t->cuts - 1] == start)
		t->cuts--;
	t->starts[t->cuts] = start;
	t->owners[t->cuts++] = owner;
}

/*
 * Walks the starts with a stack of the functions that are open there, the innermost on top; an end
 * gives the address back to what lies below. Each function is pushed and popped once.
 */
static void cut_all(struct symtab *t, uint32_t *open)
{
	const struct symbol *symbols = t->symbols.at;
	size_t depth = 0;

	for (size_t i = 0; i <= t->symbols.count; i++) {
		uint64_t start = i < t->symbols.count ? symbols[i].start : UINT64_MAX;
		while (depth && symbols[open[depth - 1]].end <= start) {
			uint64_t end = symbols[open[--depth]].end;
			while (depth && symbols[open[depth - 1]].end <= end)
				depth--;
			cut(t, end, depth ? open[depth - 1] : SYMTAB_NONE);
		}
		if (i == t->symbols.count)
			break;
		cut(t, start, (uint32_t)i);
		open[depth++] = (uint32_t)i;
	}
}

bool symtab_seal(struct symtab *t, symtab_name_fn *name, const void *owner)
{
	choose_aliases(t, name, owner);
	size_t count = t->symbols.count;
	if (!count)
		return true;
	uint32_t *open = calloc(count, sizeof(*open));
	t->starts = calloc(count, 2 * sizeof(*t->starts));
	t->owners = calloc(count, 2 * sizeof(*t->owners));
	if (open && t->starts && t->owners)
		cut_all(t, open);
	free(open);
	return t->cuts != 0;
}

uint32_t symtab_find(const struct symtab *t, uint64_t address)
{
	const uint64_t *base = t->starts;

	if (!t->cuts || address < base[0])
		return SYMTAB_NONE;
	/* Halving without a branch to mispredict: the compiler makes a conditional move of it. */
	for (size_t n = t->cuts; n > 1; n -= n / 2)
		base += base[n / 2] <= address ? n / 2 : 0;
	return t->owners[base - t->starts];
}

void symtab_done(struct symtab *t)
{
	vec_done(&t->symbols);
	free(t->starts);
	free(t->owners);
	*t = (struct symtab){ 0 };
}
