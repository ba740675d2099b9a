/* SPDX-License-Identifier: MIT */
/*
 * Walking the records of a file. What decides here are header.type and header.size alone, and for
 * a few types a count of bytes that follow the record without being in its size.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/stream.h"

/* What is read at once stays in a core's second cache until it is decoded. */
#define BUFFER_SIZE (128u << 10)
/* header.size has 16 bits, but that of COMPRESSED2 was seen to overflow: take its own figure. */
#define RECORD_LIMIT (256u << 10)

/* Behind the known end, what has another type than these is taken for something else. */
#define LIKELY_TYPES 128

/* AUXTRACE and TRACING_DATA tell behind their header how much follows; COMPRESSED2 how much is in
 * it, before its bytes. */
#define FOLLOWING_AT RECORD_HEADER
#define PACKED2_AT   16u
/* What one write compresses is at most what is mapped of a ring. */
#define SLICES_LIMIT (1ull << 30)

int stream_init(struct stream *s, struct source *src)
{
	s->src = src;
	s->room = src->size < BUFFER_SIZE ? (size_t)src->size : BUFFER_SIZE;
	s->buf = malloc(s->room + 1);
	return s->buf ? 0 : -ENOMEM;
}

void stream_done(struct stream *s)
{
	free(s->buf);
}

/* Goes on at a position in the file; what the buffer has of it stays. */
static void seek(struct stream *s, uint64_t to)
{
	if (to >= s->offset && to - s->offset <= s->have) {
		s->at = (size_t)(to - s->offset);
		return;
	}
	s->offset = to;
	s->have = s->at = 0;
}

void stream_rewind(struct stream *s)
{
	s->skip = s->following = 0;
	s->count = 0;
	s->parts_end = 0;
	s->stopped = s->overflowed = false;
	seek(s, s->start);
}

void stream_next_source(struct stream *s, struct source *src)
{
	s->src = src;
	s->offset = s->start = 0;
	s->have = s->at = 0;
	s->skip = s->following = 0;
	s->end = src->size;
	s->sure_end = UINT64_MAX;
	s->parts_end = 0;
	s->stopped = s->exact = s->went_beyond = false;
}

uint64_t stream_position(const struct stream *s)
{
	return s->offset + s->at + s->skip;
}

/* Room behind what is in the buffer. 1; 0 when as much is held as may be; -ENOMEM. */
static int make_room(struct stream *s, struct tally_error *err)
{
	if (!s->hold) {
		memmove(s->buf, s->buf + s->at, s->have - s->at);
		s->offset += s->at;
		s->have -= s->at;
		s->at = 0;
	}
	if (s->have < s->room)
		return 1;
	if (!s->hold && s->room >= RECORD_LIMIT)
		return 0;
	s->overflowed = s->hold && s->room >= s->hold;
	if (s->overflowed)
		return 0;
	uint8_t *grown = realloc(s->buf, s->room * 2);
	if (!grown)
		return error_nomem(err, "records that have come");
	s->buf = grown;
	s->room *= 2;
	return 1;
}

/* The source has no more, which was known, or not. */
static void at_end(struct stream *s, uint64_t end)
{
	if (s->end != UINT64_MAX)
		source_complain(s->src,
				"became shorter while it was read: it ends at offset %" PRIu64,
				end);
	s->end = end;
	s->exact = false;
}

/* Reads on. 1, 0 when there is no more, or -errno. */
static int refill(struct stream *s, struct tally_error *err)
{
	int r = make_room(s, err);
	if (r <= 0)
		return r;
	uint64_t next = s->offset + s->have;
	size_t want = s->room - s->have;
	if (want > s->end - next)
		want = (size_t)(s->end - next);
	if (!want)
		return 0;
	int64_t n = source_take(s->src, s->buf + s->have, next, want);
	if (n < 0)
		return error_set(err, (int)n, TALLY_CAUSE_IO,
				 "%s: reading at offset %" PRIu64 " failed: %s", s->src->name, next,
				 strerror((int)-n));
	if (n == 0)
		at_end(s, next);
	s->have += (size_t)n;
	return n > 0;
}

