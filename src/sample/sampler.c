/* SPDX-License-Identifier: MIT */
/*
 * Many events, few rings. Every event is opened at every place of the target where it counts; the
 * first one on a CPU maps a ring, and all others there write to it (PERF_EVENT_IOC_SET_OUTPUT, which
 * the kernel allows on one CPU with one clock). It is all allocated when it is opened.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "count/cgroup.h"
#include "count/target.h"
#include "event/open.h"
#include "sample/options.h"
#include "sample/sampler-inside.h"

static int *place_fds(const struct tally_sampler *s, uint32_t place)
{
	return &s->fds[(size_t)place * s->plan.streams_count];
}

static int allocate(struct tally_sampler *s, uint32_t places, struct tally_error *err)
{
	size_t slots = (size_t)places * s->plan.streams_count;

	s->places = calloc(places, sizeof(*s->places));
	s->fds = calloc(slots, sizeof(*s->fds));
	s->ids = calloc(slots, sizeof(*s->ids));
	s->place_ring = calloc(places, sizeof(*s->place_ring));
	s->rings = calloc(places, sizeof(*s->rings));
	s->polled = calloc((size_t)places + 1, sizeof(*s->polled));
	if (!s->places || !s->fds || !s->ids || !s->place_ring || !s->rings || !s->polled)
		return error_nomem(err, "the sampled events");
	for (size_t i = 0; i < slots; i++)
		s->fds[i] = -1;
	return 0;
}

static void close_place(struct tally_sampler *s, uint32_t place)
{
	int *fds = place_fds(s, place);

	/* Followers first: a follower whose leader is gone goes on alone. */
	for (uint32_t e = s->plan.streams_count; e-- > 0;) {
		if (fds[e] >= 0)
			sys()->close(fds[e]);
		fds[e] = -1;
	}
}

/* Closes all that is open, so that it can be opened anew; takes what is half open. */
static void close_all(struct tally_sampler *s)
{
	/* Unmapped before any descriptor goes: events that write to a ring need its owner. */
	for (uint32_t i = 0; i < s->rings_count; i++)
		tally_ring_close(s->rings[i].ring);
	for (uint32_t p = 0; p < s->places_count; p++)
		close_place(s, p);
	free(s->places);
	free(s->fds);
	free(s->ids);
	free(s->place_ring);
	free(s->rings);
	free(s->polled);
	s->places = NULL;
	s->fds = NULL;
	s->ids = NULL;
	s->place_ring = NULL;
	s->rings = NULL;
	s->polled = NULL;
	s->places_count = s->rings_count = s->alive = 0;
}

static int open_once(struct tally_sampler *s, struct plan_stream *stream,
		     const struct tally_place *place, int group_fd, struct tally_error *err)
{
	struct tally_event *e = s->plan.events[stream->event];
	const char *root = s->plan.opts.root;
	const struct event_at at = {
		.tid = s->cgroup >= 0 ? s->cgroup : place->tid,
		.cpu = place->cpu,
		.cgroup = s->cgroup >= 0,
		.further_part = stream->layer > 0 &&
				s->plan.streams[s->plan.first[stream->event]].told,
	};

	int fd = event_open_at(e, &stream->attr, &at, group_fd, root, err);
	if (fd == -EINVAL && stream->attr.read_format & TALLY_READ_LOST) {
		/* Unknown before Linux 6.0, which says no more than EINVAL. */
		stream->attr.read_format &= ~TALLY_READ_LOST;
		fd = event_open_at(e, &stream->attr, &at, group_fd, root, err);
	}
	return fd;
}

/* `tracks`: it is the first at this place, and carries the side-band for all. */
static int open_stream(struct tally_sampler *s, uint32_t i, uint32_t place, bool tracks,
		       struct tally_error *err)
{
	struct plan_stream *stream = &s->plan.streams[i];
	struct tally_attr *attr = &stream->attr;
	int group_fd = stream->leader == i ? -1 : place_fds(s, place)[stream->leader];

	attr->flags = (attr->flags & ~SAMPLER_SIDE_BAND) | (tracks ? s->plan.side_band : 0);
	int fd = open_once(s, stream, &s->places[place], group_fd, err);
	if (fd >= 0 && plan_clamp(&s->plan, attr)) {
		/* It has become another event, for which the rate is too high. */
		sys()->close(fd);
		fd = open_once(s, stream, &s->places[place], group_fd, err);
	}
	if (fd < 0)
		return fd;
	stream->told = true;
	if (tracks)
		s->plan.side_band = attr->flags & SAMPLER_SIDE_BAND;
	place_fds(s, place)[i] = fd;
	uint64_t *id = &s->ids[(size_t)place * s->plan.streams_count + i];
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)id);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_UNSUPPORTED,
				 "the kernel does not tell the id of event '%s', by which its "
				 "samples are known (Linux 3.12 does): %s",
				 tally_event_name(s->plan.events[stream->event]), strerror(-r))
		     : 0;
}

