/* SPDX-License-Identifier: MIT */
/* Lists of changes, by process or thread. */
#include <stdlib.h>

#include "image/history.h"

struct history *history_get(const struct histories *h, int32_t id)
{
	uint32_t index = map64_get(&h->index, (uint32_t)id);

	return index ? &h->of.at[index - 1] : NULL;
}

struct history *history_make(struct histories *h, int32_t id)
{
	uint32_t *index = map64_at(&h->index, (uint32_t)id);

	if (!index)
		return NULL;
	if (!*index) {
		if (!vec_push(&h->of))
			return NULL;
		*index = (uint32_t)h->of.count;
	}
	return &h->of.at[*index - 1];
}

uint32_t history_last(const struct history *h)
{
	return h && h->changes.count ? h->changes.at[h->changes.count - 1].value : 0;
}

struct change *history_begin(struct history *h, uint64_t time, size_t nodes)
{
	uint32_t value = history_last(h);

	if (h->changes.count && h->changes.at[h->changes.count - 1].time == time)
		return &h->changes.at[h->changes.count - 1];
	struct change *c = vec_push(&h->changes);
	if (c)
		*c = (struct change){ .time = time, .value = value };
	h->owned = nodes;
	return c;
}

void history_trim(const struct histories *of, int32_t id, uint64_t time, size_t nodes)
{
	struct history *h = history_get(of, id);

	if (!h)
		return;
	while (h->changes.count && h->changes.at[h->changes.count - 1].time > time)
		h->changes.count--;
	h->owned = nodes;
}

size_t history_count_until(const struct history *h, uint64_t time)
{
	size_t low = 0, high = h->changes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (h->changes.at[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void histories_done(struct histories *h)
{
	vec_each (&h->of, one)
		vec_done(&one->changes);
	vec_done(&h->of);
	map64_done(&h->index);
}
