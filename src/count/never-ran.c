/* SPDX-License-Identifier: MIT */
/*
 * Why an event counted nothing. The kernel says no more than that an event was enabled and did not
 * run, so this weighs what is known: how long it was, who competes for counters, where it may run.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <tally/system.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/never-ran.h"

/*
 * Events that share counters take turns of this length: perf_event_mux_interval_ms of their PMU,
 * PERF_CPU_HRTIMER by default.
 */
#define TURN_NS 4000000u

/* What a reading is weighed by. */
struct doubt {
	const struct set *set;
	uint32_t member;
	const struct tally_count *count;
	struct tally_error *err;
	const char *name, *watchdog;
	int64_t online_cpus; /* TALLY_SYSTEM_UNKNOWN where it is not known */
};

/* Software and probes have no counters that they could lack. */
static bool needs_counter(const struct tally_event *event)
{
	static const uint32_t soft[] = { TALLY_TYPE_SOFTWARE, TALLY_TYPE_TRACEPOINT,
					 TALLY_TYPE_BREAKPOINT };
	static const char *const pmus[] = { "software", "tracepoint", "breakpoint",
					    "kprobe",   "uprobe",     "msr" };
	struct tally_event_part part = { .pmu = "" };

	tally_event_part(event, 0, &part);
	for (size_t i = 0; i < ARRAY_SIZE(soft); i++)
		if (part.attr.type == soft[i])
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++)
		if (!strcmp(part.pmu, pmus[i]))
			return false;
	return true;
}

static int explain_error(const struct doubt *d)
{
	int code = d->count->error ? d->count->error : -EIO;

	if (code == -EBUSY)
		return error_set(d->err, code, TALLY_CAUSE_BUSY,
				 "the pinned event '%s' found no counter free, and stopped: other "
				 "pinned events hold them%s; end other profilers or pin fewer "
				 "events, then enable it again",
				 d->name, d->watchdog);
	return error_set(d->err, code, TALLY_CAUSE_IO,
			 code == -EIO ? "what the kernel tells of its group lacks '%s': it was "
					"closed or has left the group (%s)"
				      : "'%s' cannot be read: %s",
			 d->name, strerror(-code));
}

static int explain_short(const struct doubt *d)
{
	return error_set(d->err, -EAGAIN, TALLY_CAUSE_LIMIT,
			 "'%s' was enabled for %" PRIu64 " us only, less than a turn on the "
			 "counters takes (%u ms): measure for longer",
			 d->name, d->count->enabled_ns / 1000, TURN_NS / 1000000);
}

static int explain_elsewhere(const struct doubt *d)
{
	uint32_t index;
	const struct opened *o = set_piece(d->set, d->member, &index);
	const struct tally_place *at = &o->places[0];

	if (o->places_count == 1 && at->cpu >= 0)
		return error_set(d->err, -ENODATA, TALLY_CAUSE_NO_PROCESS,
				 "'%s' was enabled, but what it counts did not run on CPU %d: "
				 "count it on any CPU, or where it runs",
				 d->name, at->cpu);
	return error_set(d->err, -ENODATA, TALLY_CAUSE_NO_PROCESS,
			 "'%s' was enabled, but what it counts did not run meanwhile: let it work "
			 "while it is measured",
			 d->name);
}

static int explain_other_cpus(const struct doubt *d, const struct tally_event_part *part)
{
	return error_set(
		d->err, -ENODATA, TALLY_CAUSE_UNSUPPORTED,
		"'%s' counts on %u CPUs of its PMU %s alone (the first is CPU %d): its "
		"target ran on others; use an event that all CPUs have, or bind the target "
		"to these",
		d->name, part->cpu_count, part->pmu, part->cpus[0]);
}

static int explain_contention(const struct doubt *d)
{
	uint32_t index, rivals = 0;
	const struct opened *o = set_piece(d->set, d->member, &index);
	uint32_t first = d->member - index;

	for (uint32_t i = first; i < first + o->members; i++)
		rivals += needs_counter(d->set->events[i]);
	if (rivals > 1)
		return error_set(d->err, -ENOSPC, TALLY_CAUSE_LIMIT,
				 "the group of '%s' was never counted: its %u hardware events need "
				 "more counters at the same time than are free%s; use smaller "
				 "groups, or let it be split (tally_group_split, modifier W)",
				 d->name, rivals, d->watchdog);
	return error_set(d->err, -EBUSY, TALLY_CAUSE_BUSY,
			 "'%s' was never counted: others hold the counters that it can use%s; end "
			 "other profilers, or count fewer events at a time",
			 d->name, d->watchdog);
}

static int explain_doubt(const struct doubt *d)
{
	const struct tally_event *event = d->set->events[d->member];
	struct tally_event_part part = { .pmu = "" };

	if (d->count->state == TALLY_COUNT_ERROR)
		return explain_error(d);
	if (!needs_counter(event))
		return explain_elsewhere(d);
	if (d->count->enabled_ns < TURN_NS)
		return explain_short(d);
	tally_event_part(event, 0, &part);
	/* A PMU of the cores lists its CPUs also where it has all (arm64). */
	if (tally_event_parts(event) == 1 && part.cpu_count && part.cpu_count < d->online_cpus)
		return explain_other_cpus(d, &part);
	return explain_contention(d);
}

int never_ran_explain(const struct set *s, uint32_t first, uint32_t count,
		      const struct tally_count *counts, struct tally_error *err)
{
	struct tally_system system;

	for (uint32_t i = 0; i < count; i++) {
		if (counts[i].state < TALLY_COUNT_NEVER_RAN)
			continue;
		bool known = tally_system_read(&system, sizeof(system), s->opts.root, NULL) == 0;
		bool watchdog = known && system.nmi_watchdog == 1;
		struct doubt d = {
			.set = s,
			.member = first + i,
			.count = &counts[i],
			.err = err,
			.name = tally_event_name(s->events[first + i]),
			.online_cpus = known ? system.online_cpus : TALLY_SYSTEM_UNKNOWN,
			.watchdog = watchdog ? " (kernel.nmi_watchdog=1 takes one: 'sudo sysctl "
					       "kernel.nmi_watchdog=0' frees it)"
					     : "",
		};
		return explain_doubt(&d);
	}
	return 0;
}
