/* SPDX-License-Identifier: MIT */
/* Ranges cut into pieces: a walk over the addresses with a heap of what is open there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/cover.h"

#define BEFORE     ((uint64_t)1 << 31)
#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)

/* So many are sorted by insertion: counting digits would take longer. */
#define FEW 64

bool cover_add(struct cover *c, uint64_t low, uint64_t high, uint32_t value, uint32_t rank)
{
	if (!c->has_base) {
		c->base = low > BEFORE ? low - BEFORE : 0;
		c->has_base = true;
	}
	if (low < c->base || high - c->base >= UINT32_MAX)
		return true;
	if (c->ranges.count == c->ranges.room && !vec_reserve(&c->ranges, 1))
		return false;
	c->ranges.at[c->ranges.count++] = (struct cover_range){ (uint32_t)(low - c->base),
								(uint32_t)(high - c->base), value,
								rank };
	return true;
}

static bool is_sorted(const struct cover *c)
{
	for (size_t i = 1; i < c->ranges.count; i++)
		if (c->ranges.at[i].low < c->ranges.at[i - 1].low)
			return false;
	return true;
}

static void sort_few(struct cover *c)
{
	struct cover_range *at = c->ranges.at;

	for (size_t i = 1, k; i < c->ranges.count; i++) {
		struct cover_range range = at[i];
		for (k = i; k && at[k - 1].low > range.low; k--)
			at[k] = at[k - 1];
		at[k] = range;
	}
}

/* By `low`, equal ones in the order in which they came. */
static bool sort(struct cover *c)
{
	size_t count = c->ranges.count;
	uint32_t differ = 0;

	if (count <= FEW)
		sort_few(c);
	if (count <= FEW || is_sorted(c))
		return true;
	struct cover_range *from = c->ranges.at, *to = malloc(count * sizeof(*to));
	if (!to)
		return false;
	for (size_t i = 1; i < count; i++)
		differ |= from[i].low ^ from[0].low;
	for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
		uint32_t at[DIGITS + 1] = { 0 };
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		for (size_t i = 0; i < count; i++)
			at[(from[i].low >> shift & (DIGITS - 1)) + 1]++;
		for (size_t i = 1; i < DIGITS; i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < count; i++)
			to[at[from[i].low >> shift & (DIGITS - 1)]++] = from[i];
		struct cover_range *swap = from;
		from = to;
		to = swap;
	}
	c->ranges.at = from;
	c->ranges.room = count;
	free(to);
	return true;
}

/* Indices of the ranges that are open, the one to show on top. */
struct heap {
	const struct cover_range *ranges;
	uint32_t *at;
	size_t count;
};

static bool is_above(const struct heap *h, uint32_t a, uint32_t b)
{
	uint32_t rank_a = h->ranges[a].rank, rank_b = h->ranges[b].rank;

	return rank_a != rank_b ? rank_a > rank_b : a > b;
}

static void heap_push(struct heap *h, uint32_t index)
{
	size_t at = h->count++;

	for (; at && is_above(h, index, h->at[(at - 1) / 2]); at = (at - 1) / 2)
		h->at[at] = h->at[(at - 1) / 2];
	h->at[at] = index;
}

static void heap_pop(struct heap *h)
{
	uint32_t last = h->at[--h->count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->count) {
		if (child + 1 < h->count && is_above(h, h->at[child + 1], h->at[child]))
			child++;
		if (!is_above(h, h->at[child], last))
			break;
		h->at[at] = h->at[child];
		at = child;
	}
	h->at[at] = last;
}

/* From `start` on it is `value`. There is room: a range makes two cuts at most. */
static void cut(struct cover *c, uint32_t start, uint32_t value)
{
	size_t count = c->starts.count;

	if (count && c->starts.at[count - 1] == start) {
		c->values.at[count - 1] = value;
		return;
	}
	if (count && c->values.at[count - 1] == value)
		return;
	c->starts.at[c->starts.count++] = start;
	c->values.at[c->values.count++] = value;
}

/* Closes what ends up to `until`, the topmost first; what ends below it is dropped when it surfaces. */
static void close_up_to(struct cover *c, struct heap *h, uint32_t until)
{
	while (h->count && h->ranges[h->at[0]].high <= until) {
		uint32_t end = h->ranges[h->at[0]].high;
		while (h->count && h->ranges[h->at[0]].high <= end)
			heap_pop(h);
		cut(c, end, h->count ? h->ranges[h->at[0]].value : COVER_NONE);
	}
}

static void walk(struct cover *c, struct heap *h)
{
	for (size_t i = 0; i < c->ranges.count; i++) {
		const struct cover_range *range = &c->ranges.at[i];
		close_up_to(c, h, range->low);
		heap_push(h, (uint32_t)i);
		cut(c, range->low, c->ranges.at[h->at[0]].value);
	}
	close_up_to(c, h, UINT32_MAX);
}

bool cover_seal(struct cover *c)
{
	size_t count = c->ranges.count;

	if (!count)
		return true;
	if (count >= UINT32_MAX || !sort(c) || !vec_reserve(&c->starts, 2 * count) ||
	    !vec_reserve(&c->values, 2 * count))
		return false;
	struct heap h = { .ranges = c->ranges.at, .at = malloc(count * sizeof(*h.at)) };
	if (!h.at)
		return false;
	walk(c, &h);
	free(h.at);
	c->ranges.count = 0;
	vec_trim(&c->starts);
	vec_trim(&c->values);
	return true;
}

uint32_t cover_find(const struct cover *c, uint64_t address)
{
	uint64_t distance = address - c->base;
	const uint32_t *at = c->starts.at;

	if (!c->starts.count || address < c->base || distance > UINT32_MAX || distance < at[0])
		return COVER_NONE;
	for (size_t n = c->starts.count; n > 1; n -= n / 2)
		at += at[n / 2] <= distance ? n / 2 : 0;
	return c->values.at[at - c->starts.at];
}

void cover_done(struct cover *c)
{
	vec_done(&c->ranges);
	vec_done(&c->starts);
	vec_done(&c->values);
	*c = (struct cover){ 0 };
}
