/* SPDX-License-Identifier: MIT */
/* Text by hand: a buffer, numbers, and names from files that nobody vouches for. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "profile/names.h"
#include "profile/out.h"

/* What a stream gets at once. */
#define CHUNK (256u << 10)

/* The longest number: 2^64 - 1 has 20 digits. */
#define DIGITS 20

int out_flush(struct out *o)
{
	if (o->to && !o->failed && o->len && fwrite(o->at, 1, o->len, o->to) != o->len)
		o->failed = true;
	if (o->to)
		o->len = 0;
	return !o->failed ? 0 : o->to ? -EIO : -ENOMEM;
}

void out_done(struct out *o)
{
	free(o->at);
	*o = (struct out){ 0 };
}

/* Where the next `len` bytes go; NULL: it failed. */
static char *room_for(struct out *o, size_t len)
{
	if (o->failed)
		return NULL;
	if (o->room - o->len < len) {
		if (o->to && o->len && out_flush(o) < 0)
			return NULL;
		size_t more = o->to && len < CHUNK ? CHUNK : len;
		if (!vec_grow(&o->at, o->len, &o->room, more, 1)) {
			o->failed = true;
			return NULL;
		}
	}
	char *at = o->at + o->len;
	o->len += len;
	return at;
}

void out_bytes(struct out *o, const char *bytes, size_t len)
{
	char *to = len ? room_for(o, len) : NULL;

	if (to)
		memcpy(to, bytes, len);
}

void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

void out_char(struct out *o, char c)
{
	char *to = room_for(o, 1);

	if (to)
		*to = c;
}

void out_right(struct out *o, const char *bytes, size_t len, size_t width)
{
	size_t fill = width > len ? width - len : 0;
	char *to = len + fill ? room_for(o, len + fill) : NULL;

	if (!to)
		return;
	memset(to, ' ', fill);
	memcpy(to + fill, bytes, len);
}

static void put_number(struct out *o, const char *digits, size_t len, unsigned width, char fill)
{
	size_t pad = width > len ? width - len : 0;
	char *to = room_for(o, len + pad);

	if (!to)
		return;
	memset(to, fill, pad);
	memcpy(to + pad, digits, len);
}

void out_dec(struct out *o, uint64_t value, unsigned width, char fill)
{
	char digits[DIGITS], *at = digits + DIGITS;

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put_number(o, at, (size_t)(digits + DIGITS - at), width, fill);
}

void out_int(struct out *o, int64_t value, unsigned width)
{
	char digits[DIGITS + 1], *at = digits + sizeof(digits);
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--at = '-';
	put_number(o, at, (size_t)(digits + sizeof(digits) - at), width, ' ');
}

void out_hex(struct out *o, uint64_t value, unsigned width, char fill)
{
	static const char hex[] = "0123456789abcdef";
	char digits[DIGITS], *at = digits + DIGITS;

	do {
		*--at = hex[value & 15];
		value >>= 4;
	} while (value);
	put_number(o, at, (size_t)(digits + DIGITS - at), width, fill);
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char text[512], *longer = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(text) && (longer = malloc((size_t)n + 1))) {
		va_start(ap, fmt);
		vsnprintf(longer, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	if (n < 0 || (n >= (int)sizeof(text) && !longer))
		o->failed = true;
	else
		out_bytes(o, longer ? longer : text, (size_t)n);
	free(longer);
}

void out_json(struct out *o, const char *text)
{
	const char *start = text, *before = text;
	int32_t point;

	out_char(o, '"');
	for (; (point = utf8_next(&text)) != 0; before = text) {
		if (point >= 0x20 && point != '"' && point != '\\' && point != 0x7f)
			continue;
		out_bytes(o, start, (size_t)(before - start));
		start = text;
		if (point < 0)
			out_text(o, "\xef\xbf\xbd"); /* U+FFFD */
		else if (point == '"' || point == '\\')
			out_printf(o, "\\%c", (char)point);
		else
			out_printf(o, "\\u%04x", (unsigned)point);
	}
	out_bytes(o, start, (size_t)(before - start));
	out_char(o, '"');
}

void out_plain(struct out *o, const char *text)
{
	const char *start = text, *before = text;
	int32_t point;

	for (; (point = utf8_next(&text)) != 0; before = text) {
		if (!is_harmful(point))
			continue;
		out_bytes(o, start, (size_t)(before - start));
		out_char(o, '?');
		start = text;
	}
	out_bytes(o, start, (size_t)(before - start));
}
