/* SPDX-License-Identifier: MIT */
/*
 * struct tally_page: what the kernel says in the page of an event that is mapped, and the
 * conversion between its time stamps and the CPU's own clock (TSC, CNTVCT), which also holds for
 * samples: those of a recording that uses no other clock (TALLY_ATTR_USE_CLOCKID).
 *
 *	tally_counter_fast(counter, &fast, &err);
 *	tally_page_read(&fast, &page);
 *	tally_page_time(&page, __rdtsc(), &ns);
 *
 * It is for instruments; counters are read by fast.h.
 */
#ifndef TALLY_PAGE_H
#define TALLY_PAGE_H

#include <tally/api.h>
#include <tally/fast.h>

TALLY_BEGIN_DECLS

/* Bits of tally_page.caps, in the order of the kernel's bit-fields, whatever the byte order. */
enum tally_page_cap {
	TALLY_PAGE_CAP_USER_RDPMC = 1u << 2,      /* user space may read the counter `index` - 1 */
	TALLY_PAGE_CAP_USER_TIME = 1u << 3,       /* time_shift, _mult and _offset hold */
	TALLY_PAGE_CAP_USER_TIME_ZERO = 1u << 4,  /* time_zero holds, with shift and mult */
	TALLY_PAGE_CAP_USER_TIME_SHORT = 1u << 5, /* time_cycles and time_mask hold [5.9] */
};

/* As perf_event_open(2) explains it under "mmap layout". It may grow at its end. */
struct tally_page {
	uint32_t version, compat_version;
	uint32_t index; /* 1 + the number of the hardware counter; 0: on none */
	uint32_t caps;  /* enum tally_page_cap */
	int64_t offset; /* to add to the hardware counter's value */
	uint64_t time_enabled, time_running; /* ns, when the page was last written */
	uint16_t pmc_width;                  /* bits of the hardware counter */
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_offset;
	uint64_t time_zero;
	uint64_t time_cycles, time_mask;
	uint64_t data_head, data_tail;   /* how far the kernel wrote, and the reader read */
	uint64_t data_offset, data_size; /* both 0 before Linux 4.1, and without a ring */
	uint64_t aux_head, aux_tail;
	uint64_t aux_offset, aux_size;
	uint32_t size; /* of the fields up to time_mask, as the kernel has them; 0 on old kernels */
	uint32_t reserved;
};

/*
 * Copies the page, whole: it is read again while the kernel changes it. Any thread of the process
 * that mapped it may. out_size  sizeof *out as the caller compiled it.
 * Errors: -ENODATA there is no page (see struct tally_fast), or this is a forked child, which has
 * it not; -EAGAIN it never rested; -EINVAL for a size of 0. Async-signal-safe. Since: 0.1
 */
TALLY_API int tally_page_read(const struct tally_fast *fast, struct tally_page *out,
			      size_t out_size);

/*
 * From cycles of the CPU's clock to the kernel's time stamp in ns, and back. Back and forth is the
 * same but for the rounding of one unit of the coarser clock.
 * Errors: -EOPNOTSUPP where the page does not tell (no TALLY_PAGE_CAP_USER_TIME_ZERO: no stable
 * clock, as in some virtual machines, or an event that uses another clock). Since: 0.1
 */
TALLY_API int tally_page_time(const struct tally_page *page, uint64_t cycles, uint64_t *ns);
TALLY_API int tally_page_cycles(const struct tally_page *page, uint64_t ns, uint64_t *cycles);

TALLY_END_DECLS

#endif
