/* SPDX-License-Identifier: MIT */
/* page: copies of pages made by hand after linux/perf_event.h, and the clock's arithmetic. */
#include <errno.h>
#include <linux/perf_event.h>

#include <tally/page.h>

#include "tap.h"

/* 3 GHz, as Linux 6 on x86 gives it: cycles * mult >> shift. */
#define SHIFT 31
#define MULT  715827883u /* 2^31 / 3 */

static struct perf_event_mmap_page kernel;
static uintptr_t owner = 1;
static const struct tally_fast fast = { .page = &kernel, .owner = &owner, .fd = -1 };

static void fields_are_the_kernels(void)
{
	struct tally_page page;

	memset(&kernel, 0, sizeof(kernel));
	kernel.version = 1;
	kernel.compat_version = 2;
	kernel.lock = 6;
	kernel.index = 3;
	kernel.offset = -4;
	kernel.time_enabled = 5;
	kernel.time_running = 6;
	kernel.cap_bit0_is_deprecated = 1;
	kernel.cap_user_rdpmc = 1;
	kernel.cap_user_time_zero = 1;
	kernel.pmc_width = 7;
	kernel.time_shift = 8;
	kernel.time_mult = 9;
	kernel.time_offset = 10;
	kernel.time_zero = 11;
	kernel.size = 12;
	kernel.time_cycles = 13;
	kernel.time_mask = 14;
	kernel.data_head = 15;
	kernel.data_tail = 16;
	kernel.data_offset = 17;
	kernel.data_size = 18;
	kernel.aux_head = 19;
	kernel.aux_tail = 20;
	kernel.aux_offset = 21;
	kernel.aux_size = 22;
	require(tally_page_read(&fast, &page, sizeof(page)) == 0);
	check_u64(page.version, 1);
	check_u64(page.compat_version, 2);
	check_u64(page.index, 3);
	check_int(page.offset, -4);
	check_u64(page.time_enabled, 5);
	check_u64(page.time_running, 6);
	check_u64(page.caps, TALLY_PAGE_CAP_USER_RDPMC | TALLY_PAGE_CAP_USER_TIME_ZERO);
	check_u64(page.pmc_width, 7);
	check_u64(page.time_shift, 8);
	check_u64(page.time_mult, 9);
	check_u64(page.time_offset, 10);
	check_u64(page.time_zero, 11);
	check_u64(page.size, 12);
	check_u64(page.time_cycles, 13);
	check_u64(page.time_mask, 14);
	check_u64(page.data_head, 15);
	check_u64(page.data_tail, 16);
	check_u64(page.data_offset, 17);
	check_u64(page.data_size, 18);
	check_u64(page.aux_head, 19);
	check_u64(page.aux_tail, 20);
	check_u64(page.aux_offset, 21);
	check_u64(page.aux_size, 22);
	kernel.capabilities = 0;
	kernel.cap_user_time = 1;
	kernel.cap_user_time_short = 1;
	require(tally_page_read(&fast, &page, sizeof(page)) == 0);
	check_u64(page.caps, TALLY_PAGE_CAP_USER_TIME | TALLY_PAGE_CAP_USER_TIME_SHORT);
}

static void smaller_and_larger_structs_are_filled(void)
{
	struct {
		struct tally_page page;
		uint64_t newer;
	} larger = { .newer = 7 };
	struct tally_page page = { .time_enabled = 99 };

	memset(&kernel, 0, sizeof(kernel));
	kernel.index = 3;
	kernel.time_enabled = 5;
	check_int(tally_page_read(&fast, &page, offsetof(struct tally_page, time_enabled)), 0);
	check_u64(page.index, 3);
	check_u64(page.time_enabled, 99);
	check_int(tally_page_read(&fast, &larger.page, sizeof(larger)), 0);
	check_u64(larger.page.time_enabled, 5);
	check_u64(larger.newer, 0);
	check_int(tally_page_read(&fast, &page, 0), -EINVAL);
}

static void without_a_page_there_is_no_data(void)
{
	struct tally_fast none = { .fd = -1 }, childs = fast;
	struct tally_page page = { .index = 9 };
	uintptr_t wiped = 0;

	check_int(tally_page_read(&none, &page, sizeof(page)), -ENODATA);
	childs.owner = &wiped;
	check_int(tally_page_read(&childs, &page, sizeof(page)), -ENODATA);
	check_u64(page.index, 9);
}

