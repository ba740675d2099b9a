/* SPDX-License-Identifier: MIT */
/*
 * Ids, processes and names in records are where perf_event_open(2) puts them; everything is loaded
 * and stored in the file's byte order.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "perfdata/layout.h"
#include "perfdata/patch.h"

/* What stands in a sample up to its ids, and in the sample_id that ends other records; a word each. */
static const uint64_t sample_order[] = {
	TALLY_SAMPLE_IDENTIFIER, TALLY_SAMPLE_IP, TALLY_SAMPLE_TID,       TALLY_SAMPLE_TIME,
	TALLY_SAMPLE_ADDR,       TALLY_SAMPLE_ID, TALLY_SAMPLE_STREAM_ID,
};
static const uint64_t tail_order[] = {
	TALLY_SAMPLE_TID,       TALLY_SAMPLE_TIME, TALLY_SAMPLE_ID,
	TALLY_SAMPLE_STREAM_ID, TALLY_SAMPLE_CPU,  TALLY_SAMPLE_IDENTIFIER,
};

#define ANY_ID (TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID)

/* Where pids and tids are in the bodies of records, and ids; 0: no more. */
static const struct {
	uint32_t type;
	uint8_t pids[4], ids[2];
} bodies[] = {
	{ TALLY_RECORD_MMAP, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_MMAP2, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_COMM, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_FORK, { 8, 12, 16, 20 }, { 0 } },
	{ TALLY_RECORD_EXIT, { 8, 12, 16, 20 }, { 0 } },
	{ TALLY_RECORD_READ, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_ITRACE_START, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_SWITCH_CPU_WIDE, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_NAMESPACES, { 8, 12 }, { 0 } },
	{ TALLY_RECORD_LOST, { 0 }, { 8 } },
	{ TALLY_RECORD_THROTTLE, { 0 }, { 16, 24 } },
	{ TALLY_RECORD_UNTHROTTLE, { 0 }, { 16, 24 } },
	{ TALLY_FILE_EVENT_UPDATE, { 0 }, { 16 } },
};

struct change {
	const struct patch *patch;
	const struct tally_layout *layout;
	const struct tally_record *rec;
	uint8_t *out;
	size_t len;
};

static void shift_id(const struct change *c, size_t at)
{
	uint64_t id = at + 8 <= c->len ? load_u64(c->out + at, c->layout->swapped) : 0;

	if (id)
		store_u64(c->out + at, id + c->patch->id_shift, c->layout->swapped);
}

static void shift_pid(const struct change *c, size_t at)
{
	int32_t pid = at + 4 <= c->len ? (int32_t)load_u32(c->out + at, c->layout->swapped) : 0;

	if (pid > 0)
		store_u32(c->out + at, (uint32_t)(pid + c->patch->pid_shift), c->layout->swapped);
}

static void shift_words(const struct change *c, size_t at, const uint64_t *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!(c->layout->sample_type & order[i]))
			continue;
		if (order[i] & ANY_ID)
			shift_id(c, at);
		if (order[i] == TALLY_SAMPLE_TID) {
			shift_pid(c, at);
			shift_pid(c, at + 4);
		}
		at += 8;
	}
}

static void shift_body(const struct change *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		if (bodies[i].type != c->rec->type)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(bodies[i].pids) && bodies[i].pids[j]; j++)
			shift_pid(c, bodies[i].pids[j]);
		for (size_t j = 0; j < ARRAY_SIZE(bodies[i].ids) && bodies[i].ids[j]; j++)
			shift_id(c, bodies[i].ids[j]);
	}
}

/* Counts of READ records and samples: [nr] [enabled] [running] { value [id] [lost] }, or, alone,
 * value [enabled] [running] [id] [lost]. */
static void shift_counts(const struct change *c, const struct tally_record_counts *counts)
{
	const uint64_t format = counts->format;
	const size_t times = !!(format & TALLY_READ_TIME_ENABLED) +
			     !!(format & TALLY_READ_TIME_RUNNING);
	const bool group = format & TALLY_READ_GROUP;
	const size_t each = group ? 2 + !!(format & TALLY_READ_LOST) : 0;

	if (!(format & TALLY_READ_ID) || !counts->block)
		return;
	size_t first = (size_t)((const uint8_t *)counts->block - (const uint8_t *)c->rec->bytes) +
		       (1 + times + group) * 8;
	for (uint64_t i = 0; i < (group ? counts->count : 1) && first < c->len; i++)
		shift_id(c, first + i * each * 8);
}

static void shift(const struct change *c)
{
	size_t tail = tally_layout_id_size(c->layout);

	shift_body(c);
	if (c->rec->type == TALLY_RECORD_SAMPLE) {
		shift_words(c, RECORD_HEADER, sample_order, ARRAY_SIZE(sample_order));
		shift_counts(c, &c->rec->sample.counts);
	} else if (c->rec->type < RECORD_USER && tail <= c->len - RECORD_HEADER) {
		shift_words(c, c->len - tail, tail_order, ARRAY_SIZE(tail_order));
	}
	if (c->rec->type == TALLY_RECORD_READ)
		shift_counts(c, &c->rec->read.counts);
}

