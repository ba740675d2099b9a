/* SPDX-License-Identifier: MIT */
/* Side-band records into maps. */
#include <tally/maps.h>

#define KSYMBOL_GONE 1u /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */

static uint64_t time_of(const struct tally_record *rec)
{
	return rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : 0;
}

static int push_mmap(struct tally_maps *maps, const struct tally_record *rec)
{
	const struct tally_record_mmap *m = &rec->mmap;
	uint32_t mode = rec->misc & TALLY_MISC_CPUMODE;
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
	int r = tally_maps_add(maps, mode == TALLY_MISC_KERNEL ? TALLY_MAPS_KERNEL : m->pid,
			       time_of(rec), &map);
	return r < 0 ? r : 1;
}

/* Functions that the kernel makes while it runs. */
static int push_ksymbol(struct tally_maps *maps, const struct tally_record *rec)
{
	const struct tally_record_ksymbol *k = &rec->ksymbol;
	uint64_t end = k->addr + k->len;
	const struct tally_mapping map = {
		.start = k->addr,
		.end = end,
		.path = k->name,
		.flags = TALLY_MAPPING_SYMBOL,
	};
	int r = k->flags & KSYMBOL_GONE
			? tally_maps_remove(maps, TALLY_MAPS_KERNEL, time_of(rec), k->addr, end)
			: tally_maps_add(maps, TALLY_MAPS_KERNEL, time_of(rec), &map);

	return r < 0 ? r : 1;
}

static int push_fork(struct tally_maps *maps, const struct tally_record *rec)
{
	const struct tally_record_task *t = &rec->task;

	/* Made up for a task that ran already; its own names and mappings follow. */
	if (rec->misc & TALLY_MISC_FORK_EXEC)
		return 0;
	int r = tally_maps_fork(maps, t->pid, t->tid, t->ppid, t->ptid, t->time);
	return r < 0 ? r : 1;
}

int tally_maps_push(struct tally_maps *maps, const struct tally_record *rec)
{
	const struct tally_record_comm *c = &rec->comm;
	int r;

	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return push_mmap(maps, rec);
	case TALLY_RECORD_KSYMBOL:
		return push_ksymbol(maps, rec);
	case TALLY_RECORD_COMM:
		r = tally_maps_comm(maps, c->pid, c->tid, time_of(rec), c->comm, c->exec);
		return r < 0 ? r : 1;
	case TALLY_RECORD_FORK:
		return push_fork(maps, rec);
	case TALLY_RECORD_EXIT:
		r = tally_maps_exit(maps, rec->task.pid, rec->task.tid, rec->task.time);
		return r < 0 ? r : 1;
	default:
		return 0;
	}
}
