/* SPDX-License-Identifier: MIT */
/* A set of regions: started, stopped, made anew in a forked child, and read. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/page.h"
#include "base/sys.h"
#include "count/region.h"

/* Handles keep it beside a region's number, which leaves it so many bits. */
#define GENERATION_MASK ((1ull << 48) - 1)

static uint64_t new_generation(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC) & GENERATION_MASK;

	return now ? now : 1;
}

/* -- visitors --------------------------------------------------------------------------- */

/* Sequentially consistent, as go_inside(): what is said there holds here. */
bool region_visit(struct tally_regions *set)
{
	__atomic_fetch_add(&set->visitors, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&set->on, __ATOMIC_SEQ_CST))
		return true;
	region_leave_set(set);
	return false;
}

void region_leave_set(struct tally_regions *set)
{
	__atomic_fetch_sub(&set->visitors, 1, __ATOMIC_RELEASE);
}

/* Somebody who is in the middle of it is done in microseconds, once it runs. */
static bool await_zero(uint32_t *word, int patience_ms)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (int tries = 0; tries < REGION_SPINS + patience_ms; tries++) {
		if (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
			return true;
		if (tries < REGION_SPINS)
			sched_yield();
		else
			nanosleep(&ms, NULL);
	}
	return false;
}

/* -- state ------------------------------------------------------------------------------ */

static struct tally_regions_state *state_new(struct region_config *config)
{
	struct tally_regions_state *state = calloc(1, sizeof(*state));

	if (!state)
		return NULL;
	state->config = config;
	pthread_mutex_init(&state->lock, NULL);
	return state;
}

