/* SPDX-License-Identifier: MIT */
/*
 * COMPRESSED records: libzstd gives back what went in, taking each slice by one call into what is
 * left of the room that the feature COMPRESSED promises, as perf's zstd_decompress_stream() does.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "perfdata/compress.h"
#include "tap.h"

struct collected {
	uint8_t *bytes;
	size_t len, room;
	int fail; /* a negative answer to give */
};

static int collect(void *arg, const void *record, size_t len)
{
	struct collected *c = arg;

	if (c->fail)
		return c->fail;
	if (c->len + len > c->room) {
		c->room = (c->len + len) * 2;
		c->bytes = realloc(c->bytes, c->room);
		if (!c->bytes)
			abort();
	}
	memcpy(c->bytes + c->len, record, len);
	c->len += len;
	return 0;
}

/* Bytes that zstd cannot make small (`hard`), or a pattern with some noise. */
static uint8_t *material(size_t len, bool hard)
{
	uint8_t *bytes = malloc(len + 1);
	uint32_t x = 12345;

	for (size_t i = 0; bytes && i < len; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = hard || i % 16 == 0 ? (uint8_t)(x >> 24) : (uint8_t)(i % 16);
	}
	return bytes;
}

static void check_restored(const struct collected *c, const uint8_t *want, size_t want_len)
{
	uint8_t *out = malloc(want_len + COMPRESS_OUTPUT_MAX);
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t at = 0, have = 0;

	require(out && ctx);
	while (at < c->len) {
		uint16_t size = load_u16(c->bytes + at + 6, false);
		check_u64(load_u32(c->bytes + at, false), 81);
		check_u64(load_u16(c->bytes + at + 4, false), 0);
		check_u64(size % 8, 0);
		require(size > 8 && size <= c->len - at);
		ZSTD_inBuffer in = { c->bytes + at + 8, size - 8u, 0 };
		ZSTD_outBuffer room = { out + have, COMPRESS_OUTPUT_MAX - 65536, 0 };
		size_t left = ZSTD_decompressStream(ctx, &room, &in);
		require(!ZSTD_isError(left));
		check_u64(in.pos, in.size);
		check(left > 0); /* a frame that ended would need a second call */
		have += room.pos;
		require(have <= want_len);
		at += size;
	}
	check_u64(have, want_len);
	if (have == want_len)
		check_mem(out, want, want_len);
	ZSTD_freeDCtx(ctx);
	free(out);
}

/* In pieces of `piece` bytes, with a flush after every `flush` pieces. */
static void restore(size_t len, size_t piece, unsigned flush, bool hard, uint32_t level)
{
	struct collected c = { 0 };
	struct compressor *packer;
	uint8_t *bytes = material(len, hard);
	unsigned pieces = 0;

	require(bytes && compressor_open(&packer, level, collect, &c) == 0);
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		check_int(compressor_add(packer, bytes + at, n), 0);
		if (++pieces % flush == 0)
			check_int(compressor_flush(packer), 0);
	}
	check_int(compressor_flush(packer), 0);
	check(!compressor_pending(packer));
	check_u64(compressor_taken(packer), len);
	check_u64(compressor_put(packer), c.len);
	check_restored(&c, bytes, len);
	if (!hard)
		check(c.len < len / 2);
	compressor_close(packer);
	free(c.bytes);
	free(bytes);
}

static void what_went_in_comes_out(void)
{
	restore(4 << 20, 4096, 7, false, 1);
	restore(1 << 20, 72, 100, false, 1);
	restore(1 << 20, 1 << 20, 1, false, 19);
}

static void what_cannot_be_compressed_comes_out(void)
{
	restore(4 << 20, 65536, 3, true, 1);
	restore(1 << 20, 1 << 20, 1, true, 22);
}

/* Every length of a last slice, so that all fillings occur. */
static void every_slice_is_filled_to_whole_words(void)
{
	for (size_t len = 1; len < 80; len++)
		restore(len, len, 1, true, 1);
	for (size_t len = 65400; len < 65560; len += 3)
		restore(len, len, 1, true, 1);
}

static void nothing_gives_nothing(void)
{
	struct collected c = { 0 };
	struct compressor *packer;

	require(compressor_open(&packer, 1, collect, &c) == 0);
	check_int(compressor_flush(packer), 0);
	check_int(compressor_add(packer, "", 0), 0);
	check_int(compressor_flush(packer), 0);
	check_u64(c.len, 0);
	compressor_close(packer);
}

static void failures_are_passed_on(void)
{
	struct collected c = { .fail = -ENOSPC };
	struct compressor *packer = NULL;

	check_int(compressor_open(&packer, 0, collect, &c), -EINVAL);
	check_int(compressor_open(&packer, COMPRESS_LEVEL_MAX + 1, collect, &c), -EINVAL);
	check(!packer);
	require(compressor_open(&packer, 1, collect, &c) == 0);
	check_int(compressor_add(packer, "12345678", 8), 0);
	check_int(compressor_flush(packer), -ENOSPC);
	compressor_close(packer);
	compressor_close(NULL);
}

int main(void)
{
	tap_run(what_went_in_comes_out);
	tap_run(what_cannot_be_compressed_comes_out);
	tap_run(every_slice_is_filled_to_whole_words);
	tap_run(nothing_gives_nothing);
	tap_run(failures_are_passed_on);
	return tap_end();
}
