/* SPDX-License-Identifier: MIT */
/* BEGIN and END: what a thread counts in its regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "count/region.h"

/* The upper bits of a handle's tag are the set's generation, the lower ones the region's number. */
#define ID_BITS    16
#define ID_MASK    ((1u << ID_BITS) - 1)
#define ID_NOTHING UINT32_MAX

void region_thread_close(struct tally_region_thread *t)
{
	tally_group_close(t->group);
	t->group = NULL;
}

void region_thread_free(struct tally_region_thread *t)
{
	if (!t)
		return;
	region_thread_close(t);
	region_sums_free(&t->sums);
	free(t->counts);
	free(t->now);
	free(t->frame_values);
	free(t);
}

/* A group that cannot be opened is told once; regions are called all the same. */
static void open_group(struct tally_region_thread *t, struct tally_regions_state *state)
{
	static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter_opts opts = { .size = sizeof(opts), .flags = TALLY_COUNTER_ENABLED };
	struct tally_error err = { .text = "" };
	struct tally_events *events = state->config->events;

	if (events && tally_group_open(&t->group, events, 0, &self, &opts, &err) == 0)
		return;
	t->group = NULL;
	if (events && !state->notes.unopened++)
		state->first_error = err;
}

/* Into `values`; false: there is nothing to be read, or it did not count. */
static bool read_values(struct tally_region_thread *t, uint64_t *values)
{
	int32_t error = 0;

	if (!t->group || tally_group_read(t->group, t->counts, t->members) < 0)
		return false;
	values[VALUE_ENABLED] = t->counts[0].enabled_ns;
	values[VALUE_RUNNING] = t->counts[0].running_ns;
	for (uint32_t i = 0; i < t->members; i++) {
		values[VALUE_MEMBERS + i] = t->counts[i].raw;
		error |= t->counts[i].error;
	}
	return !error;
}

/* Has the kernel give the memory now, and not while something is counted. */
static void touch(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*(volatile uint64_t *)&words[i] = 0;
}

static bool allocate(struct tally_region_thread *t)
{
	uint32_t width = region_width(t->members);

	t->counts = calloc(t->members + 1u, sizeof(*t->counts));
	t->now = calloc(width, sizeof(*t->now));
	t->frame_values = calloc((size_t)TALLY_REGION_DEPTH * 2 * width, sizeof(*t->now));
	/* The first rows here, so that a region in another one is not what allocates them. */
	uint64_t *rows = region_row_make(&t->sums, t->members, 0);
	if (!t->counts || !t->now || !t->frame_values || !rows)
		return false;
	touch(rows, ROWS_A_CHUNK * region_row_words(t->members));
	for (uint32_t i = 0; i < TALLY_REGION_DEPTH; i++) {
		t->frames[i].start = t->frame_values + (size_t)2 * i * width;
		t->frames[i].inside = t->frames[i].start + width;
	}
	return true;
}

struct tally_region_thread *region_thread_new(struct tally_regions *set)
{
	struct tally_regions_state *state = set->state;
	struct tally_region_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->set = set;
	t->generation = set->generation;
	t->members = state->config->members;
	t->notes.threads = 1;
	if (!allocate(t)) {
		region_thread_free(t);
		return NULL;
	}
	open_group(t, state);
	read_values(t, t->now);
	t->next = state->threads;
	/* Release: a forked child may find any moment's list. */
	__atomic_store_n(&state->threads, t, __ATOMIC_RELEASE);
	return t;
}

/*
 * This thread's struct, made when it has none; one of another generation is what the set had before
 * it was restarted, or before this process was forked. The caller is a visitor.
 */
static struct tally_region_thread *own_thread(struct tally_regions *set)
{
	struct tally_region_thread *old = pthread_getspecific(set->key), *t = old;

	if (old && old->generation == set->generation)
		return old;
	pthread_mutex_lock(&set->state->lock);
	t = region_thread_new(set);
	pthread_mutex_unlock(&set->state->lock);
	if (t && old)
		t->forgiven = old->depth + old->skipped;
	region_thread_free(old);
	if (pthread_setspecific(set->key, t) != 0 && t) {
		/* It stays in the list, without anybody who writes to it. */
		region_thread_close(t);
		t = NULL;
	}
	return t;
}

/* The slow way in: the first region of a thread, or after a fork. */
static struct tally_region_thread *find_thread(struct tally_regions *set)
{
	struct tally_region_thread *t = NULL;

	if (!region_visit(set))
		return NULL;
	if (region_own(set))
		t = own_thread(set);
	region_leave_set(set);
	return t;
}

/*
 * From here until leave() the set is not taken down. Sequentially consistent: either we see that it
 * is off, or who turns it off sees that we are inside (tally_regions_stop()).
 */
static bool go_inside(struct tally_region_thread *t)
{
	__atomic_store_n(&t->busy, 1, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&t->set->on, __ATOMIC_SEQ_CST);
}