static void state_free(struct tally_regions_state *state)
{
	if (!state)
		return;
	region_config_free(state->config);
	for (uint32_t id = 0; id < state->names_count; id++)
		free(state->names[id]);
	region_sums_free(&state->ended);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

/*
 * The parent's state may have been copied in the middle of a change, so that nothing of it is used
 * but what never changes (its configuration) and its list of threads, which is whole at any moment.
 * Their counters are the parent's: they are closed here, and their memory is left, but for that of
 * the thread that forked, which finds it itself (own_thread()).
 */
static bool restart(struct tally_regions *set)
{
	struct tally_regions_state *parents = set->state;
	struct tally_regions_state *state = state_new(parents->config);

	if (!state) {
		__atomic_store_n(&set->on, 0, __ATOMIC_SEQ_CST);
		return false;
	}
	for (struct tally_region_thread *t = parents->threads; t; t = t->next)
		region_thread_close(t);
	state->restarted = true;
	set->state = state;
	set->generation = new_generation();
	/* Release: pairs with the acquire of who finds it alive. */
	__atomic_store_n(set->alive, REGION_ALIVE, __ATOMIC_RELEASE);
	return true;
}

bool region_own(struct tally_regions *set)
{
	uint32_t forked = REGION_FORKED;

	if (__atomic_compare_exchange_n(set->alive, &forked, REGION_RESTARTING, false,
					__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
		return restart(set);
	while (__atomic_load_n(set->alive, __ATOMIC_ACQUIRE) != REGION_ALIVE) {
		if (!__atomic_load_n(&set->on, __ATOMIC_ACQUIRE))
			return false;
		sched_yield();
	}
	return true;
}

/* -- threads that end ------------------------------------------------------------------- */

static void unlink_thread(struct tally_regions_state *state, const struct tally_region_thread *t)
{
	struct tally_region_thread **at = &state->threads;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		__atomic_store_n(at, t->next, __ATOMIC_RELEASE);
}

/* A thread ends while its set goes on: its sums are put to those of others that ended. */
static void take_ended(struct tally_regions *set, struct tally_region_thread *t)
{
	struct tally_regions_state *state = set->state;

	pthread_mutex_lock(&state->lock);
	region_take(t, state->names_count, &state->ended, &state->notes);
	unlink_thread(state, t);
	pthread_mutex_unlock(&state->lock);
	region_thread_free(t);
}

/*
 * The key's destructor. When the set is off, who turned it off may be reading this struct; in a
 * forked child it may be in a list that is walked by restart(). It is left as it is then.
 */
static void end_thread(void *arg)
{
	struct tally_region_thread *t = arg;
	struct tally_regions *set = t->set;

	if (!region_visit(set))
		return;
	if (__atomic_load_n(set->alive, __ATOMIC_ACQUIRE) == REGION_ALIVE &&
	    t->generation == set->generation)
		take_ended(set, t);
	region_leave_set(set);
}

/* -- start and stop --------------------------------------------------------------------- */

static bool prepare(struct tally_regions *set)
{
	pthread_key_t key;

	set->alive = page_map_wiped(); /* REGION_FORKED in a child */
	if (!set->alive) {
		buf_printf(&set->state->config->troubles,
			   "nothing is counted: that needs memory that fork wipes (Linux 4.14)\n");
		return false;
	}
	if (pthread_key_create(&key, end_thread) != 0) {
		buf_printf(&set->state->config->troubles,
			   "nothing is counted: the program has no thread-specific keys left\n");
		return false;
	}
	set->key = key;
	set->generation = new_generation();
	*set->alive = REGION_ALIVE;
	return true;
}

void tally_regions_start(struct tally_regions *set)
{
	if (set->state)
		return;
	struct region_config *config = region_config_read();
	if (!config)
		return;
	set->state = state_new(config);
	if (!set->state) {
		region_config_free(config);
		return;
	}
	if (config->members && prepare(set))
		__atomic_store_n(&set->on, 1, __ATOMIC_SEQ_CST);
}

/*
 * The set is off. Takes what its threads have and closes their counters; one that is still inside
 * after some time, as when its own signal handler exits, is left alone and told. False then.
 */
static bool take_all(struct tally_regions_state *state, const struct tally_region_thread *own)
{
	bool all = true;

	for (struct tally_region_thread *t = state->threads; t; t = t->next) {
		if (!await_zero(&t->busy, t == own ? 0 : REGION_PATIENCE_MS)) {
			state->unread++;
			all = false;
			continue;
		}
		/* Others that are inside may be adding names, which this one does not have. */
		uint32_t names = __atomic_load_n(&state->names_count, __ATOMIC_ACQUIRE);
		region_take(t, names, &state->ended, &state->notes);
		region_thread_close(t);
	}
	return all;
}

static void forget(struct tally_regions *set)
{
	if (set->alive)
		page_unmap(set->alive);
	set->alive = NULL;
	state_free(set->state);
	set->state = NULL;
}

/*
 * The structs of threads that live on may be looked at by them at any time (go_inside()); they are
 * kept, and known to the set, so that they do not look lost.
 */
static void keep_threads(struct tally_regions *set, struct tally_region_thread *own)
{
	struct tally_region_thread *next;

	for (struct tally_region_thread *t = set->state->threads; t; t = next) {
		next = t->next;
		if (t == own) {
			region_thread_free(t);
			continue;
		}
		t->next = set->left;
		set->left = t;
	}
}

/* What has been turned off, by somebody who is alone with it. False: it is to be left as it is. */
static bool finish(struct tally_regions *set)
{
	struct tally_region_thread *own = pthread_getspecific(set->key);

	if (__atomic_load_n(set->alive, __ATOMIC_ACQUIRE) != REGION_ALIVE)
		return false; /* a child that had no regions: all is its parent's */
	struct tally_regions_state *state = set->state;
	bool alone = await_zero(&set->visitors, state->restarted ? 0 : REGION_PATIENCE_MS);
	/* A visitor that never leaves is one whose callback or signal handler ends the process. */
	if (!alone && pthread_mutex_trylock(&state->lock) != 0)
		return false;
	bool all = take_all(state, own);
	region_dump(state);
	if (!alone)
		pthread_mutex_unlock(&state->lock);
	if (!alone || !all)
		return false;
	pthread_key_delete(set->key);
	keep_threads(set, own);
	return true;
}

void tally_regions_stop(struct tally_regions *set)
{
	bool was_on = __atomic_exchange_n(&set->on, 0, __ATOMIC_SEQ_CST);

	if (!set->state || set->state->stopped)
		return;
	set->state->stopped = true;
	if (!was_on)
		region_dump(set->state); /* what is in the way */
	if (!was_on || finish(set))
		forget(set);
}

/* -- reading ---------------------------------------------------------------------------- */

/* All sums and notes so far. The caller is a visitor, of a set of its own process. */
static void take_so_far(struct tally_regions_state *state, struct region_sums *sums,
			struct tally_regions_notes *notes)
{
	uint32_t members = state->config->members, words = region_row_words(members);

	pthread_mutex_lock(&state->lock);
	*notes = state->notes;
	for (uint32_t id = 0; sums && id < state->names_count; id++) {
		const uint64_t *from = region_row(&state->ended, members, id);
		uint64_t *to = from ? region_row_make(sums, members, id) : NULL;
		if (to)
			memcpy(to, from, words * sizeof(*to));
	}
	for (struct tally_region_thread *t = state->threads; t; t = t->next)
		region_take(t, sums ? state->names_count : 0, sums, notes);
	pthread_mutex_unlock(&state->lock);
}

static bool visit_own(struct tally_regions *set)
{
	if (!region_visit(set))
		return false;
	if (__atomic_load_n(set->alive, __ATOMIC_ACQUIRE) == REGION_ALIVE)
		return true;
	region_leave_set(set);
	return false;
}

int tally_regions_read(struct tally_regions *set,
		       int (*fn)(const struct tally_region_result *result, void *arg), void *arg)
{
	struct region_sums sums = { .chunks = { NULL } };
	struct tally_regions_notes notes;

	if (!visit_own(set))
		return 0;
	take_so_far(set->state, &sums, &notes);
	int r = region_each(set->state, &sums, fn, arg);
	region_sums_free(&sums);
	region_leave_set(set);
	return r;
}

int tally_regions_notes(struct tally_regions *set, struct tally_regions_notes *out, size_t out_size)
{
	struct tally_regions_notes notes = { 0 };

	if (!out_size)
		return -EINVAL;
	if (visit_own(set)) {
		take_so_far(set->state, NULL, &notes);
		region_leave_set(set);
	}
	memset(out, 0, out_size);
	memcpy(out, &notes, out_size < sizeof(notes) ? out_size : sizeof(notes));
	return 0;
}
