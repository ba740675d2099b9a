/* SPDX-License-Identifier: MIT */
/* The list of events, and what each is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "event/event.h"
#include "event/table.h"

#define FALLBACKS                                                                        \
	(TALLY_FALLBACK_PRECISE | TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY | \
	 TALLY_FALLBACK_CPU_CLOCK)

int events_opts_read(struct tally_events_opts *out, const struct tally_events_opts *opts,
		     struct tally_error *err)
{
	int r = opts_read(out, sizeof(*out), 0, opts, err);

	if (r < 0)
		return r;
	if (out->reserved || out->fallback & ~FALLBACKS)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "struct tally_events_opts has fallback %#x, of which this library "
				 "knows %#x",
				 out->fallback, out->fallback & (unsigned)FALLBACKS);
	if (!out->fallback)
		out->fallback = TALLY_FALLBACK_NEWER_BITS;
	return 0;
}

static const char *unit_of(const struct tally_attr *attr)
{
	bool clock = attr->type == TALLY_TYPE_SOFTWARE &&
		     (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);

	return clock ? "ns" : "";
}

bool event_only_in_kernel(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_TRACEPOINT ||
	       (attr->type == TALLY_TYPE_SOFTWARE && (attr->config == TALLY_SW_CONTEXT_SWITCHES ||
						      attr->config == TALLY_SW_CPU_MIGRATIONS ||
						      attr->config == TALLY_SW_CGROUP_SWITCHES));
}

bool event_is_hit(const struct tally_event *event)
{
	return event->attr.type == TALLY_TYPE_TRACEPOINT ||
	       event->attr.type == TALLY_TYPE_BREAKPOINT || event->text;
}

struct tally_event *events_append(struct tally_events *events, const char *name, size_t len,
				  const struct tally_attr *attr)
{
	char *copy = strndup(name, len);
	struct tally_event *e = copy ? vec_push(&events->list) : NULL;

	if (!e) {
		free(copy);
		return NULL;
	}
	e->name = copy;
	e->attr = *attr;
	e->index = e->leader = (uint32_t)events->list.count - 1;
	e->group_size = 1;
	return e;
}

/* A name for an event that came without one, so that the parser reads it back where it can. */
static void describe(char *out, size_t size, const struct tally_attr *attr)
{
	if (table_name(out, size, attr->type, attr->config))
		return;
	if (attr->type == TALLY_TYPE_RAW)
		snprintf(out, size, "r%llx", (unsigned long long)attr->config);
	else
		snprintf(out, size, "type %u config %#llx", attr->type,
			 (unsigned long long)attr->config);
}

/* The caller's struct may be an older, shorter one, or one with fields that came after ours. */
static int read_attr(struct tally_attr *out, const struct tally_attr *attr, struct tally_error *err)
{
	const unsigned char *bytes = (const unsigned char *)attr;
	size_t size = load_u32(bytes + offsetof(struct tally_attr, size), false);

	if (!size)
		size = TALLY_ATTR_SIZE_MIN;
	for (size_t i = TALLY_ATTR_SIZE_MAX; i < size && size <= UINT16_MAX; i++)
		if (bytes[i])
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "an attr of %zu bytes uses a field beyond the %d bytes "
					 "that this library knows",
					 size, TALLY_ATTR_SIZE_MAX);
	if (size > UINT16_MAX || tally_attr_decode(out, attr, size, false) < 0)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an attr cannot have %zu bytes: tally_attr_init() sets the size",
				 size);
	return 0;
}

int tally_events_new(struct tally_events **out, const char *name, const struct tally_attr *attr,
		     const struct tally_events_opts *opts, struct tally_error *err)
{
	struct tally_events_opts o;
	struct tally_attr copy;
	char text[64];

	int r = events_opts_read(&o, opts, err);
	if (r < 0)
		return r;
	if (!attr)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "no attr is given");
	r = read_attr(&copy, attr, err);
	if (r < 0)
		return r;
	if (!name) {
		describe(text, sizeof(text), &copy);
		name = text;
	}
	struct tally_events *events = calloc(1, sizeof(*events));
	struct tally_event *e = events ? events_append(events, name, strlen(name), &copy) : NULL;
	if (!e) {
		tally_events_free(events);
		return error_nomem(err, "an event");
	}
	e->fallback = o.fallback;
	*out = events;
	return 0;
}

