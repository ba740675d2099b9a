/* SPDX-License-Identifier: MIT */
/* JSON strings (RFC 8259): what must be escaped, and nothing that is not UTF-8. */
#include <string.h>

#include "json.h"

/* The length of the UTF-8 sequence at `s` (RFC 3629), 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char from, to;  /* the first byte */
		unsigned char low, high; /* the second */
		size_t length;
	} rows[] = {
		{ 0x20, 0x7e, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (*s < rows[i].from || *s > rows[i].to)
			continue;
		if (rows[i].length > 1 && (s[1] < rows[i].low || s[1] > rows[i].high))
			return 0;
		for (size_t k = 2; k < rows[i].length; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return rows[i].length;
	}
	return 0;
}

void json_text(FILE *to, const char *text)
{
	if (!text) {
		fputs("null", to);
		return;
	}
	fputc('"', to);
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t length = utf8_length(s);
		if (*s == '"' || *s == '\\')
			fprintf(to, "\\%c", *s++);
		else if (length)
			s += fwrite(s, 1, length, to);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(to, "\\u%04x", *s++);
		else
			s++, fputs("\xef\xbf\xbd", to);
	}
	fputc('"', to);
}
