/* SPDX-License-Identifier: MIT */
/*
 * Threads take turns. One goes on until its ticks are used up or it would wait for another; futex(2) and
 * sleeps are answered here, by ticks, since who is woken first by the kernel is a matter of chance. What
 * else waits, waits in the kernel, and its coming back is told to be chance.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sys.h"
#include "inspect/same.h"

#define LOOK_NS  200000u /* while all wait for what is not here */
#define NO_BITS  0u
#define ALL_BITS FUTEX_BITSET_MATCH_ANY

bool same_give_up(struct same_run *run)
{
	struct tally_same *same = run->same;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (same->end_ns && now >= same->end_ns)
		same->given_up = "the time is up";
	if (same->opts.progress && now >= same->next_progress_ns) {
		same->next_progress_ns = now + PROGRESS_NS;
		if (same->opts.progress(same->opts.arg, run->ticks) != 0)
			same->given_up = "it was called off";
	}
	return same->given_up;
}

/* Its number in its own pid namespace: the last of the line, proc_pid_status(5). */
static uint32_t read_id(int32_t tid)
{
	char path[64], line[256];
	uint32_t id = (uint32_t)tid;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		const char *last = strrchr(line, '\t');
		if (!strncmp(line, "NSpid:", strlen("NSpid:")) && last)
			id = (uint32_t)strtoul(last, NULL, 10);
	}
	if (file)
		fclose(file);
	return id;
}

struct same_thread *same_turn_add(struct same_run *run, struct tally_tracee *tracee)
{
	struct same_thread *t = calloc(1, sizeof(*t));
	struct same_thread **at = t ? vec_push(&run->threads) : NULL;

	if (!at) {
		free(t);
		return NULL;
	}
	*at = t;
	t->tracee = tracee;
	t->number = (uint32_t)run->threads.count;
	t->id = read_id(tally_tracee_tid(tracee));
	return t;
}

uint32_t same_turn_alive(const struct same_run *run)
{
	uint32_t count = 0;

	for (size_t i = 0; i < run->threads.count; i++)
		count += run->threads.at[i]->state != SAME_ENDED;
	return count;
}

bool same_turn_goes_on(const struct same_run *run)
{
	for (size_t i = 0; i < run->threads.count; i++)
		if (run->threads.at[i]->state != SAME_ENDED && !run->threads.at[i]->exits)
			return true;
	return false;
}

/* The last that was begun: it stands at its end with its memory, or before. */
struct tally_tracee *same_turn_any(const struct same_run *run)
{
	size_t last = 0;

	for (size_t i = 0; i < run->threads.count; i++)
		if (run->threads.at[i]->state == SAME_READY ||
		    run->threads.at[i]->state == SAME_WAITS)
			last = i;
	return run->threads.at[last]->tracee;
}

static void wake(struct same_thread *t, int64_t answer)
{
	t->state = SAME_READY;
	t->done = true;
	t->answer = answer;
}

/* A futex that reads otherwise than expected: who waits would not have waited. */
static void look_at(struct same_thread *t)
{
	uint32_t value;

	if (t->state == SAME_WAITS && t->futex &&
	    (tally_tracee_peek(t->tracee, t->futex, &value, sizeof(value)) < 0 ||
	     value != t->expected))
		wake(t, 0);
}

void same_turn_look(struct same_run *run)
{
	for (size_t i = 0; i < run->threads.count; i++)
		look_at(run->threads.at[i]);
}

static void expire(struct same_run *run)
{
	uint64_t now = same_now(run);

	for (size_t i = 0; i < run->threads.count; i++) {
		struct same_thread *t = run->threads.at[i];
		if (t->state == SAME_WAITS && t->until <= now)
			wake(t, t->futex ? -ETIMEDOUT : 0);
	}
}

/* A thread that has come back from the kernel is ready, and its stop waits to be looked at. */
static struct same_thread *next_ready(struct same_run *run)
{
	uint32_t count = (uint32_t)run->threads.count;

	for (uint32_t i = 0; i < count; i++) {
		struct same_thread *t = run->threads.at[(run->turn + i) % count];
		if (t->state == SAME_READY)
			return t;
	}
	return NULL;
}

static bool any(const struct same_run *run, uint32_t state)
{
	for (size_t i = 0; i < run->threads.count; i++)
		if (run->threads.at[i]->state == state)
			return true;
	return false;
}

/*
 * All sleep, or are inside: until the first of them is due, or for a while. Really, since others may be
 * waited for.
 */
static void sleep_on(struct same_run *run)
{
	uint64_t first = UINT64_MAX, now = same_now(run);

	for (size_t i = 0; i < run->threads.count; i++) {
		const struct same_thread *t = run->threads.at[i];
		if (t->state == SAME_WAITS && t->until < first)
			first = t->until;
	}
	uint64_t left = first > now ? first - now : 0;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), span = left < LOOK_NS ? left : LOOK_NS;
	do
		sys()->sleep_ns(LOOK_NS);
	while (clock_ns(CLOCK_MONOTONIC) - start < span);
	/* Who waits for nothing but others is looked at: it may be another process's turn. */
	if (first == UINT64_MAX)
		same_turn_look(run);
	else
		run->slept += span;
}

