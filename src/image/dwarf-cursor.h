/* SPDX-License-Identifier: MIT */
/*
 * Reading DWARF's bytes one after another. A read behind the end gives 0 and sets `failed`, and so
 * do all that follow: it is enough to look once, when a piece has been read.
 */
#ifndef IMAGE_DWARF_CURSOR_H
#define IMAGE_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct dwarf_cursor {
	const uint8_t *at, *end;
	bool swapped, failed;
};

static inline size_t cursor_left(const struct dwarf_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline void cursor_fail(struct dwarf_cursor *c)
{
	c->failed = true;
	c->at = c->end;
}

/* The next `len` bytes; NULL: there are not so many. */
static inline const uint8_t *cursor_take(struct dwarf_cursor *c, uint64_t len)
{
	const uint8_t *at = c->at;

	/* Even nothing cannot be added to NULL, which an empty one has. */
	if (__builtin_expect(len > cursor_left(c) || !at, 0)) {
		cursor_fail(c);
		return NULL;
	}
	c->at += len;
	return at;
}

static inline uint8_t cursor_u8(struct dwarf_cursor *c)
{
	const uint8_t *at = cursor_take(c, 1);

	return at ? *at : 0;
}

static inline uint16_t cursor_u16(struct dwarf_cursor *c)
{
	const uint8_t *at = cursor_take(c, 2);

	return at ? load_u16(at, c->swapped) : 0;
}

static inline uint32_t cursor_u24(struct dwarf_cursor *c)
{
	const uint8_t *at = cursor_take(c, 3);

	if (!at)
		return 0;
	return c->swapped == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		       ? (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]
		       : (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static inline uint32_t cursor_u32(struct dwarf_cursor *c)
{
	const uint8_t *at = cursor_take(c, 4);

	return at ? load_u32(at, c->swapped) : 0;
}

static inline uint64_t cursor_u64(struct dwarf_cursor *c)
{
	const uint8_t *at = cursor_take(c, 8);

	return at ? load_u64(at, c->swapped) : 0;
}

/* An unsigned number of 1 to 8 bytes, the lowest first; and a signed one. */
static inline uint64_t cursor_fixed(struct dwarf_cursor *c, size_t bytes)
{
	const uint8_t *at = cursor_take(c, bytes);
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, bytes);
	return value;
}

static inline int64_t cursor_signed(struct dwarf_cursor *c, size_t bytes)
{
	unsigned shift = 64 - 8 * (unsigned)bytes;

	return (int64_t)(cursor_fixed(c, bytes) << shift) >> shift;
}

/* An offset of 32-bit or 64-bit DWARF. */
static inline uint64_t cursor_offset(struct dwarf_cursor *c, bool is64)
{
	return is64 ? cursor_u64(c) : cursor_u32(c);
}

/* An address; of a size that no machine has it fails. */
static inline uint64_t cursor_address(struct dwarf_cursor *c, uint8_t size)
{
	switch (size) {
	case 8:
		return cursor_u64(c);
	case 4:
		return cursor_u32(c);
	case 2:
		return cursor_u16(c);
	default:
		cursor_fail(c);
		return 0;
	}
}

/* LEB128. Bits above the 64th are dropped. */
static inline uint64_t cursor_uleb(struct dwarf_cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor_fail(c);
	return 0;
}

static inline int64_t cursor_sleb(struct dwarf_cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; c->at < c->end;) {
		uint8_t byte = *c->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && byte & 0x40)
			value |= ~(uint64_t)0 << shift;
		return (int64_t)value;
	}
	cursor_fail(c);
	return 0;
}

/* A text with its NUL; NULL: it does not end. */
static inline const char *cursor_text(struct dwarf_cursor *c)
{
	const uint8_t *at = c->at, *nul = cursor_left(c) ? memchr(at, 0, cursor_left(c)) : NULL;

	if (!nul) {
		cursor_fail(c);
		return NULL;
	}
	c->at = nul + 1;
	return (const char *)at;
}

/*
 * The initial length of a unit, and whether it is 64-bit DWARF. The cursor is cut to the unit; where
 * it reaches beyond the section, it fails.
 */
static inline bool cursor_unit(struct dwarf_cursor *c)
{
	uint64_t len = cursor_u32(c);
	bool is64 = len == 0xffffffff;

	if (is64)
		len = cursor_u64(c);
	else if (len >= 0xfffffff0) /* reserved */
		cursor_fail(c);
	if (len > cursor_left(c))
		cursor_fail(c);
	else if (c->at)
		c->end = c->at + len;
	return is64;
}

#endif
