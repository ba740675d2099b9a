/* SPDX-License-Identifier: MIT */
/* Sets of events: opening in pieces, opening anew without losing what was counted, reading all. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include <tally/freeze.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/sys.h"
#include "count/options.h"
#include "count/set.h"
#include "count/signal.h"

struct pieces {
	struct opened *at;
	uint32_t count;
};

static void close_pieces(struct pieces *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		opened_close(&p->at[i]);
	free(p->at);
	*p = (struct pieces){ 0 };
}

/* How many to try after so many were refused; 0: fewer will not do either. */
static uint32_t fewer(uint32_t members, int code)
{
	if (code == -EINVAL) /* the PMU cannot have them on at once */
		return members - 1;
	return code == -E2BIG ? members / 2 : 0; /* or one read(2) cannot answer for all */
}

/*
 * Opens `*take` members from `first` on; where they may be split and the kernel says that they can
 * never be counted together, as many of them as can.
 */
static int open_piece(const struct set *s, const struct tally_counter_opts *opts, uint32_t first,
		      uint32_t *take, struct opened *o, struct tally_freeze **held,
		      struct tally_error *err)
{
	bool weak = opts->flags & TALLY_COUNTER_WEAK;

	for (;;) {
		int r = opened_open(o, s->events + first, *take, &s->target, opts, held, err);
		uint32_t next = weak ? fewer(*take, r) : 0;
		if (!next)
			return r;
		opened_close(o);
		*o = (struct opened){ 0 };
		*take = next;
	}
}

