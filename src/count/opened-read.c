/* SPDX-License-Identifier: MIT */
/* Reading opened events: one place, all of them, and the zero that a reset makes. */
#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "count/opened.h"
#include "count/read-format.h"
#include "count/settle.h"

/* Where a member is, by its id: mostly where it was opened. The number of members: nowhere. */
static inline uint32_t find_member(const struct opened *o, const uint64_t *ids, uint64_t id,
				   uint64_t guess)
{
	uint32_t m = 0;

	if (guess < o->members && ids[guess] == id)
		return (uint32_t)guess;
	while (m < o->members && ids[m] != id)
		m++;
	return m;
}

/* The members of a group may stand in any order, and some may be missing. */
static void take_group(struct opened *o, uint32_t place, size_t words)
{
	const uint64_t *ids = &o->ids[(size_t)place * o->members],
		       *at = o->buffer + READ_GROUP_HEAD;
	size_t width = o->has_lost ? 3 : 2;
	uint64_t found = o->buffer[0], fit = (words - READ_GROUP_HEAD) / width;

	for (uint64_t i = 0; i < found && i < fit; i++, at += width) {
		uint32_t m = find_member(o, ids, at[1], i);
		if (m == o->members)
			continue;
		o->now[m] = (struct tally_count){
			.raw = at[0],
			.enabled_ns = o->buffer[1],
			.running_ns = o->buffer[2],
			.lost = o->has_lost ? at[2] : 0,
		};
	}
}

/* What read(2) answered when it was not the whole of o->alone_bytes. */
static int take_short(ssize_t n, struct tally_count *now)
{
	if (n < 0)
		return (int)n;
	if (n > 0)
		return -EIO;
	*now = (struct tally_count){ .error = -EBUSY, .state = TALLY_COUNT_ERROR };
	return 0;
}

static inline int take_one(const struct opened *o, ssize_t n, struct tally_count *now)
{
	if (n < o->alone_bytes)
		return take_short(n, now);
	*now = (struct tally_count){
		.raw = o->buffer[0],
		.enabled_ns = o->buffer[1],
		.running_ns = o->buffer[2],
		.lost = o->buffer[4], /* 0 from the start, where it is not told */
	};
	return 0;
}

/* Members one by one; those that have no part here are 0 of no time. */
static int read_singly(struct opened *o, uint32_t place)
{
	const int *fds = &o->fds[(size_t)place * o->members];
	int r = 0;

	for (uint32_t m = 0; r == 0 && m < o->members; m++) {
		if (fds[m] >= 0)
			r = take_one(
				o,
				sys_read(fds[m], o->buffer, READ_ALONE_WORDS * sizeof(*o->buffer)),
				&o->now[m]);
		else
			o->now[m] = (struct tally_count){ 0 };
	}
	return r;
}

/*
 * Reads one place into o->now, neither settled nor above the base. End-of-file is the kernel's sign
 * for a pinned event that found no room on the PMU (PERF_EVENT_STATE_ERROR).
 */
int opened_fetch(struct opened *o, uint32_t place)
{
	size_t room = READ_WORDS(o->members) * sizeof(*o->buffer);
	const int *fds = &o->fds[(size_t)place * o->members];

	if (o->singly)
		return read_singly(o, place);
	ssize_t n = sys_read(fds[0], o->buffer, room);
	if (n < 0)
		return (int)n;
	memset(o->now, 0, o->members * sizeof(*o->now));
	for (uint32_t m = 0; m < o->members; m++)
		o->now[m].error = fds[m] < 0 ? 0 : n ? -EIO : -EBUSY;
	size_t words = (size_t)n / sizeof(*o->buffer);
	if (!n)
		return 0;
	if (words < READ_GROUP_HEAD)
		return -EIO;
	take_group(o, place, words);
	return 0;
}

/*
 * What member `m` of o->now, just read, counted since the base. Not tally_count_minus(): the sum alone
 * is settled, and a read should cost what read(2) costs.
 */
static inline struct tally_count since_base(const struct opened *o, uint32_t place, uint32_t m)
{
	const struct tally_count *now = &o->now[m];
	const struct tally_count *base = &o->base[(size_t)place * o->members + m];

	return (struct tally_count){
		.raw = clamped_minus(now->raw, base->raw),
		.enabled_ns = clamped_minus(now->enabled_ns, base->enabled_ns),
		.running_ns = clamped_minus(now->running_ns, base->running_ns),
		.lost = clamped_minus(now->lost, base->lost),
		.error = now->error,
	};
}

/*
 * Adds what a place counted. The parts of an event at one thread take turns as the thread moves from
 * one kind of core to another, all enabled all the time: it was enabled as long as one of them was, and
 * ran as long as all of them together.
 */
