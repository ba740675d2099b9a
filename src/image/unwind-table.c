/* SPDX-License-Identifier: MIT */
/* From an address to the rules that hold there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/unwind-table.h"

/* Functions are far smaller; rows count from their start by 32 bits. */
#define MAX_FUNCTION UINT32_MAX

/* ---- where functions begin ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct unwind_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_entry(struct unwind_part *p, uint64_t start, uint64_t offset)
{
	struct unwind_entry *e = vec_push(&p->entries);

	if (!e)
		return -ENOMEM;
	*e = (struct unwind_entry){ .start = start, .offset = (uint32_t)offset };
	return 0;
}

/* Walks through all entries. */
static int index_by_walk(struct unwind_part *p)
{
	const struct cfi_section *s = &p->section;
	struct cfi_function f;
	int r = 0;

	for (size_t at = 0; at < s->len && r == 0; at = cfi_next(s, at))
		if (cfi_function_read(&f, s, at) > 0)
			r = add_entry(p, f.start, at);
	if (r == 0 && p->entries.count)
		qsort(p->entries.at, p->entries.count, sizeof(*p->entries.at), compare_entries);
	return r;
}

/* The linker's own index. 1: taken; 0: it has none, or none that can be searched; -ENOMEM. */
static int index_by_header(struct unwind_part *p, const struct cfi_section *h)
{
	size_t at = 4;
	uint64_t frames, count;

	if (h->len < at || h->bytes[0] != 1 || h->bytes[3] != CFI_DATAREL_S4 ||
	    cfi_pointer(h, &at, h->bytes[1], h->address, &frames) < 0 ||
	    cfi_pointer(h, &at, h->bytes[2], h->address, &count) < 0 || count > (h->len - at) / 8)
		return 0;
	if (!vec_reserve(&p->entries, count))
		return -ENOMEM;
	for (uint64_t i = 0, before = 0, start, entry; i < count; i++, before = start) {
		cfi_pointer(h, &at, CFI_DATAREL_S4, h->address, &start);
		cfi_pointer(h, &at, CFI_DATAREL_S4, h->address, &entry);
		entry -= p->section.address;
		if (start < before || entry >= p->section.len) {
			p->entries.count = 0;
			return 0;
		}
		add_entry(p, start, entry);
	}
	return count > 0;
}

int unwind_table_index(struct unwind_part *p, const struct cfi_section *header)
{
	int r = index_by_header(p, header);

	return r == 0 ? index_by_walk(p) : r < 0 ? r : 0;
}

/* ---- rows ---- */

struct flattening {
	struct unwind_table *table;
	struct unwind_part *part;
	const struct cfi_function *f;
	size_t most_rows;
	/* The rules at hand. */
	struct unwind_rules made;
	struct unwind_rule saved[UNWIND_REGS];
};

/* What of rules is to be equal, but for those of registers. */
#define HEAD_SIZE offsetof(struct unwind_rules, saved)

static void make_rules(struct flattening *f, const struct cfi_state *state)
{
	struct unwind_rules *out = &f->made;
	const struct cfi_common *common = &f->f->common;

	memset(out, 0, sizeof(*out));
	memset(f->saved, 0, sizeof(f->saved));
	out->cfa = state->cfa;
	out->ra = (uint8_t)common->ra;
	out->signal = common->signal;
	out->outermost = state->regs[common->ra].kind == RULE_LOST;
	out->bytes = f->part->section.bytes;
	out->len = f->part->section.len;
	out->plain = true;
	for (unsigned i = 0; i < UNWIND_REGS; i++) {
		const struct unwind_rule *rule = &state->regs[i];
		if (rule->kind == RULE_BY_ABI)
			continue;
		out->plain &= rule->kind == RULE_AT || rule->kind == RULE_LOST;
		f->saved[out->count++] = *rule;
	}
}

/* A copy of its own, with the rules of registers behind it. NULL: no memory. */
static struct unwind_rules *keep_rules(struct unwind_table *t, const struct flattening *f)
{
	size_t len = f->made.count * sizeof(*f->saved);
	struct unwind_rules *own = malloc(sizeof(*own) + len);
	struct unwind_rules **slot = own ? vec_push(&t->rules) : NULL;

	if (!slot) {
		free(own);
		return NULL;
	}
	*own = f->made;
	own->saved = memcpy(own + 1, f->saved, len);
	*slot = own;
	return own;
}

