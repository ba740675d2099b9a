/* SPDX-License-Identifier: MIT */
/* Sums by region: of one thread while it goes on, and of all. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "count/region.h"

#define READ_TRIES 2000

uint64_t *region_row(const struct region_sums *sums, uint32_t members, uint32_t id)
{
	uint64_t *chunk = __atomic_load_n(&sums->chunks[id / ROWS_A_CHUNK], __ATOMIC_ACQUIRE);

	return chunk ? chunk + (size_t)(id % ROWS_A_CHUNK) * region_row_words(members) : NULL;
}

uint64_t *region_row_make(struct region_sums *sums, uint32_t members, uint32_t id)
{
	uint64_t **chunk = &sums->chunks[id / ROWS_A_CHUNK];

	if (!*chunk) {
		uint64_t *fresh = calloc(ROWS_A_CHUNK, region_row_words(members) * sizeof(*fresh));
		/* Release: pairs with the acquire of region_row(), by another thread. */
		__atomic_store_n(chunk, fresh, __ATOMIC_RELEASE);
	}
	return region_row(sums, members, id);
}

void region_sums_free(struct region_sums *sums)
{
	for (uint32_t i = 0; i < CHUNKS; i++) {
		free(sums->chunks[i]);
		sums->chunks[i] = NULL;
	}
}

/*
 * A whole row of a thread that may be writing it: the other side of end_innermost(). After some
 * time it is taken as it is; that is a thread that does not run, in the middle of a few stores.
 */
static void read_row(const struct tally_region_thread *t, const uint64_t *row, uint64_t *to)
{
	uint32_t words = region_row_words(t->members);

	for (int tries = 0; tries < READ_TRIES; tries++) {
		uint32_t before = __atomic_load_n(&t->sequence, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < words; i++)
			to[i] = __atomic_load_n(&row[i], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && __atomic_load_n(&t->sequence, __ATOMIC_RELAXED) == before)
			return;
		sched_yield();
	}
}

static void take_rows(const struct tally_region_thread *t, uint32_t names, struct region_sums *sums)
{
	uint32_t words = region_row_words(t->members);
	uint64_t *copy = calloc(words, sizeof(*copy));

	for (uint32_t id = 0; copy && id < names; id++) {
		const uint64_t *row = region_row(&t->sums, t->members, id);
		uint64_t *to = row ? region_row_make(sums, t->members, id) : NULL;
		if (!to)
			continue;
		read_row(t, row, copy);
		for (uint32_t i = 0; i < words; i++)
			to[i] += copy[i];
	}
	free(copy);
}

void region_take(struct tally_region_thread *t, uint32_t names, struct region_sums *sums,
		 struct tally_regions_notes *notes)
{
	const struct tally_regions_notes *from = &t->notes;

	take_rows(t, names, sums);
	notes->threads += from->threads;
	notes->open += __atomic_load_n(&t->depth, __ATOMIC_RELAXED);
	notes->unmatched_ends += __atomic_load_n(&from->unmatched_ends, __ATOMIC_RELAXED);
	notes->ended_by_outer += __atomic_load_n(&from->ended_by_outer, __ATOMIC_RELAXED);
	notes->too_deep += __atomic_load_n(&from->too_deep, __ATOMIC_RELAXED);
	notes->too_many += __atomic_load_n(&from->too_many, __ATOMIC_RELAXED);
	notes->interrupting += __atomic_load_n(&from->interrupting, __ATOMIC_RELAXED);
}

/* What is the same for all regions while they are given out. */
struct giving {
	const struct tally_regions_state *state;
	struct tally_result *inclusive, *exclusive;
};

static void fill(struct tally_result *results, const struct giving *g, const uint64_t *values)
{
	const struct region_config *config = g->state->config;

	for (uint32_t i = 0; i < config->members; i++) {
		struct tally_count *count = &results[i].count;
		results[i] = config->blanks[i];
		count->raw = values[VALUE_MEMBERS + i];
		count->enabled_ns = values[VALUE_ENABLED];
		count->running_ns = values[VALUE_RUNNING];
		tally_count_settle(count);
	}
}

static int give(const struct giving *g, const char *name, const uint64_t *row,
		int (*fn)(const struct tally_region_result *, void *), void *arg)
{
	uint32_t members = g->state->config->members;
	const struct tally_region_result result = {
		.name = name,
		.calls = row[ROW_CALLS],
		.failed = row[ROW_FAILED],
		.members = members,
		.inclusive = g->inclusive,
		.exclusive = g->exclusive,
	};

	fill(g->inclusive, g, row + ROW_VALUES);
	fill(g->exclusive, g, row + ROW_VALUES + region_width(members));
	return fn(&result, arg);
}

int region_each(const struct tally_regions_state *state, const struct region_sums *sums,
		int (*fn)(const struct tally_region_result *, void *), void *arg)
{
	uint32_t members = state->config->members;
	uint32_t names = __atomic_load_n(&state->names_count, __ATOMIC_ACQUIRE);
	struct tally_result *results = calloc(2 * (size_t)members + 1, sizeof(*results));
	const struct giving g = { state, results, results ? results + members : NULL };
	int r = results ? 0 : -ENOMEM;

	for (uint32_t id = 0; r == 0 && id < names; id++) {
		const uint64_t *row = region_row(sums, members, id);
		if (row && row[ROW_CALLS])
			r = give(&g, state->names[id], row, fn, arg);
	}
	free(results);
	return r;
}
