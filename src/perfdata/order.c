/* SPDX-License-Identifier: MIT */
/*
 * Sorting by time as perf does. Records of one CPU come in order and those of several one chunk
 * after another, so the index is mostly made of a few ascending runs, which a natural merge sort
 * finds. The promise of a round is that all later records are newer than the newest of the round
 * before it: what was newest then is the limit. What does not fit the arena goes, sorted, into a
 * temporary file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/order.h"

#define ARENA_SIZE (8u << 20)
#define INDEX_SIZE (112u << 10) /* entries: records of 72 bytes with their heads */

/* How many records ahead of the one that is given are fetched, and how much of each. */
#define FETCH_AHEAD 4
#define FETCH_BYTES 192
#define CACHE_LINE  64

/* In a head's `len` field after the record was taken. */
#define TAKEN UINT32_MAX

int order_init(struct order *o, const char *temp_folder)
{
	o->runs.folder = temp_folder;
	o->arena = malloc(ARENA_SIZE);
	o->index = malloc(INDEX_SIZE * sizeof(*o->index));
	o->spare = malloc(INDEX_SIZE * sizeof(*o->spare));
	return o->arena && o->index && o->spare ? 0 : -ENOMEM;
}

static struct waiting *head_at(const struct order *o, uint64_t at)
{
	return (struct waiting *)(void *)(o->arena + at);
}

static size_t stored(uint32_t len)
{
	return sizeof(struct waiting) + align_up(len, 8);
}

/* ---- a natural merge sort, stable ---- */

static size_t ascending(const struct order_entry *e, size_t i, size_t count)
{
	for (i++; i < count && e[i - 1].time <= e[i].time; i++)
		;
	return i;
}

static void merge(struct order_entry *to, const struct order_entry *a, size_t a_count,
		  const struct order_entry *b, size_t b_count)
{
	while (a_count && b_count) {
		bool second = b->time < a->time;
		*to++ = second ? *b : *a;
		a += !second;
		a_count -= !second;
		b += second;
		b_count -= second;
	}
	memcpy(to, a, a_count * sizeof(*a));
	memcpy(to + a_count, b, b_count * sizeof(*b));
}

/* Merges each two neighbouring runs into `to`. Returns how many runs there were. */
static size_t merge_pairs(struct order_entry *to, const struct order_entry *from, size_t count)
{
	size_t runs = 0;

	for (size_t a = 0; a < count;) {
		size_t b = ascending(from, a, count);
		size_t end = b < count ? ascending(from, b, count) : b;
		merge(to + a, from + a, b - a, from + b, end - b);
		runs += b < count ? 2 : 1;
		a = end;
	}
	return runs;
}

/* Most of it is sorted already when a round was taken in part. */
static void sort(struct order *o)
{
	size_t count = o->count - o->first;
	struct order_entry *swap;

	if (o->sorted == o->count)
		return;
	if (ascending(o->index + o->first, 0, count) < count) {
		while (merge_pairs(o->spare, o->index + o->first, count) > 2) {
			swap = o->index;
			o->index = o->spare;
			o->spare = swap;
			o->first = 0;
		}
		swap = o->index;
		o->index = o->spare;
		o->spare = swap;
		o->first = 0;
		o->count = count;
	}
	o->sorted = o->count;
}

/* ---- room ---- */

/* Moves what is left to the front, in the order it came, and makes the index anew. */
static void compact(struct order *o)
{
	size_t to = 0, count = 0, size;

	for (size_t at = 0; at < o->used; at += size) {
		struct waiting *head = head_at(o, at);
		bool taken = head->len == TAKEN;
		/* A taken one keeps its size in its time. */
		size = taken ? (size_t)head->time : stored(head->len);
		if (taken)
			continue;
		o->index[count++] = (struct order_entry){ head->time, to };
		memmove(o->arena + to, head, size);
		to += size;
	}
	o->used = to;
	o->dropped = o->first = o->sorted = 0;
	o->count = count;
}