static void zero(const struct change *c, const void *from, uint64_t len)
{
	if (!from || !len)
		return;
	memset(c->out + ((const uint8_t *)from - (const uint8_t *)c->rec->bytes), 0, len);
}

/* Of a tracepoint's payload, the type says which it is, and the pid, whose. */
#define RAW_COMMON 8u

/* Chains by frame pointers go astray and take words of the stack for addresses, which may be text. No
 * machine has user addresses beyond 56 bits; kernels' have the top bit. */
static void blank_chain(const struct change *c)
{
	const struct tally_record_sample *s = &c->rec->sample;

	for (uint64_t i = 0; i < s->chain_len; i++) {
		const uint8_t *at = (const uint8_t *)s->chain + i * 8;
		uint64_t address = load_u64(at, c->layout->swapped);
		if (address >> 56 && !(address >> 63))
			zero(c, at, 8);
	}
}

static void blank(const struct change *c)
{
	const struct tally_record_sample *s = &c->rec->sample;

	if (c->rec->type != TALLY_RECORD_SAMPLE)
		return;
	if (s->raw_len > RAW_COMMON)
		zero(c, (const uint8_t *)s->raw + RAW_COMMON, s->raw_len - RAW_COMMON);
	blank_chain(c);
	zero(c, s->stack, s->stack_len);
	zero(c, s->regs_user.values,
	     8 * (uint64_t)__builtin_popcountll(s->regs_user.mask) * !!s->regs_user.abi);
	zero(c, s->regs_intr.values,
	     8 * (uint64_t)__builtin_popcountll(s->regs_intr.mask) * !!s->regs_intr.abi);
}

static const char *text_of(const struct tally_record *rec, uint32_t *kind)
{
	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		*kind = TALLY_REWRITE_PATH;
		return rec->mmap.filename;
	case TALLY_RECORD_COMM:
		*kind = TALLY_REWRITE_COMM;
		return rec->comm.comm;
	case TALLY_RECORD_CGROUP:
		*kind = TALLY_REWRITE_CGROUP;
		return rec->cgroup.path;
	default:
		return NULL;
	}
}

/* Puts `len` bytes and zeros up to `padded` in the place of those from `at` up to `end`. */
static int splice(struct change *c, size_t at, size_t end, const void *bytes, size_t len,
		  size_t padded)
{
	if (c->len - (end - at) + padded > UINT16_MAX)
		return -E2BIG;
	memmove(c->out + at + padded, c->out + end, c->len - end);
	memcpy(c->out + at, bytes, len);
	memset(c->out + at + len, 0, padded - len);
	c->len = c->len - (end - at) + padded;
	store_u16(c->out + RECORD_SIZE_AT, (uint16_t)c->len, c->layout->swapped);
	return 0;
}

static int rename_text(struct change *c)
{
	uint32_t kind;
	const char *old = text_of(c->rec, &kind);
	const char *name = old ? c->patch->rename(kind, old, c->patch->arg) : NULL;
	size_t at = (size_t)(old - (const char *)c->rec->bytes);
	size_t tail = tally_layout_id_size(c->layout);

	if (!name || at + tail > c->len)
		return 0;
	size_t len = strlen(name);
	/* PATH_MAX and more: no name that was thought of. */
	if (len >= UINT16_MAX / 2)
		return -E2BIG;
	return splice(c, at, c->len - tail, name, len, align_up(at + len + 1, 8) - at);
}

/* A sample begins with it, other records end in it; those of old files have no sample_id at all. */
static int insert_identifier(struct change *c, uint64_t id)
{
	uint8_t word[8];

	store_u64(word, id, c->layout->swapped);
	if (c->rec->type == TALLY_RECORD_SAMPLE)
		return splice(c, RECORD_HEADER, RECORD_HEADER, word, 8, 8);
	if (c->rec->type < RECORD_USER && c->layout->sample_id_all)
		return splice(c, c->len, c->len, word, 8, 8);
	return 0;
}

bool patch_changes(const struct patch *p)
{
	return p->id_shift || p->pid_shift || p->blank || p->rename;
}

int patch_record(const struct patch *p, const struct tally_layout *layout,
		 const struct tally_record *rec, uint64_t identify, uint8_t *out)
{
	struct change c = {
		.patch = p, .layout = layout, .rec = rec, .out = out, .len = rec->size
	};
	int r = 0;

	memcpy(out, rec->bytes, rec->size);
	if (p->id_shift || p->pid_shift)
		shift(&c);
	if (p->blank)
		blank(&c);
	if (p->rename)
		r = rename_text(&c);
	if (r == 0 && identify)
		r = insert_identifier(&c, identify);
	return r < 0 ? r : (int)c.len;
}
