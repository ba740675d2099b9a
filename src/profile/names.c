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

bool is_harmful(int32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/*
 * Names are written in runs of what needs no change: `at` moves to the next character that does, or
 * behind `limit` characters, and what lies before it is written. Answers that character.
 */
static int32_t write_run(FILE *to, const char **at, size_t *limit, bool (*changes)(int32_t point))
{
	const char *start = *at, *end = start;
	int32_t point = 0;

	while (*limit && (point = utf8_next(at)) != 0) {
		--*limit;
		if (changes(point))
			break;
		end = *at;
		point = 0;
	}
	fwrite(start, 1, (size_t)(end - start), to);
	return point;
}

/* How many characters to write, and whether what stands for the rest, of `tail` characters, follows. */
static bool cut(const char *name, size_t tail, size_t *limit)
{
	bool cuts = *limit && name_length(name) > *limit;

	*limit = !cuts ? SIZE_MAX : *limit > tail ? *limit - tail : 0;
	return cuts;
}

void name_text(FILE *to, const char *name, size_t limit)
{
	bool cuts = cut(name, 1, &limit);

	while (write_run(to, &name, &limit, is_harmful))
		putc('?', to);
	if (cuts)
		putc('~', to);
}

static bool breaks_folded(int32_t point)
{
	return point == ' ' || point == ';' || is_harmful(point);
}

void name_folded(FILE *to, const char *name)
{
	size_t limit = SIZE_MAX;
	int32_t point;

	while ((point = write_run(to, &name, &limit, breaks_folded)) != 0)
		putc(point == -1 ? '?' : point == ';' ? ':' : '_', to);
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

static bool changes_in_xml(int32_t point)
{
	return !is_xml(point) || xml_entity(point);
}

void name_xml(FILE *to, const char *name, size_t limit)
{
	bool cuts = cut(name, 2, &limit);
	int32_t point;

	while ((point = write_run(to, &name, &limit, changes_in_xml)) != 0)
		fputs(xml_entity(point) ? xml_entity(point) : "\xef\xbf\xbd" /* U+FFFD */, to);
	if (cuts)
		fputs("..", to);
}

int output_end(FILE *to, const char *what, struct tally_error *err)
{
	if (fflush(to) == 0 && !ferror(to))
		return 0;
	int reason = errno ? errno : EIO;
	return error_set(err, -EIO, TALLY_CAUSE_IO, "cannot write %s: %s", what, strerror(reason));
}
