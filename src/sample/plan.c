/* SPDX-License-Identifier: MIT */
/* The attrs of events that are to be sampled, the rates that a machine carries, and ring sizes. */
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "count/target.h"
#include "event/event.h"
#include "event/open.h"
#include "sample/options.h"
#include "sample/plan.h"

#define DEFAULT_FREQ 4000u /* perf(1)'s */

/*
 * cpu-clock and task-clock are high-resolution timers, which the kernel's throttling does not see
 * (perf_swevent_hrtimer()). An interrupt costs up to 50 us in a virtual machine; 100,000 a second
 * kept a CPU from doing anything else.
 */
#define SOFTWARE_CLOCK_FREQ   25000u
#define SOFTWARE_CLOCK_PERIOD (1000000000u / SOFTWARE_CLOCK_FREQ) /* ns */

/* A sample with a long callchain has about this many bytes; rings are drained every 250 ms, so that
 * twice that time is safe. */
#define RECORD_BYTES 1024u
#define UNSEEN_MS    500u

#define DEFAULT_MLOCK_KB 516 /* kernel.perf_event_mlock_kb, where it cannot be read */

#define SAMPLE_TYPE                                                                     \
	(TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD | \
	 TALLY_SAMPLE_CPU)

/* The flags that are the sampler's to decide. */
#define OWN_FLAGS                                                                                 \
	(SAMPLER_SIDE_BAND | TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC |                    \
	 TALLY_ATTR_INHERIT | TALLY_ATTR_FREQ | TALLY_ATTR_WATERMARK | TALLY_ATTR_SAMPLE_ID_ALL | \
	 TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_WRITE_BACKWARD)

#define READ_FORMAT \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_LOST)

static bool is_software_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

bool plan_is_by_hits(const struct tally_event *event, const struct tally_attr *attr)
{
	return event_is_hit(event) ||
	       (attr->type == TALLY_TYPE_SOFTWARE && !is_software_clock(attr));
}

/* What a name asks for is for this event alone, and so holds against what is asked for all. */
static void set_rate(struct tally_attr *attr, const struct tally_event *event,
		     const struct tally_sampler_opts *opts)
{
	const struct event_rate *own = &event->rate;
	bool for_all = opts->freq || opts->period;
	bool heeded = (own->freq || own->period) && !(own->by_default && for_all);
	uint64_t freq = heeded ? own->freq : opts->freq;
	uint64_t period = heeded ? own->period : opts->period;

	/* Each hit is a sample, as with perf(1), of tracepoints and breakpoints. */
	if (!freq && !period && event_is_hit(event)) {
		attr->sample_period = attr->sample_period ? attr->sample_period : 1;
	} else if (period) {
		attr->sample_period = period;
	} else {
		attr->sample_period = freq ? freq : DEFAULT_FREQ;
		attr->flags |= TALLY_ATTR_FREQ;
	}
}

/*
 * Of what software counts the kernel makes each hit a sample, whatever the period, when samples are to
 * tell it (perf_swevent_event(), kernel/events/core.c). So a period above 1 is not told: it stands in
 * the attr.
 */