/* The first that is open at a place; at least one is. */
static uint32_t first_at(const struct tally_sampler *s, uint32_t place)
{
	uint32_t i = 0;

	while (place_fds(s, place)[i] < 0)
		i++;
	return i;
}

/* Maps a ring for the place's first event. */
static int add_ring(struct tally_sampler *s, uint32_t place, uint64_t bytes,
		    struct tally_error *err)
{
	struct shared_ring *shared = &s->rings[s->rings_count];
	uint32_t first = first_at(s, place);
	int fd = place_fds(s, place)[first];
	uint32_t flags = s->plan.opts.flags & TALLY_SAMPLER_OVERWRITE ? TALLY_RING_OVERWRITE : 0;
	int r = tally_ring_open(&shared->ring, fd, TALLY_OPTS(ring, .flags = flags, .bytes = bytes),
				err);

	s->ring_refused = r < 0;
	if (r < 0)
		return r;
	shared->cpu = s->places[place].cpu;
	shared->fd = fd;
	shared->watched = (size_t)place * s->plan.streams_count + first;
	s->polled[s->rings_count] = (struct pollfd){ .fd = fd, .events = POLLIN };
	s->alive = ++s->rings_count;
	return 0;
}

/* Has all events of a place write to the ring of its CPU, which is made when there is none. */
static int join_ring(struct tally_sampler *s, uint32_t place, uint64_t bytes,
		     struct tally_error *err)
{
	const int *fds = place_fds(s, place);
	uint32_t i = 0;

	while (i < s->rings_count && s->rings[i].cpu != s->places[place].cpu)
		i++;
	if (i == s->rings_count) {
		int r = add_ring(s, place, bytes, err);
		if (r < 0)
			return r;
	}
	s->place_ring[place] = i;
	for (uint32_t e = 0; e < s->plan.streams_count; e++) {
		if (fds[e] < 0 || fds[e] == s->rings[i].fd)
			continue;
		int r = sys()->ioctl(fds[e], PERF_EVENT_IOC_SET_OUTPUT,
				     (unsigned long)s->rings[i].fd);
		if (r < 0)
			return error_set(err, r, TALLY_CAUSE_UNSUPPORTED,
					 "event '%s' of thread %d cannot write to the ring of "
					 "CPU %d: %s",
					 tally_event_name(s->plan.events[s->plan.streams[e].event]),
					 s->places[place].tid, s->places[place].cpu, strerror(-r));
	}
	return 0;
}

/* Opens the place behind the open ones, with the streams that `here` tells. */
static int open_place(struct tally_sampler *s, const bool *here, uint64_t ring_bytes,
		      struct tally_error *err)
{
	uint32_t place = s->places_count, rings = s->rings_count;
	bool first = true;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->plan.streams_count; i++) {
		if (!here[i])
			continue;
		r = open_stream(s, i, place, first, err);
		first = false;
	}
	if (first)
		return 0; /* nothing counts here */
	if (r == 0)
		r = join_ring(s, place, ring_bytes, err);
	/* One whose ring is mapped is left to close_all(), which unmaps that first. */
	if (r == 0 || s->rings_count > rings)
		s->places_count++;
	else
		close_place(s, place);
	return r;
}

static uint32_t count_cpus(const struct tally_place *places, uint32_t count)
{
	uint32_t cpus = 0;

	/* Places come thread by thread, each with the same CPUs. */
	while (cpus < count && places[cpus].tid == places[0].tid)
		cpus++;
	return cpus;
}

/* Opens every place of a list; threads that end meanwhile are left out. */
static int open_list(struct tally_sampler *s, const struct tally_target *target,
		     const struct tally_place *list, uint32_t count, uint64_t *ring_bytes,
		     struct tally_error *err)
{
	bool *here;
	int r = plan_spread(&s->plan, list, count, &here, err);

