/* SPDX-License-Identifier: MIT */
/* Reading numbers from bytes that may end anywhere: what is not there reads as 0 and is noted. */
#ifndef IMAGE_UNWIND_BYTES_H
#define IMAGE_UNWIND_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const uint8_t *at, *end;
	bool failed;
};

/* An unsigned number of 1 to 8 bytes, the lowest first. */
static inline uint64_t span_fixed(struct span *s, size_t bytes)
{
	uint64_t v = 0;

	if ((size_t)(s->end - s->at) < bytes) {
		s->failed = true;
		s->at = s->end;
		return 0;
	}
	memcpy(&v, s->at, bytes);
	s->at += bytes;
	return v;
}

/* A signed one. */
static inline int64_t span_signed(struct span *s, size_t bytes)
{
	unsigned shift = 64 - 8 * (unsigned)bytes;

	return (int64_t)(span_fixed(s, bytes) << shift) >> shift;
}

/* ULEB128; bits beyond 64 are dropped. */
static inline uint64_t span_uleb(struct span *s)
{
	uint64_t v = 0;

	for (unsigned shift = 0; s->at < s->end; shift += 7) {
		uint8_t byte = *s->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	s->failed = true;
	return 0;
}

/* SLEB128 */
static inline int64_t span_sleb(struct span *s)
{
	uint64_t v = 0;

	for (unsigned shift = 0; s->at < s->end;) {
		uint8_t byte = *s->at++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && byte & 0x40)
			v |= UINT64_MAX << shift;
		return (int64_t)v;
	}
	s->failed = true;
	return 0;
}

static inline void span_skip(struct span *s, uint64_t bytes)
{
	if (bytes > (uint64_t)(s->end - s->at)) {
		s->failed = true;
		s->at = s->end;
	} else {
		s->at += bytes;
	}
}

#endif
