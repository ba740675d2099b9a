/* SPDX-License-Identifier: MIT */
/* One zstd stream, cut into records. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "perfdata/compress.h"
#include "perfdata/layout.h"

/* header.size has 16 bits; a record of whole words. */
#define RECORD_MOST 65528
#define SLICE_MOST  (RECORD_MOST - RECORD_HEADER)

/* Raw_Block, Block_Size 0, not the last (RFC 8878, 3.1.1.2): three bytes, all zero. */
#define EMPTY_BLOCK 3
/* Seven of them reach every remainder modulo 8. */
#define FILL_MOST (7 * EMPTY_BLOCK)

/* What is compressed between two flushes: half of what a reader reserves, since a record's first
 * part may be left over from the slice before. */
#define INPUT_MOST (COMPRESS_OUTPUT_MAX / 2)

struct compressor {
	ZSTD_CCtx *ctx;
	compress_put *put;
	void *arg;
	size_t have;    /* bytes of the slice so far */
	size_t pending; /* bytes taken since the last flush */
	uint64_t taken, total;
	_Alignas(8) uint8_t record[RECORD_MOST];
};

int compressor_open(struct compressor **out, uint32_t level, compress_put *put, void *arg)
{
	ZSTD_inBuffer none = { 0 };

	if (!level || level > COMPRESS_LEVEL_MAX)
		return -EINVAL;
	struct compressor *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	*c = (struct compressor){ .ctx = ZSTD_createCCtx(), .put = put, .arg = arg };
	ZSTD_outBuffer slice = { c->record + RECORD_HEADER, SLICE_MOST, 0 };
	/* The first call allocates for the level, so it is made here. */
	if (!c->ctx ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_compressionLevel, (int)level)) ||
	    ZSTD_isError(ZSTD_compressStream2(c->ctx, &slice, &none, ZSTD_e_continue))) {
		compressor_close(c);
		return -ENOMEM;
	}
	c->have = slice.pos;
	*out = c;
	return 0;
}

void compressor_close(struct compressor *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->ctx);
	free(c);
}

/* Puts the first `len` bytes of the slice as a record; the rest becomes the next slice. */
static int put_slice(struct compressor *c, size_t len)
{
	struct tally_record_header header = { .type = TALLY_FILE_COMPRESSED,
					      .size = (uint16_t)(RECORD_HEADER + len) };

	memcpy(c->record, &header, sizeof(header));
	int r = c->put(c->arg, c->record, RECORD_HEADER + len);
	c->total += RECORD_HEADER + len;
	c->have -= len;
	memmove(c->record + RECORD_HEADER, c->record + RECORD_HEADER + len, c->have);
	return r;
}

/* Compresses as far as the slice has room. Answers what zstd still holds, or -errno. */
static int64_t step(struct compressor *c, ZSTD_inBuffer *in, ZSTD_EndDirective mode)
{
	ZSTD_outBuffer slice = { c->record + RECORD_HEADER, SLICE_MOST, c->have };
	size_t left = ZSTD_compressStream2(c->ctx, &slice, in, mode);

	if (ZSTD_isError(left))
		return -EIO;
	c->have = slice.pos;
	int r = c->have == SLICE_MOST ? put_slice(c, SLICE_MOST) : 0;
	return r < 0 ? r : (int64_t)left;
}

int compressor_flush(struct compressor *c)
{
	ZSTD_inBuffer none = { 0 };
	int64_t left;
	int r = 0;

	if (!c->pending)
		return 0;
	do
		left = step(c, &none, ZSTD_e_flush);
	while (left > 0);
	if (left < 0)
		return (int)left;
	c->pending = 0;
	if (c->have % 8 && c->have > SLICE_MOST - FILL_MOST)
		r = put_slice(c, c->have & ~(size_t)7);
	for (; c->have % 8; c->have += EMPTY_BLOCK)
		memset(c->record + RECORD_HEADER + c->have, 0, EMPTY_BLOCK);
	return r < 0 || !c->have ? r : put_slice(c, c->have);
}

int compressor_add(struct compressor *c, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		size_t most = INPUT_MOST - c->pending;
		ZSTD_inBuffer in = { (const uint8_t *)bytes + done,
				     len - done < most ? len - done : most, 0 };
		while (in.pos < in.size) {
			int64_t left = step(c, &in, ZSTD_e_continue);
			if (left < 0)
				return (int)left;
		}
		done += in.size;
		c->pending += in.size;
		c->taken += in.size;
		int r = c->pending == INPUT_MOST ? compressor_flush(c) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

bool compressor_pending(const struct compressor *c)
{
	return c->pending > 0;
}

uint64_t compressor_taken(const struct compressor *c)
{
	return c->taken;
}

uint64_t compressor_put(const struct compressor *c)
{
	return c->total;
}
