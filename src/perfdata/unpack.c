/* SPDX-License-Identifier: MIT */
/*
 * perf record -z: the records of the rings, and only they, go through one zstd stream for the
 * whole file, which is cut into slices of less than 64 KiB. What comes out is taken piece by piece
 * through a buffer of fixed size, however much a slice may hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/unpack.h"

#define BUFFER_SIZE (256u << 10)

/* Where the writer does not tell how much it had mapped: far more than perf ever maps. */
#define SLICE_LIMIT (256u << 20)

/* perf compresses at levels up to 22, whose windows have 128 MiB. */
#define WINDOW_LOG 27

static int start(struct unpack *u)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();

	u->zstd = zstd;
	u->buf = malloc(BUFFER_SIZE);
	if (!u->zstd || !u->buf)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG);
	return 0;
}

int unpack_feed(struct unpack *u, const struct stream_record *packed)
{
	if (!u->zstd && start(u) < 0)
		return -ENOMEM;
	u->in = packed->bytes + packed->packed_at;
	u->in_len = packed->packed;
	u->in_at = 0;
	u->offset = packed->offset;
	u->slice_out = 0;
	u->flushed = false;
	return 0;
}

static int damaged(const struct unpack *u, struct tally_error *err, const char *what)
{
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
			 "%s: the compressed record at offset %" PRIu64 ", after %" PRIu64
			 " records that were compressed: %s; the file is "
			 "damaged from here on",
			 u->src->name, u->offset, u->count, what);
}

static int inner_damage(const struct unpack *u, struct tally_error *err, uint32_t type,
			uint32_t size, const char *expected)
{
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
			 "%s: record %" PRIu64
			 " (type %u) of those that are compressed, in the one "
			 "at offset %" PRIu64 ", has a size of %u bytes, expected %s; the file is "
			 "damaged from here on",
			 u->src->name, u->count + 1, type, u->offset, size, expected);
}

/* Gets more out of the slice. 1, 0 when there is no more in it, or -EBADMSG. */
static int inflate_more(struct unpack *u, struct tally_error *err)
{
	ZSTD_inBuffer in = { u->in, u->in_len, u->in_at };

	memmove(u->buf, u->buf + u->at, u->have - u->at);
	u->have -= u->at;
	u->at = 0;
	if (u->flushed)
		return 0;
	ZSTD_outBuffer out = { u->buf, BUFFER_SIZE, u->have };
	size_t r = ZSTD_decompressStream(u->zstd, &out, &in);
	if (ZSTD_isError(r))
		return damaged(u, err, ZSTD_getErrorName(r));
	u->flushed = in.pos == in.size && out.pos < out.size;
	u->slice_out += out.pos - u->have;
	bool progress = out.pos > u->have || in.pos > u->in_at;
	u->have = out.pos;
	u->in_at = in.pos;
	if (u->slice_out > (u->limit ? u->limit : SLICE_LIMIT))
		return damaged(u, err, "it holds more than its writer had mapped");
	return progress || !u->flushed;
}

static int need(struct unpack *u, size_t len, struct tally_error *err)
{
	while (u->have - u->at < len) {
		int r = inflate_more(u, err);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Only what the kernel writes into rings is compressed: nothing that other bytes follow. */
static bool is_nested(uint32_t type)
{
	return type == TALLY_FILE_COMPRESSED || type == TALLY_FILE_COMPRESSED2 ||
	       type == TALLY_FILE_AUXTRACE || type == TALLY_FILE_TRACING_DATA;
}

int unpack_next(struct unpack *u, struct stream_record *out, struct tally_error *err)
{
	if (!u->in)
		return 0;
	int r = need(u, RECORD_HEADER, err);
	if (r > 0) {
		const uint8_t *at = u->buf + u->at;
		*out = (struct stream_record){
			.len = load_u16(at + RECORD_SIZE_AT, u->src->swapped),
			.type = load_u32(at + RECORD_TYPE_AT, u->src->swapped),
			.offset = u->offset,
		};
		if (out->len < RECORD_HEADER || is_nested(out->type))
			return inner_damage(u, err, out->type, out->len,
					    out->len < RECORD_HEADER
						    ? "at least 8"
						    : "a type that is never compressed");
		r = need(u, out->len, err);
	}
	if (r <= 0) {
		u->in = NULL;
		return r;
	}
	out->bytes = u->buf + u->at;
	u->at += out->len;
	u->count++;
	return 1;
}

void unpack_reset(struct unpack *u)
{
	if (u->zstd)
		ZSTD_DCtx_reset(u->zstd, ZSTD_reset_session_only);
	u->in = NULL;
	u->have = u->at = 0;
	u->count = 0;
}

size_t unpack_rest(const struct unpack *u)
{
	return u->have - u->at;
}

void unpack_done(struct unpack *u)
{
	ZSTD_freeDStream(u->zstd);
	free(u->buf);
}