static void set_period_told(struct tally_attr *attr, const struct tally_event *event)
{
	if (!(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period > 1 &&
	    plan_is_by_hits(event, attr))
		attr->sample_type &= ~TALLY_SAMPLE_PERIOD;
}

/* A group whose leader samples for all (modifier S): the others only count. */
static void set_group_read(struct tally_attr *attr, const struct tally_event *event)
{
	if (tally_event_leader(event) == tally_event_index(event)) {
		attr->sample_type |= TALLY_SAMPLE_READ;
		attr->read_format |= TALLY_READ_GROUP;
	} else {
		attr->sample_period = 0;
		attr->flags &= ~TALLY_ATTR_FREQ;
	}
}

static uint64_t own_flags(const struct plan *plan, bool inherit, bool leads)
{
	uint64_t flags = TALLY_ATTR_WATERMARK | TALLY_ATTR_SAMPLE_ID_ALL;

	/* Followers stay enabled: the leader switches them, by exec too, but never enables them. */
	if (leads)
		flags |= TALLY_ATTR_DISABLED | (plan->on_exec ? TALLY_ATTR_ENABLE_ON_EXEC : 0);
	return flags | (inherit ? TALLY_ATTR_INHERIT : 0);
}

/* Whether its samples have fields of its own to tell. */
static bool has_payload(const struct tally_event *event)
{
	const struct tally_attr *attr = tally_event_attr(event);

	if (attr->type == TALLY_TYPE_SOFTWARE)
		return attr->config == TALLY_SW_BPF_OUTPUT;
	return event_is_hit(event) && attr->type != TALLY_TYPE_BREAKPOINT;
}

static void set_attr(const struct plan *plan, struct plan_stream *stream, bool inherit)
{
	const struct tally_event *event = plan->events[stream->event];
	const struct tally_event *leader = plan->events[tally_event_leader(event)];
	struct tally_attr *attr = &stream->attr;

	attr->flags = (attr->flags & ~OWN_FLAGS) | own_flags(plan, inherit, leader == event);
	attr->sample_type |= SAMPLE_TYPE;
	sampler_options_apply(&plan->opts, has_payload(event), attr);
	if (plan->count > 1)
		attr->sample_type |= TALLY_SAMPLE_IDENTIFIER;
	attr->read_format = READ_FORMAT;
	set_rate(attr, event, &plan->opts);
	set_period_told(attr, event);
	if (tally_event_reads_group(leader) && tally_event_group_size(leader) > 1)
		set_group_read(attr, event);
	plan_clamp(plan, attr);
}

/* The kernel wants all of a group to agree on inherit, and not all events can be. */
static bool group_follows(const struct plan *plan, const struct parts *group)
{
	bool all = true;

	for (uint32_t m = 0; m < group->members; m++)
		all = all && event_can_follow(group->events[m], plan->opts.root);
	for (uint32_t m = 0; !all && plan->inherit && m < group->members; m++)
		event_stays_alone(group->events[m]);
	return all;
}

static int add_streams(struct plan *plan, uint32_t g, struct tally_error *err)
{
	const struct parts *group = &plan->groups[g];
	uint32_t more = group->layers * group->members, leader = 0;
	bool inherit = plan->inherit && group_follows(plan, group);
	struct plan_stream *grown = realloc(plan->streams, ((size_t)plan->streams_count + more) *
								   sizeof(*plan->streams));

	if (!grown)
		return error_nomem(err, "the events to sample");
	plan->streams = grown;
	for (uint32_t i = 0; i < more; i++) {
		uint32_t layer = i / group->members, member = i % group->members;
		struct tally_event_part part;
		if (!parts_of(group, layer, member, &part))
			continue;
		leader = member ? leader : plan->streams_count;
		plan->streams[plan->streams_count] = (struct plan_stream){
			.event = tally_event_index(group->events[member]),
			.leader = leader,
			.group = g,
			.layer = layer,
			.attr = part.attr,
		};
		set_attr(plan, &plan->streams[plan->streams_count++], inherit);
	}
	return 0;
}

/*
 * All records of a ring tell id and time at the same places, so that they can be told apart and put
 * in order: what one event's own attr asks for there, all have.
 */
static void align_ids(struct plan *plan)
{
	const uint64_t ids = TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_IDENTIFIER;
	uint64_t any = 0;

	for (uint32_t i = 0; i < plan->streams_count; i++)
		any |= plan->streams[i].attr.sample_type & ids;
	for (uint32_t i = 0; i < plan->streams_count; i++)
		plan->streams[i].attr.sample_type |= any;
}

static int add_groups(struct plan *plan, const struct tally_target *target, struct tally_error *err)
{
	for (uint32_t i = 0, size; i < plan->count; i += size) {
		size = tally_event_group_size(plan->events[i]);
		struct parts *group = &plan->groups[plan->groups_count++];
		int r = parts_init(group, &plan->events[i], size, target, err);
		if (r == 0)
			r = add_streams(plan, plan->groups_count - 1, err);
		if (r < 0)
			return r;
	}
	for (uint32_t i = plan->streams_count; i-- > 0;)
		plan->first[plan->streams[i].event] = i;
	align_ids(plan);
	return 0;
}

int plan_init(struct plan *plan, const struct tally_events *events,
	      const struct tally_target *target, const struct tally_sampler_opts *opts,
	      struct tally_error *err)
{
	*plan = (struct plan){ .count = tally_events_count(events) };
	int r = sampler_options_read(&plan->opts, opts, target, err);
	if (r < 0)
		return r;
	r = tally_system_read(&plan->system, sizeof(plan->system), plan->opts.root, err);
	if (r < 0)
		return r;
	plan->inherit = target_inherits(target) && !(plan->opts.flags & TALLY_SAMPLER_NO_INHERIT);
	/* Threads at any CPU can share a ring with nobody, so that many would need as many rings. */
	plan->per_cpu = plan->inherit || target->scope == TALLY_SCOPE_PROCESS;
	plan->on_exec = target->scope == TALLY_SCOPE_COMMAND;
	plan->side_band = sampler_options_side_band(&plan->opts);
	plan->events = calloc(plan->count, sizeof(struct tally_event *));
	plan->groups = calloc(plan->count, sizeof(*plan->groups));
	plan->first = calloc(plan->count, sizeof(*plan->first));
	if (!plan->events || !plan->groups || !plan->first)
		return error_nomem(err, "the events to sample");
	for (uint32_t i = 0; i < plan->count; i++)
		plan->events[i] = tally_events_at(events, i);
	return add_groups(plan, target, err);
}

/* Notes where the streams of a group are opened, by where its parts count. */
static int spread_group(const struct plan *plan, uint32_t g, const struct tally_place *list,
			uint32_t count, bool *here, struct tally_error *err)
{
	uint32_t spread = count, p = 0;
	struct tally_place *places = calloc(count, sizeof(*places));

	if (!places)
		return error_nomem(err, "the list of threads and CPUs");
	memcpy(places, list, count * sizeof(*places));
	int r = parts_spread(&plan->groups[g], plan->opts.root, &places, &spread, err);
	/* Both lists have the same order. */
	for (uint32_t i = 0; r == 0 && i < spread; i++) {
		while (list[p].tid != places[i].tid || list[p].cpu != places[i].cpu)
			p++;
		bool *row = &here[(size_t)p * plan->streams_count];
		for (uint32_t s = 0; s < plan->streams_count; s++)
			if (plan->streams[s].group == g && plan->streams[s].layer == places[i].part)
				row[s] = true;
	}
	free(places);
	return r;
}

int plan_spread(const struct plan *plan, const struct tally_place *list, uint32_t count,
		bool **here, struct tally_error *err)
{
	bool *rows = calloc((size_t)count * plan->streams_count, sizeof(*rows));
	int r = rows ? 0 : error_nomem(err, "the list of threads and CPUs");

	for (uint32_t g = 0; r == 0 && g < plan->groups_count; g++)
		r = spread_group(plan, g, list, count, rows, err);
	if (r < 0) {
		free(rows);
		return r;
	}
	*here = rows;
	return 0;
}

TALLY_PRINTF(2, 3) static void tell(struct plan *plan, const char *fmt, ...)
{
	size_t len = strlen(plan->compromise);
	va_list ap;

	if (len)
		len += (size_t)snprintf(plan->compromise + len, sizeof(plan->compromise) - len,
					"; ");
	if (len >= sizeof(plan->compromise))
		return;
	va_start(ap, fmt);
	vsnprintf(plan->compromise + len, sizeof(plan->compromise) - len, fmt, ap);
	va_end(ap);
}

bool plan_clamp(const struct plan *plan, struct tally_attr *attr)
{
	uint64_t before = attr->sample_period;
	int64_t most = plan->system.max_sample_rate;

	if (!(attr->flags & TALLY_ATTR_FREQ)) {
		if (before && is_software_clock(attr) && before < SOFTWARE_CLOCK_PERIOD)
			attr->sample_period = SOFTWARE_CLOCK_PERIOD;
		return attr->sample_period != before;
	}
	if (most > 0 && attr->sample_period > (uint64_t)most)
		attr->sample_period = (uint64_t)most;
	if (is_software_clock(attr) && attr->sample_period > SOFTWARE_CLOCK_FREQ)
		attr->sample_period = SOFTWARE_CLOCK_FREQ;
	return attr->sample_period != before;
}

/* What it samples in the end: cycles may have become cpu-clock. */
static const char *sampled_name(const struct tally_event *event, const struct tally_attr *attr)
{
	bool other = is_software_clock(attr) && !is_software_clock(tally_event_attr(event));

	return other ? "cpu-clock" : tally_event_name(event);
}

static void describe(struct plan *plan, const struct tally_event *event,
		     const struct tally_attr *attr)
{
	const char *name = sampled_name(event, attr);
	struct tally_attr asked = *tally_event_attr(event);

	set_rate(&asked, event, &plan->opts);
	if (asked.sample_period == attr->sample_period || !attr->sample_period)
		return;
	if (!(attr->flags & TALLY_ATTR_FREQ))
		tell(plan,
		     "%s every %" PRIu64 " instead of %" PRIu64 " ns: the kernel does not throttle "
		     "software clocks, and more of them starves a CPU",
		     name, attr->sample_period, asked.sample_period);
	else if (is_software_clock(attr) && attr->sample_period == SOFTWARE_CLOCK_FREQ)
		tell(plan,
		     "%s at %u instead of %" PRIu64 " samples a second: the kernel does not "
		     "throttle software clocks, and more of them starves a CPU",
		     name, SOFTWARE_CLOCK_FREQ, asked.sample_period);
	else
		tell(plan,
		     "%s at %" PRIu64 " instead of %" PRIu64 " samples a second, which is "
		     "kernel.perf_event_max_sample_rate",
		     name, attr->sample_period, asked.sample_period);
}

void plan_describe(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		describe(plan, plan->events[i], &plan->streams[plan->first[i]].attr);
}

/*
 * What an ordinary user may map (perf_mmap(), kernel/events/core.c): perf_event_mlock_kb for each
 * online CPU, and RLIMIT_MEMLOCK beyond that; metadata pages count.
 */
static uint64_t mlock_budget(const struct tally_system *system)
{
	int64_t kb = system->mlock_kb > 0 ? system->mlock_kb : DEFAULT_MLOCK_KB;
	uint64_t cpus = system->online_cpus > 0 ? (uint64_t)system->online_cpus : 1;
	uint64_t budget;

	if (system->paranoid == -1 ||
	    (!system->in_user_namespace && system->capabilities >> CAP_IPC_LOCK & 1))
		return UINT64_MAX;
	if (__builtin_mul_overflow((uint64_t)kb * 1024, cpus, &budget) ||
	    __builtin_add_overflow(budget, system->memlock_soft, &budget))
		return UINT64_MAX;
	return budget;
}

/*
 * What a CPU can write while nobody looks. Events that sample at a rate have a bound, and mapping
 * 8 MiB costs the kernel some 3 ms, which a short recording notices; events that sample by a
 * period have none.
 */
static uint64_t wanted_bytes(const struct plan *plan)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct tally_attr *attr = &plan->streams[plan->first[i]].attr;
		if (attr->flags & TALLY_ATTR_FREQ)
			bytes += attr->sample_period * (RECORD_BYTES + attr->sample_stack_user) *
				 UNSEEN_MS / 1000;
		else if (attr->sample_period)
			return PLAN_RING_LARGEST;
		if (bytes >= PLAN_RING_LARGEST)
			return PLAN_RING_LARGEST;
	}
	uint64_t rounded = PLAN_RING_AT_RATE;
	while (rounded < bytes)
		rounded *= 2;
	return rounded;
}

uint64_t plan_ring_bytes(const struct plan *plan, uint32_t rings)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t bytes = wanted_bytes(plan), budget = mlock_budget(&plan->system) / rings;
	uint64_t share = PLAN_RINGS_LARGEST / rings;

	if (plan->opts.ring_bytes)
		return plan->opts.ring_bytes;
	while (bytes > PLAN_RING_SMALLEST && (bytes > share || bytes + page > budget))
		bytes /= 2;
	return bytes;
}

void plan_watermark(struct plan *plan, uint64_t ring_bytes)
{
	uint64_t bytes = plan->opts.watermark ? plan->opts.watermark : ring_bytes / 4;

	for (uint32_t i = 0; i < plan->streams_count; i++)
		plan->streams[i].attr.wakeup_events = (uint32_t)(bytes < UINT32_MAX ? bytes
										    : UINT32_MAX);
}

void plan_done(struct plan *plan)
{
	for (uint32_t g = 0; g < plan->groups_count; g++)
		parts_done(&plan->groups[g]);
	free(plan->groups);
	free(plan->events);
	free(plan->first);
	free(plan->streams);
	*plan = (struct plan){ 0 };
}
