/* SPDX-License-Identifier: MIT */
/*
 * A growing byte buffer. A failed allocation is remembered in `failed` and further appends do
 * nothing, so that a long build-up is checked once, at its end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tally/api.h>

struct buf {
	char *at;
	size_t len, room;
	bool failed;
};

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_str(struct buf *b, const char *text);
void buf_zero(struct buf *b, size_t len);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
TALLY_PRINTF(2, 3) void buf_printf(struct buf *b, const char *fmt, ...);
/* The content as a NUL-terminated text (the NUL is not counted); "" when empty, NULL on failure. */
const char *buf_text(struct buf *b);
void buf_reset(struct buf *b);
void buf_done(struct buf *b);

#endif
