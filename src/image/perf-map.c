/* SPDX-License-Identifier: MIT */
/* /tmp/perf-PID.map: lines of "START SIZE name", the numbers in hex. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/jit-file.h"

/* Longer lines are passed over. */
#define MAX_LINE JIT_WINDOW

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A number and the blanks behind it; NULL: there is none, or no blank, or it is too large. */
static const char *hex(const char *at, const char *end, uint64_t *out)
{
	const char *first;
	int digit;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*out = 0;
	for (first = at; at < end && (digit = digit_of(*at)) >= 0; at++) {
		if (*out >> 60)
			return NULL;
		*out = *out << 4 | (unsigned)digit;
	}
	if (at == first || at == end || *at != ' ')
		return NULL;
	while (at < end && *at == ' ')
		at++;
	return at;
}

/* What makes no sense is left out: other lines may. */
static int take_line(struct jit_file *f, const char *line, size_t len, uint64_t since)
{
	const char *end = line + len;
	uint64_t start, size;

	if (len && end[-1] == '\r')
		end--;
	const char *at = hex(line, end, &start);
	at = at ? hex(at, end, &size) : NULL;
	if (!at || at == end || memchr(at, '\0', (size_t)(end - at)))
		return 0;
	struct jit_code code = { .name = jit_file_add_text(f, at, (size_t)(end - at)) };
	if (code.name == JIT_NO_NAME)
		return f->names.failed ? -ENOMEM : 0;
	return jit_file_add(f, start, size, since, &code) ? 0 : -ENOMEM;
}

/* Without times in the file, a line that is read later tells of what came later. */
int perf_map_read(struct jit_file *f, int fd, uint64_t now)
{
	uint64_t since = f->offset ? now : 0;
	struct jit_window w = { .at = f->offset };
	struct jit_piece p;
	int r = 0;

	while (r == 0) {
		if (!jit_file_window(f, fd, &w, MAX_LINE, &p)) {
			r = -ENOMEM;
			break;
		}
		const char *newline = p.len ? memchr(p.at, '\n', p.len) : NULL;
		size_t len = newline ? (size_t)(newline - p.at) : p.len;
		r = take_line(f, p.at, len, since);
		/* The last line may be written just now: it is read again next time. */
		if (!newline && p.len < MAX_LINE)
			break;
		f->offset += newline ? len + 1 : len;
	}
	free(w.bytes);
	return r;
}
