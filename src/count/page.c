/* SPDX-License-Identifier: MIT */
/* The kernel's page as a struct of plain numbers, and its clock. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <tally/page.h>

#include "base/bytes.h"

#define TRIES 1000

/* Where head and tail of the rings are: behind the page's first KiB. */
#define DATA_HEAD 1024

struct data_words {
	uint64_t data_head, data_tail, data_offset, data_size;
	uint64_t aux_head, aux_tail, aux_offset, aux_size;
};

_Static_assert(offsetof(struct perf_event_mmap_page, data_head) == DATA_HEAD, "the rings' words");
_Static_assert(offsetof(struct perf_event_mmap_page, aux_size) ==
		       DATA_HEAD + offsetof(struct data_words, aux_size),
	       "the rings' words");

static uint32_t caps_of(uint64_t capabilities)
{
	static const struct {
		uint64_t kernels;
		uint32_t ours;
	} map[] = {
		{ TALLY_FAST_USER_RDPMC_, TALLY_PAGE_CAP_USER_RDPMC },
		{ TALLY_FAST_USER_TIME_, TALLY_PAGE_CAP_USER_TIME },
		{ TALLY_FAST_USER_TIME_ZERO_, TALLY_PAGE_CAP_USER_TIME_ZERO },
		{ TALLY_FAST_USER_TIME_SHORT_, TALLY_PAGE_CAP_USER_TIME_SHORT },
	};
	uint32_t caps = 0;

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (capabilities & map[i].kernels)
			caps |= map[i].ours;
	return caps;
}

static void copy_front(struct tally_page *to, const volatile struct tally_fast_page_ *from)
{
	to->version = from->version;
	to->compat_version = from->compat_version;
	to->index = from->index;
	to->caps = caps_of(from->capabilities);
	to->offset = from->offset;
	to->time_enabled = from->time_enabled;
	to->time_running = from->time_running;
	to->pmc_width = from->pmc_width;
	to->time_shift = from->time_shift;
	to->time_mult = from->time_mult;
	to->time_offset = from->time_offset;
	to->time_zero = from->time_zero;
	to->time_cycles = from->time_cycles;
	to->time_mask = from->time_mask;
	to->size = from->size;
}

/* The heads are written without the lock. Acquire: what was written before them is whole then. */
static void copy_data(struct tally_page *to, const struct data_words *from)
{
	to->data_head = __atomic_load_n(&from->data_head, __ATOMIC_ACQUIRE);
	to->data_tail = __atomic_load_n(&from->data_tail, __ATOMIC_RELAXED);
	to->data_offset = __atomic_load_n(&from->data_offset, __ATOMIC_RELAXED);
	to->data_size = __atomic_load_n(&from->data_size, __ATOMIC_RELAXED);
	to->aux_head = __atomic_load_n(&from->aux_head, __ATOMIC_ACQUIRE);
	to->aux_tail = __atomic_load_n(&from->aux_tail, __ATOMIC_RELAXED);
	to->aux_offset = __atomic_load_n(&from->aux_offset, __ATOMIC_RELAXED);
	to->aux_size = __atomic_load_n(&from->aux_size, __ATOMIC_RELAXED);
}

/* Acquire: as in tally_fast_look_(). */
static int read_page(const volatile struct tally_fast_page_ *from, struct tally_page *to)
{
	for (int tries = 0; tries < TRIES; tries++) {
		uint32_t lock = __atomic_load_n(&from->lock, __ATOMIC_ACQUIRE);
		copy_front(to, from);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(lock & 1) && from->lock == lock)
			return 0;
	}
	return -EAGAIN;
}

int tally_page_read(const struct tally_fast *fast, struct tally_page *out, size_t out_size)
{
	struct tally_page page = { 0 };

	if (!out_size)
		return -EINVAL;
	/* Fork wipes the owner; another thread may read as well. */
	if (!fast->page || !*(const volatile uintptr_t *)fast->owner)
		return -ENODATA;
	int r = read_page(fast->page, &page);
	if (r < 0)
		return r;
	copy_data(&page, (const struct data_words *)((const char *)fast->page + DATA_HEAD));
	memset(out, 0, out_size);
	memcpy(out, &page, out_size < sizeof(page) ? out_size : sizeof(page));
	return 0;
}

static bool has_clock(const struct tally_page *page)
{
	return page->caps & TALLY_PAGE_CAP_USER_TIME_ZERO && page->time_shift < 64 &&
	       page->time_mult;
}

int tally_page_time(const struct tally_page *page, uint64_t cycles, uint64_t *ns)
{
	if (!has_clock(page))
		return -EOPNOTSUPP;
	if (page->caps & TALLY_PAGE_CAP_USER_TIME_SHORT)
		cycles = page->time_cycles + ((cycles - page->time_cycles) & page->time_mask);
	*ns = page->time_zero + tally_fast_scale_(cycles, page->time_shift, page->time_mult);
	return 0;
}

/* 128 bits: what is left of a division by mult, shifted, has more than 64. */
int tally_page_cycles(const struct tally_page *page, uint64_t ns, uint64_t *cycles)
{
	if (!has_clock(page))
		return -EOPNOTSUPP;
	uint64_t since = ns - page->time_zero;
	uint64_t whole = since / page->time_mult, rest = since % page->time_mult;
	*cycles = (whole << page->time_shift) +
		  (uint64_t)(((u128)rest << page->time_shift) / page->time_mult);
	return 0;
}