/* The number of such rules; UINT32_MAX: no memory. */
static uint32_t intern(struct unwind_table *t, const struct flattening *f)
{
	size_t len = f->made.count * sizeof(*f->saved);
	uint64_t hash = hash_bytes(&f->made, HEAD_SIZE) ^ hash_u64(hash_bytes(f->saved, len));

	/* Where two share a hash the later has another one. */
	for (;; hash++) {
		uint32_t *known = map64_at(&t->by_hash, hash);
		if (!known)
			return UINT32_MAX;
		if (!*known) {
			if (!keep_rules(t, f))
				return UINT32_MAX;
			*known = (uint32_t)t->rules.count;
			return *known - 1;
		}
		const struct unwind_rules *other = t->rules.at[*known - 1];
		if (!memcmp(other, &f->made, HEAD_SIZE) && !memcmp(other->saved, f->saved, len))
			return *known - 1;
	}
}

static int add_row(void *arg, uint64_t start, const struct cfi_state *state)
{
	struct flattening *f = arg;
	struct unwind_table *t = f->table;

	/*
	 * A row takes a byte of program at least, so that more come from entries that overlap only.
	 */
	if (t->rows.count >= f->most_rows)
		return -EBADMSG;
	make_rules(f, state);
	uint32_t rules = intern(t, f);
	struct unwind_row *row = rules == UINT32_MAX ? NULL : vec_push(&t->rows);
	if (!row)
		return -ENOMEM;
	*row = (struct unwind_row){ (uint32_t)(start - f->f->start), rules };
	return 0;
}

/* Runs a function's program. What is broken has no rows. NULL: no memory. */
static const struct unwind_flat *flatten(struct unwind_table *t, struct unwind_part *p,
					 struct unwind_entry *e)
{
	struct cfi_function f;
	struct flattening flattening = {
		.table = t,
		.part = p,
		.f = &f,
		.most_rows = t->parts[0].section.len + t->parts[1].section.len,
	};
	size_t first = t->rows.count;
	struct unwind_flat *flat = vec_push(&t->flats);

	if (!flat)
		return NULL;
	int r = cfi_function_read(&f, &p->section, e->offset) > 0 ? 0 : -EBADMSG;
	if (r == 0 && f.end - f.start <= MAX_FUNCTION)
		r = cfi_run(&p->section, &f, add_row, &flattening);
	else
		f.start = f.end = e->start;
	if (r < 0)
		t->rows.count = first;
	if (r == -ENOMEM) {
		t->flats.count--;
		return NULL;
	}
	*flat = (struct unwind_flat){
		.start = f.start,
		.end = f.end,
		.first = (uint32_t)first,
		.count = (uint32_t)(t->rows.count - first),
	};
	e->flat = (uint32_t)t->flats.count;
	return flat;
}

/* ---- looking up ---- */

/* The last entry that begins at or before the address. */
static struct unwind_entry *find_entry(const struct unwind_part *p, uint64_t address)
{
	size_t low = 0, high = p->entries.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->entries.at[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &p->entries.at[low - 1] : NULL;
}

static const struct unwind_rules *find_row(const struct unwind_table *t,
					   const struct unwind_flat *flat, uint64_t address)
{
	const struct unwind_row *rows = t->rows.at + flat->first;
	uint32_t at = (uint32_t)(address - flat->start), low = 0, high = flat->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (rows[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->rules.at[rows[low - 1].rules] : NULL;
}

const struct unwind_rules *unwind_table_find(struct unwind_table *t, uint64_t address, int *error)
{
	for (size_t i = 0; i < UNWIND_PARTS; i++) {
		struct unwind_entry *e = find_entry(&t->parts[i], address);
		if (!e)
			continue;
		const struct unwind_flat *flat = e->flat ? &t->flats.at[e->flat - 1]
							 : flatten(t, &t->parts[i], e);
		if (!flat) {
			*error = -ENOMEM;
			return NULL;
		}
		if (address >= flat->start && address < flat->end && flat->count)
			return find_row(t, flat, address);
	}
	return NULL;
}

const struct unwind_stubs *unwind_table_stubs(const struct unwind_table *t, uint64_t address)
{
	for (unsigned i = 0; i < t->stub_count; i++)
		if (address >= t->stubs[i].start && address < t->stubs[i].end)
			return &t->stubs[i];
	return NULL;
}

void unwind_table_done(struct unwind_table *t)
{
	for (size_t i = 0; i < UNWIND_PARTS; i++) {
		vec_done(&t->parts[i].bytes);
		vec_done(&t->parts[i].entries);
	}
	vec_each (&t->rules, rules)
		free(*rules);
	vec_done(&t->rules);
	vec_done(&t->flats);
	vec_done(&t->rows);
	map64_done(&t->by_hash);
	elf_file_done(&t->layout);
	*t = (struct unwind_table){ 0 };
}
