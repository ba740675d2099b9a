/* SPDX-License-Identifier: MIT */
/* Both ways to decompress, against what zlib's own compressor made. */
#include <stdlib.h>
#include <zlib.h>

#include "image/inflate.h"
#include "tap.h"

#define LEN 100000

typedef enum inflate_result inflate_fn(uint8_t *out, size_t size, const uint8_t *packed,
				       size_t len);

/* Which is tried, and what it works on. */
static struct {
	inflate_fn *inflate;
	uint8_t want[LEN], packed[2 * LEN], out[LEN + 1];
	size_t len;
} t;

static void pack(int level)
{
	uint32_t x = 12345;
	uLongf len = sizeof(t.packed);

	for (size_t i = 0; i < LEN; i++) {
		x = x * 1664525 + 1013904223;
		t.want[i] = i % 8 ? (uint8_t)(i / 64) : (uint8_t)(x >> 24);
	}
	require(compress2(t.packed, &len, t.want, LEN, level) == Z_OK);
	t.len = len;
}

static void what_went_in_comes_out(void)
{
	for (int level = 0; level <= 9; level++) {
		pack(level);
		memset(t.out, 0xa5, sizeof(t.out));
		if (t.inflate(t.out, LEN, t.packed, t.len) == INFLATE_ABSENT)
			tap_skip("there is no libdeflate here");
		check_int(t.inflate(t.out, LEN, t.packed, t.len), INFLATE_DONE);
		check(!memcmp(t.out, t.want, LEN));
		check_u64(t.out[LEN], 0xa5);
	}
}

/* The linker may align what comes behind. */
static void what_follows_does_not_matter(void)
{
	pack(6);
	if (t.inflate(t.out, LEN, t.packed, t.len + 8) == INFLATE_ABSENT)
		tap_skip("there is no libdeflate here");
	check_int(t.inflate(t.out, LEN, t.packed, t.len + 8), INFLATE_DONE);
	check(!memcmp(t.out, t.want, LEN));
}

static void what_is_wrong_is_refused(void)
{
	pack(6);
	if (t.inflate(t.out, LEN, t.packed, t.len) == INFLATE_ABSENT)
		tap_skip("there is no libdeflate here");
	check_int(t.inflate(t.out, LEN - 1, t.packed, t.len), INFLATE_BROKEN);
	check_int(t.inflate(t.out, LEN + 1, t.packed, t.len), INFLATE_BROKEN);
	check_int(t.inflate(t.out, LEN, t.packed, t.len - 1), INFLATE_BROKEN);
	check_int(t.inflate(t.out, LEN, t.packed, 0), INFLATE_BROKEN);
	/* The head, the checksum, a byte within. */
	for (size_t i = 0; i < 3; i++) {
		size_t at[] = { 0, t.len - 1, t.len / 2 };
		t.packed[at[i]] ^= 0x55;
		check_int(t.inflate(t.out, LEN, t.packed, t.len), INFLATE_BROKEN);
		t.packed[at[i]] ^= 0x55;
	}
}

static void one_of_them_does_it(void)
{
	pack(6);
	check(inflate_whole(t.out, LEN, t.packed, t.len));
	check(!memcmp(t.out, t.want, LEN));
	check(!inflate_whole(t.out, LEN, t.packed, t.len / 2));
}

int main(void)
{
	inflate_fn *const ways[] = { inflate_by_zlib, inflate_by_libdeflate };

	for (size_t i = 0; i < 2; i++) {
		t.inflate = ways[i];
		tap_run(what_went_in_comes_out);
		tap_run(what_follows_does_not_matter);
		tap_run(what_is_wrong_is_refused);
	}
	tap_run(one_of_them_does_it);
	return tap_end();
}
