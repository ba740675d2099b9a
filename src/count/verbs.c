/* SPDX-License-Identifier: MIT */
/*
 * What can be done to an open event beside switching and reading it, by ioctl(2) at each of its
 * places; perf_event_open(2) "perf_event ioctl calls".
 */
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include <tally/group.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/counter.h"
#include "count/never-ran.h"

/* The most programs of one event that the kernel tells, BPF_TRACE_MAX_PROGS. */
#define MAX_PROGS 64

int tally_counter_refresh(struct tally_counter *counter, uint32_t overflows)
{
	uint32_t index;

	/* The kernel takes 0 for no limit at all. */
	if (!overflows || overflows > INT_MAX)
		return -EINVAL;
	counter_piece(counter, &index);
	int r = counter_ioctl(counter, PERF_EVENT_IOC_REFRESH, overflows);
	if (r == 0 && index == 0)
		counter->set->state = SET_LIMITED;
	return r;
}

int tally_counter_set_period(struct tally_counter *counter, uint64_t period)
{
	return counter_ioctl(counter, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
}

int tally_counter_id(const struct tally_counter *counter, uint32_t place, uint64_t *id)
{
	int fd = tally_counter_fd(counter, place);
	uint64_t got = 0;
	int r = fd < 0 ? fd : sys()->ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)&got);

	if (r == 0)
		*id = got;
	return r;
}

static int set_output(const struct tally_counter *counter, uint32_t place, unsigned long ring)
{
	int fd = tally_counter_fd(counter, place);

	return fd < 0 ? fd : sys()->ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring);
}

int tally_counter_set_output(struct tally_counter *counter, uint32_t place, int ring_fd)
{
	return ring_fd < 0 ? -EBADF : set_output(counter, place, (unsigned long)ring_fd);
}

int tally_counter_detach_output(struct tally_counter *counter, uint32_t place)
{
	/* All 64 bits: the kernel takes an int's 0xffffffff for a descriptor. */
	return set_output(counter, place, ~0ul);
}

int tally_counter_pause_output(struct tally_counter *counter, bool paused)
{
	return counter_ioctl(counter, PERF_EVENT_IOC_PAUSE_OUTPUT, paused);
}

static bool is_tracepoint(const struct tally_event *event)
{
	return tally_event_attr(event)->type == TALLY_TYPE_TRACEPOINT;
}

static int explain_filter(const struct tally_event *event, const char *filter, int code,
			  struct tally_error *err)
{
	if (code == -EINVAL && !is_tracepoint(event))
		return error_set(err, code, TALLY_CAUSE_UNSUPPORTED,
				 "'%s' takes no filter: only tracepoints and PMUs that trace "
				 "instructions do",
				 tally_event_name(event));
	if (code == -EINVAL)
		return error_set(err, code, TALLY_CAUSE_SYNTAX,
				 "the kernel does not take '%s' as a filter of '%s': its fields "
				 "stand in the tracepoint's file 'format'",
				 filter, tally_event_name(event));
	return error_set(err, code, TALLY_CAUSE_UNSUPPORTED,
			 "the filter '%s' cannot be set on '%s': %s", filter,
			 tally_event_name(event), strerror(-code));
}

/* The first filter of an event takes effect without anything being lost. */
static int set_first_filter(struct tally_counter *counter, const char *filter)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);
	int r = 0;

	for (uint32_t p = 0; r == 0 && p < o->places_count; p++)
		if (opened_fd(o, p, index) >= 0)
			r = sys()->ioctl(opened_fd(o, p, index), PERF_EVENT_IOC_SET_FILTER,
					 (unsigned long)filter);
	return r;
}

/* The event keeps its filter, since it is opened anew with it. */
static int reopen_with_filter(struct tally_counter *counter, const char *filter,
			      struct tally_error *err)
{
	struct tally_event *event = counter_event(counter);
	const char *before = tally_event_filter(event);
	char *old = before ? strdup(before) : NULL;

	if ((before && !old) || tally_event_set_filter(event, filter) < 0) {
		free(old);
		return error_nomem(err, "a filter");
	}
	int r = set_reopen(counter->set, 0, err);
	if (r < 0 && tally_event_set_filter(event, old) < 0)
		tally_event_set_filter(event, NULL);
	free(old);
	return r;
}

int tally_counter_set_filter(struct tally_counter *counter, const char *filter,
			     struct tally_error *err)
{
	struct tally_event *event = counter_event(counter);

