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
#include "base/sys.h"
#include "perfdata/stream.h"

#define BUFFER_SIZE (512u << 10)
/* header.size has 16 bits, but that of COMPRESSED2 was seen to overflow: take its own figure. */
#define RECORD_LIMIT (BUFFER_SIZE / 2)

/* Behind the known end, what has another type than these is taken for something else. */
#define LIKELY_TYPES 128

/* AUXTRACE and TRACING_DATA tell behind their header how much follows; COMPRESSED2 how much is in
 * it. */
#define FOLLOWING_AT RECORD_HEADER

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
	s->skip = 0;
	s->count = 0;
	s->stopped = false;
	seek(s, s->start);
}

uint64_t stream_position(const struct stream *s)
{
	return s->offset + s->at + s->skip;
}

/* Reads on. 1, 0 when there is no more, or -errno. */
static int refill(struct stream *s, struct tally_error *err)
{
	memmove(s->buf, s->buf + s->at, s->have - s->at);
	s->offset += s->at;
	s->have -= s->at;
	s->at = 0;
	uint64_t next = s->offset + s->have;
	size_t want = s->room - s->have;
	if (want > s->end - next)
		want = (size_t)(s->end - next);
	if (!want)
		return 0;
	ssize_t n;
	do
		n = sys()->pread(s->src->fd, s->buf + s->have, want, (off_t)next);
	while (n == -EINTR);
	if (n < 0)
		return error_set(err, (int)n, TALLY_CAUSE_IO,
				 "%s: reading at offset %" PRIu64 " failed: %s", s->src->name, next,
				 strerror((int)-n));
	if (n == 0) {
		source_complain(s->src,
				"became shorter while it was read: it ends at offset %" PRIu64,
				next);
		s->end = next;
		s->exact = false;
	}
	s->have += (size_t)n;
	return n > 0;
}

/* Makes the next `len` bytes available. 1, 0 when fewer are left, or -errno. */
static inline int need(struct stream *s, size_t len, struct tally_error *err)
{
	while (s->have - s->at < len) {
		int r = refill(s, err);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Ends the stream before what is no whole record. */
static int stop(struct stream *s)
{
	uint64_t at = stream_position(s);

	if (s->end > at)
		source_complain(s->src,
				"the last %" PRIu64 " bytes of the records, at offset %" PRIu64
				", are no whole record and left out",
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

/*
 * The few user records whose size is not all. Completes `*size` for COMPRESSED2, whose 16-bit size
 * overflows in files of perf 6.16, and finds what follows the record. Returns as stream_next.
 */
static int measure(struct stream *s, uint32_t type, uint32_t *size, uint64_t *following,
		   struct tally_error *err)
{
	const bool swapped = s->src->swapped, tracing = type == TALLY_FILE_TRACING_DATA;
	const uint32_t least = FOLLOWING_AT + (tracing ? sizeof(uint32_t) : sizeof(uint64_t));
	int r = need(s, least, err);

	if (r <= 0)
		return r < 0 ? r : cut(s, type, least, err);
	const uint8_t *at = s->buf + s->at + FOLLOWING_AT;
	uint64_t bytes = tracing ? align_up(load_u32(at, swapped), 8) : load_u64(at, swapped);
	bool packed = type == TALLY_FILE_COMPRESSED2;
	if (packed && bytes < RECORD_LIMIT && align_up(least + bytes, 8) > *size)
		*size = least + (uint32_t)bytes;
	if (*size < least)
		return too_small(s, type, *size, tracing ? "at least 12" : "at least 16", err);
	uint64_t left = s->end - stream_position(s);
	if (packed || (bytes <= left && *size <= left - bytes)) {
		*following = packed ? 0 : bytes;
		return 1;
	}
	return cut(s, type, bytes > UINT64_MAX - *size ? bytes : bytes + *size, err);
}

static bool has_more(uint32_t type)
{
	return type == TALLY_FILE_AUXTRACE || type == TALLY_FILE_TRACING_DATA ||
	       type == TALLY_FILE_COMPRESSED2;
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

int stream_next(struct stream *s, struct stream_record *out, struct tally_error *err)
{
	if (s->stopped)
		return 0;
	if (s->skip) {
		seek(s, stream_position(s));
		s->skip = 0;
	}
	int r = need(s, RECORD_HEADER, err);
	if (r <= 0)
		return r < 0 ? r : stop(s);
	const uint8_t *at = s->buf + s->at;
	uint32_t size = load_u16(at + RECORD_SIZE_AT, s->src->swapped);
	uint32_t type = load_u32(at + RECORD_TYPE_AT, s->src->swapped);
	if (s->offset + s->at >= s->sure_end && !goes_beyond(s, type, size))
		return stop(s);
	uint64_t following = 0;
	if (has_more(type) && (r = measure(s, type, &size, &following, err)) <= 0)
		return r;
	if (size < RECORD_HEADER)
		return too_small(s, type, size, "at least 8", err);
	r = need(s, size, err);
	if (r <= 0)
		return r < 0 ? r : cut(s, type, size, err);
	*out = (struct stream_record){ s->buf + s->at, s->offset + s->at, size, type };
	s->at += size;
	s->skip = following;
	s->count++;
	return 1;
}
