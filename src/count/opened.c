/* SPDX-License-Identifier: MIT */
/*
 * Events at places. The read format is fixed, perf_event_open(2) "Reading results":
 *
 *	one event	value, time_enabled, time_running, id, [lost]
 *	a group		nr, time_enabled, time_running, {value, id, [lost]} x nr
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "count/fast.h"
#include "count/opened.h"
#include "count/settle.h"
#include "count/target.h"
#include "event/open.h"

#define READ_FORMAT \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_LOST)

/* Words before the members of a group, and the most words of a member. */
#define GROUP_HEAD   3
#define MEMBER_WORDS 3
/* Words of an event that is in no group, with lost. */
#define ALONE_WORDS 5

/* What is the same at all places while they are being opened. */
struct opening {
	struct tally_event *const *events;
	struct tally_attr *attrs; /* one a member; a fallback taken at one place stays */
	const struct tally_target *target;
	struct tally_counter_opts opts;
	struct tally_error *err;
};

static void prepare_attr(struct tally_attr *attr, const struct opening *how, uint32_t members,
			 uint32_t member)
{
	const struct tally_target *target = how->target;
	uint64_t leaders = TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE;

	*attr = *tally_event_attr(how->events[member]);
	attr->read_format = READ_FORMAT | (members > 1 ? TALLY_READ_GROUP : 0);
	attr->flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_INHERIT);
	if (how->opts.flags & TALLY_COUNTER_FAST)
		fast_ask(attr, FAST_ASK_BIT);
	if (target_inherits(target) && !(how->opts.flags & TALLY_COUNTER_NO_INHERIT))
		attr->flags |= TALLY_ATTR_INHERIT;
	if (member > 0) {
		/* The kernel refuses both on a follower; the leader's go for the whole group. */
		attr->flags &= ~(how->attrs[0].flags & leaders);
		return;
	}
	/* Followers stay enabled: the leader switches them, by exec too, but never enables them. */
	if (how->opts.flags & TALLY_COUNTER_ENABLED)
		return;
	attr->flags |= TALLY_ATTR_DISABLED;
	if (target->scope == TALLY_SCOPE_COMMAND)
		attr->flags |= TALLY_ATTR_ENABLE_ON_EXEC;
}

static int open_member(struct opened *o, const struct opening *how, uint32_t member)
{
	const struct tally_place *place = &o->places[o->places_count];
	int *fds = &o->fds[(size_t)o->places_count * o->members];
	struct tally_attr *attr = &how->attrs[member];
	int leader = member ? fds[0] : -1;

	int fd = event_open(how->events[member], attr, place->tid, place->cpu, leader,
			    how->opts.root, how->err);
	if (fd == -EINVAL && attr->read_format & TALLY_READ_LOST) {
		/* Unknown before Linux 6.0, which says no more than EINVAL. */
		attr->read_format &= ~TALLY_READ_LOST;
		fd = event_open(how->events[member], attr, place->tid, place->cpu, leader,
				how->opts.root, how->err);
	}
	if ((fd == -EINVAL || fd == -EOPNOTSUPP) && how->opts.flags & TALLY_COUNTER_FAST &&
	    fast_give_up(attr, FAST_ASK_BIT))
		fd = event_open(how->events[member], attr, place->tid, place->cpu, leader,
				how->opts.root, how->err);
	if (fd < 0)
		return fd;
	fds[member] = fd;
	if (o->members == 1)
		return 0;
	uint64_t *id = &o->ids[(size_t)o->places_count * o->members + member];
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)id);
	return r < 0 ? error_set(how->err, r, TALLY_CAUSE_UNSUPPORTED,
				 "the kernel does not tell the id of event '%s': %s",
				 tally_event_name(how->events[member]), strerror(-r))
		     : 0;
}

static void close_place(struct opened *o, uint32_t place)
{
	int *fds = &o->fds[(size_t)place * o->members];

	/* Followers first: a follower whose leader is gone counts on its own. */
	for (uint32_t m = o->members; m-- > 0;) {
		if (fds[m] >= 0)
			sys()->close(fds[m]);
		fds[m] = -1;
	}
}

