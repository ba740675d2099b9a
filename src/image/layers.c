/* SPDX-License-Identifier: MIT */
/* A segment tree (Bentley 1977), laid out bottom-up in arrays. */
#include <stdlib.h>
#include <string.h>

#include "image/layers.h"

bool layers_add(struct layers *l, uint64_t start, uint64_t end, uint64_t since)
{
	if (l->added.count >= LAYERS_MAX || !vec_reserve(&l->added, 1))
		return false;
	if (l->added.count && l->added.at[l->added.count - 1].since > since)
		since = l->added.at[l->added.count - 1].since;
	l->added.at[l->added.count++] = (struct layer){ start, end, since };
	return true;
}

static int compare_cuts(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

static bool cut(struct layers *l)
{
	size_t count = 0;

	l->cuts = malloc(2 * l->added.count * sizeof(*l->cuts));
	if (!l->cuts)
		return false;
	vec_each (&l->added, layer) {
		l->cuts[count++] = layer->start;
		l->cuts[count++] = layer->end;
	}
	qsort(l->cuts, count, sizeof(*l->cuts), compare_cuts);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (!kept || l->cuts[kept - 1] != l->cuts[i])
			l->cuts[kept++] = l->cuts[i];
	l->pieces = kept - 1;
	return true;
}

/* The piece that begins at or last before `address`, which is not below the first. */
static size_t piece_of(const struct layers *l, uint64_t address)
{
	size_t low = 0, high = l->pieces;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (l->cuts[middle] <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The nodes that make up a layer, at most two for each level of the tree. */
struct nodes {
	size_t at[2 * 8 * sizeof(size_t)];
	size_t count;
};

static void nodes_of(const struct layers *l, const struct layer *layer, struct nodes *out)
{
	/* Where it ends a piece begins, or the last one ends. */
	size_t from = piece_of(l, layer->start) + l->pieces;
	size_t to = piece_of(l, layer->end - 1) + 1 + l->pieces;

	out->count = 0;
	for (; from < to; from /= 2, to /= 2) {
		if (from & 1)
			out->at[out->count++] = from++;
		if (to & 1)
			out->at[out->count++] = --to;
	}
}

/* Whether an earlier layer has a piece of these nodes, as far as `used` and `inside` tell. */
static bool is_taken(const struct nodes *nodes, const bool *used, const bool *inside)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (inside[nodes->at[i]])
			return true;
		for (size_t up = nodes->at[i]; up; up /= 2)
			if (used[up])
				return true;
	}
	return false;
}

static void take(const struct nodes *nodes, bool *used, bool *inside)
{
	for (size_t i = 0; i < nodes->count; i++) {
		used[nodes->at[i]] = true;
		for (size_t up = nodes->at[i]; up && !inside[up]; up /= 2)
			inside[up] = true;
	}
}

/* Counts how long the lists become, and sees which layers cover earlier ones. */
static bool survey(struct layers *l)
{
	size_t nodes_count = 2 * l->pieces;
	bool *used = calloc(nodes_count, sizeof(*used)),
	     *inside = calloc(nodes_count, sizeof(*inside));
	bool ok = used && inside;
	struct nodes nodes;

	for (size_t i = 0; ok && i < l->added.count; i++) {
		nodes_of(l, &l->added.at[i], &nodes);
		for (size_t k = 0; k < nodes.count; k++)
			l->first[nodes.at[k] + 1]++;
		if (is_taken(&nodes, used, inside)) {
			uint64_t *change = vec_push(&l->changes);
			ok = change;
			if (ok)
				*change = l->added.at[i].since;
		}
		take(&nodes, used, inside);
	}
	free(used);
	free(inside);
	return ok;
}

/* Fills the lists, each in order of time, for layers are. first[i] wanders to the end of list i. */
static bool fill(struct layers *l)
{
	size_t nodes_count = 2 * l->pieces;
	struct nodes nodes;

	for (size_t i = 0; i < nodes_count; i++)
		l->first[i + 1] += l->first[i];
	l->lists = malloc((l->first[nodes_count] + (size_t)1) * sizeof(*l->lists));
	if (!l->lists)
		return false;
	for (size_t i = 0; i < l->added.count; i++) {
		nodes_of(l, &l->added.at[i], &nodes);
		for (size_t k = 0; k < nodes.count; k++)
			l->lists[l->first[nodes.at[k]]++] = (uint32_t)i;
	}
	memmove(l->first + 1, l->first, nodes_count * sizeof(*l->first));
	l->first[0] = 0;
	return true;
}

static void forget_tree(struct layers *l)
{
	free(l->cuts);
	free(l->first);
	free(l->lists);
	vec_done(&l->changes);
	l->cuts = NULL;
	l->first = l->lists = NULL;
	l->pieces = 0;
}

bool layers_seal(struct layers *l)
{
	forget_tree(l);
	if (!l->added.count)
		return true;
	bool ok = cut(l);
	if (ok)
		l->first = calloc(2 * l->pieces + 1, sizeof(*l->first));
	ok = ok && l->first && survey(l) && fill(l);
	if (!ok)
		forget_tree(l);
	return ok;
}

/* In one list: the last that is not younger than `time`; LAYER_NONE: all are. */
static uint32_t last_until(const struct layers *l, uint32_t from, uint32_t to, uint64_t time)
{
	uint32_t low = from, high = to;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (l->added.at[l->lists[middle]].since <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low == from ? LAYER_NONE : l->lists[low - 1];
}

uint32_t layers_find(const struct layers *l, uint64_t address, uint64_t time)
{
	uint32_t top = LAYER_NONE, earliest = LAYER_NONE;

	if (!l->pieces || address < l->cuts[0] || address >= l->cuts[l->pieces])
		return LAYER_NONE;
	for (size_t node = piece_of(l, address) + l->pieces; node; node /= 2) {
		uint32_t from = l->first[node], to = l->first[node + 1];
		if (from == to)
			continue;
		uint32_t last = last_until(l, from, to, time);
		if (last != LAYER_NONE && (top == LAYER_NONE || last > top))
			top = last;
		if (l->lists[from] < earliest)
			earliest = l->lists[from];
	}
	return top != LAYER_NONE ? top : earliest;
}

uint32_t layers_epoch(const struct layers *l, uint64_t time)
{
	size_t low = 0, high = l->changes.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (l->changes.at[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)low;
}

void layers_done(struct layers *l)
{
	forget_tree(l);
	vec_done(&l->added);
}
