/* SPDX-License-Identifier: MIT */
/*
 * Events at places: opened, all or none, and closed. opened-read.c reads them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/freeze.h>
#include <tally/system.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sys.h"
#include "count/cgroup.h"
#include "count/fast.h"
#include "count/opened.h"
#include "count/options.h"
#include "count/parts.h"
#include "count/read-format.h"
#include "count/target.h"
#include "event/explain.h"
#include "event/open.h"

/* What is the same at all places while they are being opened. */
struct opening {
	struct tally_event *const *events;
	const struct tally_target *target;
	struct tally_counter_opts opts;
	struct parts parts;
	struct tally_attr
		*attrs; /* [layer * members + member]; a fallback taken at one place stays */
	bool *told;     /* by member: some part of it is open; behind `attrs` */
	struct tally_freeze **held;
	struct tally_error *err;
};

/* The kernel wants all of a group to agree on inherit, and not all events can be. */
static bool all_follow(const struct opening *how)
{
	for (uint32_t m = 0; m < how->parts.members; m++)
		if (!event_can_follow(how->events[m], how->opts.root))
			return false;
	return true;
}

static bool is_singly(const struct opening *how, uint32_t members)
{
	return members == 1 || how->opts.flags & TALLY_COUNTER_MEMBER_TIMES;
}

static void prepare_attr(struct opening *how, uint32_t layer, uint32_t member)
{
	uint32_t members = how->parts.members;
	struct tally_attr *attrs = &how->attrs[(size_t)layer * members], *attr = &attrs[member];
	uint64_t leaders = TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE;
	struct tally_event_part part;

	if (!parts_of(&how->parts, layer, member, &part))
		return;
	*attr = part.attr;
	attr->read_format = READ_FORMAT | (is_singly(how, members) ? 0 : TALLY_READ_GROUP);
	options_apply(&how->opts, how->target, member == 0, attr);
	if (how->opts.flags & TALLY_COUNTER_FAST)
		fast_ask(attr, FAST_ASK_BIT);
	if (attr->flags & TALLY_ATTR_INHERIT && !all_follow(how)) {
		attr->flags &= ~(TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD);
		event_stays_alone(how->events[member]);
	}
	if (member > 0) /* The kernel refuses both on a follower; the leader's go for the group. */
		attr->flags &= ~(attrs[0].flags & leaders);
}

static int prepare(struct opening *how, uint32_t members)
{
	int r = parts_init(&how->parts, how->events, members, how->target, how->err);

	if (r < 0)
		return r;
	size_t attrs = (size_t)how->parts.layers * members;
	how->attrs = alloc_zeroed(1, attrs * sizeof(*how->attrs) + members * sizeof(*how->told));
	if (!how->attrs)
		return error_nomem(how->err, "the counters");
	how->told = (bool *)(how->attrs + attrs);
	for (uint32_t l = 0; l < how->parts.layers; l++)
		for (uint32_t m = 0; m < members; m++)
			prepare_attr(how, l, m);
	return 0;
}

static int open_event(struct opened *o, struct opening *how, uint32_t member, int leader)
{
	const struct tally_place *place = &o->places[o->places_count];
	struct tally_attr *attr = &how->attrs[(size_t)place->part * o->members + member];
	struct tally_event *event = how->events[member];
	const struct event_at at = {
		.tid = o->has_cgroup ? o->cgroup : place->tid,
		.cpu = place->cpu,
		.cgroup = o->has_cgroup,
		.further_part = how->told[member] && place->part > 0,
	};

	int fd = event_open_at(event, attr, &at, leader, how->opts.root, how->err);
	if (fd == -EINVAL && attr->read_format & TALLY_READ_LOST) {
		/* Unknown before Linux 6.0, which says no more than EINVAL. */
		attr->read_format &= ~TALLY_READ_LOST;
		fd = event_open_at(event, attr, &at, leader, how->opts.root, how->err);
	}
	if ((fd == -EINVAL || fd == -EOPNOTSUPP) && how->opts.flags & TALLY_COUNTER_FAST &&
	    fast_give_up(attr, FAST_ASK_BIT))
		fd = event_open_at(event, attr, &at, leader, how->opts.root, how->err);
	if (fd == -EBADF && o->has_cgroup)
		return cgroup_explain_folder(how->target->cgroup, how->err);
	if (fd >= 0)
		how->told[member] = true;
	return fd;
}

static int open_member(struct opened *o, struct opening *how, uint32_t member)
{
	size_t slots = (size_t)o->places_count * o->members;
	int *fds = &o->fds[slots];
	uint32_t layer = o->places[o->places_count].part;

	if (how->parts.of[(size_t)layer * o->members + member] == PART_NONE)
		return 0;
	int fd = open_event(o, how, member, member ? fds[0] : -1);
	if (fd < 0)
		return fd;
	fds[member] = fd;
	if (o->members == 1)
		return 0;
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)&o->ids[slots + member]);
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
static int open_place(struct opened *o, struct opening *how)
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
	size_t words = READ_WORDS(o->members);
	size_t counts = slots + o->members;

	o->block = alloc_zeroed(1, counts * sizeof(*o->base) +
					   (slots + words + o->members) * sizeof(uint64_t) +
					   places * sizeof(*o->places) + slots * sizeof(*o->fds));
	if (!o->block)
		return error_nomem(err, "the counters");
	o->base = o->block;
	o->now = o->base + slots;
	o->ids = (uint64_t *)(o->now + o->members);
	o->buffer = o->ids + slots;
	o->stretch = o->buffer + words;
	o->places = (struct tally_place *)(o->stretch + o->members);
	o->fds = (int *)(o->places + places);
	for (size_t i = 0; i < slots; i++)
		o->fds[i] = -1;
	return 0;
}