	int r = filter ? set_first_filter(counter, filter) : -EEXIST;
	if (r == -EEXIST)
		return reopen_with_filter(counter, filter, err);
	if (r < 0)
		return explain_filter(event, filter, r, err);
	return tally_event_set_filter(event, filter) < 0 ? error_nomem(err, "a filter") : 0;
}

int tally_counter_set_bpf(struct tally_counter *counter, int prog_fd)
{
	return prog_fd < 0 ? -EBADF
			   : counter_ioctl(counter, PERF_EVENT_IOC_SET_BPF, (unsigned long)prog_fd);
}

int tally_counter_query_bpf(const struct tally_counter *counter, uint32_t place, uint32_t *ids,
			    uint32_t room)
{
	/* struct perf_event_query_bpf: room for ids, how many there are, the ids. */
	uint32_t query[2 + MAX_PROGS] = { MAX_PROGS };
	int fd = tally_counter_fd(counter, place);
	int r = fd < 0 ? fd : sys()->ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, (unsigned long)query);

	if (r < 0)
		return r;
	uint32_t found = query[1] < MAX_PROGS ? query[1] : MAX_PROGS;
	for (uint32_t i = 0; i < found && i < room; i++)
		ids[i] = query[2 + i];
	return (int)found;
}

static int explain_modify(const struct tally_counter *counter, const struct tally_attr *attr,
			  int code, struct tally_error *err)
{
	const char *name = tally_event_name(counter_event(counter));

	if (code == -ENOTTY || code == -EOPNOTSUPP)
		return error_set(err, code, TALLY_CAUSE_UNSUPPORTED,
				 "this kernel cannot change '%s' while it is open, which needs "
				 "Linux 4.17: open another",
				 name);
	if (code == -ENOSPC)
		return error_set(err, code, TALLY_CAUSE_LIMIT,
				 "'%s' cannot be changed: all debug registers for its new kind are "
				 "in use",
				 name);
	return error_set(err, code, TALLY_CAUSE_ARGUMENT,
			 "the kernel does not take type %u, address %#llx, length %llu for '%s' "
			 "(%s): align it to its length of 1, 2, 4 or 8, a long for execution; a "
			 "kernel address needs the kernel not to be excluded",
			 attr->bp_type, (unsigned long long)attr->config1,
			 (unsigned long long)attr->config2, name, strerror(-code));
}

/* The kernel stops a breakpoint to change it, and may leave it stopped when it refuses (6.18). */
static int modify_at(int fd, const struct tally_attr *attr)
{
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)attr);

	if (r < 0 && !(attr->flags & TALLY_ATTR_DISABLED))
		sys()->ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	return r;
}

/* All places or, as far as they go back, none. */
static int modify_places(const struct opened *o, uint32_t index, const struct tally_attr *now,
			 const struct tally_attr *next)
{
	for (uint32_t p = 0; p < o->places_count; p++) {
		int fd = opened_fd(o, p, index);
		int r = fd < 0 ? 0 : modify_at(fd, next);
		if (r == 0)
			continue;
		while (p-- > 0)
			if (opened_fd(o, p, index) >= 0)
				modify_at(opened_fd(o, p, index), now);
		return r;
	}
	return 0;
}

int tally_counter_modify(struct tally_counter *counter, const struct tally_attr *attr,
			 struct tally_error *err)
{
	uint32_t index;
	struct opened *o = counter_piece(counter, &index);
	struct tally_attr now = o->attrs[index];

	if (now.type != TALLY_TYPE_BREAKPOINT || attr->type != TALLY_TYPE_BREAKPOINT)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "'%s' cannot be changed while it is open: the kernel changes "
				 "breakpoints alone, and only into other breakpoints",
				 tally_event_name(counter_event(counter)));
	int r = set_read(counter->set);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "'%s' cannot be read: %s",
				 tally_event_name(counter_event(counter)), strerror(-r));
	/* The kernel starts it behind the change or not by this bit. Followers always are started. */
	bool off = index == 0 && !set_is_on(counter->set) && counter->set->state != SET_LIMITED;
	now.flags &= ~TALLY_ATTR_DISABLED;
	now.flags |= off ? TALLY_ATTR_DISABLED : 0;
	struct tally_attr next = now;
	next.bp_type = attr->bp_type;
	next.config1 = attr->config1;
	next.config2 = attr->config2;
	r = modify_places(o, index, &now, &next);
	if (r < 0)
		return explain_modify(counter, &next, r, err);
	next.flags = o->attrs[index].flags;
	o->attrs[index] = next;
	return 0;
}

int tally_counter_explain(const struct tally_counter *counter, const struct tally_count *count,
			  struct tally_error *err)
{
	return never_ran_explain(counter->set, counter->member, 1, count, err);
}