static void set_turn(struct same_run *run, const struct same_thread *t)
{
	run->turn = t->number - 1;
	run->turn_end = run->ticks + run->same->opts.every;
}

int same_turn(struct same_run *run, struct same_thread **out)
{
	struct same_thread *now = run->threads.at[run->turn];

	if (now->state == SAME_READY && (run->ticks < run->turn_end || run->threads.count == 1)) {
		*out = now;
		return 1;
	}
	run->turn = (uint32_t)((run->turn + 1) % run->threads.count);
	for (;;) {
		expire(run);
		struct same_thread *t = next_ready(run);
		if (t) {
			set_turn(run, t);
			*out = t;
			return 1;
		}
		if (same_give_up(run))
			return 0;
		sleep_on(run);
		if (any(run, SAME_INSIDE))
			return 2;
	}
}

bool same_turn_waits(struct same_run *run, struct same_thread *t)
{
	const struct same_pending *p = &t->pending;
	unsigned op = (unsigned)p->args[1] & FUTEX_CMD_MASK;
	uint32_t value;

	if (p->call->kind == SAME_YIELD)
		run->turn_end = run->ticks;
	bool sleeps = p->call->kind == SAME_SLEEP || p->call->kind == SAME_SLEEP_ON;
	bool waits = p->call->kind == SAME_FUTEX && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET);
	if (t->done || t->native || (!sleeps && !waits) || (sleeps && p->lasts == UINT64_MAX) ||
	    same_turn_alive(run) == 1)
		return false;
	t->futex = 0;
	if (waits) {
		if (tally_tracee_peek(t->tracee, p->args[0], &value, sizeof(value)) < 0 ||
		    value != (uint32_t)p->args[2])
			return false; /* it fails at once */
		t->futex = p->args[0];
		t->expected = value;
		t->bits = op == FUTEX_WAIT ? ALL_BITS : (uint32_t)p->args[5];
		if (t->bits == NO_BITS)
			return false;
	}
	t->until = p->lasts == UINT64_MAX ? UINT64_MAX : same_now(run) + p->lasts;
	t->state = SAME_WAITS;
	return true;
}

/* The first that wait, in the order of the threads. */
static int64_t wake_some(struct same_run *run, uint64_t futex, uint64_t most, uint32_t bits)
{
	int64_t woken = 0;

	for (size_t i = 0; i < run->threads.count && (uint64_t)woken < most; i++) {
		struct same_thread *t = run->threads.at[i];
		if (t->state != SAME_WAITS || t->futex != futex || !(t->bits & bits))
			continue;
		wake(t, 0);
		woken++;
	}
	return woken;
}

static int64_t move_some(struct same_run *run, uint64_t from, uint64_t to, uint64_t most)
{
	int64_t moved = 0;

	for (size_t i = 0; i < run->threads.count && (uint64_t)moved < most; i++) {
		struct same_thread *t = run->threads.at[i];
		if (t->state != SAME_WAITS || t->futex != from)
			continue;
		t->futex = to;
		tally_tracee_peek(t->tracee, to, &t->expected, sizeof(t->expected));
		moved++;
	}
	return moved;
}

void same_turn_wake(struct same_run *run, const struct same_thread *t, int64_t *result)
{
	const uint64_t *args = t->pending.args;
	unsigned op = (unsigned)args[1] & FUTEX_CMD_MASK;
	/* The number is an int, and what is asked for as "all" is INT_MAX. */
	uint64_t most = (uint32_t)args[2] > (uint64_t)*result
				? (uint32_t)args[2] - (uint64_t)*result
				: 0;

	if (op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET) {
		*result += wake_some(run, args[0], most,
				     op == FUTEX_WAKE ? ALL_BITS : (uint32_t)args[5]);
	} else if (op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE) {
		int64_t woken = wake_some(run, args[0], most, ALL_BITS);
		int64_t moved = move_some(run, args[0], args[4], (uint32_t)args[3]);
		*result += woken + (op == FUTEX_CMP_REQUEUE ? moved : 0);
	} else if (op == FUTEX_WAKE_OP) {
		/* Whom it would wake depends on what was there before: all look again. */
		*result += wake_some(run, args[0], UINT64_MAX, ALL_BITS);
		*result += wake_some(run, args[4], UINT64_MAX, ALL_BITS);
	}
}

void same_turn_signalled(struct same_run *run, const struct same_thread *t)
{
	const struct same_pending *p = &t->pending;
	uint64_t id = p->call->args == 3 ? p->args[1] : p->args[0];

	for (size_t i = 0; i < run->threads.count; i++) {
		struct same_thread *other = run->threads.at[i];
		if (other->state != SAME_WAITS || other->id != (uint32_t)id)
			continue;
		other->state = SAME_READY;
		other->native = true;
	}
}