/* Opens the place behind the open ones. */
static int open_place(struct opened *o, const struct opening *how)
{
	int r = 0;

	for (uint32_t m = 0; r == 0 && m < o->members; m++)
		r = open_member(o, how, m);
	if (r < 0)
		close_place(o, o->places_count);
	else
		o->places_count++;
	return r;
}

/*
 * All arrays are one block, those with the widest elements first: opening a counter is short enough
 * for allocations to be felt.
 */
static int allocate(struct opened *o, uint32_t places, struct tally_error *err)
{
	size_t slots = (size_t)places * o->members;
	size_t words = GROUP_HEAD + (size_t)MEMBER_WORDS * o->members;
	size_t counts = slots + o->members;

	o->block = calloc(1, counts * sizeof(*o->base) + (slots + words) * sizeof(uint64_t) +
				     places * sizeof(*o->places) + slots * sizeof(*o->fds));
	if (!o->block)
		return error_nomem(err, "the counters");
	o->base = o->block;
	o->now = o->base + slots;
	o->ids = (uint64_t *)(o->now + o->members);
	o->buffer = o->ids + slots;
	o->places = (struct tally_place *)(o->buffer + words);
	o->fds = (int *)(o->places + places);
	for (size_t i = 0; i < slots; i++)
		o->fds[i] = -1;
	return 0;
}

/* Opens every place of a list; threads that end meanwhile are left out. */
static int open_places(struct opened *o, const struct opening *how, const struct tally_place *list,
		       uint32_t count)
{
	int r = allocate(o, count, how->err);

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		o->places[o->places_count] = list[i];
		r = open_place(o, how);
		if (r == -ESRCH && target_may_shrink(how->target) &&
		    (o->places_count || i + 1 < count))
			r = 0;
	}
	return r;
}

/* Opens the target as it is now; 1 when it grew meanwhile. */
static int open_target(struct opened *o, const struct opening *how)
{
	struct tally_place *list;
	uint32_t count;
	int r = target_places(how->target, false, how->opts.root, &list, &count, how->err);

	if (r < 0)
		return r;
	r = open_places(o, how, list, count);
	if (r == 0)
		r = target_grew(how->target, how->opts.root, list, count);
	free(list);
	return r;
}

static int open_until_stable(struct opened *o, const struct opening *how)
{
	for (int tries = 1;; tries++) {
		int r = open_target(o, how);
		if (r <= 0)
			return r;
		if (tries == TARGET_TRIES)
			return 0;
		opened_close(o);
	}
}

int opened_open(struct opened *o, struct tally_event *const *events, uint32_t members,
		const struct tally_target *target, const struct tally_counter_opts *opts,
		struct tally_error *err)
{
	struct opening how = { .events = events, .target = target, .err = err };
	int r = opts_read(&how.opts, sizeof(how.opts),
			  TALLY_COUNTER_ENABLED | TALLY_COUNTER_NO_INHERIT | TALLY_COUNTER_FAST,
			  opts, err);

	if (r < 0)
		return r;
	how.attrs = calloc(members, sizeof(*how.attrs));
	if (!how.attrs)
		return error_nomem(err, "the counters");
	o->members = members;
	for (uint32_t m = 0; m < members; m++)
		prepare_attr(&how.attrs[m], &how, members, m);
	r = open_until_stable(o, &how);
	o->opener = tally_fast_thread_();
	/* A group is read by its leader, in the leader's format. */
	o->has_lost = how.attrs[0].read_format & TALLY_READ_LOST;
	free(how.attrs);
	return r;
}

