/* SPDX-License-Identifier: MIT */
/*
 * Many events, few rings. Every event is opened at every place of the target; the first one on a
 * CPU maps a ring, and all others there write to it (PERF_EVENT_IOC_SET_OUTPUT, which the kernel
 * allows on one CPU with one clock). It is all allocated when it is opened.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <tally/sampler.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "count/cgroup.h"
#include "count/target.h"
#include "event/open.h"
#include "sample/plan.h"

/*
 * Words of a read(2). One event: value, enabled, running, id, lost. A group: nr, enabled, running, and
 * value, id, lost of each member.
 */
#define HEAD_WORDS   3
#define MEMBER_WORDS 3

/* A ring and whom it belongs to. */
struct shared_ring {
	struct tally_ring *ring;
	int32_t cpu;
	int fd;         /* the event that mapped it */
	size_t watched; /* which of the descriptors that write to it is polled */
};

struct tally_sampler {
	struct tally_events *events;
	struct plan plan;
	struct tally_layout *layouts; /* by event */
	uint32_t places_count;        /* how many are open */
	uint32_t places_room;
	struct tally_place *places;
	int *fds;             /* [place * events + event] */
	uint64_t *ids;        /* [event * places_room + place] */
	uint32_t *place_ring; /* which ring a place writes to */
	bool start_inexact;   /* the process ran while it was attached to */
	int cgroup;           /* the descriptor of a cgroup's folder, -1: none */
	uint32_t rings_count, alive;
	struct shared_ring *rings;
	struct pollfd *polled; /* by ring; fd -1: all that wrote to it have ended */
	uint64_t *words;       /* room for one read(2) */
	bool ring_refused;     /* the kernel would not map a ring of that size */
};

static int *place_fds(const struct tally_sampler *s, uint32_t place)
{
	return &s->fds[(size_t)place * s->plan.count];
}

static int allocate(struct tally_sampler *s, uint32_t places, struct tally_error *err)
{
	size_t events = s->plan.count;

	s->places_room = places;
	s->fds = calloc(places * events, sizeof(*s->fds));
	s->ids = calloc(places * events, sizeof(*s->ids));
	s->place_ring = calloc(places, sizeof(*s->place_ring));
	s->rings = calloc(places, sizeof(*s->rings));
	s->polled = calloc(places, sizeof(*s->polled));
	s->words = calloc(HEAD_WORDS + MEMBER_WORDS * events, sizeof(*s->words));
	if (!s->fds || !s->ids || !s->place_ring || !s->rings || !s->polled || !s->words)
		return error_nomem(err, "the sampled events");
	for (size_t i = 0; i < places * events; i++)
		s->fds[i] = -1;
	return 0;
}

static void close_place(struct tally_sampler *s, uint32_t place)
{
	int *fds = place_fds(s, place);

	/* Followers first: a follower whose leader is gone goes on alone. */
	for (uint32_t e = s->plan.count; e-- > 0;) {
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
	free(s->words);
	s->places = NULL;
	s->fds = NULL;
	s->ids = NULL;
	s->place_ring = NULL;
	s->rings = NULL;
	s->polled = NULL;
	s->words = NULL;
	s->places_count = s->places_room = s->rings_count = s->alive = 0;
}

static int open_once(struct tally_sampler *s, uint32_t event, const struct tally_place *place,
		     int group_fd, struct tally_error *err)
{
	struct tally_event *e = tally_events_at(s->events, event);
	struct tally_attr *attr = &s->plan.attrs[event];
	const char *root = s->plan.opts.root;
	const struct event_at at = {
		.tid = s->cgroup >= 0 ? s->cgroup : place->tid,
		.cpu = place->cpu,
		.cgroup = s->cgroup >= 0,
	};

	int fd = event_open_at(e, attr, &at, group_fd, root, err);
	if (fd == -EINVAL && attr->read_format & TALLY_READ_LOST) {
		/* Unknown before Linux 6.0, which says no more than EINVAL. */
		attr->read_format &= ~TALLY_READ_LOST;
		fd = event_open_at(e, attr, &at, group_fd, root, err);
	}
	return fd;
}

static int open_event(struct tally_sampler *s, uint32_t event, uint32_t place,
		      struct tally_error *err)
{
	struct tally_event *e = tally_events_at(s->events, event);
	struct tally_attr *attr = &s->plan.attrs[event];
	uint32_t leader = tally_event_leader(e);
	int group_fd = leader == event ? -1 : place_fds(s, place)[leader];

	int fd = open_once(s, event, &s->places[place], group_fd, err);
	if (fd >= 0 && plan_clamp(&s->plan, attr)) {
		/* It has become another event, for which the rate is too high. */
		sys()->close(fd);
		fd = open_once(s, event, &s->places[place], group_fd, err);
	}
	if (fd < 0)
		return fd;
	place_fds(s, place)[event] = fd;
	uint64_t *id = &s->ids[(size_t)event * s->places_room + place];
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)id);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_UNSUPPORTED,
				 "the kernel does not tell the id of event '%s', by which its "
				 "samples are known (Linux 3.12 does): %s",
				 tally_event_name(e), strerror(-r))
		     : 0;
}

