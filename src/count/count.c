/* SPDX-License-Identifier: MIT */
/* Readings: whether a count is exact, and sums and differences that do not lie about it. */
#include <errno.h>

#include <tally/count.h>

#include "base/bytes.h"
#include "count/settle.h"

static const char *const names[] = {
	[TALLY_COUNT_EXACT] = "exact",
	[TALLY_COUNT_SCALED] = "scaled",
	[TALLY_COUNT_NEVER_RAN] = "never-ran",
	[TALLY_COUNT_ERROR] = "error",
};

const char *tally_count_state_name(uint32_t state)
{
	return state < ARRAY_SIZE(names) ? names[state] : "?";
}

void tally_count_settle(struct tally_count *count)
{
	count_settle(count);
}

static uint64_t clamped_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The first error of two readings; an ERROR without an errno still is one. */
static int32_t error_of(const struct tally_count *a, const struct tally_count *b)
{
	if (a->error < 0)
		return a->error;
	if (b->error < 0)
		return b->error;
	return a->state == TALLY_COUNT_ERROR || b->state == TALLY_COUNT_ERROR ? -EIO : 0;
}

struct tally_count tally_count_minus(const struct tally_count *a, const struct tally_count *b)
{
	struct tally_count d = {
		.raw = clamped_minus(a->raw, b->raw),
		.enabled_ns = clamped_minus(a->enabled_ns, b->enabled_ns),
		.running_ns = clamped_minus(a->running_ns, b->running_ns),
		.lost = clamped_minus(a->lost, b->lost),
		.error = error_of(a, b),
		.flags = a->flags | b->flags,
	};

	tally_count_settle(&d);
	return d;
}

/*
 * Values are added, not settled anew from the sums: each was extrapolated with its own share of the
 * time, which a sum of times no longer knows.
 */
void tally_count_add(struct tally_count *a, const struct tally_count *b)
{
	a->error = error_of(a, b);
	a->raw = clamped_plus(a->raw, b->raw);
	a->enabled_ns = clamped_plus(a->enabled_ns, b->enabled_ns);
	a->running_ns = clamped_plus(a->running_ns, b->running_ns);
	a->lost = clamped_plus(a->lost, b->lost);
	a->flags |= b->flags;
	if (b->state > a->state)
		a->state = b->state;
	a->value = a->state <= TALLY_COUNT_SCALED ? clamped_plus(a->value, b->value) : 0;
}
