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

char *out_room_slow(struct out *o, size_t len)
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

void out_right(struct out *o, const char *bytes, size_t len, size_t width)
{
	size_t fill = width > len ? width - len : 0;
	char *to = len + fill ? out_room(o, len + fill) : NULL;

	if (!to)
		return;
	memset(to, ' ', fill);
	memcpy(to + fill, bytes, len);
}

static void put_number(struct out *o, const char *digits, size_t len, unsigned width, char fill)
{
	size_t pad = width > len ? width - len : 0;
	char *to = out_room(o, len + pad);

	if (!to)
		return;
	memset(to, fill, pad);
	memcpy(to + pad, digits, len);
}

/* The decimal digits of a number end at `end`; where they begin. */
static char *put_digits(char *end, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				    "31323334353637383940414243444546474849505152535455565758596061"
				    "62636465666768697071727374757677787980818283848586878889909192"
				    "93949596979899";

	for (; value >= 100; value /= 100) {
		end -= 2;
		memcpy(end, pairs + value % 100 * 2, 2);
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, pairs + value * 2, 2);
		return end;
	}
	*--end = (char)('0' + value);
	return end;
}

void out_dec(struct out *o, uint64_t value, unsigned width, char fill)
{
	char digits[DIGITS], *at = put_digits(digits + DIGITS, value);

	put_number(o, at, (size_t)(digits + DIGITS - at), width, fill);
}

void out_int(struct out *o, int64_t value, unsigned width)
{
	char digits[DIGITS + 1];
	char *at = put_digits(digits + sizeof(digits),
			      value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

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
