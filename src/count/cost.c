/* SPDX-License-Identifier: MIT */
/* What counters take, told before they are opened. */
#include <stdlib.h>

#include <tally/counter.h>

#include "base/error.h"
#include "count/options.h"
#include "count/parts.h"
#include "count/target.h"

/* A group, or an event alone: the descriptors at all places that it would be opened at. */
static int cost_of(struct tally_event *const *members, uint32_t count,
		   const struct tally_target *target, const char *root, uint64_t *fds,
		   struct tally_error *err)
{
	struct parts parts = { 0 };
	struct tally_place *list = NULL;
	uint32_t places;
	int r = parts_init(&parts, members, count, target, err);

	if (r == 0)
		r = target_places(target, false, root, &list, &places, err);
	if (r == 0)
		r = parts_spread(&parts, root, &list, &places, err);
	if (r == 0)
		*fds += parts_fds(&parts, list, places);
	/* The descriptor of the folder. */
	if (r == 0 && target->scope == TALLY_SCOPE_CGROUP)
		*fds += 1;
	free(list);
	parts_done(&parts);
	return r;
}

int tally_counter_cost(struct tally_events *events, const struct tally_target *target,
		       const struct tally_counter_opts *opts, uint64_t *fds,
		       struct tally_error *err)
{
	uint32_t count = tally_events_count(events);
	struct tally_counter_opts o;
	uint64_t sum = 0;
	int r = options_read(&o, opts, target, err);

	if (r < 0)
		return r;
	struct tally_event **list = calloc(count, sizeof(*list));
	if (!list)
		return error_nomem(err, "the events");
	for (uint32_t i = 0; i < count; i++)
		list[i] = tally_events_at(events, i);
	for (uint32_t i = 0; r == 0 && i < count; i += tally_event_group_size(list[i]))
		r = cost_of(&list[i], tally_event_group_size(list[i]), target, o.root, &sum, err);
	free(list);
	if (r == 0)
		*fds = sum;
	return r;
}