static inline void add_place(struct tally_count *sum, const struct tally_count *since,
			     uint64_t *stretch)
{
	uint64_t more = since->enabled_ns > *stretch ? since->enabled_ns - *stretch : 0;

	sum->raw += since->raw;
	sum->enabled_ns += more;
	sum->running_ns += since->running_ns;
	sum->lost += since->lost;
	*stretch += more;
	if (!sum->error)
		sum->error = since->error;
}

static bool same_thread(const struct opened *o, uint32_t place)
{
	return o->shares_time && place > 0 && o->places[place].part > 0 &&
	       o->places[place].tid == o->places[place - 1].tid;
}

static inline void settle(const struct opened *o, struct tally_count *count)
{
	count_settle(count);
	count->flags |= o->flags;
}

/* Adds up the places of the same thread and CPU as `at`; NULL: all of them. */
static int sum_places(struct opened *o, const struct tally_place *at, struct tally_count *counts)
{
	memset(counts, 0, o->members * sizeof(*counts));
	for (uint32_t p = 0; p < o->places_count; p++) {
		if (at && (o->places[p].tid != at->tid || o->places[p].cpu != at->cpu))
			continue;
		int r = opened_fetch(o, p);
		if (r < 0)
			return r;
		if (!same_thread(o, p))
			memset(o->stretch, 0, o->members * sizeof(*o->stretch));
		for (uint32_t m = 0; m < o->members; m++) {
			struct tally_count since = since_base(o, p, m);
			add_place(&counts[m], &since, &o->stretch[m]);
		}
	}
	for (uint32_t m = 0; m < o->members; m++)
		settle(o, &counts[m]);
	return 0;
}

int opened_read(struct opened *o, struct tally_count *counts)
{
	return sum_places(o, NULL, counts);
}

int opened_read_at(struct opened *o, const struct tally_place *at, struct tally_count *counts)
{
	return sum_places(o, at, counts);
}

int opened_read_place(struct opened *o, uint32_t place, struct tally_count *counts)
{
	if (place >= o->places_count)
		return -EINVAL;
	int r = opened_fetch(o, place);
	if (r < 0)
		return r;
	for (uint32_t m = 0; m < o->members; m++) {
		counts[m] = since_base(o, place, m);
		settle(o, &counts[m]);
	}
	return 0;
}

static inline void settle_alone(const struct opened *o, struct tally_count *out)
{
	const struct tally_count *base = o->base;
	const uint64_t *words = o->buffer;

	*out = (struct tally_count){
		.raw = clamped_minus(words[0], base->raw),
		.enabled_ns = clamped_minus(words[1], base->enabled_ns),
		.running_ns = clamped_minus(words[2], base->running_ns),
		.lost = clamped_minus(words[4], base->lost),
	};
	settle(o, out);
}

/* It failed, as by a signal, or answered less than it should. */
__attribute__((noinline, cold)) static int read_again(struct opened *o, ssize_t n,
						      struct tally_count *out)
{
	if (n < 0)
		n = sys()->read(o->fds[0], o->buffer, READ_ALONE_WORDS * sizeof(*o->buffer));
	if (n < o->alone_bytes)
		return take_short(n, out);
	settle_alone(o, out);
	return 0;
}

/*
 * One event at one place, without a detour: a read should cost what read(2) costs, and after a
 * system call every branch and every return is a mispredicted one.
 */
static inline int read_alone(struct opened *o, struct tally_count *out)
{
	ssize_t n = sys()->plain_read(o->fds[0], o->buffer, READ_ALONE_WORDS * sizeof(*o->buffer));

	if (__builtin_expect(n < o->alone_bytes, 0))
		return read_again(o, n, out);
	settle_alone(o, out);
	return 0;
}

/* Out of line: what it keeps in registers would have to be saved on the short way too. */
__attribute__((noinline)) static int read_sum(struct opened *o, struct tally_count *count)
{
	struct tally_count sum;
	int r = opened_read(o, &sum);

	if (r == 0)
		*count = sum;
	return r;
}

int opened_read_one(struct opened *o, struct tally_count *count)
{
	return o->places_count == 1 ? read_alone(o, count) : read_sum(o, count);
}

int opened_reset(struct opened *o)
{
	for (uint32_t p = 0; p < o->places_count; p++) {
		int r = opened_fetch(o, p);
		if (r < 0)
			return r;
		for (uint32_t m = 0; m < o->members; m++)
			if (!o->now[m].error)
				o->base[(size_t)p * o->members + m] = o->now[m];
	}
	return 0;
}
