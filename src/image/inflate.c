/* SPDX-License-Identifier: MIT */
/* libdeflate by dlopen(3), so that nothing needs to have it, and zlib. */
#include <zlib.h>

#include "base/bytes.h"
#include "base/dl.h"
#include "image/inflate.h"

#define LIBRARY "libdeflate.so.0"

struct decompressor;

/* Of libdeflate.h, since 1.0. */
struct library {
	struct decompressor *(*alloc)(void);
	/* 0: done. With `actual` NULL all of `size` must be filled. */
	int (*decompress)(struct decompressor *d, const void *packed, size_t len, void *out,
			  size_t size, size_t *actual);
	void (*free)(struct decompressor *d);
};

enum inflate_result inflate_by_libdeflate(uint8_t *out, size_t size, const uint8_t *packed,
					  size_t len)
{
	struct library l;
	const struct dl_symbol symbols[] = {
		{ "libdeflate_alloc_decompressor", &l.alloc },
		{ "libdeflate_zlib_decompress", &l.decompress },
		{ "libdeflate_free_decompressor", &l.free },
	};
	enum inflate_result r = INFLATE_ABSENT;
	/* A file has a handful of such sections: it stays loaded for the next one. */
	void *handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);

	if (handle && dl_find(handle, symbols, ARRAY_SIZE(symbols))) {
		struct decompressor *d = l.alloc();
		if (d) {
			bool done = !l.decompress(d, packed, len, out, size, NULL);
			r = done ? INFLATE_DONE : INFLATE_BROKEN;
			l.free(d);
		}
	}
	if (handle)
		dlclose(handle);
	return r;
}

enum inflate_result inflate_by_zlib(uint8_t *out, size_t size, const uint8_t *packed, size_t len)
{
	z_stream z = { 0 };

	/* Sections stay below 4 GiB, so that the lengths fit (ELF_INPUT_MAX_SECTION). */
	if (inflateInit(&z) != Z_OK)
		return INFLATE_BROKEN;
	z.next_in = (Bytef *)(uintptr_t)packed; /* zlib only reads it */
	z.avail_in = (uInt)len;
	z.next_out = out;
	z.avail_out = (uInt)size;
	int r = inflate(&z, Z_FINISH);
	bool whole = r == Z_STREAM_END && z.total_out == size;
	inflateEnd(&z);
	return whole ? INFLATE_DONE : INFLATE_BROKEN;
}

bool inflate_whole(uint8_t *out, size_t size, const uint8_t *packed, size_t len)
{
	enum inflate_result r = inflate_by_libdeflate(out, size, packed, len);

	if (r == INFLATE_ABSENT)
		r = inflate_by_zlib(out, size, packed, len);
	return r == INFLATE_DONE;
}
