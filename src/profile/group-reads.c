/* SPDX-License-Identifier: MIT */
/* Differences between the counts of groups. */
#include <errno.h>
#include <stdlib.h>

#include "profile/group-reads.h"

int group_reads_add(struct group_reads *g, const uint64_t *ids, uint32_t count, bool per_task)
{
	bool *added = vec_push(&g->per_task);

	if (!added)
		return -ENOMEM;
	*added = per_task;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *event = map64_at(&g->event_of, ids[i]);
		if (!event)
			return -ENOMEM;
		*event = (uint32_t)g->per_task.count;
	}
	return 0;
}

int group_reads_grown(struct group_reads *g, uint64_t id, int32_t tid, uint64_t count,
		      uint32_t *event, uint64_t *grown)
{
	uint32_t known = map64_get(&g->event_of, id);

	if (!known)
		return 0;
	*event = known - 1;
	uint64_t task = g->per_task.at[*event] ? (uint64_t)(uint32_t)tid + 1 : 0;
	uint32_t *place = map64_at(&g->place, hash_u64(hash_u64(id) + task));
	if (!place)
		return -ENOMEM;
	if (!*place) {
		if (!vec_push(&g->last))
			return -ENOMEM;
		*place = (uint32_t)g->last.count;
	}
	uint64_t *last = &g->last.at[*place - 1];
	/* Less than before: it was reset, or another task has the number by now. */
	*grown = count >= *last ? count - *last : count;
	*last = count;
	return 1;
}

void group_reads_done(struct group_reads *g)
{
	map64_done(&g->event_of);
	map64_done(&g->place);
	vec_done(&g->last);
	vec_done(&g->per_task);
}
