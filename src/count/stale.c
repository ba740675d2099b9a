/* SPDX-License-Identifier: MIT */
/*
 * Enabling events of a control group. Linux (6.18, kernel/events/core.c, __perf_event_enable()) does not
 * bring the clock of a control group up to date when the first event of it on a CPU is enabled, so
 * that the event begins at the time when one was last active, seconds or hours ago, and the time of
 * the idle stretch becomes part of its time_enabled and time_running. Measured: 4.99 s after 20 ms.
 * The stretch is in what is read right after the enabling, and is made part of the base. Disabling and
 * enabling once more would keep it out too, but leaves a task-clock in a group at a standstill.
 */
#include <linux/perf_event.h>
#include <stddef.h>

#include "count/opened.h"

enum sign {
	MINUS,
	PLUS
};

/* Unsigned arithmetic wraps, so that what is taken away first and given back later is exact. */
static void shift(uint64_t *at, uint64_t by, enum sign sign)
{
	*at = sign == PLUS ? *at + by : *at - by;
}

static int shift_times(struct opened *o, uint32_t place, enum sign sign)
{
	int r = opened_fetch(o, place);

	for (uint32_t m = 0; r == 0 && m < o->members; m++) {
		struct tally_count *base = &o->base[(size_t)place * o->members + m];
		const struct tally_count *now = &o->now[m];
		shift(&base->enabled_ns, now->enabled_ns, sign);
		shift(&base->running_ns, now->running_ns, sign);
	}
	return r;
}

int opened_enable_stale(struct opened *o)
{
	int r = 0;

	for (uint32_t p = 0; r == 0 && p < o->places_count; p++)
		r = shift_times(o, p, MINUS);
	if (r == 0)
		r = opened_ioctl(o, PERF_EVENT_IOC_ENABLE);
	for (uint32_t p = 0; r == 0 && p < o->places_count; p++)
		r = shift_times(o, p, PLUS);
	return r;
}
