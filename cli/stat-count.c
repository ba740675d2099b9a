/* SPDX-License-Identifier: MIT */
/* `tally stat`: opening, switching and reading all events on all targets. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stat.h"
#include "topology.h"

/* An event or a group on one target; one of the two is set. */
struct unit {
	uint32_t leader;
	struct tally_counter *counter;
	struct tally_group *group;
	uint32_t *keys;  /* by place, indices of the result's; NULL: all is summed ... */
	uint32_t key;    /* ... under this one */
	uint32_t places; /* that `keys` has */
};

/* One target of a unit, with what it has beside the others. */
struct aim {
	struct tally_target target;
	const struct tally_freeze *freeze;
	uint32_t cgroup;
};

struct stat_counters {
	struct unit *units;
	uint32_t count, room;
	struct tally_count *scratch; /* a group's counts; room for all events */
	/* Of each target, a process that is held still until counting begins; NULL: not held. */
	struct tally_freeze *freezes[MAX_TARGETS];
};

void moments_add(struct moments *m, double value)
{
	double off = value - m->mean;

	m->n++;
	m->last = value;
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
	free(unit->keys);
	*unit = (struct unit){ 0 };
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

static int no_memory(struct tally_error *err)
{
	*err = (struct tally_error){ -ENOMEM, TALLY_CAUSE_MEMORY, "no memory for the counters" };
	return -ENOMEM;
}

static uint32_t places_of(const struct unit *unit, const struct tally_place **places)
{
	return unit->group ? tally_group_places(unit->group, places)
			   : tally_counter_places(unit->counter, places);
}

/* Finds out what each place is summed for. */
static int find_keys(struct unit *unit, struct stat_result *result, uint32_t cgroup,
		     struct tally_error *err)
{
	const struct tally_place *places, none = { .tid = -1, .cpu = -1 };
	uint32_t count = places_of(unit, &places);

	if (result->by == BY_ALL) {
		const struct stat_key *key = stat_key_of(result, &none, cgroup);
		unit->key = key ? (uint32_t)(key - result->keys) : 0;
		return key ? 0 : no_memory(err);
	}
	unit->keys = calloc(count + 1, sizeof(*unit->keys));
	if (!unit->keys)
		return no_memory(err);
	unit->places = count;
	for (uint32_t p = 0; p < count; p++) {
		const struct stat_key *key = stat_key_of(result, &places[p], cgroup);
		if (!key)
			return no_memory(err);
		unit->keys[p] = (uint32_t)(key - result->keys);
	}
	return 0;
}

static uint32_t flags_of(const struct stat_options *options, const struct tally_target *target)
{
	uint32_t flags = options->no_inherit ? TALLY_COUNTER_NO_INHERIT : 0;

	if (options->no_stop && target->scope == TALLY_SCOPE_PROCESS)
		flags |= TALLY_COUNTER_NO_STOP;
	return flags;
}

static int open_unit(struct unit *unit, struct tally_events *events, const struct aim *aim,
		     struct stat_result *result, const struct stat_options *options,
		     struct tally_error *err)
{
	struct tally_event *event = tally_events_at(events, unit->leader);
	struct tally_counter_opts opts = {
		.size = sizeof(opts),
		.flags = flags_of(options, &aim->target),
		.freeze = aim->freeze,
	};
	int r;

	if (tally_event_group_size(event) > 1)
		r = tally_group_open(&unit->group, events, unit->leader, &aim->target, &opts, err);
	else
		r = tally_counter_open(&unit->counter, event, &aim->target, &opts, err);
	return r < 0 ? r : find_keys(unit, result, aim->cgroup, err);
}

/* The n-th target of a row; false beyond the last: the CPUs once for each of its cgroups. */
static bool nth_aim(struct aim *aim, uint32_t n, const struct stat_counters *counters,
		    const struct targets *targets, const struct stat_result *result, uint32_t row)
{
	uint32_t cgroup = result->rows[row].cgroup, each = cgroup == NO_CGROUP;

	*aim = (struct aim){ .cgroup = NO_CGROUP };
	if (!result->cgroup_count) {
		if (n < targets->count) {
			aim->target = targets->at[n];
			aim->freeze = counters->freezes[n];
		}
		return n < targets->count;
	}
	if (n >= (each ? result->cgroup_count : 1))
		return false;
	aim->cgroup = each ? n : cgroup;
	aim->target = targets->at[0];
	if (*result->cgroups[aim->cgroup]) {
		aim->target.scope = TALLY_SCOPE_CGROUP;
		aim->target.cgroup = result->cgroups[aim->cgroup];
	}
	return true;
}

static struct unit *add_unit(struct stat_counters *counters, uint32_t leader)
{
	if (counters->count == counters->room) {
		uint32_t room = counters->room ? 2 * counters->room : 16;
		void *more = realloc(counters->units, room * sizeof(*counters->units));
		if (!more)
			return NULL;
		counters->units = more;
		counters->room = room;
	}
	counters->units[counters->count] = (struct unit){ .leader = leader };
	return &counters->units[counters->count++];
}

/* Opens one leader on all targets, or on none. */
static int open_leader(struct stat_counters *counters, uint32_t leader, struct tally_events *events,
		       const struct targets *targets, struct stat_result *result,
		       const struct stat_options *options, struct tally_error *err)
{
	uint32_t first = counters->count;
	struct aim aim;
	int r = 0;

	for (uint32_t n = 0; r == 0 && nth_aim(&aim, n, counters, targets, result, leader); n++) {
		struct unit *unit = add_unit(counters, leader);
		r = unit ? open_unit(unit, events, &aim, result, options, err) : no_memory(err);
	}
	while (r < 0 && counters->count > first)
		close_unit(&counters->units[--counters->count]);
	return r;
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

/* CPUs are listed in order, also those where nothing could be opened. */
static bool list_cpus(struct stat_result *result, const struct targets *targets, uint32_t cgroup)
{
	const struct tally_target *target = &targets->at[0];
	int32_t *online = calloc(MAX_CPUS, sizeof(*online));
	const int32_t *cpus = target->cpu_count ? targets->cpus : online;
	uint32_t count = target->cpu_count;
	bool good = online && (count || topology_online(online, &count));

	for (uint32_t i = 0; good && i < count; i++) {
		const struct tally_place place = { .tid = -1, .cpu = cpus[i] };
		struct stat_key *key = stat_key_of(result, &place, cgroup);
		good = key;
		if (key)
			key->cpus++;
	}
	free(online);
	return good;
}

/* The keys of one cgroup, or of none. */
static bool list_keys_in(struct stat_result *result, const struct targets *targets, uint32_t cgroup)
{
	bool good = true;

	if (result->by == BY_ALL) {
		const struct tally_place place = { .tid = -1, .cpu = -1 };
		return stat_key_of(result, &place, cgroup);
	}
	if (result->by != BY_THREAD)
		return list_cpus(result, targets, cgroup);
	for (uint32_t t = 0; good && t < targets->count; t++) {
		const struct tally_place place = { .tid = targets->at[t].id, .cpu = -1 };
		good = stat_key_of(result, &place, cgroup);
	}
	return good;
}

/* The keys that are known before anything is open; those of an earlier run stay. */
static bool list_keys(struct stat_result *result, const struct targets *targets)
{
	bool good = true;

	if (result->key_count)
		return true;
	if (!result->cgroup_count)
		return list_keys_in(result, targets, NO_CGROUP);
	for (uint32_t c = 0; good && c < result->cgroup_count; c++)
		good = list_keys_in(result, targets, c);
	return good;
}

static void let_go(struct stat_counters *counters)
{
	for (uint32_t t = 0; t < MAX_TARGETS; t++) {
		tally_freeze_close(counters->freezes[t]);
		counters->freezes[t] = NULL;
	}
}

/*
 * Holds the processes still, so that all events are attached in one stop. What fails here fails for
 * each counter too, which says why.
 */
static void hold_still(struct stat_counters *counters, const struct targets *targets,
		       const struct stat_options *options)
{
	for (uint32_t t = 0; t < targets->count && !options->no_stop; t++)
		if (targets->at[t].scope == TALLY_SCOPE_PROCESS)
			tally_freeze_open(&counters->freezes[t], targets->at[t].id, NULL, NULL);
}

/* How many descriptors all events take, where the library told of those of one. */
static void tell_all_fds(const struct stat_result *result, struct tally_events *events,
			 const struct targets *targets, struct tally_error *err)
{
	struct tally_system system;
	uint64_t all = 0, one;

	for (uint32_t t = 0; t < targets->count; t++) {
		if (tally_counter_cost(events, &targets->at[t], NULL, &one, NULL) < 0)
			return;
		/* --for-each-cgroup; with -G each event is in one. */
		bool each = result->cgroup_count && result->rows[0].cgroup == NO_CGROUP;
		all += one * (each ? result->cgroup_count : 1);
	}
	tally_system_read(&system, sizeof(system), NULL, NULL);
	snprintf(err->text, sizeof(err->text),
		 "the events take %llu file descriptors, one for each thread and CPU, and this "
		 "process may have %llu (RLIMIT_NOFILE, hard limit %llu): fewer events or threads, "
		 "or 'sudo prlimit --nofile=%llu --pid $$' in the shell that starts it",
		 (unsigned long long)all, (unsigned long long)system.nofile_soft,
		 (unsigned long long)system.nofile_hard,
		 (unsigned long long)(system.nofile_hard + all));
}

static int open_all(struct stat_counters *counters, struct stat_result *result,
		    struct tally_events *events, const struct targets *targets,
		    const struct stat_options *options, struct tally_error *err)
{
	struct tally_error why;

	for (uint32_t i = 0; i < result->count;) {
		uint32_t end = i + tally_event_group_size(result->rows[i].event);
		int r = open_leader(counters, i, events, targets, result, options, &why);
		if (r < 0 && !is_missing(&why)) {
			*err = why;
			if (why.cause == TALLY_CAUSE_FD_LIMIT && why.code == -EMFILE)
				tell_all_fds(result, events, targets, err);
			return r;
		}
		for (; i < end; i++)
			result->rows[i].error = r < 0 ? why : (struct tally_error){ 0 };
	}
	return all_forbidden(counters, result, err);
}

int stat_open(struct stat_counters **out, struct stat_result *result, struct tally_events *events,
	      const struct targets *targets, const struct stat_options *options,
	      struct tally_error *err)
{
	struct stat_counters *counters = calloc(1, sizeof(*counters));
	int r = no_memory(err);

	if (!counters)
		goto fail;
	counters->scratch = calloc(result->count + 1, sizeof(*counters->scratch));
	if (!counters->scratch || !list_keys(result, targets))
		goto fail;
	hold_still(counters, targets, options);
	r = open_all(counters, result, events, targets, options, err);
	if (r < 0)
		goto fail;
	/* A process is held until its counters are enabled; what is enabled later need not wait. */
	if (options->delay_ms > 0)
		let_go(counters);
	*out = counters;
	return 0;
fail:
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
	int r = switch_all(counters, tally_counter_enable, tally_group_enable);

	let_go(counters);
	return r;
}

int stat_disable(struct stat_counters *counters)
{
	return switch_all(counters, tally_counter_disable, tally_group_disable);
}

/*
 * A thread has a place for each part of an event, and runs on one kind of core at a time: its parts
 * share the time that it was enabled.
 */
static void add_part(struct tally_count *sum, const struct tally_count *part)
{
	sum->raw += part->raw;
	sum->lost += part->lost;
	sum->running_ns += part->running_ns;
	sum->flags |= part->flags;
	if (part->enabled_ns > sum->enabled_ns)
		sum->enabled_ns = part->enabled_ns;
	if (!sum->error)
		sum->error = part->error;
	tally_count_settle(sum);
}

static void add_count(struct stat_cell *cell, const struct tally_count *count, enum stat_by by)
{
	if (!cell->places) {
		cell->now = *count;
		cell->places = 1;
	} else if (by == BY_THREAD) {
		add_part(&cell->now, count);
	} else {
		tally_count_add(&cell->now, count);
		cell->places++;
	}
}

/* Reads a unit at one place, or summed. */
static int read_unit(const struct stat_counters *counters, const struct unit *unit, uint32_t place)
{
	uint32_t size = unit->group ? tally_group_size(unit->group) : 1;

	if (!unit->keys && unit->group)
		return tally_group_read(unit->group, counters->scratch, size);
	if (!unit->keys)
		return tally_counter_read(unit->counter, counters->scratch);
	if (unit->group)
		return tally_group_read_place(unit->group, place, counters->scratch, size);
	return tally_counter_read_place(unit->counter, place, counters->scratch);
}

static int take_unit(const struct stat_counters *counters, const struct unit *unit,
		     struct stat_result *result)
{
	uint32_t size = unit->group ? tally_group_size(unit->group) : 1;
	uint32_t places = unit->keys ? unit->places : 1;

	for (uint32_t p = 0; p < places; p++) {
		int r = read_unit(counters, unit, p);
		if (r < 0)
			return r;
		struct stat_key *key = &result->keys[unit->keys ? unit->keys[p] : unit->key];
		for (uint32_t m = 0; m < size; m++)
			add_count(&key->cells[unit->leader + m], &counters->scratch[m], result->by);
	}
	return 0;
}

static void clear_now(struct stat_result *result)
{
	for (uint32_t k = 0; k < result->key_count; k++) {
		for (uint32_t i = 0; i < result->count; i++) {
			struct stat_cell *cell = &result->keys[k].cells[i];
			cell->places = 0;
			cell->now = (struct tally_count){ .error = result->rows[i].error.code };
			tally_count_settle(&cell->now);
		}
	}
}

int stat_read(struct stat_counters *counters, struct stat_result *result)
{
	int r = 0;

	clear_now(result);
	for (uint32_t i = 0; i < counters->count && r == 0; i++)
		r = take_unit(counters, &counters->units[i], result);
	return r;
}

static void explain_unit(struct stat_counters *counters, const struct unit *unit,
			 struct stat_result *result)
{
	uint32_t size = unit->group ? tally_group_size(unit->group) : 1;
	struct tally_count *counts = counters->scratch;
	struct tally_error why = { 0 };
	int r = unit->group ? tally_group_read(unit->group, counts, size)
			    : tally_counter_read(unit->counter, counts);

	if (r == 0)
		r = unit->group ? tally_group_explain(unit->group, counts, &why)
				: tally_counter_explain(unit->counter, counts, &why);
	for (uint32_t m = 0; m < size; m++) {
		struct stat_row *row = &result->rows[unit->leader + m];
		row->pieces = unit->group ? tally_group_pieces(unit->group) : 1;
		if (r < 0 && counts[m].state > TALLY_COUNT_SCALED && !row->why.code)
			row->why = why;
	}
}

void stat_explain(struct stat_counters *counters, struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		result->rows[i].why = (struct tally_error){ 0 };
	for (uint32_t i = 0; i < counters->count; i++)
		explain_unit(counters, &counters->units[i], result);
}

void stat_close(struct stat_counters *counters)
{
	if (!counters)
		return;
	let_go(counters);
	for (uint32_t i = 0; i < counters->count; i++)
		close_unit(&counters->units[i]);
	free(counters->units);
	free(counters->scratch);
	free(counters);
}

static void take_value(struct stat_cell *cell, const struct tally_count *count,
		       const struct tally_event *event)
{
	if (count->state <= TALLY_COUNT_SCALED)
		moments_add(&cell->value, (double)count->value * tally_event_scale(event));
}

void stat_take_run(struct stat_result *result)
{
	result->runs++;
	for (uint32_t k = 0; k < result->key_count; k++) {
		for (uint32_t i = 0; i < result->count; i++) {
			struct stat_cell *cell = &result->keys[k].cells[i];
			if (result->runs == 1)
				cell->sum = cell->now;
			else
				tally_count_add(&cell->sum, &cell->now);
			take_value(cell, &cell->now, result->rows[i].event);
		}
	}
}

void stat_take_interval(struct stat_result *result, double seconds)
{
	result->runs = 1;
	result->wall = (struct moments){ 0 };
	moments_add(&result->wall, seconds);
	for (uint32_t k = 0; k < result->key_count; k++) {
		for (uint32_t i = 0; i < result->count; i++) {
			struct stat_cell *cell = &result->keys[k].cells[i];
			const struct tally_event *event = result->rows[i].event;
			cell->sum = tally_event_snapshot(event)
					    ? cell->now
					    : tally_count_minus(&cell->now, &cell->before);
			cell->before = cell->now;
			cell->value = (struct moments){ 0 };
			take_value(cell, &cell->sum, event);
		}
	}
}

void stat_forget(struct stat_result *result)
{
	stat_keys_free(result);
	result->runs = 0;
	result->wall = result->user = result->sys = result->rss = (struct moments){ 0 };
}
