/* SPDX-License-Identifier: MIT */
/* Events that are scheduled together: opened below their leader, switched and read through it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "count/counter.h"
#include "count/fast.h"
#include "count/group.h"
#include "count/never-ran.h"

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

static int open_views(struct tally_group *group, struct tally_error *err)
{
	group->views = calloc(group->set.members, sizeof(*group->views));
	if (!group->views)
		return error_nomem(err, "a group");
	for (uint32_t i = 0; i < group->set.members; i++)
		group->views[i] = (struct tally_counter){ .set = &group->set, .member = i };
	return 0;
}

int tally_group_open(struct tally_group **out, struct tally_events *events, uint32_t leader,
		     const struct tally_target *target, const struct tally_counter_opts *opts,
		     struct tally_error *err)
{
	struct tally_event **members = NULL;
	uint32_t count = 0;
	struct tally_group *group = calloc(1, sizeof(*group));

	if (!group)
		return error_nomem(err, "a group");
	int r = find_members(events, leader, &members, &count, err);
	if (r == 0)
		r = set_open(&group->set, members, count, target, opts, err);
	if (r == 0)
		r = open_views(group, err);
	free(members);
	if (r < 0)
		goto fail;
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
	set_close(&group->set);
	free(group->views);
	measured_free(group->measured);
	free(group);
}

uint32_t tally_group_size(const struct tally_group *group)
{
	return group->set.members;
}

struct tally_counter *tally_group_member(struct tally_group *group, uint32_t i)
{
	return i < group->set.members ? &group->views[i] : NULL;
}

int tally_group_enable(struct tally_group *group)
{
	return set_enable(&group->set);
}

int tally_group_disable(struct tally_group *group)
{
	return set_disable(&group->set);
}

int tally_group_reset(struct tally_group *group)
{
	return set_reset(&group->set);
}

int tally_group_read(struct tally_group *group, struct tally_count *counts, uint32_t room)
{
	if (room < group->set.members)
		return -ENOSPC;
	int r = set_read(&group->set);
	if (r == 0)
		memcpy(counts, group->set.counts, group->set.members * sizeof(*counts));
	return r;
}

int tally_group_read_place(struct tally_group *group, uint32_t place, struct tally_count *counts,
			   uint32_t room)
{
	if (room < group->set.members)
		return -ENOSPC;
	int r = set_read_place(&group->set, place);
	if (r == 0)
		memcpy(counts, group->set.counts, group->set.members * sizeof(*counts));
	return r;
}

uint32_t tally_group_places(const struct tally_group *group, const struct tally_place **places)
{
	if (places)
		*places = group->set.pieces[0].places;
	return group->set.pieces[0].places_count;
}

bool tally_group_start_exact(const struct tally_group *group)
{
	return set_start_exact(&group->set);
}

int tally_group_split(struct tally_group *group, uint32_t members_each, struct tally_error *err)
{
	if (!members_each)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a group cannot be split into groups of no members");
	return set_reopen(&group->set, members_each, err);
}

uint32_t tally_group_pieces(const struct tally_group *group)
{
	return group->set.pieces_count;
}

bool tally_group_is_split(const struct tally_group *group)
{
	return group->set.pieces_count > 1;
}

int tally_group_explain(const struct tally_group *group, const struct tally_count *counts,
			struct tally_error *err)
{
	return never_ran_explain(&group->set, 0, group->set.members, counts, err);
}

int tally_group_fast(struct tally_group *group, uint32_t member, struct tally_fast *out,
		     struct tally_error *err)
{
	uint32_t index;

	if (member >= group->set.members)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the group has %u members, and %u is none of them",
				 group->set.members, member);
	struct opened *o = set_piece(&group->set, member, &index);
	return fast_open(o, index, out, err);
}