	if (r < 0)
		return r;
	r = allocate(s, count, err);
	if (!*ring_bytes)
		*ring_bytes = plan_ring_bytes(&s->plan, count_cpus(list, count));
	plan_watermark(&s->plan, *ring_bytes);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		s->places[s->places_count] = list[i];
		r = open_place(s, &here[(size_t)i * s->plan.streams_count], *ring_bytes, err);
		if (r == -ESRCH && target_may_shrink(target) && (s->places_count || i + 1 < count))
			r = 0;
	}
	free(here);
	return r;
}

/* Opens the target as it is now; 1 when it grew meanwhile. */
static int open_target(struct tally_sampler *s, const struct tally_target *target,
		       uint64_t *ring_bytes, struct tally_error *err)
{
	const char *root = s->plan.opts.root;
	struct tally_place *list;
	uint32_t count;
	int r = target_places(target, s->plan.per_cpu, root, &list, &count, err);

	if (r < 0)
		return r;
	r = open_list(s, target, list, count, ring_bytes, err);
	if (r == 0)
		r = target_grew(target, root, list, count);
	free(list);
	return r;
}

/*
 * Smaller rings are tried when the kernel refuses those that nobody asked for: the budget of locked
 * memory is shared by all programs of a user, and memory may be short. The watermark is part of the
 * attr, so that the events are opened anew.
 */
static bool may_shrink(const struct tally_sampler *s, int code, uint64_t ring_bytes)
{
	return s->ring_refused && (code == -EPERM || code == -ENOMEM) && !s->plan.opts.ring_bytes &&
	       ring_bytes > PLAN_RING_SMALLEST;
}

static int open_until_stable(struct tally_sampler *s, const struct tally_target *target,
			     struct tally_error *err)
{
	uint64_t ring_bytes = 0;

	for (int tries = 1;;) {
		s->ring_refused = false;
		int r = open_target(s, target, &ring_bytes, err);
		if (r < 0 && may_shrink(s, r, ring_bytes)) {
			ring_bytes /= 2;
		} else if (r <= 0) {
			return r;
		} else if (tries++ == TARGET_TRIES) {
			s->start_inexact = true;
			return 0;
		}
		close_all(s);
	}
}

static int open_cgroup(struct tally_sampler *s, const struct tally_target *target,
		       struct tally_error *err)
{
	if (target->scope != TALLY_SCOPE_CGROUP)
		return 0;
	s->cgroup = cgroup_open(target->cgroup, s->plan.opts.root, err);
	return s->cgroup < 0 ? s->cgroup : 0;
}

/* Opens all while a process is held still, where that is wanted and possible. */
static int open_held(struct tally_sampler *s, const struct tally_target *target,
		     struct tally_error *err)
{
	const struct tally_freeze *freeze = s->plan.opts.freeze;
	struct tally_freeze *own = NULL;
	bool is_process = target->scope == TALLY_SCOPE_PROCESS && target->id > 0;

	if (is_process && !freeze && !(s->plan.opts.flags & TALLY_SAMPLER_NO_STOP)) {
		int r = tally_freeze_open(&own, target->id,
					  TALLY_OPTS(freeze, .root = s->plan.opts.root), err);
		if (r < 0)
			return r;
		freeze = own;
	}
	s->start_inexact = is_process && (!freeze || !tally_freeze_holds(freeze));
	int r = open_cgroup(s, target, err);
	if (r == 0)
		r = open_until_stable(s, target, err);
	tally_freeze_close(own);
	if (r == -EBADF && s->cgroup >= 0)
		r = cgroup_explain_folder(target->cgroup, err);
	return r;
}

/* Finds the ids of each event and, by an id, the event. */
static int index_ids(struct tally_sampler *s, struct tally_error *err)
{
	size_t slots = sampler_slots(s);
	uint32_t n = 0;

	s->event_ids = calloc(slots, sizeof(*s->event_ids));
	s->event_slots = calloc((size_t)s->plan.count + 1, sizeof(*s->event_slots));
	if (!s->event_ids || !s->event_slots)
		return error_nomem(err, "the ids of the sampled events");
	for (uint32_t e = 0; e < s->plan.count; e++) {
		for (size_t i = 0; i < slots; i++) {
			if (s->fds[i] < 0 || sampler_stream(s, i)->event != e)
				continue;
			uint32_t *found = map64_at(&s->by_id, s->ids[i]);
			if (!found)
				return error_nomem(err, "the ids of the sampled events");
			*found = (uint32_t)i + 1;
			s->event_ids[n++] = s->ids[i];
		}
		s->event_slots[e + 1] = n;
	}
	return 0;
}

