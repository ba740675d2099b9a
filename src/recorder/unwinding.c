/* SPDX-License-Identifier: MIT */
/* Samples with copies of stacks into samples with callchains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "recorder/unwinding.h"

/* Records are at most 65,528 bytes long. */
#define RECORD_ROOM 65536
#define OUT_ROOM    (4 * RECORD_ROOM)

/* As many as fit into a record. */
#define MOST_ADDRESSES (RECORD_ROOM / sizeof(uint64_t))

/* Records of mappings and tasks, of which each takes a kilobyte at most. */
#define MOST_SEEN 200000

/* Where a sample has its id, when events have different layouts. */
#define ID_AT sizeof(struct tally_record_header)

/* A stretch of records that may wrap in its ring. */
struct stretch {
	const struct iovec *spans;
	int count;
	uint64_t total;
};

static struct stretch stretch_of(const struct iovec *spans, int count)
{
	struct stretch s = { spans, count, 0 };

	for (int i = 0; i < count; i++)
		s.total += spans[i].iov_len;
	return s;
}

/* `len` bytes from `at` on: where they lie, or put together in `room`. */
static const char *bytes_at(const struct stretch *s, uint64_t at, size_t len, char *room)
{
	const struct iovec *first = &s->spans[0];

	if (at + len <= first->iov_len)
		return (const char *)first->iov_base + at;
	if (at >= first->iov_len)
		return (const char *)s->spans[1].iov_base + (at - first->iov_len);
	size_t here = first->iov_len - at;
	memcpy(room, (const char *)first->iov_base + at, here);
	memcpy(room + here, s->spans[1].iov_base, len - here);
	return room;
}

/* The header of the record at `at`; false: there is no whole record. */
static bool header_at(const struct stretch *s, uint64_t at, struct tally_record_header *out)
{
	char room[sizeof(*out)];

	if (s->total - at < sizeof(*out))
		return false;
	memcpy(out, bytes_at(s, at, sizeof(*out), room), sizeof(*out));
	return out->size >= sizeof(*out) && out->size % 8 == 0 && out->size <= s->total - at;
}

static int begin_anew(struct unwinding *u, struct tally_error *err)
{
	const struct tally_unwinder_opts opts = { .size = sizeof(opts), .root = u->root };

	tally_unwinder_free(u->unwinder);
	tally_maps_free(u->maps);
	u->unwinder = NULL;
	u->maps = NULL;
	u->seen = 0;
	map64_done(&u->asked);
	if (tally_maps_new(&u->maps) < 0)
		return error_nomem(err, "unwinding");
	int r = tally_unwinder_new(&u->unwinder, u->maps, &opts, err);
	if (r == 0)
		tally_unwinder_clock(u->unwinder, u->clockid);
	return r;
}

int unwinding_open(struct unwinding *u, const struct tally_sampler *sampler,
		   const struct tally_events *events, const char *root, struct tally_error *err)
{
	const struct tally_attr *attr = tally_sampler_attr(sampler, 0);
	bool chosen = attr->flags & TALLY_ATTR_USE_CLOCKID;

	*u = (struct unwinding){
		.sampler = sampler,
		.root = root,
		.clockid = chosen ? (uint32_t)attr->clockid : UINT32_MAX,
	};
	for (uint32_t i = 0; i < tally_events_count(events); i++) {
		const uint64_t *ids;
		uint32_t count = tally_sampler_ids(sampler, i, &ids);
		for (uint32_t k = 0; k < count; k++) {
			uint32_t *slot = map64_at(&u->layouts, ids[k]);
			if (!slot)
				return error_nomem(err, "the events' ids");
			*slot = i + 1;
		}
	}
	u->addresses = malloc(MOST_ADDRESSES * sizeof(*u->addresses));
	u->record = malloc(RECORD_ROOM);
	u->out = malloc(OUT_ROOM);
	if (!u->addresses || !u->record || !u->out)
		return error_nomem(err, "unwinding");
	return begin_anew(u, err);
}

static bool names_memory(uint32_t type)
{
	return type == TALLY_RECORD_MMAP || type == TALLY_RECORD_MMAP2 ||
	       type == TALLY_RECORD_COMM || type == TALLY_RECORD_FORK;
}

int unwinding_see(struct unwinding *u, const struct iovec *spans, int count,
		  struct tally_error *err)
{
	struct stretch s = stretch_of(spans, count);
	struct tally_record_header header;
	struct tally_record rec;

	for (uint64_t at = 0; header_at(&s, at, &header); at += header.size) {
		if (!names_memory(header.type))
			continue;
		const char *bytes = bytes_at(&s, at, header.size, u->record);
		/* All records of all events tell their ids at the same places. */
		if (tally_record_decode(tally_sampler_layout(u->sampler, 0), bytes, header.size,
					&rec, sizeof(rec)) > 0 &&
		    tally_maps_push(u->maps, &rec) == -ENOMEM)
			return error_nomem(err, "the mappings of what is recorded");
		u->seen++;
	}
	if (u->seen < MOST_SEEN)
		return 0;
	u->forgot = true;
	return begin_anew(u, err);
}

/*
 * The mappings of a process that runs, when they were forgotten. One that is gone has none.
 * -ENOMEM.
 */
static int ask(struct unwinding *u, const struct tally_record *rec)
{
	uint32_t *asked = map64_at(&u->asked, (uint32_t)rec->id.pid);
	uint64_t time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : 0;

	if (!asked)
		return -ENOMEM;
	if (*asked)
		return 0;
	*asked = 1;
	int r = tally_maps_add_process(u->maps, rec->id.pid, time, u->root, NULL);
	return r == -ENOMEM ? r : 0;
}