int opened_ioctl(struct opened *o, unsigned long request)
{
	unsigned long flag = o->members > 1 ? PERF_IOC_FLAG_GROUP : 0;
	int first = 0;

	for (uint32_t p = 0; p < o->places_count; p++) {
		int r = sys()->ioctl(o->fds[(size_t)p * o->members], request, flag);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

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
	const uint64_t *ids = &o->ids[(size_t)place * o->members], *at = o->buffer + GROUP_HEAD;
	size_t width = o->has_lost ? 3 : 2;
	uint64_t found = o->buffer[0], fit = (words - GROUP_HEAD) / width;

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

/* The answer for a single event has its last word where the kernel tells lost samples. */
static inline ssize_t one_bytes(const struct opened *o)
{
	return (ssize_t)sizeof(*o->buffer) * (ALONE_WORDS - !o->has_lost);
}

/* What read(2) answered when it was not the whole of one_bytes(). */
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
	if (n < one_bytes(o))
		return take_short(n, now);
	*now = (struct tally_count){
		.raw = o->buffer[0],
		.enabled_ns = o->buffer[1],
		.running_ns = o->buffer[2],
		.lost = o->buffer[4], /* 0 from the start, where it is not told */
	};
	return 0;
}

/*
 * Reads one place into o->now, neither settled nor above the base. End-of-file is the kernel's sign
 * for a pinned event that found no room on the PMU (PERF_EVENT_STATE_ERROR).
 */
static int read_place(struct opened *o, uint32_t place)
{
	size_t room = (GROUP_HEAD + (size_t)MEMBER_WORDS * o->members) * sizeof(*o->buffer);
	ssize_t n = sys_read(o->fds[(size_t)place * o->members], o->buffer, room);

	if (o->members == 1)
		return take_one(o, n, o->now);
	if (n < 0)
		return (int)n;
	for (uint32_t m = 0; m < o->members; m++)
		o->now[m] = (struct tally_count){ .error = n ? -EIO : -EBUSY };
	size_t words = (size_t)n / sizeof(*o->buffer);
	if (!n)
		return 0;
	if (words < GROUP_HEAD)
		return -EIO;
	take_group(o, place, words);
	return 0;
}

static uint64_t clamped_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Not tally_count_minus(): the sum alone is settled, and a read should cost what read(2) costs. */
static void add_place(struct tally_count *sum, const struct tally_count *now,
		      const struct tally_count *base)
{
	sum->raw += clamped_minus(now->raw, base->raw);
	sum->enabled_ns += clamped_minus(now->enabled_ns, base->enabled_ns);
	sum->running_ns += clamped_minus(now->running_ns, base->running_ns);
	sum->lost += clamped_minus(now->lost, base->lost);
	if (!sum->error)
		sum->error = now->error;
}

int opened_read(struct opened *o, struct tally_count *counts)
{
	memset(counts, 0, o->members * sizeof(*counts));
	for (uint32_t p = 0; p < o->places_count; p++) {
		int r = read_place(o, p);
		if (r < 0)
			return r;
		for (uint32_t m = 0; m < o->members; m++)
			add_place(&counts[m], &o->now[m], &o->base[(size_t)p * o->members + m]);
	}
	for (uint32_t m = 0; m < o->members; m++)
		count_settle(&counts[m]);
	return 0;
}

/*
 * One event at one place, without a detour: a read should cost what read(2) costs, and after a
 * system call every branch and every return is a mispredicted one.
 */
static inline int read_alone(struct opened *o, struct tally_count *out)
{
	const struct tally_count *base = o->base;
	const uint64_t *words = o->buffer;
	ssize_t n = sys_read(o->fds[0], o->buffer, ALONE_WORDS * sizeof(*words));

	if (__builtin_expect(n < one_bytes(o), 0))
		return take_short(n, out);
	*out = (struct tally_count){
		.raw = clamped_minus(words[0], base->raw),
		.enabled_ns = clamped_minus(words[1], base->enabled_ns),
		.running_ns = clamped_minus(words[2], base->running_ns),
		.lost = clamped_minus(words[4], base->lost),
	};
	count_settle(out);
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
		int r = read_place(o, p);
		if (r < 0)
			return r;
		for (uint32_t m = 0; m < o->members; m++)
			if (!o->now[m].error)
				o->base[(size_t)p * o->members + m] = o->now[m];
	}
	return 0;
}

void opened_close(struct opened *o)
{
	for (uint32_t p = 0; p < o->places_count; p++)
		close_place(o, p);
	free(o->block);
	fast_pages_close(o->pages);
	*o = (struct opened){ .members = o->members };
}
