/* SPDX-License-Identifier: MIT */
/*
 * struct tally_fast: reads a counter of the calling thread without a system call where the CPU
 * allows that, and by read(2) inside the same call everywhere else.
 *
 *	tally_counter_fast(counter, &fast, &err);
 *	tally_fast_read(&fast, &before);
 *	work();
 *	tally_fast_read(&fast, &after);
 *
 * A read always answers; which way it took is its own affair, and may differ from one read to the
 * next. It goes to the kernel where there is no page to read (an inherited event, no memory lock
 * left), where another thread than the counted one reads, in a forked child, while the event is not
 * on a counter (disabled, multiplexed away, a software event: their page holds what was true at the
 * last switch), and where the CPU or the kernel does not let user space read counters (on arm64:
 * kernel.perf_user_access 1 and TALLY_COUNTER_FAST are needed).
 *
 * What is read is what the kernel has counted since the counter was opened: tally_counter_reset()
 * is a baseline of the counter object and not seen here.
 *
 * All calls on a struct tally_fast are async-signal-safe, allocate nothing, take no lock, and may
 * be made by any number of threads at once. Two things the page cannot tell, and reading a counter
 * then faults: rdpmc was forbidden by root (/sys/bus/event_source/devices/cpu/rdpmc) while the
 * event was already counting, and the thread moved, between two instructions, to a core of another
 * kind that lacks that counter.
 *
 * See perf_event_open(2), "mmap layout", for the page. Names with an underscore at their end are no
 * part of the contract.
 */
#ifndef TALLY_FAST_H
#define TALLY_FAST_H

#include <tally/api.h>
#include <tally/count.h>

#if defined(__x86_64__) || defined(__i386__)
#include <tally/fast-x86.h>
#elif defined(__aarch64__)
#include <tally/fast-arm64.h>
#else
#include <tally/fast-other.h>
#endif

TALLY_BEGIN_DECLS

/*
 * Filled in by tally_counter_fast() and tally_group_fast(); valid until the counter or group is
 * closed. It may be copied. It is fixed, so that bindings of other languages can read by
 * themselves.
 */
struct tally_fast {
	/* The kernel's struct perf_event_mmap_page, or NULL: it cannot be mapped. */
	const void *page;
	/*
	 * The thread pointer of the thread that is counted, on memory that fork wipes
	 * (MADV_WIPEONFORK, Linux 4.14): the page is not copied to a child and touching it there is
	 * SIGSEGV. NULL without a page.
	 */
	const uintptr_t *owner;
	/* The kernel's id of the event, to find it when its group is read; 0: it is read alone. */
	uint64_t id;
	int32_t fd; /* the event's, or its group's leader's; borrowed from the counter */
	uint32_t reserved;
};

/*
 * Reads by read(2), whatever the page says: value, times, lost samples, settled. An event that is
 * pinned and lost its place answers 0 with state ERROR, as tally_counter_read().
 * Errors: -errno of read(2); -EIO for an answer that is too short or lacks the event. Since: 0.1
 */
TALLY_API int tally_fast_read_kernel(const struct tally_fast *fast, struct tally_count *out);

/* What tally_fast_read() does when it has to ask the kernel. Errors: its. Since: 0.1 */
TALLY_API int tally_fast_value_kernel(const struct tally_fast *fast, uint64_t *value);

/* The kernel's page, up to what Linux 5.9 has; all numbers in the machine's byte order. */
struct tally_fast_page_ {
	uint32_t version, compat_version;
	uint32_t lock;  /* odd, or changed: the rest was being written */
	uint32_t index; /* 1 + the number of the hardware counter; 0: on none */
	int64_t offset;
	uint64_t time_enabled, time_running;
	uint64_t capabilities;
	uint16_t pmc_width, time_shift;
	uint32_t time_mult;
	uint64_t time_offset, time_zero;
	uint32_t size, reserved_1;
	uint64_t time_cycles, time_mask;
};

/*
 * The n-th bit-field of one bit: compilers number them from the other end on big-endian machines.
 */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TALLY_FAST_CAP_(n) (1ull << (63 - (n)))
#else
#define TALLY_FAST_CAP_(n) (1ull << (n))
#endif
#define TALLY_FAST_USER_RDPMC_      TALLY_FAST_CAP_(2)
#define TALLY_FAST_USER_TIME_       TALLY_FAST_CAP_(3)
#define TALLY_FAST_USER_TIME_ZERO_  TALLY_FAST_CAP_(4)
#define TALLY_FAST_USER_TIME_SHORT_ TALLY_FAST_CAP_(5)

/* A page that changes so often while it is being read is left to the kernel. */
#define TALLY_FAST_TRIES_ 16

/*
 * What reads the CPU is an argument, so that a page can be tried out without one, and no call is
 * left.
 */
#define TALLY_FAST_INLINE_ static inline __attribute__((always_inline))

typedef bool tally_fast_counter_fn_(uint32_t n, uint64_t *value);
typedef bool tally_fast_clock_fn_(uint64_t *cycles);

struct tally_fast_now_ {
	uint64_t value, enabled, running;
};