static const struct tally_layout *layout_of(const struct unwinding *u, const char *bytes,
					    size_t len)
{
	const struct tally_layout *first = tally_sampler_layout(u->sampler, 0);

	if (!(first->sample_type & TALLY_SAMPLE_IDENTIFIER) || len < ID_AT + sizeof(uint64_t))
		return first;
	uint32_t event = map64_get(&u->layouts, load_u64(bytes + ID_AT, false));
	return event ? tally_sampler_layout(u->sampler, event - 1) : first;
}

static void count(struct tally_stacks *s, const struct tally_unwound *how)
{
	switch (how->end) {
	case TALLY_UNWIND_WHOLE:
		s->whole++;
		return;
	case TALLY_UNWIND_CUT:
		s->cut++;
		s->cut_beyond += !how->stack_bytes;
		if (how->stack_bytes > s->wanted_bytes)
			s->wanted_bytes = how->stack_bytes;
		return;
	default:
		s->broken++;
		return;
	}
}

/* Entries of the kernel's chain before its part in user mode, moved to where the new one begins. */
static uint64_t take_kernel_part(struct unwinding *u, const struct tally_record *rec)
{
	uint64_t n = 0;

	while (n < rec->sample.chain_len && n + 2 < MOST_ADDRESSES &&
	       tally_sample_ip(rec, n) != TALLY_CONTEXT_USER) {
		u->addresses[n] = tally_sample_ip(rec, n);
		n++;
	}
	u->addresses[n++] = TALLY_CONTEXT_USER;
	return n;
}

/* Writes the sample with its callchain to `to`; its size, or 0: it stays as it is. -ENOMEM. */
static int unwind(struct unwinding *u, const struct tally_layout *layout, const char *bytes,
		  size_t len, char *to)
{
	struct tally_record rec;
	struct tally_unwound how;

	if (tally_record_decode(layout, bytes, len, &rec, sizeof(rec)) < 0 ||
	    !rec.sample.regs_user.abi || !rec.sample.stack)
		return 0;
	if (u->forgot && ask(u, &rec) < 0)
		return -ENOMEM;
	uint64_t n = take_kernel_part(u, &rec);
	/* One is left for the mark. */
	uint32_t room = (uint32_t)(MOST_ADDRESSES - n - 1);
	int r = tally_unwinder_sample(u->unwinder, &rec, u->addresses + n, room, &how);
	if (r <= 0)
		return r == -ENOMEM ? r : 0;
	/* The program has yet to write what unwinds its code: reports can read it. */
	if (how.untold)
		how.end = TALLY_UNWIND_BROKEN;
	count(&u->stacks, &how);
	if (how.end != TALLY_UNWIND_WHOLE && how.end != TALLY_UNWIND_CUT)
		return 0;
	n += how.frames;
	if (how.end == TALLY_UNWIND_CUT)
		u->addresses[n++] = TALLY_CONTEXT_USER;
	else
		rec.sample.regs_user.abi = 0;
	rec.sample.chain = u->addresses;
	rec.sample.chain_len = n;
	rec.sample.stack = NULL;
	rec.sample.stack_len = rec.sample.stack_dyn_size = 0;
	r = tally_record_encode(layout, &rec, to, RECORD_ROOM);
	return r < 0 ? 0 : r;
}

static int flush(struct unwinding *u, unwinding_sink *sink, void *arg, struct tally_error *err)
{
	const struct iovec span = { u->out, u->len };
	int r = u->len ? sink(arg, &span, 1, err) : 0;

	u->len = 0;
	return r;
}

int unwinding_pass(struct unwinding *u, const struct iovec *spans, int count_of_spans,
		   unwinding_sink *sink, void *arg, struct tally_error *err)
{
	struct stretch s = stretch_of(spans, count_of_spans);
	struct tally_record_header header;
	uint64_t at = 0;
	int r = 0;

	for (; r == 0 && header_at(&s, at, &header); at += header.size) {
		const char *bytes = bytes_at(&s, at, header.size, u->record);
		int made = 0;
		if (header.type == TALLY_RECORD_SAMPLE)
			made = unwind(u, layout_of(u, bytes, header.size), bytes, header.size,
				      u->out + u->len);
		if (made < 0)
			return error_nomem(err, "unwinding");
		if (!made)
			memcpy(u->out + u->len, bytes, header.size);
		u->len += made ? (size_t)made : header.size;
		if (OUT_ROOM - u->len < RECORD_ROOM)
			r = flush(u, sink, arg, err);
	}
	if (r == 0)
		r = flush(u, sink, arg, err);
	if (r < 0 || at == s.total)
		return r;
	/* Its first bytes are enough for that. */
	size_t rest = s.total - at < sizeof(header) ? (size_t)(s.total - at) : sizeof(header);
	char room[sizeof(header)];
	struct iovec span = { room, rest };
	memmove(room, bytes_at(&s, at, rest, room), rest);
	return sink(arg, &span, 1, err);
}

void unwinding_done(struct unwinding *u)
{
	tally_unwinder_free(u->unwinder);
	tally_maps_free(u->maps);
	map64_done(&u->layouts);
	map64_done(&u->asked);
	free(u->addresses);
	free(u->record);
	free(u->out);
	*u = (struct unwinding){ 0 };
}