/* What is needed when all is open. */
static int prepare(struct tally_sampler *s, struct tally_error *err)
{
	s->layouts = calloc(s->plan.count, sizeof(*s->layouts));
	s->words = calloc(HEAD_WORDS + MEMBER_WORDS * (size_t)s->plan.count, sizeof(*s->words));
	if (!s->layouts || !s->words)
		return error_nomem(err, "the sampler");
	for (uint32_t e = 0; e < s->plan.count; e++)
		tally_layout_init(&s->layouts[e], tally_sampler_attr(s, e), false);
	int r = index_ids(s, err);
	if (r == 0)
		r = account_init(&s->account, s->plan.count, sampler_slots(s), err);
	if (r == 0)
		r = order_init(&s->order, s->rings_count, &s->layouts[0], err);
	if (r == 0 && s->plan.opts.flags & TALLY_SAMPLER_CANCELLABLE)
		r = cancel_open(&s->cancel, err);
	s->polled[s->rings_count] = (struct pollfd){ .fd = s->cancel.fd, .events = POLLIN };
	return r;
}

int tally_sampler_open(struct tally_sampler **out, struct tally_events *events,
		       const struct tally_target *target, const struct tally_sampler_opts *opts,
		       struct tally_error *err)
{
	struct tally_sampler *s = calloc(1, sizeof(*s));
	if (!s)
		return error_nomem(err, "the sampler");
	s->cgroup = -1;
	s->cancel = CANCEL_NONE;
	int r = plan_init(&s->plan, events, target, opts, err);
	if (r == 0)
		r = open_held(s, target, err);
	if (r == 0)
		r = prepare(s, err);
	if (r < 0)
		goto fail;
	s->plan.opts.freeze = NULL; /* lent for this opening alone */
	plan_describe(&s->plan);
	*out = s;
	return 0;
fail:
	tally_sampler_close(s);
	return r;
}

bool tally_sampler_start_exact(const struct tally_sampler *s)
{
	return !s->start_inexact;
}

uint32_t tally_sampler_rings(const struct tally_sampler *s)
{
	return s->rings_count;
}

struct tally_ring *tally_sampler_ring(const struct tally_sampler *s, uint32_t i)
{
	return i < s->rings_count ? s->rings[i].ring : NULL;
}

int32_t tally_sampler_ring_cpu(const struct tally_sampler *s, uint32_t i)
{
	return i < s->rings_count ? s->rings[i].cpu : -1;
}

const struct tally_layout *tally_sampler_layout(const struct tally_sampler *s, uint32_t event)
{
	return event < s->plan.count ? &s->layouts[event] : NULL;
}

const struct tally_attr *tally_sampler_attr(const struct tally_sampler *s, uint32_t event)
{
	return event < s->plan.count ? &s->plan.streams[s->plan.first[event]].attr : NULL;
}

uint32_t tally_sampler_ids(const struct tally_sampler *s, uint32_t event, const uint64_t **ids)
{
	if (event >= s->plan.count)
		return 0;
	*ids = &s->event_ids[s->event_slots[event]];
	return s->event_slots[event + 1] - s->event_slots[event];
}

uint32_t sampler_event_of(const struct tally_sampler *s, const void *record, size_t len)
{
	uint64_t id = s->plan.count > 1 ? tally_record_id(&s->layouts[0], record, len) : 0;
	size_t slot;

	/* What the kernel says of no event in particular has the id 0. */
	if (!id)
		return 0;
	slot = sampler_slot_of(s, id);
	return slot == SIZE_MAX ? UINT32_MAX : sampler_stream(s, slot)->event;
}

uint64_t tally_sampler_rate(const struct tally_sampler *s, uint32_t event)
{
	const struct tally_attr *attr = tally_sampler_attr(s, event);

	return attr && attr->flags & TALLY_ATTR_FREQ ? attr->sample_period : 0;
}

const char *tally_sampler_compromise(const struct tally_sampler *s)
{
	return s->plan.compromise[0] ? s->plan.compromise : NULL;
}

void tally_sampler_close(struct tally_sampler *s)
{
	if (!s)
		return;
	close_all(s);
	if (s->cgroup >= 0)
		sys()->close(s->cgroup);
	cancel_close(&s->cancel);
	account_done(&s->account);
	order_done(&s->order);
	map64_done(&s->by_id);
	free(s->event_ids);
	free(s->event_slots);
	free(s->words);
	free(s->layouts);
	plan_done(&s->plan);
	free(s);
}