/* Nanoseconds that `cycles` of the page's clock are, but for an offset. */
static inline uint64_t tally_fast_scale_(uint64_t cycles, uint16_t shift, uint32_t mult)
{
	uint64_t rest = cycles & ((1ull << shift) - 1);

	return (cycles >> shift) * mult + (rest * mult >> shift);
}

/* The counter's low `width` bits are a signed number: the kernel lets it run from below 0. */
static inline uint64_t tally_fast_extend_(uint64_t value, uint16_t width)
{
	return (uint64_t)((int64_t)(value << (64 - width)) >> (64 - width));
}

/* How long ago the page's times were written, ns. False: it does not say. */
TALLY_FAST_INLINE_ bool tally_fast_since_(const volatile struct tally_fast_page_ *page,
					  uint64_t caps, tally_fast_clock_fn_ *clock, uint64_t *ns)
{
	uint16_t shift = page->time_shift;
	uint32_t mult = page->time_mult;
	uint64_t offset = page->time_offset, cycles;

	if (!(caps & TALLY_FAST_USER_TIME_) || shift > 63 || !clock(&cycles))
		return false;
	if (caps & TALLY_FAST_USER_TIME_SHORT_) {
		/* The clock has fewer than 64 bits and may have wrapped. */
		uint64_t then = page->time_cycles;
		cycles = then + ((cycles - then) & page->time_mask);
	}
	*ns = offset + tally_fast_scale_(cycles, shift, mult);
	return true;
}

/*
 * One look at the page: 1 answered, 0 the kernel has to be asked, -1 it changed meanwhile. Acquire:
 * pairs with the barriers of perf_event_update_userpage() between its two increments of `lock`.
 * Without a clock the times are left alone.
 */
TALLY_FAST_INLINE_ int tally_fast_look_(const volatile struct tally_fast_page_ *page,
					tally_fast_counter_fn_ *counter,
					tally_fast_clock_fn_ *clock, struct tally_fast_now_ *now)
{
	uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
	uint64_t caps = page->capabilities, raw, since = 0;
	uint32_t index = page->index;
	uint16_t width = page->pmc_width;

	if (lock & 1)
		return -1;
	if (!(caps & TALLY_FAST_USER_RDPMC_) || !index || !width || width > 64)
		return 0;
	if (!counter(index - 1, &raw) || (clock && !tally_fast_since_(page, caps, clock, &since)))
		return 0;
	now->value = (uint64_t)page->offset + tally_fast_extend_(raw, width);
	if (clock) {
		/* On a counter, both go on. */
		now->enabled = page->time_enabled + since;
		now->running = page->time_running + since;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return page->lock == lock ? 1 : -1;
}

TALLY_FAST_INLINE_ bool tally_fast_from_page_(const void *page, tally_fast_counter_fn_ *counter,
					      tally_fast_clock_fn_ *clock,
					      struct tally_fast_now_ *now)
{
	int r = -1;

	for (int tries = 0; r < 0 && tries < TALLY_FAST_TRIES_; tries++)
		r = tally_fast_look_((const volatile struct tally_fast_page_ *)page, counter, clock,
				     now);
	return r > 0;
}

/* Whether this thread is the counted one, and the page is there: not so in a forked child. */
static inline bool tally_fast_mine_(const struct tally_fast *fast)
{
	return fast->page && *(const volatile uintptr_t *)fast->owner == tally_fast_thread_();
}

/*
 * The value alone: what the event has counted since it was opened, not scaled.
 * Errors, all from the way by read(2): -errno of it; -EBUSY when the event is pinned and lost its
 * place; -EIO. Since: 0.1
 */
static inline int tally_fast_read(const struct tally_fast *fast, uint64_t *value)
{
	struct tally_fast_now_ now;

	if (tally_fast_mine_(fast) &&
	    tally_fast_from_page_(fast->page, tally_fast_counter_, NULL, &now)) {
		*value = now.value;
		return 0;
	}
	return tally_fast_value_kernel(fast, value);
}

/*
 * The value with the times for which it was enabled and running, settled. Samples that were lost
 * are told only by the way through the kernel. Errors: those of tally_fast_read_kernel(). Since:
 * 0.1
 */
static inline int tally_fast_read_count(const struct tally_fast *fast, struct tally_count *out)
{
	struct tally_fast_now_ now;
	struct tally_count count;

	if (!tally_fast_mine_(fast) ||
	    !tally_fast_from_page_(fast->page, tally_fast_counter_, tally_fast_clock_, &now))
		return tally_fast_read_kernel(fast, out);
	count.raw = now.value;
	count.enabled_ns = now.enabled;
	count.running_ns = now.running;
	count.lost = 0;
	count.error = 0;
	count.flags = 0;
	count.reserved = 0;
	tally_count_settle(&count);
	*out = count;
	return 0;
}

/* tally_fast_read() and tally_fast_read_count() as functions, for other languages. Since: 0.1 */
TALLY_API int tally_fast_get(const struct tally_fast *fast, uint64_t *value);
TALLY_API int tally_fast_get_count(const struct tally_fast *fast, struct tally_count *out);

/*
 * Whether tally_fast_read() by this thread would answer without a system call now. It may be
 * different a moment later. Since: 0.1
 */
TALLY_API bool tally_fast_is_user(const struct tally_fast *fast);

TALLY_END_DECLS

#endif