/* The limit was raised as far as this user may; what is needed says whether that can ever do. */
static int without_fds(const struct opening *how, uint64_t needed)
{
	char what[128];

	snprintf(what, sizeof(what), "cannot open %.100s", tally_event_name(how->events[0]));
	return explain_fds(how->err, -EMFILE, what, needed, true, how->opts.root);
}

/* Opens every place of a list; threads that end meanwhile are left out. */
static int open_places(struct opened *o, struct opening *how, const struct tally_place *list,
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
	return r == -EMFILE ? without_fds(how, parts_fds(&how->parts, list, count)) : r;
}

/* Opens the target as it is now; 1 when it grew meanwhile. */
static int open_target(struct opened *o, struct opening *how)
{
	struct tally_place *list;
	uint32_t count;
	int r = target_places(how->target, false, how->opts.root, &list, &count, how->err);

	if (r < 0)
		return r;
	r = parts_spread(&how->parts, how->opts.root, &list, &count, how->err);
	if (r == 0)
		r = open_places(o, how, list, count);
	if (r == 0)
		r = target_grew(how->target, how->opts.root, list, count);
	free(list);
	return r;
}

static void close_places(struct opened *o)
{
	for (uint32_t p = 0; p < o->places_count; p++)
		close_place(o, p);
	fast_pages_close(o->pages);
	free(o->block);
	o->pages = NULL;
	o->block = NULL;
	o->places_count = 0;
}

static int open_until_stable(struct opened *o, struct opening *how)
{
	for (int tries = 1;; tries++) {
		int r = open_target(o, how);
		if (r <= 0)
			return r;
		if (tries == TARGET_TRIES) {
			o->flags |= TALLY_COUNT_START_INEXACT;
			return 0;
		}
		close_places(o);
	}
}

/* Holds a process still, where that is wanted and possible. */
static int hold(struct opened *o, struct opening *how)
{
	const struct tally_freeze *freeze = how->opts.freeze;

	if (how->target->scope != TALLY_SCOPE_PROCESS || how->target->id <= 0)
		return 0;
	if (!freeze && !*how->held && !(how->opts.flags & TALLY_COUNTER_NO_STOP)) {
		int r = tally_freeze_open(how->held, how->target->id,
					  TALLY_OPTS(freeze, .root = how->opts.root), how->err);
		if (r < 0)
			return r;
	}
	if (!freeze)
		freeze = *how->held;
	if (!freeze || !tally_freeze_holds(freeze))
		o->flags |= TALLY_COUNT_START_INEXACT;
	return 0;
}

static int enter_cgroup(struct opened *o, const struct opening *how)
{
	if (how->target->scope != TALLY_SCOPE_CGROUP)
		return 0;
	o->cgroup = cgroup_open(how->target->cgroup, how->opts.root, how->err);
	o->has_cgroup = o->cgroup >= 0;
	return o->has_cgroup ? 0 : o->cgroup;
}

/* A group is read by its leader, in the leader's format: old kernels refuse LOST at every place. */
static bool leader_has_lost(const struct opened *o, const struct opening *how)
{
	uint32_t layer = o->places[0].part;

	return how->attrs[(size_t)layer * o->members].read_format & TALLY_READ_LOST;
}

int opened_open(struct opened *o, struct tally_event *const *events, uint32_t members,
		const struct tally_target *target, const struct tally_counter_opts *opts,
		struct tally_freeze **held, struct tally_error *err)
{
	struct opening how = {
		.events = events, .target = target, .opts = *opts, .held = held, .err = err
	};

	o->members = members;
	o->singly = is_singly(&how, members);
	o->shares_time = !target_is_cpus(target);
	int r = prepare(&how, members);
	if (r == 0)
		r = enter_cgroup(o, &how);
	if (r == 0)
		r = hold(o, &how);
	if (r == 0)
		r = open_until_stable(o, &how);
	if (r == 0)
		o->has_lost = leader_has_lost(o, &how);
	o->alone_bytes = (READ_ALONE_WORDS - !o->has_lost) * sizeof(*o->buffer);
	parts_done(&how.parts);
	o->attrs = how.attrs;
	o->opener = tally_fast_thread_();
	o->opener_clock = fast_thread_clock();
	return r;
}

void opened_close(struct opened *o)
{
	close_places(o);
	if (o->has_cgroup)
		sys()->close(o->cgroup);
	free(o->attrs);
	*o = (struct opened){ .members = o->members };
}

int opened_fd(const struct opened *o, uint32_t place, uint32_t member)
{
	if (place >= o->places_count)
		return -EINVAL;
	int fd = o->fds[(size_t)place * o->members + member];
	return fd < 0 ? -ENOENT : fd;
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