static void a_page_that_never_rests_is_told(void)
{
	struct tally_page page;

	memset(&kernel, 0, sizeof(kernel));
	kernel.lock = 3;
	check_int(tally_page_read(&fast, &page, sizeof(page)), -EAGAIN);
}

/* The formulas of linux/perf_event.h, in numbers that can be seen through. */
static void the_clock_is_converted(void)
{
	struct tally_page page = { .caps = TALLY_PAGE_CAP_USER_TIME_ZERO,
				   .time_shift = 10,
				   .time_mult = 512,
				   .time_zero = 1000000 };
	uint64_t ns = 0, cycles = 0;

	check_int(tally_page_time(&page, 2048, &ns), 0);
	check_u64(ns, 1001024);
	check_int(tally_page_cycles(&page, 1001024, &cycles), 0);
	check_u64(cycles, 2048);
	/* A clock that began before the kernel's time did. */
	page.time_zero = (uint64_t)-1000;
	check_int(tally_page_time(&page, 4000, &ns), 0);
	check_u64(ns, 1000);
	check_int(tally_page_cycles(&page, 1000, &cycles), 0);
	check_u64(cycles, 4000);
}

static void there_and_back_is_the_same(void)
{
	struct tally_page page = { .caps = TALLY_PAGE_CAP_USER_TIME_ZERO,
				   .time_shift = SHIFT,
				   .time_mult = MULT,
				   .time_zero = 123456789 };

	/* From the first cycle to a hundred years of them. */
	for (uint64_t cycles = 1; cycles < 10000000000000000000u / 3; cycles = cycles * 3 + 1) {
		uint64_t ns = 0, back = 0;
		check_int(tally_page_time(&page, cycles, &ns), 0);
		check_int(tally_page_cycles(&page, ns, &back), 0);
		/* A ns has 3 cycles. */
		check(back <= cycles && cycles - back <= 3);
		if (cycles < UINT64_MAX / 4)
			check((ns - page.time_zero) - cycles / 3 <= 1 + (cycles >> 32));
	}
}

static void a_short_clock_wraps(void)
{
	struct tally_page page = {
		.caps = TALLY_PAGE_CAP_USER_TIME_ZERO | TALLY_PAGE_CAP_USER_TIME_SHORT,
		.time_shift = 10,
		.time_mult = 512,
		.time_cycles = (UINT64_C(1) << 56) - 100,
		.time_mask = (UINT64_C(1) << 56) - 1,
	};
	uint64_t ns = 0;

	check_int(tally_page_time(&page, 100, &ns), 0);
	check_u64(ns, ((UINT64_C(1) << 56) + 100) / 2);
	check_int(tally_page_time(&page, (UINT64_C(1) << 56) - 50, &ns), 0);
	check_u64(ns, ((UINT64_C(1) << 56) - 50) / 2);
}

static void without_a_clock_it_is_not_guessed(void)
{
	struct tally_page page = { .caps = TALLY_PAGE_CAP_USER_TIME,
				   .time_shift = 10,
				   .time_mult = 512 };
	uint64_t at = 5;

	check_int(tally_page_time(&page, 1, &at), -EOPNOTSUPP);
	check_int(tally_page_cycles(&page, 1, &at), -EOPNOTSUPP);
	page.caps = TALLY_PAGE_CAP_USER_TIME_ZERO;
	page.time_mult = 0;
	check_int(tally_page_cycles(&page, 1, &at), -EOPNOTSUPP);
	page.time_mult = 1;
	page.time_shift = 64;
	check_int(tally_page_time(&page, 1, &at), -EOPNOTSUPP);
	check_int(tally_page_cycles(&page, 1, &at), -EOPNOTSUPP);
	check_u64(at, 5);
}

int main(void)
{
	tap_run(fields_are_the_kernels);
	tap_run(smaller_and_larger_structs_are_filled);
	tap_run(without_a_page_there_is_no_data);
	tap_run(a_page_that_never_rests_is_told);
	tap_run(the_clock_is_converted);
	tap_run(there_and_back_is_the_same);
	tap_run(a_short_clock_wraps);
	tap_run(without_a_clock_it_is_not_guessed);
	return tap_end();
}
