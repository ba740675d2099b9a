/* SPDX-License-Identifier: MIT */
/* Records that are no samples, among them, as perf script's --show-*-events print them. */
#include <inttypes.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "profile/script.h"

static void put_mmap(struct script *s, const struct tally_record *rec)
{
	const struct tally_record_mmap *m = &rec->mmap;
	struct out *o = &s->out;

	out_printf(o, " %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64, m->pid, m->tid, m->addr,
		   m->len, m->pgoff);
	if (rec->type == TALLY_RECORD_MMAP) {
		out_text(o, rec->misc & TALLY_MISC_MMAP_DATA ? "]: r " : "]: x ");
		out_plain(o, m->filename);
		return;
	}
	if (m->build_id_size) {
		out_text(o, " <");
		for (uint8_t i = 0; i < m->build_id_size; i++)
			out_hex(o, m->build_id[i], 2, '0');
		out_char(o, '>');
	} else {
		out_printf(o, " %02x:%02x %" PRIu64 " %" PRIu64, m->maj, m->min, m->ino,
			   m->ino_generation);
	}
	out_printf(o, "]: %c%c%c%c ", m->prot & PROT_READ ? 'r' : '-',
		   m->prot & PROT_WRITE ? 'w' : '-', m->prot & PROT_EXEC ? 'x' : '-',
		   m->flags & MAP_SHARED ? 's' : 'p');
	out_plain(o, m->filename);
}

static void put_comm(struct script *s, const struct tally_record *rec)
{
	out_text(&s->out, rec->comm.exec ? " exec: " : ": ");
	out_plain(&s->out, rec->comm.comm);
	out_printf(&s->out, ":%d/%d", rec->comm.pid, rec->comm.tid);
}

static void put_task(struct script *s, const struct tally_record *rec)
{
	out_printf(&s->out, "(%d:%d):(%d:%d)", rec->task.pid, rec->task.tid, rec->task.ppid,
		   rec->task.ptid);
}

static void put_lost(struct script *s, const struct tally_record *rec)
{
	out_printf(&s->out, " lost %" PRIu64, rec->lost.lost);
}

static void put_switch(struct script *s, const struct tally_record *rec)
{
	bool out = rec->misc & TALLY_MISC_SWITCH_OUT;

	out_text(&s->out, !out                                        ? " IN         "
			  : rec->misc & TALLY_MISC_SWITCH_OUT_PREEMPT ? " OUT preempt"
								      : " OUT        ");
	if (rec->type == TALLY_RECORD_SWITCH_CPU_WIDE)
		out_printf(&s->out, "  %s pid/tid: %5d/%-5d", out ? "next" : "prev", rec->who.pid,
			   rec->who.tid);
}

static void put_namespaces(struct script *s, const struct tally_record *rec)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	const struct tally_record_namespaces *n = &rec->namespaces;
	struct tally_namespace space;

	out_printf(&s->out, " %d/%d - nr_namespaces: %" PRIu64 "\n\t\t[", n->pid, n->tid, n->count);
	for (uint64_t i = 0; tally_record_namespace(rec, i, &space); i++) {
		if (i && i % 4 == 0)
			out_text(&s->out, "\n\t\t ");
		out_printf(&s->out, "%" PRIu64 "/%s: %" PRIu64 "/%#" PRIx64 "%s", i,
			   i < ARRAY_SIZE(names) ? names[i] : "unknown", space.dev, space.ino,
			   i + 1 < n->count ? ", " : "]");
	}
}

static void put_cgroup(struct script *s, const struct tally_record *rec)
{
	out_printf(&s->out, " cgroup: %" PRIu64 " ", rec->cgroup.id);
	out_plain(&s->out, rec->cgroup.path);
}

static void put_ksymbol(struct script *s, const struct tally_record *rec)
{
	const struct tally_record_ksymbol *k = &rec->ksymbol;

	out_printf(&s->out, " addr %" PRIx64 " len %u type %u flags 0x%x name ", k->addr, k->len,
		   k->kind, k->flags);
	out_plain(&s->out, k->name);
}

static void put_bpf(struct script *s, const struct tally_record *rec)
{
	out_printf(&s->out, " type %u, flags %u, id %u", rec->bpf.kind, rec->bpf.flags,
		   rec->bpf.id);
}

static const struct {
	void (*put)(struct script *s, const struct tally_record *rec);
} forms[] = {
	[TALLY_RECORD_MMAP] = { put_mmap },
	[TALLY_RECORD_MMAP2] = { put_mmap },
	[TALLY_RECORD_COMM] = { put_comm },
	[TALLY_RECORD_FORK] = { put_task },
	[TALLY_RECORD_EXIT] = { put_task },
	[TALLY_RECORD_LOST] = { put_lost },
	[TALLY_RECORD_LOST_SAMPLES] = { put_lost },
	[TALLY_RECORD_SWITCH] = { put_switch },
	[TALLY_RECORD_SWITCH_CPU_WIDE] = { put_switch },
	[TALLY_RECORD_NAMESPACES] = { put_namespaces },
	[TALLY_RECORD_CGROUP] = { put_cgroup },
	[TALLY_RECORD_KSYMBOL] = { put_ksymbol },
	[TALLY_RECORD_BPF_EVENT] = { put_bpf },
};

/* Whose name stands in front: the thread that the record is about. */
static int32_t subject(const struct tally_record *rec)
{
	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		return rec->mmap.tid;
	case TALLY_RECORD_COMM:
		return rec->comm.tid;
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT:
		return rec->task.tid;
	case TALLY_RECORD_NAMESPACES:
		return rec->namespaces.tid;
	default:
		return rec->id.tid;
	}
}

void script_other(struct script *s, const struct script_event *event,
		  const struct tally_record *rec)
{
	struct tally_record own = *rec;
	int32_t tid = subject(rec);

	/* Records of old files tell neither who nor when. */
	if (!(own.id.has & TALLY_SAMPLE_TID))
		own.id.pid = own.id.tid = tid;
	if (!(own.id.has & TALLY_SAMPLE_TIME) &&
	    (rec->type == TALLY_RECORD_FORK || rec->type == TALLY_RECORD_EXIT))
		own.id.time = rec->task.time;
	/* The child is there from the time in the record on, which is read a little later. */
	uint64_t when = sample_time(&own);
	if (rec->type == TALLY_RECORD_FORK && rec->task.time > when)
		when = rec->task.time;
	script_start(s, event, &own, tid, when);
	out_text(&s->out, "PERF_RECORD_");
	out_text(&s->out, tally_record_type_name(rec->type));
	if (rec->type < ARRAY_SIZE(forms) && forms[rec->type].put)
		forms[rec->type].put(s, rec);
	out_char(&s->out, '\n');
}
