/* SPDX-License-Identifier: MIT */
/* JSON out: commas by context, strings escaped and made valid UTF-8. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

static void separate(struct buf *b)
{
	if (b->len && !strchr("{[:\n", b->at[b->len - 1]))
		buf_str(b, ",");
}

void json_open(struct buf *b, char bracket)
{
	separate(b);
	buf_add(b, &bracket, 1);
}

void json_close(struct buf *b, char bracket)
{
	buf_add(b, &bracket, 1);
}

/* How many bytes of valid UTF-8 begin at `p`: 0 when none do. */
static size_t utf8_length(const unsigned char *p)
{
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;

	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static void quoted(struct buf *b, const char *value)
{
	const unsigned char *p = (const unsigned char *)value;

	buf_str(b, "\"");
	while (*p) {
		if (*p == '"' || *p == '\\') {
			buf_printf(b, "\\%c", *p++);
		} else if (*p < 0x20 || *p == 0x7f) {
			buf_printf(b, "\\u%04x", *p++);
		} else if (*p < 0x80) {
			buf_add(b, p++, 1);
		} else {
			size_t n = utf8_length(p);
			if (n)
				buf_add(b, p, n);
			else
				buf_str(b, "\xef\xbf\xbd");
			p += n ? n : 1;
		}
	}
	buf_str(b, "\"");
}

void json_key(struct buf *b, const char *key)
{
	separate(b);
	quoted(b, key);
	buf_str(b, ":");
}

void json_string(struct buf *b, const char *value)
{
	separate(b);
	quoted(b, value);
}

void json_u64(struct buf *b, uint64_t value)
{
	separate(b);
	buf_printf(b, "%" PRIu64, value);
}

void json_double(struct buf *b, double value)
{
	separate(b);
	if (isfinite(value))
		buf_printf(b, "%.17g", value);
	else
		buf_str(b, "null");
}

void json_bool(struct buf *b, bool value)
{
	separate(b);
	buf_str(b, value ? "true" : "false");
}

void json_null(struct buf *b)
{
	separate(b);
	buf_str(b, "null");
}