/* Maps a ring for the place's first event. */
static int add_ring(struct tally_sampler *s, uint32_t place, uint64_t bytes,
		    struct tally_error *err)
{
	struct shared_ring *shared = &s->rings[s->rings_count];
	int fd = place_fds(s, place)[0];
	uint32_t flags = s->plan.opts.flags & TALLY_SAMPLER_OVERWRITE ? TALLY_RING_OVERWRITE : 0;
	int r = tally_ring_open(&shared->ring, fd, TALLY_OPTS(ring, .flags = flags, .bytes = bytes),
				err);

	s->ring_refused = r < 0;
	if (r < 0)
		return r;
	shared->cpu = s->places[place].cpu;
	shared->fd = fd;
	shared->watched = (size_t)place * s->plan.count;
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
	for (uint32_t e = 0; e < s->plan.count; e++) {
		if (fds[e] == s->rings[i].fd)
			continue;
		int r = sys()->ioctl(fds[e], PERF_EVENT_IOC_SET_OUTPUT,
				     (unsigned long)s->rings[i].fd);
		if (r < 0)
			return error_set(err, r, TALLY_CAUSE_UNSUPPORTED,
					 "event '%s' of thread %d cannot write to the ring of "
					 "CPU %d: %s",
					 tally_event_name(tally_events_at(s->events, e)),
					 s->places[place].tid, s->places[place].cpu, strerror(-r));
	}
	return 0;
}

