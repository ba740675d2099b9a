/* SPDX-License-Identifier: MIT */
/* Side-band records into a tally_maps, and the times at which they changed something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/sideband.h"

#define KSYMBOL_GONE 1u /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */

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

/* Side-band that makes no sense is counted and left out; only a lack of memory ends the loading. */
static int tolerate(struct sideband *s, int r)
{
	if (r >= 0 || r == -ENOMEM)
		return r < 0 ? r : 0;
	s->senseless++;
	return 0;
}

void tell_clock(struct tally_symbolizer *symbolizer, const struct tally_reader *reader)
{
	const struct tally_reader_event *e = tally_reader_event(reader, 0);
	bool known = e && e->attr.flags & TALLY_ATTR_USE_CLOCKID;

	tally_symbolizer_clock(symbolizer, known ? (uint32_t)e->attr.clockid : UINT32_MAX);
}

static uint64_t side_band_time(const struct tally_record *rec)
{
	return rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : 0;
}

static int push_mmap(struct sideband *s, const struct tally_record *rec)
{
	const struct tally_record_mmap *m = &rec->mmap;
	uint32_t mode = rec->misc & TALLY_MISC_CPUMODE;
	bool kernel = mode == TALLY_MISC_KERNEL;
	struct tally_mapping map = {
		.start = m->addr,
		.end = m->addr + m->len,
		.pgoff = m->pgoff,
		.path = m->filename,
		.build_id = m->build_id,
		.build_id_len = m->build_id_size,
		.inode = m->ino,
		.dev_major = m->maj,
		.dev_minor = m->min,
	};

	if (mode == TALLY_MISC_GUEST_KERNEL || mode == TALLY_MISC_GUEST_USER)
		return 0;
	int32_t pid = kernel ? TALLY_MAPS_KERNEL : m->pid;
	uint64_t time = side_band_time(rec);
	int r = tally_maps_add(s->maps, pid, time, &map);
	return r < 0 ? tolerate(s, r) : maps_changed(s, pid, time);
}

/* Functions that the kernel makes while it runs. */
static int push_ksymbol(struct sideband *s, const struct tally_record *rec)
{
	const struct tally_record_ksymbol *k = &rec->ksymbol;
	uint64_t time = side_band_time(rec), end = k->addr + k->len;
	const struct tally_mapping map = {
		.start = k->addr,
		.end = end,
		.path = k->name,
		.flags = TALLY_MAPPING_SYMBOL,
	};
	bool gone = k->flags & KSYMBOL_GONE;
	int r = gone ? tally_maps_remove(s->maps, TALLY_MAPS_KERNEL, time, k->addr, end)
		     : tally_maps_add(s->maps, TALLY_MAPS_KERNEL, time, &map);

	return r < 0 ? tolerate(s, r) : maps_changed(s, TALLY_MAPS_KERNEL, time);
}

static int push_comm(struct sideband *s, const struct tally_record *rec)
{
	const struct tally_record_comm *c = &rec->comm;
	uint64_t time = side_band_time(rec);
	int r = tally_maps_comm(s->maps, c->pid, c->tid, time, c->comm, c->exec);

	if (r < 0)
		return tolerate(s, r);
	if (c->exec)
		r = maps_changed(s, c->pid, time);
	return r < 0 ? r : name_changed(s, c->tid, time);
}

static int push_fork(struct sideband *s, const struct tally_record *rec)
{
	const struct tally_record_task *t = &rec->task;

	/* Made up for a task that ran already; its own names and mappings follow. */
	if (rec->misc & TALLY_MISC_FORK_EXEC)
		return 0;
	int r = tally_maps_fork(s->maps, t->pid, t->tid, t->ppid, t->ptid, t->time);
	if (r < 0)
		return tolerate(s, r);
	if (t->pid != t->ppid)
		r = maps_changed(s, t->pid, t->time);
	return r < 0 ? r : name_changed(s, t->tid, t->time);
}

static int push_exit(struct sideband *s, const struct tally_record *rec)
{
	const struct tally_record_task *t = &rec->task;

	return tolerate(s, tally_maps_exit(s->maps, t->pid, t->tid, t->time));
}

int sideband_push(struct sideband *s, const struct tally_record *rec)
{
	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return push_mmap(s, rec);
	case TALLY_RECORD_KSYMBOL:
		return push_ksymbol(s, rec);
	case TALLY_RECORD_COMM:
		return push_comm(s, rec);
	case TALLY_RECORD_FORK:
		return push_fork(s, rec);
	case TALLY_RECORD_EXIT:
		return push_exit(s, rec);
	default:
		return 0;
	}
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
