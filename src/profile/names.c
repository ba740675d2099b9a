/* SPDX-License-Identifier: MIT */
/* UTF-8 and escaping. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "profile/names.h"

/* Lead bytes by length: the bits that tell it, and the smallest code point that needs it. */
static const struct {
	unsigned char mask, lead;
	int32_t least;
} sequences[] = {
	{ 0xe0, 0xc0, 0x80 },
	{ 0xf0, 0xe0, 0x800 },
	{ 0xf8, 0xf0, 0x10000 },
};

int32_t utf8_next(const char **at)
{
	const unsigned char *p = (const unsigned char *)*at;

	if (!*p)
		return 0;
	(*at)++;
	if (*p < 0x80)
		return *p;
	for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
		if ((*p & sequences[i].mask) != sequences[i].lead)
			continue;
		int32_t point = *p & (unsigned char)~sequences[i].mask;
		for (size_t k = 1; k <= i + 1; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return -1;
			point = point << 6 | (p[k] & 0x3f);
		}
		if (point < sequences[i].least || point > 0x10ffff ||
		    (point >= 0xd800 && point <= 0xdfff))
			return -1;
		*at += i + 1;
		return point;
	}
	return -1;
}

size_t name_length(const char *name)
{
	size_t n = 0;

	while (utf8_next(&name))
		n++;
	return n;
}

/* C0 and C1 controls, and what makes a terminal or an editor show text in another order. */
static bool is_harmful(int32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

void name_text(FILE *to, const char *name, size_t limit)
{
	const char *start = name;
	int32_t point;

	if (limit && name_length(name) <= limit)
		limit = 0;
	for (size_t n = 0; (point = utf8_next(&name)) != 0; start = name) {
		if (limit && ++n == limit) {
			putc('~', to);
			return;
		}
		if (is_harmful(point))
			putc('?', to);
		else
			fwrite(start, 1, (size_t)(name - start), to);
	}
}

void name_folded(FILE *to, const char *name)
{
	const char *start = name;
	int32_t point;

	for (; (point = utf8_next(&name)) != 0; start = name) {
		if (point == -1)
			putc('?', to);
		else if (point == ' ' || is_harmful(point))
			putc('_', to);
		else if (point == ';')
			putc(':', to);
		else
			fwrite(start, 1, (size_t)(name - start), to);
	}
}

/* The production Char of XML 1.0, without the white space that would not survive in a name. */
static bool is_xml(int32_t point)
{
	return point >= 0x20 && point != 0xfffe && point != 0xffff;
}

static const char *xml_entity(int32_t point)
{
	switch (point) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void name_xml(FILE *to, const char *name, size_t limit)
{
	const char *start = name;
	int32_t point;

	if (limit && name_length(name) <= limit)
		limit = 0;
	for (size_t n = 0; (point = utf8_next(&name)) != 0; start = name) {
		if (limit && ++n > limit - 2) {
			fputs("..", to);
			return;
		}
		const char *entity = xml_entity(point);
		if (entity)
			fputs(entity, to);
		else if (!is_xml(point))
			fputs("\xef\xbf\xbd", to); /* U+FFFD */
		else
			fwrite(start, 1, (size_t)(name - start), to);
	}
}

int output_end(FILE *to, const char *what, struct tally_error *err)
{
	if (fflush(to) == 0 && !ferror(to))
		return 0;
	int reason = errno ? errno : EIO;
	return error_set(err, -EIO, TALLY_CAUSE_IO, "cannot write %s: %s", what, strerror(reason));
}
