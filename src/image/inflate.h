/* SPDX-License-Identifier: MIT */
/*
 * Decompressing zlib's format (RFC 1950) when it is known how much comes out: by libdeflate, which
 * takes less than half of zlib's time, where that is installed; else by zlib.
 */
#ifndef IMAGE_INFLATE_H
#define IMAGE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false: broken, or not exactly `size` bytes; what `out` holds then is nothing to rely on. */
bool inflate_whole(uint8_t *out, size_t size, const uint8_t *packed, size_t len);

/* The two ways: INFLATE_ABSENT: there is no libdeflate here. */
enum inflate_result {
	INFLATE_DONE,
	INFLATE_BROKEN,
	INFLATE_ABSENT
};

enum inflate_result inflate_by_libdeflate(uint8_t *out, size_t size, const uint8_t *packed,
					  size_t len);
enum inflate_result inflate_by_zlib(uint8_t *out, size_t size, const uint8_t *packed, size_t len);

#endif
