/* SPDX-License-Identifier: MIT */
/*
 * struct tally_count: one reading of one event, which knows whether it is true.
 *
 * When more events are open than the PMU has counters, the kernel runs them in turns; a count then
 * stands for a share of the time only. `state` says so, and `value` is never silently wrong.
 */
#ifndef TALLY_COUNT_H
#define TALLY_COUNT_H

#include <tally/api.h>

TALLY_BEGIN_DECLS

enum tally_count_state {
	TALLY_COUNT_EXACT,     /* counted all the time that it was enabled */
	TALLY_COUNT_SCALED,    /* counted part of the time; `value` is extrapolated */
	TALLY_COUNT_NEVER_RAN, /* enabled, but never scheduled on the PMU: `value` is 0 and means
				  nothing */
	TALLY_COUNT_ERROR, /* pinned and descheduled, or not opened: `value` is 0 and means nothing
			    */
};

/* What is true of a reading beside its state: bits of tally_count.flags. */
enum tally_count_flags {
	/*
	 * The target ran while counters were attached to it: a thread that started in that moment
	 * may be counted twice, or not from its start.
	 */
	TALLY_COUNT_START_INEXACT = 1u << 0,
	/* Not above what measuring alone counts (tally_count_overhead): as good as 0. */
	TALLY_COUNT_BELOW_OVERHEAD = 1u << 1,
};

struct tally_count {
	uint64_t value;      /* raw * enabled_ns / running_ns; raw itself when EXACT */
	uint64_t raw;        /* what the counter counted */
	uint64_t enabled_ns; /* how long it was enabled, summed over its places */
	uint64_t running_ns; /* how long it was on the PMU, summed over its places */
	uint64_t lost;       /* samples that the event lost, where the kernel tells (6.0) */
	uint32_t state;      /* enum tally_count_state */
	int32_t error;       /* 0, or a negative errno that explains ERROR */
	uint32_t flags;      /* enum tally_count_flags */
	uint32_t reserved;
};

/*
 * A count and what it is a count of, for printing and for metrics. The texts are borrowed from the
 * event.
 */
struct tally_result {
	const char *label; /* the event's name */
	const char *unit;  /* "" for plain counts */
	double scale;      /* value * scale is in that unit */
	struct tally_count count;
};

/* The state as text: "exact", "scaled", "never-ran", "error". Since: 0.1 */
TALLY_API const char *tally_count_state_name(uint32_t state);

/*
 * Fills in state and value from raw, enabled_ns and running_ns, with 128-bit arithmetic. An event
 * that was never enabled (enabled_ns 0) is EXACT: it counted all of no time. Since: 0.1
 */
TALLY_API void tally_count_settle(struct tally_count *count);

/* a - b, for two readings of one counter; the state is settled anew. Clamps at 0. Since: 0.1 */
TALLY_API struct tally_count tally_count_minus(const struct tally_count *a,
					       const struct tally_count *b);

/*
 * Adds b to a, as for several targets or repeated runs: values, times and lost are summed, each
 * value as it was extrapolated for itself, and the worse state wins. Since: 0.1
 */
TALLY_API void tally_count_add(struct tally_count *a, const struct tally_count *b);

TALLY_END_DECLS

#endif