static void drop_first(struct order *o)
{
	struct waiting *head = head_at(o, o->index[o->first].at);
	size_t size = stored(head->len);

	head->len = TAKEN;
	head->time = size;
	o->dropped += size;
	if (++o->first == o->count)
		o->first = o->sorted = o->count = o->used = o->dropped = 0;
}

static int spill(struct order *o, struct tally_error *err)
{
	sort(o);
	int r = runs_begin(&o->runs, err);
	for (size_t i = o->first; r == 0 && i < o->count; i++) {
		const struct waiting *head = head_at(o, o->index[i].at);
		r = runs_append(&o->runs, head, head + 1, err);
	}
	if (r == 0)
		r = runs_end(&o->runs, err);
	o->first = o->sorted = o->count = o->used = o->dropped = 0;
	return r;
}

static int make_room(struct order *o, size_t size, struct tally_error *err)
{
	if (o->used + size <= ARENA_SIZE && o->count < INDEX_SIZE)
		return 0;
	/* Moving costs less than a file while less than twice as much is moved as was dropped. */
	if (o->dropped >= o->used / 3) {
		compact(o);
		if (o->used + size <= ARENA_SIZE && o->count < INDEX_SIZE)
			return 0;
	}
	return spill(o, err);
}

int order_push(struct order *o, const struct waiting *head, const void *bytes,
	       struct tally_error *err)
{
	size_t size = stored(head->len);
	int r = make_room(o, size, err);

	if (r < 0)
		return r;
	memcpy(o->arena + o->used, head, sizeof(*head));
	memcpy(o->arena + o->used + sizeof(*head), bytes, head->len);
	o->index[o->count++] = (struct order_entry){ head->time, o->used };
	o->used += size;
	o->newest = head->time > o->newest ? head->time : o->newest;
	o->late += head->time < o->taken;
	return 0;
}

/* ---- taking ---- */

void order_round(struct order *o)
{
	o->limit = o->promised;
	o->promised = o->newest;
}

void order_end(struct order *o)
{
	o->limit = UINT64_MAX;
}

static int drop_given(struct order *o, struct tally_error *err)
{
	o->given = false;
	if (o->in_runs)
		return runs_drop(&o->runs, err);
	drop_first(o);
	return 0;
}

/* Neighbours in time come from several CPUs and lie far apart: memory is asked for in advance. */
static void fetch_ahead(const struct order *o)
{
	if (o->count - o->first <= FETCH_AHEAD)
		return;
	const uint8_t *soon = o->arena + o->index[o->first + FETCH_AHEAD].at;
	for (size_t i = 0; i < FETCH_BYTES; i += CACHE_LINE)
		__builtin_prefetch(soon + i);
}

int order_next(struct order *o, struct waiting *head, const uint8_t **bytes,
	       struct tally_error *err)
{
	int r = o->given ? drop_given(o, err) : 0;

	if (r < 0)
		return r;
	sort(o);
	const struct waiting *run = runs_first(&o->runs), *found = run;
	if (o->first < o->count && (!run || o->index[o->first].time < run->time)) {
		found = head_at(o, o->index[o->first].at);
		fetch_ahead(o);
	}
	if (!found || found->time > o->limit)
		return 0;
	*head = *found;
	o->in_runs = found == run;
	*bytes = o->in_runs ? runs_first_bytes(&o->runs) : (const uint8_t *)(found + 1);
	o->given = true;
	o->taken = head->time > o->taken ? head->time : o->taken;
	return 1;
}

void order_reset(struct order *o)
{
	runs_done(&o->runs);
	o->first = o->sorted = o->count = o->used = o->dropped = 0;
	o->newest = o->promised = o->limit = o->taken = o->late = 0;
	o->given = false;
}

void order_done(struct order *o)
{
	runs_done(&o->runs);
	free(o->arena);
	free(o->index);
	free(o->spare);
}
