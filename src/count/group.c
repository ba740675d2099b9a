/* SPDX-License-Identifier: MIT */
/* Events that are scheduled together: opened below their leader, switched and read through it. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "count/fast.h"
#include "count/group.h"

/* The members are the leader and what follows it in the list. */
static int find_members(struct tally_events *events, uint32_t leader, struct tally_event ***members,
			uint32_t *count, struct tally_error *err)
{
	struct tally_event *first = tally_events_at(events, leader);

	if (!first || tally_event_leader(first) != leader)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "event %u leads no group: the list has %u events", leader,
				 tally_events_count(events));
	*count = tally_event_group_size(first);
	*members = calloc(*count, sizeof(struct tally_event *));
	if (!*members)
		return error_nomem(err, "a group");
	for (uint32_t i = 0; i < *count; i++)
		(*members)[i] = tally_events_at(events, leader + i);
	return 0;
}

int tally_group_open(struct tally_group **out, struct tally_events *events, uint32_t leader,
		     const struct tally_target *target, const struct tally_counter_opts *opts,
		     struct tally_error *err)
{
	uint32_t count = 0;
	struct tally_group *group = calloc(1, sizeof(*group));

	if (!group)
		return error_nomem(err, "a group");
	int r = find_members(events, leader, &group->events, &count, err);
	if (r < 0)
		goto fail;
	group->counts = calloc(count, sizeof(*group->counts));
	r = group->counts ? opened_open(&group->opened, group->events, count, target, opts, err)
			  : error_nomem(err, "a group");
	if (r < 0)
		goto fail;
	group->enabled = opts && opts->flags & TALLY_COUNTER_ENABLED;
	*out = group;
	return 0;
fail:
	tally_group_close(group);
	return r;
}

void tally_group_close(struct tally_group *group)
{
	if (!group)
		return;
	opened_close(&group->opened);
	measured_free(group->measured);
	free(group->counts);
	free(group->events);
	free(group);
}

uint32_t tally_group_size(const struct tally_group *group)
{
	return group->opened.members;
}

int tally_group_enable(struct tally_group *group)
{
	int r = opened_ioctl(&group->opened, PERF_EVENT_IOC_ENABLE);

	if (r == 0)
		group->enabled = true;
	return r;
}

int tally_group_disable(struct tally_group *group)
{
	int r = opened_ioctl(&group->opened, PERF_EVENT_IOC_DISABLE);

	if (r == 0)
		group->enabled = false;
	return r;
}

int tally_group_reset(struct tally_group *group)
{
	return opened_reset(&group->opened);
}

int tally_group_read(struct tally_group *group, struct tally_count *counts, uint32_t room)
{
	if (room < group->opened.members)
		return -ENOSPC;
	int r = opened_read(&group->opened, group->counts);
	if (r == 0)
		memcpy(counts, group->counts, group->opened.members * sizeof(*counts));
	return r;
}

int tally_group_fast(struct tally_group *group, uint32_t member, struct tally_fast *out,
		     struct tally_error *err)
{
	return fast_open(&group->opened, member, out, err);
}