/* `sizes`: how many members each piece has; NULL: `each` of them, the last one what remains. */
static int open_all(const struct set *s, const struct tally_counter_opts *opts,
		    const struct pieces *sizes, uint32_t each, struct pieces *out,
		    struct tally_freeze **held, struct tally_error *err)
{
	for (uint32_t first = 0, take; first < s->members; first += take) {
		uint32_t rest = s->members - first;
		uint32_t want = sizes ? sizes->at[out->count].members : each;
		take = want < rest ? want : rest;
		struct opened *o = &out->at[out->count++];
		int r = open_piece(s, opts, first, &take, o, held, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A process is stopped once, whatever the number of pieces. */
static int open_pieces(const struct set *s, const struct tally_counter_opts *opts,
		       const struct pieces *sizes, uint32_t each, struct pieces *out,
		       struct tally_error *err)
{
	struct tally_freeze *held = NULL;

	*out = (struct pieces){ .at = alloc_zeroed(s->members, sizeof(*out->at)) };
	if (!out->at)
		return error_nomem(err, "a group");
	int r = open_all(s, opts, sizes, each, out, &held, err);
	tally_freeze_close(held);
	if (r < 0)
		close_pieces(out);
	return r;
}

static bool copy_text(const char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return *to || !text;
}

/* The target with memory of its own. */
static bool keep_target(struct set *s, const struct tally_target *target)
{
	s->target = *target;
	s->target.cpus = NULL;
	s->target.cgroup = NULL;
	if (target->scope == TALLY_SCOPE_CGROUP && !copy_text(&s->target.cgroup, target->cgroup))
		return false;
	if (!target->cpus)
		return true;
	int32_t *cpus = calloc(target->cpu_count ? target->cpu_count : 1, sizeof(*cpus));
	if (cpus)
		memcpy(cpus, target->cpus, target->cpu_count * sizeof(*cpus));
	s->target.cpus = cpus;
	return cpus;
}

/* The arrays of members are one block: opening is short enough for allocations to be felt. */
static bool keep_events(struct set *s, struct tally_event *const *events)
{
	s->block = alloc_zeroed(s->members, 2 * sizeof(*s->counts) + sizeof(struct tally_event *));
	if (!s->block)
		return false;
	s->counts = s->block;
	s->carried = s->counts + s->members;
	s->events = (struct tally_event **)(s->carried + s->members);
	for (uint32_t i = 0; i < s->members; i++)
		s->events[i] = events[i];
	return true;
}

/* What a later opening needs, which the caller need not keep. */
static int keep(struct set *s, struct tally_event *const *events, const struct tally_target *target,
		const struct tally_counter_opts *opts, struct tally_error *err)
{
	struct tally_counter_opts own;
	int r = options_read(&own, opts, target, err);

	if (r < 0)
		return r;
	if (tally_event_is_weak(events[0]))
		own.flags |= TALLY_COUNTER_WEAK;
	s->opts = own;
	s->opts.root = NULL;
	if (!copy_text(&s->opts.root, own.root) || !keep_target(s, target) ||
	    !keep_events(s, events))
		return error_nomem(err, "a counter");
	return 0;
}

static void set_pieces(struct set *s, const struct pieces *p)
{
	s->pieces = p->at;
	s->pieces_count = p->count;
}

int set_open(struct set *s, struct tally_event *const *events, uint32_t members,
	     const struct tally_target *target, const struct tally_counter_opts *opts,
	     struct tally_error *err)
{
	struct pieces pieces;

	s->members = members;
	int r = keep(s, events, target, opts, err);
	if (r == 0)
		r = open_pieces(s, &s->opts, NULL, members, &pieces, err);
	s->opts.freeze = NULL; /* lent for this opening alone */
	if (r < 0)
		return r;
	set_pieces(s, &pieces);
	if (s->opts.flags & TALLY_COUNTER_ENABLED)
		s->state = SET_ON;
	else if (target->scope == TALLY_SCOPE_COMMAND)
		s->state = SET_BY_EXEC;
	return 0;
}

/* An event that somebody has mapped outlives its descriptor, and would go on sending. */
static void silence(const struct set *s)
{
	for (uint32_t i = 0; s->armed && i < s->pieces_count; i++)
		for (uint32_t m = 0; m < s->pieces[i].members; m++)
			signal_stop(&s->pieces[i], m);
}

void set_close(struct set *s)
{
	silence(s);
	close_pieces(&(struct pieces){ s->pieces, s->pieces_count });
	free(s->block);
	free((void *)(uintptr_t)s->opts.root);
	free((void *)(uintptr_t)s->target.cpus);
	free((void *)(uintptr_t)s->target.cgroup);
	*s = (struct set){ 0 };
}

static int switch_all(struct set *s, unsigned long request)
{
	int first = 0;

	for (uint32_t i = 0; i < s->pieces_count; i++) {
		int r = opened_ioctl(&s->pieces[i], request);
		if (first == 0)
			first = r;
	}
	return first;
}

static int enable_pieces(struct set *s)
{
	int first = 0;

	if (s->target.scope != TALLY_SCOPE_CGROUP)
		return switch_all(s, PERF_EVENT_IOC_ENABLE);
	for (uint32_t i = 0; i < s->pieces_count; i++) {
		int r = opened_enable_stale(&s->pieces[i]);
		if (first == 0)
			first = r;
	}
	return first;
}

int set_enable(struct set *s)
{
	bool was_on = set_is_on(s);

	s->state = SET_ON;
	return was_on ? switch_all(s, PERF_EVENT_IOC_ENABLE) : enable_pieces(s);
}

int set_disable(struct set *s)
{
	s->state = SET_OFF;
	return switch_all(s, PERF_EVENT_IOC_DISABLE);
}

/* As the kernel does for one event: what two stretches of time have is added, then scaled. */
static void go_on_from(struct tally_count *now, const struct tally_count *carried)
{
	now->raw += carried->raw;
	now->enabled_ns += carried->enabled_ns;
	now->running_ns += carried->running_ns;
	now->lost += carried->lost;
	now->flags |= carried->flags;
	if (!now->error)
		now->error = carried->error;
	tally_count_settle(now);
}

static int read_piece(struct set *s, struct opened *o, uint32_t first)
{
	int r = opened_read(o, s->counts + first);

	for (uint32_t i = first; r == 0 && s->generation && i < first + o->members; i++)
		go_on_from(&s->counts[i], &s->carried[i]);
	return r;
}

int set_read(struct set *s)
{
	uint32_t first = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->pieces_count; i++) {
		r = read_piece(s, &s->pieces[i], first);
		first += s->pieces[i].members;
	}
	return r;
}

/* Whether the places before it, in the order of places, are of another thread or CPU. */
static bool is_first_at(const struct opened *o, uint32_t place)
{
	const struct tally_place *before = &o->places[place - (place > 0)], *at = &o->places[place];

	return !place || before->tid != at->tid || before->cpu != at->cpu;
}

int set_read_place(struct set *s, uint32_t place)
{
	const struct opened *first = &s->pieces[0];
	int r = opened_read_place(&s->pieces[0], place, s->counts);

	for (uint32_t i = 1, m = first->members; r == 0 && i < s->pieces_count; i++) {
		struct opened *o = &s->pieces[i];
		if (is_first_at(first, place))
			r = opened_read_at(o, &first->places[place], s->counts + m);
		else
			memset(s->counts + m, 0, o->members * sizeof(*s->counts));
		m += o->members;
	}
	return r;
}

int set_read_member_place(struct set *s, uint32_t member, uint32_t place, struct tally_count *out)
{
	uint32_t index;
	struct opened *o = set_piece(s, member, &index);
	int r = opened_read_place(o, place, s->counts + (member - index));

	if (r == 0)
		*out = s->counts[member];
	return r;
}

bool set_start_exact(const struct set *s)
{
	for (uint32_t i = 0; i < s->pieces_count; i++)
		if (s->pieces[i].flags & TALLY_COUNT_START_INEXACT)
			return false;
	return true;
}

int set_read_member(struct set *s, uint32_t member, struct tally_count *out)
{
	uint32_t index;
	struct opened *o = set_piece(s, member, &index);
	int r = read_piece(s, o, member - index);

	if (r == 0)
		*out = s->counts[member];
	return r;
}

int set_reset(struct set *s)
{
	for (uint32_t i = 0; i < s->pieces_count; i++) {
		int r = opened_reset(&s->pieces[i]);
		if (r < 0)
			return r;
	}
	memset(s->carried, 0, s->members * sizeof(*s->carried));
	return 0;
}

struct opened *set_piece(const struct set *s, uint32_t member, uint32_t *index)
{
	struct opened *o = s->pieces;

	for (*index = member; *index >= o->members; o++)
		*index -= o->members;
	return o;
}

/* By a reading and, as a reset hides what was before it, by its base. */
static bool has_been_enabled(const struct set *s)
{
	for (uint32_t i = 0; i < s->members; i++)
		if (s->counts[i].enabled_ns)
			return true;
	for (uint32_t i = 0; i < s->pieces_count; i++) {
		const struct opened *o = &s->pieces[i];
		for (size_t slot = 0; slot < (size_t)o->places_count * o->members; slot++)
			if (o->base[slot].enabled_ns)
				return true;
	}
	return false;
}

static bool inherits(const struct set *s)
{
	for (uint32_t i = 0; i < s->pieces_count; i++)
		if (s->pieces[i].attrs[0].flags & TALLY_ATTR_INHERIT)
			return true;
	return false;
}

bool set_is_on(const struct set *s)
{
	return s->state == SET_ON || (s->state == SET_BY_EXEC && has_been_enabled(s));
}

/* Ends the old ones, keeps what they counted, and lets the new ones go on if they were on. */
static int take_over(struct set *s, struct pieces *fresh, struct tally_error *err)
{
	struct pieces old = { s->pieces, s->pieces_count };
	bool on = set_is_on(s);
	int r = on ? switch_all(s, PERF_EVENT_IOC_DISABLE) : 0;

	if (r == 0)
		r = set_read(s);
	if (r < 0) {
		close_pieces(fresh);
		if (on)
			switch_all(s, PERF_EVENT_IOC_ENABLE);
		return error_set(err, r, TALLY_CAUSE_IO,
				 "what '%s' has counted cannot be read before it is opened anew: "
				 "%s",
				 tally_event_name(s->events[0]), strerror(-r));
	}
	memcpy(s->carried, s->counts, s->members * sizeof(*s->carried));
	silence(s);
	s->armed = false;
	set_pieces(s, fresh);
	s->generation++;
	close_pieces(&old);
	if (s->state != SET_BY_EXEC || on)
		s->state = on ? SET_ON : SET_OFF;
	r = on ? enable_pieces(s) : 0;
	return r < 0 ? error_set(err, r, TALLY_CAUSE_IO,
				 "'%s' was opened anew and cannot be enabled: %s",
				 tally_event_name(s->events[0]), strerror(-r))
		     : 0;
}

int set_reopen(struct set *s, uint32_t each, struct tally_error *err)
{
	struct pieces now = { s->pieces, s->pieces_count }, fresh;
	struct tally_counter_opts opts = s->opts;

	int r = set_read(s);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "'%s' cannot be read: %s",
				 tally_event_name(s->events[0]), strerror(-r));
	if (inherits(s) && has_been_enabled(s))
		return error_set(err, -EBUSY, TALLY_CAUSE_ARGUMENT,
				 "'%s' has counted and follows what its target started meanwhile, "
				 "which would be lost if it were opened anew: do this before it is "
				 "enabled, or close it and open another",
				 tally_event_name(s->events[0]));
	opts.flags &= ~(uint32_t)TALLY_COUNTER_ENABLED;
	if (!each) /* as it is: the pieces fitted */
		opts.flags &= ~(uint32_t)TALLY_COUNTER_WEAK;
	r = open_pieces(s, &opts, each ? NULL : &now, each, &fresh, err);
	return r < 0 ? r : take_over(s, &fresh, err);
}