void tally_events_free(struct tally_events *events)
{
	if (!events)
		return;
	vec_each (&events->list, e) {
		free(e->name);
		free(e->filter);
		free(e->text);
		event_parts_done(&e->parts);
	}
	vec_done(&events->list);
	free(events);
}

uint32_t tally_events_count(const struct tally_events *events)
{
	return (uint32_t)events->list.count;
}

struct tally_event *tally_events_at(const struct tally_events *events, uint32_t i)
{
	return i < events->list.count ? &events->list.at[i] : NULL;
}

const char *tally_event_name(const struct tally_event *event)
{
	return event->name;
}

const char *tally_event_unit(const struct tally_event *event)
{
	return event->unit[0] ? event->unit
			      : unit_of(event->opened ? &event->granted : &event->attr);
}

double tally_event_scale(const struct tally_event *event)
{
	return event->scale != 0 ? event->scale : 1.0;
}

bool tally_event_per_package(const struct tally_event *event)
{
	return event->per_package;
}

bool tally_event_snapshot(const struct tally_event *event)
{
	return event->snapshot;
}

const char *tally_event_filter(const struct tally_event *event)
{
	return event->filter;
}

int tally_event_set_filter(struct tally_event *event, const char *filter)
{
	char *copy = filter ? strdup(filter) : NULL;

	if (filter && !copy)
		return -ENOMEM;
	free(event->filter);
	event->filter = copy;
	return 0;
}

uint32_t tally_event_parts(const struct tally_event *event)
{
	return event->parts.count ? (uint32_t)event->parts.count : 1;
}

bool tally_event_part(const struct tally_event *event, uint32_t i, struct tally_event_part *out)
{
	if (i >= tally_event_parts(event))
		return false;
	*out = (struct tally_event_part){ .attr = event->attr, .pmu = "" };
	if (!event->parts.count)
		return true;
	const struct event_part *part = &event->parts.at[i];
	out->attr.type = part->type;
	out->attr.config = part->config;
	out->attr.config1 = part->config1;
	out->attr.config2 = part->config2;
	out->attr.config3 = part->config3;
	out->attr.config4 = part->config4;
	out->pmu = part->pmu;
	out->cpus = part->cpus;
	out->cpu_count = part->cpu_count;
	out->per_cpu = part->per_cpu;
	return true;
}

uint32_t tally_event_index(const struct tally_event *event)
{
	return event->index;
}

uint32_t tally_event_leader(const struct tally_event *event)
{
	return event->leader;
}

uint32_t tally_event_group_size(const struct tally_event *event)
{
	return event->group_size;
}

bool tally_event_reads_group(const struct tally_event *event)
{
	return event->reads_group;
}

bool tally_event_is_weak(const struct tally_event *event)
{
	return event->weak;
}

const struct tally_attr *tally_event_attr(const struct tally_event *event)
{
	return &event->attr;
}

const struct tally_attr *tally_event_granted(const struct tally_event *event)
{
	return event->opened ? &event->granted : NULL;
}

bool tally_event_inherit_refused(const struct tally_event *event)
{
	return event->opened && event->given.alone;
}

const char *tally_event_compromise(const struct tally_event *event)
{
	return event->compromise[0] ? event->compromise : NULL;
}

const char *tally_event_granted_modifier(const struct tally_event *event)
{
	const struct tally_attr *granted = tally_event_granted(event);
	uint64_t asked = tally_event_attr(event)->flags;

	if (!granted || !(granted->flags & ~asked & TALLY_ATTR_EXCLUDE_KERNEL))
		return "";
	return strpbrk(tally_event_name(event), ":/") ? "u" : ":u";
}