/* Opens the place behind the open ones. */
static int open_place(struct tally_sampler *s, uint64_t ring_bytes, struct tally_error *err)
{
	uint32_t place = s->places_count, rings = s->rings_count;
	int r = 0;

	for (uint32_t e = 0; r == 0 && e < s->plan.count; e++)
		r = open_event(s, e, place, err);
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

/* Opens every place of the target as it is now; threads that end meanwhile are left out. */
static int open_places(struct tally_sampler *s, const struct tally_target *target,
		       uint64_t *ring_bytes, struct tally_error *err)
{
	uint32_t count;
	int r = target_places(target, s->plan.per_cpu, s->plan.opts.root, &s->places, &count, err);

	if (r == 0)
		r = allocate(s, count, err);
	if (r < 0)
		return r;
	if (!*ring_bytes)
		*ring_bytes = plan_ring_bytes(&s->plan, count_cpus(s->places, count));
	plan_watermark(&s->plan, *ring_bytes);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		s->places[s->places_count] = s->places[i];
		r = open_place(s, *ring_bytes, err);
		if (r == -ESRCH && target_may_shrink(target) && (s->places_count || i + 1 < count))
			r = 0;
	}
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
		int r = open_places(s, target, &ring_bytes, err);
		if (r < 0 && may_shrink(s, r, ring_bytes))
			ring_bytes /= 2;
		else if (r < 0 ||
			 !target_grew(target, s->plan.opts.root, s->places, s->places_count))
			return r;
		else if (tries++ == TARGET_TRIES) {
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

int tally_sampler_open(struct tally_sampler **out, struct tally_events *events,
		       const struct tally_target *target, const struct tally_sampler_opts *opts,
		       struct tally_error *err)
{
	struct tally_sampler *s = calloc(1, sizeof(*s));
	if (!s)
		return error_nomem(err, "the sampler");
	s->events = events;
	s->cgroup = -1;
	int r = plan_init(&s->plan, events, target, opts, err);
	if (r < 0)
		goto fail;
	r = open_held(s, target, err);
	if (r < 0)
		goto fail;
	s->plan.opts.freeze = NULL; /* lent for this opening alone */
	s->layouts = calloc(s->plan.count, sizeof(*s->layouts));
	if (!s->layouts) {
		r = error_nomem(err, "the sampler");
		goto fail;
	}
	for (uint32_t e = 0; e < s->plan.count; e++)
		tally_layout_init(&s->layouts[e], &s->plan.attrs[e], false);
	plan_describe(&s->plan, events);
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

/* All descriptors, even when one fails; the first error. */
static int ioctl_all(struct tally_sampler *s, unsigned long request)
{
	size_t count = (size_t)s->places_count * s->plan.count;
	int first = 0;

	for (size_t i = 0; i < count; i++) {
		int r = sys()->ioctl(s->fds[i], request, 0);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

int tally_sampler_enable(struct tally_sampler *s)
{
	return ioctl_all(s, PERF_EVENT_IOC_ENABLE);
}

int tally_sampler_disable(struct tally_sampler *s)
{
	return ioctl_all(s, PERF_EVENT_IOC_DISABLE);
}

/*
 * The kernel wakes all events that write to a ring, so that one of them is enough to poll. When its
 * task and all that inherited from it have ended, it answers POLLHUP for ever and tells no more of
 * the ring; then the next one is watched.
 */
static void watch_next(struct tally_sampler *s, uint32_t ring)
{
	struct shared_ring *shared = &s->rings[ring];
	size_t end = (size_t)s->places_count * s->plan.count;

	do
		shared->watched++;
	while (shared->watched < end && s->place_ring[shared->watched / s->plan.count] != ring);
	if (shared->watched < end) {
		s->polled[ring].fd = s->fds[shared->watched];
		return;
	}
	s->polled[ring].fd = -1;
	s->alive--;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* What poll(2) found: 1 when a ring has data, else 0; `*moved`: another event is now watched. */
static int take_polled(struct tally_sampler *s, bool *moved)
{
	int ready = 0;

	for (uint32_t i = 0; i < s->rings_count; i++) {
		short got = s->polled[i].fd < 0 ? 0 : s->polled[i].revents;
		if (got & POLLIN)
			ready = 1;
		/* POLLERR: a pinned event that found no counter, or one that was revoked. */
		if (got & (POLLHUP | POLLERR | POLLNVAL)) {
			watch_next(s, i);
			*moved = true;
		}
	}
	return ready;
}

int tally_sampler_wait(struct tally_sampler *s, int timeout_ms)
{
	int64_t deadline = timeout_ms > 0 ? now_ms() + timeout_ms : 0;

	while (s->alive) {
		bool moved = false;
		int r = sys()->poll(s->polled, s->rings_count, timeout_ms);
		if (r <= 0)
			return r;
		if (take_polled(s, &moved))
			return 1;
		if (!moved)
			return 0;
		if (timeout_ms > 0) {
			int64_t left = deadline - now_ms();
			timeout_ms = left > 0 ? (int)left : 0;
		}
	}
	return -EPIPE;
}

uint32_t tally_sampler_rings(const struct tally_sampler *s)
{
	return s->rings_count;
}

struct tally_ring *tally_sampler_ring(const struct tally_sampler *s, uint32_t i)
{
	return i < s->rings_count ? s->rings[i].ring : NULL;
}

const struct tally_layout *tally_sampler_layout(const struct tally_sampler *s, uint32_t event)
{
	return event < s->plan.count ? &s->layouts[event] : NULL;
}

const struct tally_attr *tally_sampler_attr(const struct tally_sampler *s, uint32_t event)
{
	return event < s->plan.count ? &s->plan.attrs[event] : NULL;
}

uint32_t tally_sampler_ids(const struct tally_sampler *s, uint32_t event, const uint64_t **ids)
{
	if (event >= s->plan.count)
		return 0;
	*ids = &s->ids[(size_t)event * s->places_room];
	return s->places_count;
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

/* Reads one event's loss; 0 where it does not tell, as a pinned event that has no counter. */
static int read_lost(struct tally_sampler *s, int fd, const struct tally_attr *attr, uint64_t *lost)
{
	size_t room = (HEAD_WORDS + MEMBER_WORDS * (size_t)s->plan.count) * sizeof(*s->words);

	if (!(attr->read_format & TALLY_READ_LOST))
		return 0;
	ssize_t n = sys()->read(fd, s->words, room);
	if (n < 0)
		return (int)n;
	/* In a group the leader, whose descriptor this is, stands first, behind the head. */
	size_t at = attr->read_format & TALLY_READ_GROUP ? HEAD_WORDS + 2 : 4;
	if ((size_t)n >= (at + 1) * sizeof(*s->words))
		*lost += s->words[at];
	return 0;
}

int tally_sampler_lost(struct tally_sampler *s, uint64_t *lost)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; p < s->places_count; p++)
		for (uint32_t e = 0; e < s->plan.count; e++) {
			int r = read_lost(s, place_fds(s, p)[e], &s->plan.attrs[e], &sum);
			if (r < 0)
				return r;
		}
	*lost = sum;
	return 0;
}

void tally_sampler_close(struct tally_sampler *s)
{
	if (!s)
		return;
	close_all(s);
	if (s->cgroup >= 0)
		sys()->close(s->cgroup);
	free(s->layouts);
	plan_done(&s->plan);
	free(s);
}