static __attribute__((noinline)) int fetch(struct stream *s, size_t len, struct tally_error *err)
{
	while (s->have - s->at < len) {
		int r = refill(s, err);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Makes the next `len` bytes available. 1, 0 when fewer are left, or -errno. */
static inline int need(struct stream *s, size_t len, struct tally_error *err)
{
	return s->have - s->at >= len ? 1 : fetch(s, len, err);
}

int stream_need(struct stream *s, size_t len, struct tally_error *err)
{
	return need(s, len, err);
}

/* Ends the stream before what is no whole record. */
static int stop(struct stream *s)
{
	uint64_t at = stream_position(s);

	if (s->growing || s->overflowed)
		return 0;
	if (s->end > at && s->end != UINT64_MAX)
		source_complain(s->src,
				"ends with %" PRIu64 " bytes, at offset %" PRIu64
				", that are no whole record and left out",
				s->end - at, at);
	s->stopped = true;
	return 0;
}

static int damaged(struct stream *s, uint32_t type, uint64_t size, const char *expected,
		   struct tally_error *err)
{
	const char *name = tally_record_type_name(type);
	char number[24];

	snprintf(number, sizeof(number), "type %u", type);
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
			 "%s: record %" PRIu64 " (%s) at offset %" PRIu64 " has a size of %" PRIu64
			 " bytes, expected %s; the file is damaged from here on",
			 s->src->name, s->count + 1, name ? name : number, stream_position(s), size,
			 expected);
}

/* A record of that size is not there as a whole. */
static int cut(struct stream *s, uint32_t type, uint64_t size, struct tally_error *err)
{
	char expected[64];

	if (!s->exact || stream_position(s) >= s->sure_end)
		return stop(s);
	snprintf(expected, sizeof(expected), "at most the %" PRIu64 " that are left",
		 s->end - stream_position(s));
	return damaged(s, type, size, expected, err);
}

/* A size that cannot be. Blocks that a dead writer's file got but never filled read as zeros. */
static int too_small(struct stream *s, uint32_t type, uint32_t size, const char *expected,
		     struct tally_error *err)
{
	if (!s->exact && !load_u64(s->buf + s->at, false))
		return stop(s);
	return damaged(s, type, size, expected, err);
}

/* A COMPRESSED2 whose 16-bit size overflowed is one, or several of which all but the last have the
 * greatest size there is. The first has the figure of all, the others none (perf 6.16). 1 with
 * `*size`; 0 when nothing of that kind is there; or -errno. */
static int find_overflowed(struct stream *s, uint64_t bytes, uint32_t *size,
			   struct tally_error *err)
{
	uint64_t total = PACKED2_AT + bytes;
	int r = total > UINT16_MAX ? need(s, UINT16_MAX + RECORD_HEADER, err) : 0;

	if (r < 0)
		return r;
	const uint8_t *next = s->buf + s->at + UINT16_MAX;
	if (r > 0 && load_u32(next + RECORD_TYPE_AT, s->src->swapped) == TALLY_FILE_COMPRESSED2) {
		s->parts_end = s->offset + s->at + total;
		*size = UINT16_MAX;
		return 1;
	}
	*size = (uint32_t)total;
	return total > RECORD_LIMIT ? 0 : need(s, total, err);
}

static int measure_packed2(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	uint32_t whole = 0;
	int r = need(s, PACKED2_AT, err);

	if (r <= 0)
		return r < 0 ? r : cut(s, out->type, PACKED2_AT, err);
	uint64_t bytes = load_u64(s->buf + s->at + FOLLOWING_AT, s->src->swapped);
	bool told = s->offset + s->at >= s->parts_end;
	if (told && bytes < SLICES_LIMIT && align_up(PACKED2_AT + bytes, 8) > out->len) {
		r = find_overflowed(s, bytes, &whole, err);
		if (r < 0)
			return r;
		out->len = r ? whole : out->len;
	}
	if (out->len < PACKED2_AT)
		return too_small(s, out->type, out->len, "at least 16", err);
	out->packed_at = PACKED2_AT;
	out->packed = out->len - PACKED2_AT;
	if (told && bytes < out->packed)
		out->packed = (uint32_t)bytes;
	return 1;
}

static int measure_packed(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	if (out->len < RECORD_HEADER)
		return too_small(s, out->type, out->len, "at least 8", err);
	out->packed_at = RECORD_HEADER;
	out->packed = out->len - RECORD_HEADER;
	return 1;
}

/* AUXTRACE and TRACING_DATA tell of bytes that follow the record without being in its size. */
static int measure_following(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	const bool swapped = s->src->swapped, tracing = out->type == TALLY_FILE_TRACING_DATA;
	const uint32_t least = FOLLOWING_AT + (tracing ? sizeof(uint32_t) : sizeof(uint64_t));
	int r = need(s, least, err);

	if (r <= 0)
		return r < 0 ? r : cut(s, out->type, least, err);
	if (out->len < least)
		return too_small(s, out->type, out->len, tracing ? "at least 12" : "at least 16",
				 err);
	const uint8_t *at = s->buf + s->at + FOLLOWING_AT;
	uint64_t left = s->end - stream_position(s);
	uint64_t bytes = tracing ? align_up(load_u32(at, swapped), 8) : load_u64(at, swapped);
	if (bytes > left || out->len > left - bytes)
		return cut(s, out->type, bytes > UINT64_MAX - out->len ? bytes : bytes + out->len,
			   err);
	out->following = bytes;
	return 1;
}

/* The few types whose header.size is not all there is to know: 1 when the record was measured. */
static inline int measure(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	switch (out->type) {
	case TALLY_FILE_AUXTRACE:
	case TALLY_FILE_TRACING_DATA:
		return measure_following(s, out, err);
	case TALLY_FILE_COMPRESSED:
		return measure_packed(s, out, err);
	case TALLY_FILE_COMPRESSED2:
		return measure_packed2(s, out, err);
	default:
		return 1;
	}
}

/* Behind what the header tells of, a killed writer's records or anything else may stand. */
static bool goes_beyond(struct stream *s, uint32_t type, uint32_t size)
{
	if (size < RECORD_HEADER || size % 8 || !type || type >= LIKELY_TYPES)
		return false;
	if (!s->went_beyond)
		source_complain(s->src,
				"was not finished by its writer: its header tells of "
				"records up to offset %" PRIu64 ", there are more",
				s->sure_end);
	s->went_beyond = true;
	return true;
}

/* Steps over what follows the last record. 1, 0 when it is not all there, or -errno. */
static int pass(struct stream *s, uint64_t bytes, struct tally_error *err)
{
	if (!s->src->once) {
		seek(s, s->offset + s->at + bytes);
		s->skip -= bytes;
		return 1;
	}
	while (bytes) {
		int r = need(s, 1, err);
		if (r <= 0)
			return r;
		size_t n = s->have - s->at < bytes ? s->have - s->at : (size_t)bytes;
		s->at += n;
		s->skip -= n;
		bytes -= n;
	}
	return 1;
}

static int cut_behind(struct stream *s)
{
	if (!s->overflowed)
		source_complain(s->src,
				"is cut short: %" PRIu64 " of %" PRIu64 " bytes are "
				"missing that belong to the last record",
				s->skip, s->following);
	s->stopped = !s->overflowed;
	return 0;
}

int stream_next(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	int r;

	if (s->stopped)
		return 0;
	if (s->skip && (r = pass(s, s->skip, err)) <= 0)
		return r < 0 ? r : cut_behind(s);
	s->following = 0;
	r = need(s, RECORD_HEADER, err);
	if (r <= 0)
		return r < 0 ? r : stop(s);
	const uint8_t *at = s->buf + s->at;
	*out = (struct stream_record){
		.len = load_u16(at + RECORD_SIZE_AT, s->src->swapped),
		.type = load_u32(at + RECORD_TYPE_AT, s->src->swapped),
	};
	if (s->offset + s->at >= s->sure_end && !goes_beyond(s, out->type, out->len))
		return stop(s);
	r = measure(s, out, err);
	if (r <= 0)
		return r;
	if (out->len < RECORD_HEADER)
		return too_small(s, out->type, out->len, "at least 8", err);
	r = need(s, out->len, err);
	if (r <= 0)
		return r < 0 ? r : cut(s, out->type, out->len, err);
	out->bytes = s->buf + s->at;
	out->offset = s->offset + s->at;
	s->at += out->len;
	s->skip = s->following = out->following;
	s->count++;
	return 1;
}

int64_t stream_payload(struct stream *s, uint64_t within, void *to, size_t len)
{
	uint64_t passed = s->following - s->skip;

	if (within >= s->following)
		return 0;
	if (len > s->following - within)
		len = (size_t)(s->following - within);
	if (!s->src->once)
		return source_take(s->src, to, s->offset + s->at + within, len);
	if (within < passed)
		return -ESPIPE;
	int r = pass(s, within - passed, NULL);
	if (r > 0)
		r = need(s, 1, NULL);
	if (r <= 0)
		return r;
	size_t there = s->have - s->at;
	if (len > there)
		len = there;
	memcpy(to, s->buf + s->at, len);
	s->at += len;
	s->skip -= len;
	return (int64_t)len;
}
