/* SPDX-License-Identifier: MIT */
/* Sorting functions, choosing among aliases, and searching. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "image/bulk.h"
#include "image/symtab.h"

#define DIGIT_BITS 11
#define DIGITS     (1 << DIGIT_BITS)

bool symtab_reserve(struct symtab *t, size_t more)
{
	return bulk_reserve(&t->symbols, more);
}

bool symtab_add(struct symtab *t, uint64_t start, uint64_t size, struct symbol symbol)
{
	uint64_t distance = start - t->base;

	if (start < t->base || distance >= UINT32_MAX)
		return true;
	symbol.start = (uint32_t)distance;
	symbol.size = size < UINT32_MAX - distance ? (uint32_t)size : UINT32_MAX - symbol.start;
	if (t->symbols.count >= SYMTAB_AGAIN - 1 || !vec_reserve(&t->symbols, 1))
		return false;
	t->symbols.at[t->symbols.count++] = symbol;
	return true;
}

/* One pass of a radix sort, stable, from `a` to `b` by the digit at `shift`. */
static void sort_digit(const struct symbol *a, struct symbol *b, size_t count, unsigned shift)
{
	uint32_t at[DIGITS + 1] = { 0 };

	for (size_t i = 0; i < count; i++)
		at[(a[i].start >> shift & (DIGITS - 1)) + 1]++;
	for (size_t i = 1; i < DIGITS; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < count; i++)
		b[at[a[i].start >> shift & (DIGITS - 1)]++] = a[i];
}

bool symtab_sort(struct symtab *t)
{
	size_t count = t->symbols.count;
	uint32_t differ = 0;

	if (!count)
		return true;
	struct symbol *from = t->symbols.at;
	struct symbol *to = bulk_alloc(count * sizeof(*to));
	if (!to)
		return false;
	for (size_t i = 1; i < count; i++)
		differ |= from[i].start ^ from[0].start;
	for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		sort_digit(from, to, count, shift);
		struct symbol *swap = from;
		from = to;
		to = swap;
	}
	if (from != t->symbols.at)
		t->symbols.room = count;
	t->symbols.at = from;
	static_assert(sizeof(*to) >= 2 * sizeof(*t->cuts), "the cuts fit in the scratch space");
	t->cuts = (void *)to;
	return true;
}

static size_t underscores(const char *name)
{
	size_t count = 0;

	while (name[count] == '_')
		count++;
	return count;
}

/*
 * Whether `b` names their common address better than `a`, which came before. What perf(1) shows
 * decides, so that reports agree: a symbol with a size, then one that is not weak, then a global
 * one, then the one with fewer leading underscores, then the longer name.
 */
static bool is_better(const struct symbol *b, const struct symbol *a, symtab_name_fn *name,
		      const void *owner)
{
	bool a_sized = a->size != 0, b_sized = b->size != 0;

	if (a_sized != b_sized)
		return b_sized;
	if (a->binding != b->binding)
		return b->binding > a->binding;
	const char *a_name = name(owner, a), *b_name = name(owner, b);
	size_t a_bars = underscores(a_name), b_bars = underscores(b_name);
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

static void cut(struct symtab *t, uint32_t start, uint32_t owner)
{
	/* A function that begins where another ended. */
	if (t->cut_count && t->cuts[t->cut_count - 1].start == start)
		t->cut_count--;
	t->cuts[t->cut_count++] = (struct symtab_cut){ start, owner };
}

static uint32_t end_of(const struct symtab *t, uint32_t index)
{
	return t->symbols.at[index].start + t->symbols.at[index].size;
}

/* Closes what ends up to `start`. An end gives the address back to what lies below. */
static size_t close_functions(struct symtab *t, const uint32_t *open, size_t depth, uint32_t start)
{
	while (depth && end_of(t, open[depth - 1]) <= start) {
		uint32_t end = end_of(t, open[--depth]);
		while (depth && end_of(t, open[depth - 1]) <= end)
			depth--;
		cut(t, end, depth ? open[depth - 1] | SYMTAB_AGAIN : SYMTAB_NONE);
	}
	return depth;
}

static bool make_blocks(struct symtab *t)
{
	uint64_t last = t->cuts[t->cut_count - 1].start;
	size_t cut = 0;

	while (last >> t->shift > t->cut_count / 4)
		t->shift++;
	t->block_count = (uint32_t)(last >> t->shift) + 1;
	t->blocks = bulk_alloc(((size_t)t->block_count + 1) * sizeof(*t->blocks));
	if (!t->blocks)
		return false;
	for (uint64_t i = 0; i < t->block_count; i++) {
		while (cut + 1 < t->cut_count && t->cuts[cut + 1].start <= i << t->shift)
			cut++;
		t->blocks[i] = (uint32_t)cut;
	}
	t->blocks[t->block_count] = (uint32_t)t->cut_count - 1;
	return true;
}

bool symtab_seal(struct symtab *t, symtab_name_fn *name, const void *owner)
{
	choose_aliases(t, name, owner);
	size_t count = t->symbols.count, depth = 0;
	if (!count)
		return true;
	/* The functions that are open, the innermost on top; each comes and goes once. */
	uint32_t *open = malloc(count * sizeof(*open));
	if (!open)
		return false;
	for (size_t i = 0; i < count; i++) {
		uint32_t start = t->symbols.at[i].start;
		depth = close_functions(t, open, depth, start);
		cut(t, start, (uint32_t)i);
		open[depth++] = (uint32_t)i;
	}
	close_functions(t, open, depth, UINT32_MAX);
	free(open);
	return make_blocks(t);
}

/* NULL: none. */
static const struct symtab_cut *find_cut(const struct symtab *t, uint64_t address)
{
	uint64_t distance = address - t->base;

	if (!t->cut_count || address < t->base || distance > UINT32_MAX ||
	    distance < t->cuts[0].start)
		return NULL;
	uint64_t block = distance >> t->shift;
	if (block >= t->block_count)
		return &t->cuts[t->cut_count - 1];
	const struct symtab_cut *at = &t->cuts[t->blocks[block]];
	/* Halving, since all may lie in one block. */
	for (size_t n = t->blocks[block + 1] - t->blocks[block] + 1; n > 1; n -= n / 2)
		at += at[n / 2].start <= distance ? n / 2 : 0;
	return at;
}

uint64_t symtab_start(const struct symtab *t, uint32_t index)
{
	return t->base + t->symbols.at[index].start;
}

uint32_t symtab_find_start(const struct symtab *t, uint64_t address, uint64_t *start)
{
	const struct symtab_cut *cut = find_cut(t, address);

	if (!cut || cut->owner == SYMTAB_NONE)
		return SYMTAB_NONE;
	uint32_t index = cut->owner & ~SYMTAB_AGAIN;
	/* Most of the time the symbol, which is another line of the cache, need not be read. */
	*start = cut->owner == index ? t->base + cut->start : symtab_start(t, index);
	return index;
}

uint32_t symtab_find(const struct symtab *t, uint64_t address)
{
	uint64_t start;

	return symtab_find_start(t, address, &start);
}

void symtab_done(struct symtab *t)
{
	vec_done(&t->symbols);
	free(t->cuts);
	free(t->blocks);
	*t = (struct symtab){ 0 };
}
