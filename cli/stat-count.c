/* SPDX-License-Identifier: MIT */
/* `tally stat`: opening, switching and reading all events on all targets. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stat.h"

/* An event or a group on one target; one of the two is set. */
struct unit {
	uint32_t leader;
	struct tally_counter *counter;
	struct tally_group *group;
};

struct stat_counters {
	struct unit *units;
	uint32_t count;
	struct tally_count *scratch; /* a group's counts; room for all events */
};

void moments_add(struct moments *m, double value)
{
	double off = value - m->mean;

	m->n++;
	m->mean += off / (double)m->n;
	m->m2 += off * (value - m->mean);
}

double moments_percent(const struct moments *m)
{
	if (m->n < 2 || m->mean == 0)
		return 0;
	double variance = m->m2 / (double)(m->n - 1);
	return 100 * sqrt(variance / (double)m->n) / fabs(m->mean);
}

static void close_unit(struct unit *unit)
{
	tally_counter_close(unit->counter);
	tally_group_close(unit->group);
	unit->counter = NULL;
	unit->group = NULL;
}

/*
 * Whether to go on without an event: this machine does not have it, or this user may not count it,
 * as context switches where the kernel is forbidden.
 */
static bool is_missing(const struct tally_error *err)
{
	switch (err->cause) {
	case TALLY_CAUSE_NO_PMU:
	case TALLY_CAUSE_UNSUPPORTED:
	case TALLY_CAUSE_LIMIT:
	case TALLY_CAUSE_PARANOID:
	case TALLY_CAUSE_PERMISSION:
		return true;
	default:
		return false;
	}
}

static int open_unit(struct unit *unit, struct tally_events *events,
		     const struct tally_target *target, const struct stat_options *options,
		     struct tally_error *err)
{
	struct tally_event *event = tally_events_at(events, unit->leader);
	struct tally_counter_opts opts = {
		.size = sizeof(opts),
		.flags = options->no_inherit ? TALLY_COUNTER_NO_INHERIT : 0,
	};

	if (tally_event_group_size(event) > 1)
		return tally_group_open(&unit->group, events, unit->leader, target, &opts, err);
	return tally_counter_open(&unit->counter, event, target, &opts, err);
}

/* Opens one leader on all targets, or on none. */
static int open_leader(struct stat_counters *counters, uint32_t leader, struct tally_events *events,
		       const struct targets *targets, const struct stat_options *options,
		       struct tally_error *err)
{
	uint32_t first = counters->count;

	for (uint32_t t = 0; t < targets->count; t++) {
		struct unit *unit = &counters->units[counters->count];
		*unit = (struct unit){ .leader = leader };
		int r = open_unit(unit, events, &targets->at[t], options, err);
		if (r < 0) {
			while (counters->count > first)
				close_unit(&counters->units[--counters->count]);
			return r;
		}
		counters->count++;
	}
	return 0;
}

/* The reason of the first event that this user may not count, when there is no other event. */
static int all_forbidden(const struct stat_counters *counters, const struct stat_result *result,
			 struct tally_error *err)
{
	for (uint32_t i = 0; i < result->count && !counters->count; i++) {
		const struct tally_error *why = &result->rows[i].error;
		if (why->cause == TALLY_CAUSE_PARANOID || why->cause == TALLY_CAUSE_PERMISSION) {
			*err = *why;
			return why->code;
		}
	}
	return 0;
}

int stat_open(struct stat_counters **out, struct stat_result *result, struct tally_events *events,
	      const struct targets *targets, const struct stat_options *options,
	      struct tally_error *err)
{
	struct stat_counters *counters = calloc(1, sizeof(*counters));
	struct tally_error why;
	int r = -ENOMEM;

	if (!counters)
		goto fail;
	counters->units = calloc((size_t)result->count * targets->count + 1, sizeof(struct unit));
	counters->scratch = calloc(result->count + 1, sizeof(*counters->scratch));
	if (!counters->units || !counters->scratch)
		goto fail;
	for (uint32_t i = 0; i < result->count;) {
		uint32_t members = tally_event_group_size(result->rows[i].event);
		r = open_leader(counters, i, events, targets, options, &why);
		if (r < 0 && !is_missing(&why)) {
			*err = why;
			goto fail;
		}
		for (uint32_t end = i + members; i < end; i++)
			result->rows[i].error = r < 0 ? why : (struct tally_error){ 0 };
	}
	r = all_forbidden(counters, result, err);
	if (r < 0)
		goto fail;
	*out = counters;
	return 0;
fail:
	if (!counters || !counters->units || !counters->scratch)
		*err = (struct tally_error){ r, TALLY_CAUSE_MEMORY, "no memory for the counters" };
	stat_close(counters);
	return r;
}

static int switch_all(struct stat_counters *counters, int (*counter)(struct tally_counter *),
		      int (*group)(struct tally_group *))
{
	int first = 0;

	for (uint32_t i = 0; i < counters->count; i++) {
		struct unit *unit = &counters->units[i];
		int r = unit->group ? group(unit->group) : counter(unit->counter);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

int stat_enable(struct stat_counters *counters)
{
	return switch_all(counters, tally_counter_enable, tally_group_enable);
}

int stat_disable(struct stat_counters *counters)
{
	return switch_all(counters, tally_counter_disable, tally_group_disable);
}

static int read_unit(const struct stat_counters *counters, const struct unit *unit, uint32_t *size)
{
	*size = unit->group ? tally_group_size(unit->group) : 1;
	if (unit->group)
		return tally_group_read(unit->group, counters->scratch, *size);
	return tally_counter_read(unit->counter, counters->scratch);
}

int stat_read(struct stat_counters *counters, struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		struct tally_count *now = &result->rows[i].now;
		*now = (struct tally_count){ .error = result->rows[i].error.code };
		tally_count_settle(now);
	}
	for (uint32_t i = 0; i < counters->count; i++) {
		const struct unit *unit = &counters->units[i];
		uint32_t size;
		int r = read_unit(counters, unit, &size);
		if (r < 0)
			return r;
		for (uint32_t m = 0; m < size; m++)
			tally_count_add(&result->rows[unit->leader + m].now, &counters->scratch[m]);
	}
	return 0;
}

void stat_close(struct stat_counters *counters)
{
	if (!counters)
		return;
	for (uint32_t i = 0; i < counters->count; i++)
		close_unit(&counters->units[i]);
	free(counters->units);
	free(counters->scratch);
	free(counters);
}

void stat_take_run(struct stat_result *result)
{
	result->runs++;
	for (uint32_t i = 0; i < result->count; i++) {
		struct stat_row *row = &result->rows[i];
		if (result->runs == 1)
			row->sum = row->now;
		else
			tally_count_add(&row->sum, &row->now);
		if (row->now.state <= TALLY_COUNT_SCALED)
			moments_add(&row->value,
				    (double)row->now.value * tally_event_scale(row->event));
	}
}
