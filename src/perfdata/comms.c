/* SPDX-License-Identifier: MIT */
/*
 * Names of threads over time. Records of different CPUs are not in order of time in a file, so they
 * are gathered first, and a name is looked for by thread and time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/comms.h"

/* A thread has its name from its parent, which may have it from its own: no further than this. */
#define FORKS_MAX 64

int comms_see(struct comms *c, const struct tally_record *rec)
{
	struct comms_change change = { .time = rec->id.time, .parent = -1 };

	if (rec->type == TALLY_RECORD_COMM) {
		change.tid = rec->comm.tid;
		change.name = strings_add(&c->names, rec->comm.comm);
		if (change.name == UINT32_MAX)
			return -ENOMEM;
	} else if (rec->type == TALLY_RECORD_FORK && rec->task.tid != rec->task.ptid &&
		   !(rec->misc & TALLY_MISC_FORK_EXEC)) {
		change.tid = rec->task.tid;
		change.parent = rec->task.ptid;
		change.time = rec->task.time ? rec->task.time : rec->id.time;
	} else {
		return 0;
	}
	struct comms_change *slot = vec_push(&c->changes);
	if (!slot)
		return -ENOMEM;
	change.order = (uint32_t)c->changes.count;
	*slot = change;
	c->sorted = false;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct comms_change *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* The last change of the thread up to the time; else its first, if that is a name. */
static const struct comms_change *find(const struct comms *c, int32_t tid, uint64_t time)
{
	size_t low = 0, high = c->changes.count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct comms_change *at = &c->changes.at[mid];
		if (at->tid < tid || (at->tid == tid && at->time <= time))
			low = mid + 1;
		else
			high = mid;
	}
	if (low && c->changes.at[low - 1].tid == tid)
		return &c->changes.at[low - 1];
	/* Overwritten rings tell it behind what needs it. */
	if (low < c->changes.count && c->changes.at[low].tid == tid)
		return &c->changes.at[low];
	return NULL;
}

const char *comms_find(struct comms *c, int32_t tid, uint64_t time)
{
	if (!c->sorted && c->changes.count)
		qsort(c->changes.at, c->changes.count, sizeof(*c->changes.at), compare);
	c->sorted = true;
	for (int i = 0; i < FORKS_MAX; i++) {
		const struct comms_change *at = find(c, tid, time);
		if (!at)
			return NULL;
		if (at->parent < 0)
			return strings_get(&c->names, at->name);
		tid = at->parent;
		time = at->time;
	}
	return NULL;
}

void comms_done(struct comms *c)
{
	strings_done(&c->names);
	vec_done(&c->changes);
}
