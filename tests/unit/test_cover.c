/* SPDX-License-Identifier: MIT */
/* cover: against looking at all ranges for each address. */
#include <stdlib.h>

#include "image/cover.h"
#include "tap.h"

#define RANGES 200
#define SPACE  512

static struct cover cover;

static void begin(void)
{
	cover = (struct cover){ 0 };
}

static void an_empty_one_has_nothing(void)
{
	begin();
	check(cover_seal(&cover));
	check_u64(cover_find(&cover, 0), COVER_NONE);
	cover_done(&cover);
}

static void the_inner_one_holds_and_gives_back(void)
{
	begin();
	check(cover_add(&cover, 0x1000, 0x2000, 1, 1));
	check(cover_add(&cover, 0x1100, 0x1200, 2, 2));
	check(cover_add(&cover, 0x1180, 0x1200, 3, 3));
	check(cover_seal(&cover));
	check_u64(cover_find(&cover, 0xfff), COVER_NONE);
	check_u64(cover_find(&cover, 0x1000), 1);
	check_u64(cover_find(&cover, 0x1100), 2);
	check_u64(cover_find(&cover, 0x117f), 2);
	check_u64(cover_find(&cover, 0x11ff), 3);
	check_u64(cover_find(&cover, 0x1200), 1);
	check_u64(cover_find(&cover, 0x2000), COVER_NONE);
	cover_done(&cover);
}

static void ranges_far_from_the_first_are_left_out(void)
{
	const uint64_t far = (uint64_t)1 << 40;

	begin();
	check(cover_add(&cover, far, far + 16, 1, 0));
	check(cover_add(&cover, 16, 32, 2, 0));
	check(cover_add(&cover, UINT64_MAX - 32, UINT64_MAX - 16, 3, 0));
	check(cover_seal(&cover));
	check_u64(cover_find(&cover, far), 1);
	check_u64(cover_find(&cover, 16), COVER_NONE);
	check_u64(cover_find(&cover, UINT64_MAX - 20), COVER_NONE);
	cover_done(&cover);
}

/* Few and many are sorted in different ways; near ones differ in their lowest bits alone. */
static void ranges_in_any_order_and_nesting(void)
{
	struct cover_range all[RANGES];
	unsigned wrong = 0;

	srand(7);
	for (int round = 0; round < 50; round++) {
		const uint32_t count = round % 2 ? RANGES : RANGES / 4;
		const uint64_t unit = round % 4 < 2 ? 1 : 65537;
		begin();
		for (uint32_t i = 0; i < count; i++) {
			uint32_t low = 4096 + (uint32_t)rand() % SPACE;
			all[i] = (struct cover_range){ low, low + 1 + (uint32_t)rand() % 64, i,
						       (uint32_t)rand() % 8 };
			check(cover_add(&cover, unit * all[i].low, unit * all[i].high, i,
					all[i].rank));
		}
		check(cover_seal(&cover));
		for (uint32_t at = 4000; at < 4096 + SPACE + 100; at++) {
			uint32_t best = COVER_NONE;
			for (uint32_t i = 0; i < count; i++)
				if (all[i].low <= at && at < all[i].high &&
				    (best == COVER_NONE || all[i].rank > all[best].rank ||
				     (all[i].rank == all[best].rank &&
				      all[i].low >= all[best].low)))
					best = i;
			/* Among equal ones that began together it is the last; else that began last. */
			uint32_t got = cover_find(&cover, unit * at);
			wrong += got != best && (got == COVER_NONE || best == COVER_NONE ||
						 all[got].rank != all[best].rank);
		}
		cover_done(&cover);
	}
	check_u64(wrong, 0);
}

int main(void)
{
	tap_run(an_empty_one_has_nothing);
	tap_run(the_inner_one_holds_and_gives_back);
	tap_run(ranges_far_from_the_first_are_left_out);
	tap_run(ranges_in_any_order_and_nesting);
	return tap_end();
}