static void leave(struct tally_region_thread *t)
{
	/* Release: pairs with the acquire of who waits for it, in tally_regions_stop(). */
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/* Whether it belongs to the set as it is now. The caller is inside. */
static bool is_current(const struct tally_region_thread *t)
{
	const struct tally_regions *set = t->set;

	return __atomic_load_n(set->alive, __ATOMIC_ACQUIRE) == REGION_ALIVE &&
	       t->generation == set->generation;
}

/* Relaxed: others may read them at any time, rows of sums under the sequence number. */
static void add_word(uint64_t *sum, uint64_t more)
{
	__atomic_store_n(sum, *sum + more, __ATOMIC_RELAXED);
}

static void set_depth(struct tally_region_thread *t, uint32_t depth)
{
	__atomic_store_n(&t->depth, depth, __ATOMIC_RELAXED);
}

static struct tally_region_thread *enter(struct tally_regions *set)
{
	struct tally_region_thread *t = pthread_getspecific(set->key);

	for (int tries = 0; tries < 2; tries++) {
		if (t && t->busy) {
			add_word(&t->notes.interrupting, 1);
			return NULL;
		}
		if (t && go_inside(t)) {
			if (is_current(t))
				return t;
			leave(t);
		} else if (t) {
			leave(t);
			return NULL;
		}
		t = find_thread(set);
		if (!t)
			return NULL;
	}
	return NULL;
}

/* The number of a name, which may be new. The lock is held. */
static uint32_t number_of(struct tally_regions_state *state, const char *name)
{
	uint32_t id = 0;

	while (id < state->names_count && strcmp(state->names[id], name) != 0)
		id++;
	if (id < state->names_count)
		return id;
	char *copy = id < TALLY_REGION_NAMES ? strdup(name) : NULL;
	if (!copy)
		return ID_NOTHING;
	state->names[id] = copy;
	/* Release: pairs with region_each()'s acquire. */
	__atomic_store_n(&state->names_count, id + 1, __ATOMIC_RELEASE);
	return id;
}

/* The region's number in the set, by the handle's tag or, the first time, by its name. */
static uint32_t find_region(struct tally_region_thread *t, struct tally_region *region)
{
	struct tally_regions_state *state = t->set->state;
	uint64_t tag = __atomic_load_n(&region->tag, __ATOMIC_RELAXED);

	if (tag >> ID_BITS == t->generation)
		return tag & ID_MASK;
	pthread_mutex_lock(&state->lock);
	uint32_t id = number_of(state, region->name);
	pthread_mutex_unlock(&state->lock);
	if (id != ID_NOTHING)
		__atomic_store_n(&region->tag, t->generation << ID_BITS | id, __ATOMIC_RELAXED);
	return id;
}

void tally_region_begin(struct tally_regions *set, struct tally_region *region)
{
	struct tally_region_thread *t = enter(set);

	if (!t)
		return;
	uint32_t id = find_region(t, region);
	if (id == ID_NOTHING) {
		add_word(&t->notes.too_many, 1);
	} else if (t->depth == TALLY_REGION_DEPTH) {
		add_word(&t->notes.too_deep, 1);
		t->skipped++;
	} else {
		struct region_frame *frame = &t->frames[t->depth];
		set_depth(t, t->depth + 1);
		frame->id = id;
		memset(frame->start, 0, (size_t)2 * region_width(t->members) * sizeof(uint64_t));
		/* Last, so that the least of our own is counted. */
		frame->failed = !read_values(t, frame->start);
	}
	leave(t);
}

static bool is_open_below(const struct tally_region_thread *t, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		if (t->frames[i].id == t->frames[depth].id)
			return true;
	return false;
}

static void add_values(struct tally_region_thread *t, uint32_t depth, uint64_t *row)
{
	const struct region_frame *frame = &t->frames[depth];
	uint32_t width = region_width(t->members);
	uint64_t *outside = depth ? t->frames[depth - 1].inside : NULL;
	bool again = is_open_below(t, depth);

	for (uint32_t i = 0; i < width; i++) {
		uint64_t all = t->now[i] - frame->start[i];
		if (!again)
			add_word(&row[ROW_VALUES + i], all);
		add_word(&row[ROW_VALUES + width + i], all - frame->inside[i]);
		if (outside)
			outside[i] += all;
	}
}

/* Ends the innermost open region; `t->now` are the values at its end, when they are `known`. */
static void end_innermost(struct tally_region_thread *t, bool known)
{
	uint32_t depth = t->depth - 1;
	const struct region_frame *frame = &t->frames[depth];
	uint64_t *row = region_row_make(&t->sums, t->members, frame->id);

	set_depth(t, depth);
	if (!row)
		return;
	uint32_t sequence = t->sequence;
	__atomic_store_n(&t->sequence, sequence + 1, __ATOMIC_RELAXED);
	/* Release: the odd number is seen before what is written now; see read_row(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	add_word(&row[ROW_CALLS], 1);
	if (known && !frame->failed)
		add_values(t, depth, row);
	else
		add_word(&row[ROW_FAILED], 1);
	__atomic_store_n(&t->sequence, sequence + 2, __ATOMIC_RELEASE);
}

/* An END that fits no BEGIN; those of regions that were begun before the fork are expected. */
static void end_nothing(struct tally_region_thread *t)
{
	if (t->forgiven)
		t->forgiven--;
	else
		add_word(&t->notes.unmatched_ends, 1);
}

static void end_region(struct tally_region_thread *t, uint32_t id, bool known)
{
	uint32_t at = t->depth;

	while (at > 0 && t->frames[at - 1].id != id)
		at--;
	if (!at) {
		end_nothing(t);
		return;
	}
	while (t->depth > at) {
		add_word(&t->notes.ended_by_outer, 1);
		end_innermost(t, known);
	}
	end_innermost(t, known);
}

void tally_region_end(struct tally_regions *set, struct tally_region *region)
{
	struct tally_region_thread *t = enter(set);

	if (!t)
		return;
	/* First, so that the least of our own is counted. */
	bool known = t->depth && !t->skipped && read_values(t, t->now);
	if (t->skipped) {
		t->skipped--;
	} else {
		uint32_t id = find_region(t, region);
		if (id != ID_NOTHING)
			end_region(t, id, known);
	}
	leave(t);
}
