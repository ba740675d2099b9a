/* SPDX-License-Identifier: MIT */
/* Epochs: a sorted list of times and a memory of the last answer. */
#include <stdlib.h>

#include "base/vec.h"
#include "profile/changes.h"

static void forget(struct changes *c)
{
	c->from = 1;
	c->to = 0;
}

bool changes_add(struct changes *c, uint64_t time)
{
	uint64_t *slot = vec_push(c);

	if (!slot)
		return false;
	*slot = time;
	if (c->count > 1 && time < slot[-1])
		c->unsorted = true;
	forget(c);
	return true;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a, b;

	a = *(const uint64_t *)left;
	b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

uint32_t changes_epoch(struct changes *c, uint64_t time)
{
	if (time >= c->from && time <= c->to)
		return c->epoch;
	if (c->unsorted)
		qsort(c->at, c->count, sizeof(*c->at), compare_times);
	c->unsorted = false;
	size_t low = 0, high = c->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (c->at[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	c->from = low ? c->at[low - 1] : 0;
	c->to = low < c->count ? c->at[low] - 1 : UINT64_MAX;
	c->epoch = (uint32_t)low;
	return c->epoch;
}

void changes_done(struct changes *c)
{
	free(c->at);
	*c = (struct changes){ 0 };
}
