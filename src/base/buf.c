/* SPDX-License-Identifier: MIT */
/* A growing byte buffer with a sticky failure. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"

static char *buf_room(struct buf *b, size_t len)
{
	/* One byte at least, so that there is an address to answer. */
	if (b->failed || !vec_grow(&b->at, b->len, &b->room, len ? len : 1, 1)) {
		b->failed = true;
		return NULL;
	}
	return b->at + b->len;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *to = buf_room(b, len);

	if (!to || !len)
		return;
	memcpy(to, bytes, len);
	b->len += len;
}

void buf_str(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_zero(struct buf *b, size_t len)
{
	char *to = buf_room(b, len);

	if (!to || !len)
		return;
	memset(to, 0, len);
	b->len += len;
}

void buf_u16(struct buf *b, uint16_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u64(struct buf *b, uint64_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	char *to = buf_room(b, (size_t)n + 1);
	if (!to)
		return;
	va_start(ap, fmt);
	vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

const char *buf_text(struct buf *b)
{
	char *to = buf_room(b, 1);

	if (!to)
		return NULL;
	*to = '\0';
	return b->at;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_done(struct buf *b)
{
	free(b->at);
	*b = (struct buf){ 0 };
}
