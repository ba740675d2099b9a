/* SPDX-License-Identifier: MIT */
/* Side-band records into a tally_maps, and the times at which they changed something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/sideband.h"

struct task *sideband_task(struct sideband *s, int32_t id)
{
	uint32_t *known = map64_at(&s->task_of, (uint32_t)id);

	if (!known)
		return NULL;
	if (!*known) {
		struct task *added = vec_push(&s->tasks);
		if (!added)
			return NULL;
		added->id = id;
		*known = (uint32_t)s->tasks.count;
	}
	return &s->tasks.at[*known - 1];
}

static int name_changed(struct sideband *s, int32_t tid, uint64_t time)
{
	struct task *task = sideband_task(s, tid);

	return task && changes_add(&task->names, time) ? 0 : -ENOMEM;
}

static int maps_changed(struct sideband *s, int32_t pid, uint64_t time)
{
	struct task *task = sideband_task(s, pid);

	return task && changes_add(&task->maps, time) ? 0 : -ENOMEM;
}

void tell_clock(struct tally_symbolizer *symbolizer, struct tally_unwinder *unwinder,
		const struct tally_reader *reader)
{
	const struct tally_reader_event *e = tally_reader_event(reader, 0);
	bool known = e && e->attr.flags & TALLY_ATTR_USE_CLOCKID;

	uint32_t clock = known ? (uint32_t)e->attr.clockid : UINT32_MAX;

	tally_symbolizer_clock(symbolizer, clock);
	if (unwinder)
		tally_unwinder_clock(unwinder, clock);
}

/* What a record of mappings, names and tasks has changed. */
static int changed(struct sideband *s, const struct tally_record *rec)
{
	uint64_t time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : 0;
	const struct tally_record_task *t = &rec->task;
	int r = 0;

	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		if ((rec->misc & TALLY_MISC_CPUMODE) == TALLY_MISC_KERNEL)
			return maps_changed(s, TALLY_MAPS_KERNEL, time);
		return maps_changed(s, rec->mmap.pid, time);
	case TALLY_RECORD_KSYMBOL:
		return maps_changed(s, TALLY_MAPS_KERNEL, time);
	case TALLY_RECORD_COMM:
		if (rec->comm.exec)
			r = maps_changed(s, rec->comm.pid, time);
		return r < 0 ? r : name_changed(s, rec->comm.tid, time);
	case TALLY_RECORD_FORK:
		if (t->pid != t->ppid)
			r = maps_changed(s, t->pid, t->time);
		return r < 0 ? r : name_changed(s, t->tid, t->time);
	default:
		return 0;
	}
}

/* Side-band that makes no sense is counted and left out; only a lack of memory ends the loading. */
int sideband_push(struct sideband *s, const struct tally_record *rec)
{
	int r = tally_maps_push(s->maps, rec);

	if (r == -ENOMEM)
		return r;
	s->senseless += r < 0;
	return r > 0 ? changed(s, rec) : 0;
}

int sideband_epoch(struct sideband *s, int32_t pid, uint64_t time, struct epoch *out)
{
	struct task *task = sideband_task(s, TALLY_MAPS_KERNEL);

	if (!task)
		return -ENOMEM;
	out->kernel = changes_epoch(&task->maps, time);
	task = sideband_task(s, pid);
	if (!task)
		return -ENOMEM;
	out->process = changes_epoch(&task->maps, time);
	int64_t made = tally_symbolizer_epoch(s->symbolizer, pid, time);
	if (made < 0)
		return (int)made;
	out->process += (uint32_t)made;
	return 0;
}

const char *sideband_name(struct sideband *s, int32_t tid, uint64_t time, char room[16])
{
	const char *name = tally_maps_name(s->maps, tid, time);

	if (name)
		return name;
	if (tid == 0)
		return "swapper"; /* the idle tasks, as the kernel calls them */
	snprintf(room, 16, ":%d", tid);
	return room;
}

void sideband_done(struct sideband *s)
{
	vec_each (&s->tasks, task) {
		changes_done(&task->names);
		changes_done(&task->maps);
	}
	vec_done(&s->tasks);
	map64_done(&s->task_of);
}
