/* SPDX-License-Identifier: MIT */
/*
 * Text on its way to a stream, many lines at a time, or into memory. printf(3) would take most of
 * the time of printing millions of samples, so numbers are put here by hand.
 */
#ifndef PROFILE_OUT_H
#define PROFILE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tally/api.h>

/* Zeroed, it collects in memory. */
struct out {
	FILE *to; /* NULL: what is put stays in `at` */
	char *at;
	size_t len, room;
	bool failed; /* no memory, or the stream did not take it: all else is dropped */
};

/* Gives the stream what is there. 0, -ENOMEM or -EIO, also for what failed before. */
int out_flush(struct out *o);
void out_done(struct out *o);

/* Where the next `len` bytes go; NULL: it failed. */
char *out_room_slow(struct out *o, size_t len);
static inline char *out_room(struct out *o, size_t len)
{
	if (o->failed || o->room - o->len < len)
		return out_room_slow(o, len);
	char *at = o->at + o->len;
	o->len += len;
	return at;
}

static inline void out_bytes(struct out *o, const char *bytes, size_t len)
{
	char *to = len ? out_room(o, len) : NULL;

	if (to)
		memcpy(to, bytes, len);
}

static inline void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

static inline void out_char(struct out *o, char c)
{
	char *to = out_room(o, 1);

	if (to)
		*to = c;
}

/* Numbers, right-aligned in `width` columns at least, with `fill` in front. */
void out_dec(struct out *o, uint64_t value, unsigned width, char fill);
void out_int(struct out *o, int64_t value, unsigned width);
void out_hex(struct out *o, uint64_t value, unsigned width, char fill);

/* Bytes right-aligned in `width` columns at least. */
void out_right(struct out *o, const char *bytes, size_t len, size_t width);

/* For what is rare. */
TALLY_PRINTF(2, 3) void out_printf(struct out *o, const char *fmt, ...);

/* Names of a recording. In JSON, quoted: what is not UTF-8 becomes U+FFFD. */
void out_json(struct out *o, const char *text);
/* On a terminal: controls, bidirectional overrides and invalid bytes become '?'. */
void out_plain(struct out *o, const char *text);

#endif
