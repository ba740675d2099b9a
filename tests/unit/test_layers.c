/* SPDX-License-Identifier: MIT */
/* layers: against walking through all of them. */
#include <stdlib.h>

#include "image/layers.h"
#include "tap.h"

/* What layers.h promises, in the plainest way. */
static uint32_t walk(const struct layers *l, uint64_t address, uint64_t time)
{
	uint32_t top = LAYER_NONE, earliest = LAYER_NONE;

	for (size_t i = 0; i < l->added.count; i++) {
		const struct layer *a = &l->added.at[i];
		if (address < a->start || address >= a->end)
			continue;
		if (a->since <= time)
			top = (uint32_t)i;
		if (earliest == LAYER_NONE)
			earliest = (uint32_t)i;
	}
	return top != LAYER_NONE ? top : earliest;
}

static uint32_t covered_until(const struct layers *l, uint64_t time)
{
	uint32_t count = 0;

	for (size_t i = 0; i < l->added.count && l->added.at[i].since <= time; i++)
		for (size_t k = 0; k < i; k++)
			if (l->added.at[k].start < l->added.at[i].end &&
			    l->added.at[i].start < l->added.at[k].end) {
				count++;
				break;
			}
	return count;
}

static void code_is_replaced_in_time(void)
{
	struct layers l = { 0 };

	check_u64(layers_find(&l, 0, 0), LAYER_NONE);
	check(layers_add(&l, 0x1000, 0x1100, 10));
	check(layers_add(&l, 0x2000, 0x2100, 20));
	check(layers_add(&l, 0x1080, 0x1200, 30));
	require(layers_seal(&l));
	check_u64(layers_find(&l, 0x10ff, 29), 0);
	check_u64(layers_find(&l, 0x10ff, 30), 2);
	check_u64(layers_find(&l, 0x107f, 99), 0);
	check_u64(layers_find(&l, 0x1100, 10), 2); /* nothing else ever was there */
	check_u64(layers_find(&l, 0x1000, 0), 0);
	check_u64(layers_find(&l, 0x0fff, 99), LAYER_NONE);
	check_u64(layers_find(&l, 0x1200, 99), LAYER_NONE);
	check_u64(layers_find(&l, 0x2100, 99), LAYER_NONE);
	check_u64(layers_epoch(&l, 29), 0);
	check_u64(layers_epoch(&l, 30), 1);
	layers_done(&l);
}

static void agrees_with_walking(void)
{
	uint64_t seed = 1;

	for (int round = 0; round < 200; round++) {
		struct layers l = { 0 };
		size_t count = 1 + (size_t)round % 40;
		for (size_t i = 0; i < count; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t start = seed >> 40 & 63, len = 1 + (seed >> 50 & 15);
			check(layers_add(&l, start, start + len, seed >> 60 ? i / 2 : i));
			if (i == count / 2) /* later ones may come after look-ups */
				require(layers_seal(&l));
		}
		require(layers_seal(&l));
		for (uint64_t time = 0; time <= count; time++) {
			for (uint64_t address = 0; address < 90; address++)
				if (!check_u64(layers_find(&l, address, time),
					       walk(&l, address, time)))
					return;
			check_u64(layers_epoch(&l, time), covered_until(&l, time));
		}
		layers_done(&l);
	}
}

static void addresses_may_reach_to_the_end(void)
{
	struct layers l = { 0 };

	check(layers_add(&l, 0, 1, 5));
	check(layers_add(&l, UINT64_MAX - 1, UINT64_MAX, 5));
	require(layers_seal(&l));
	check_u64(layers_find(&l, 0, 5), 0);
	check_u64(layers_find(&l, 1, 5), LAYER_NONE);
	check_u64(layers_find(&l, UINT64_MAX - 1, 5), 1);
	check_u64(layers_find(&l, UINT64_MAX, 5), LAYER_NONE);
	layers_done(&l);
}

int main(void)
{
	tap_run(code_is_replaced_in_time);
	tap_run(agrees_with_walking);
	tap_run(addresses_may_reach_to_the_end);
	return tap_end();
}
