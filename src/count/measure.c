/* SPDX-License-Identifier: MIT */
/* Counting what a function does, and what counting itself adds to that. */
#include <errno.h>
#include <stdlib.h>
#include <tally/measure.h>

#include "count/group.h"

/* The first ones run into cold code and caches; the least of them is the undisturbed one. */
#define EMPTY_RUNS 16

/* By whether the group is enabled all the time. */
struct overhead {
	bool known;
	uint64_t *values;
};

struct measured {
	struct tally_count *before, *after;
	struct overhead overheads[2];
};

static int prepare(struct tally_group *group)
{
	size_t members = group->set.members;

	if (group->measured)
		return 0;
	struct measured *m = calloc(1, sizeof(*m));
	struct tally_count *counts = calloc(2 * members, sizeof(*counts));
	uint64_t *values = calloc(2 * members, sizeof(*values));
	if (!m || !counts || !values) {
		free(values);
		free(counts);
		free(m);
		return -ENOMEM;
	}
	m->before = counts;
	m->after = counts + members;
	m->overheads[0].values = values;
	m->overheads[1].values = values + members;
	group->measured = m;
	return 0;
}

void measured_free(struct measured *measured)
{
	if (!measured)
		return;
	free(measured->before);
	free(measured->overheads[0].values);
	free(measured);
}

static int run_enabled(struct tally_group *group, void (*fn)(void *), void *arg)
{
	int r = tally_group_read(group, group->measured->before, group->set.members);

	if (r < 0)
		return r;
	fn(arg);
	return tally_group_read(group, group->measured->after, group->set.members);
}

/* The reads are outside of what is counted. */
static int run_disabled(struct tally_group *group, void (*fn)(void *), void *arg)
{
	int r = tally_group_read(group, group->measured->before, group->set.members);

	if (r < 0)
		return r;
	r = tally_group_enable(group);
	if (r < 0) {
		/* Some of several places may have been enabled. */
		tally_group_disable(group);
		return r;
	}
	fn(arg);
	r = tally_group_disable(group);
	return r < 0 ? r : tally_group_read(group, group->measured->after, group->set.members);
}

static int run(struct tally_group *group, void (*fn)(void *), void *arg)
{
	int r = prepare(group);

	if (r < 0)
		return r;
	return set_is_on(&group->set) ? run_enabled(group, fn, arg) : run_disabled(group, fn, arg);
}

static struct tally_count difference(const struct tally_group *group, uint32_t member)
{
	return tally_count_minus(&group->measured->after[member], &group->measured->before[member]);
}

static bool is_below(const struct tally_count *count, const struct overhead *overhead,
		     uint32_t member)
{
	return overhead->known && count->value && count->value <= overhead->values[member];
}

int tally_measure(struct tally_group *group, void (*fn)(void *arg), void *arg,
		  struct tally_result *results, uint32_t room)
{
	bool enabled = set_is_on(&group->set);

	if (room < group->set.members)
		return -ENOSPC;
	int r = run(group, fn, arg);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < group->set.members; i++) {
		results[i] = (struct tally_result){
			.label = tally_event_name(group->set.events[i]),
			.unit = tally_event_unit(group->set.events[i]),
			.scale = tally_event_scale(group->set.events[i]),
			.count = difference(group, i),
		};
		if (is_below(&results[i].count, &group->measured->overheads[enabled], i))
			results[i].count.flags |= TALLY_COUNT_BELOW_OVERHEAD;
	}
	return 0;
}

static void do_nothing(void *arg)
{
	(void)arg;
}

int tally_count_overhead(struct tally_group *group, uint64_t *values, uint32_t room)
{
	uint32_t members = group->set.members;

	if (room < members)
		return -ENOSPC;
	int r = prepare(group);
	if (r < 0)
		return r;
	struct overhead *overhead = &group->measured->overheads[set_is_on(&group->set)];
	for (int n = 0; !overhead->known && n < EMPTY_RUNS; n++) {
		r = run(group, do_nothing, NULL);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < members; i++) {
			uint64_t value = difference(group, i).value;
			if (n == 0 || value < overhead->values[i])
				overhead->values[i] = value;
		}
	}
	overhead->known = true;
	for (uint32_t i = 0; i < members; i++)
		values[i] = overhead->values[i];
	return 0;
}
