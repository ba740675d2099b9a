/* SPDX-License-Identifier: MIT */
/* count: states, scaling, sums and differences of readings. */
#include <errno.h>

#include <tally/count.h>

#include "tap.h"

static struct tally_count settled(uint64_t raw, uint64_t enabled, uint64_t running)
{
	struct tally_count c = { .raw = raw, .enabled_ns = enabled, .running_ns = running };

	tally_count_settle(&c);
	return c;
}

static void check_count(struct tally_count c, uint32_t state, uint64_t value)
{
	check_str(tally_count_state_name(c.state), tally_count_state_name(state));
	check_u64(c.value, value);
}

static void one_that_ran_all_the_time_is_exact(void)
{
	check_count(settled(42, 1000, 1000), TALLY_COUNT_EXACT, 42);
	check_count(settled(0, 1000, 1000), TALLY_COUNT_EXACT, 0);
	check_count(settled(UINT64_MAX, UINT64_MAX, UINT64_MAX), TALLY_COUNT_EXACT, UINT64_MAX);
}

/* The two times are not of one moment: new threads now and then run longer than they are enabled. */
static void one_that_ran_longer_than_it_was_enabled_is_exact(void)
{
	check_count(settled(42, 1000, 1001), TALLY_COUNT_EXACT, 42);
	check_count(settled(42, 1, UINT64_MAX), TALLY_COUNT_EXACT, 42);
}

static void one_that_was_never_enabled_is_exact(void)
{
	check_count(settled(0, 0, 0), TALLY_COUNT_EXACT, 0);
}

static void one_that_ran_part_of_the_time_is_scaled(void)
{
	check_count(settled(10, 300, 100), TALLY_COUNT_SCALED, 30);
	/* 10 * 100 / 30 = 33.3 */
	check_count(settled(10, 100, 30), TALLY_COUNT_SCALED, 33);
	check_count(settled(0, 100, 30), TALLY_COUNT_SCALED, 0);
}

static void scaling_does_not_overflow_in_between(void)
{
	/* A day of 4 GHz over three CPUs; the product needs 97 bits. */
	uint64_t cycles = 4000000000u * 86400u, day = 86400000000000u;

	check_count(settled(cycles, 3 * day, day), TALLY_COUNT_SCALED, 3 * cycles);
	check_count(settled(UINT64_MAX / 2, UINT64_MAX, UINT64_MAX - 1), TALLY_COUNT_SCALED,
		    UINT64_MAX / 2);
}

static void scaling_beyond_64_bits_saturates(void)
{
	check_count(settled(UINT64_MAX, 2, 1), TALLY_COUNT_SCALED, UINT64_MAX);
}

static void one_that_never_ran_has_no_value(void)
{
	check_count(settled(0, 1000, 0), TALLY_COUNT_NEVER_RAN, 0);
	check_count(settled(7, 1000, 0), TALLY_COUNT_NEVER_RAN, 0);
}

static void an_error_stays_one(void)
{
	struct tally_count c = { .raw = 5, .enabled_ns = 1, .running_ns = 1, .error = -EBUSY };

	tally_count_settle(&c);
	check_count(c, TALLY_COUNT_ERROR, 0);
}

static void a_difference_is_settled_anew(void)
{
	struct tally_count before = settled(100, 1000, 500), after = settled(400, 2000, 1500);
	struct tally_count d = tally_count_minus(&after, &before);

	/* It ran all the time in between. */
	check_count(d, TALLY_COUNT_EXACT, 300);
	check_u64(d.enabled_ns, 1000);
	after = settled(400, 2000, 500);
	check_count(tally_count_minus(&after, &before), TALLY_COUNT_NEVER_RAN, 0);
}

static void a_difference_clamps_at_nil(void)
{
	struct tally_count a = settled(1, 10, 10), b = settled(2, 20, 20);
	struct tally_count d = tally_count_minus(&a, &b);

	check_count(d, TALLY_COUNT_EXACT, 0);
	check_u64(d.raw, 0);
	check_u64(d.enabled_ns, 0);
	check_u64(d.running_ns, 0);
}

static void a_difference_with_an_error_is_one(void)
{
	struct tally_count a = settled(3, 10, 10), b = { .error = -EBUSY };

	tally_count_settle(&b);
	struct tally_count d = tally_count_minus(&a, &b);
	check_count(d, TALLY_COUNT_ERROR, 0);
	check_int(d.error, -EBUSY);
}

static void what_is_true_of_a_part_is_true_of_the_whole(void)
{
	struct tally_count a = settled(3, 10, 10), b = settled(1, 10, 10);

	b.flags = TALLY_COUNT_START_INEXACT;
	check_int(tally_count_minus(&a, &b).flags, TALLY_COUNT_START_INEXACT);
	tally_count_add(&a, &b);
	check_int(a.flags, TALLY_COUNT_START_INEXACT);
}

static void a_sum_adds_what_each_stands_for(void)
{
	struct tally_count a = settled(100, 10, 10), b = settled(50, 20, 10);

	b.lost = 3;
	tally_count_add(&a, &b);
	check_count(a, TALLY_COUNT_SCALED, 200);
	check_u64(a.raw, 150);
	check_u64(a.enabled_ns, 30);
	check_u64(a.running_ns, 20);
	check_u64(a.lost, 3);
}

static void a_sum_takes_the_worse_state_from_either_side(void)
{
	struct tally_count sum = settled(100, 10, 10), never = settled(0, 10, 0), broken = { 0 };
	struct tally_count exact = settled(100, 10, 10);

	tally_count_add(&sum, &never);
	check_count(sum, TALLY_COUNT_NEVER_RAN, 0);
	tally_count_add(&sum, &exact);
	check_count(sum, TALLY_COUNT_NEVER_RAN, 0);
	broken.error = -ENOENT;
	tally_count_settle(&broken);
	tally_count_add(&sum, &broken);
	check_count(sum, TALLY_COUNT_ERROR, 0);
	check_int(sum.error, -ENOENT);
	tally_count_add(&sum, &exact);
	check_count(sum, TALLY_COUNT_ERROR, 0);
}

static void a_sum_saturates(void)
{
	struct tally_count a = settled(UINT64_MAX, 1, 1), b = settled(1, 1, 1);

	tally_count_add(&a, &b);
	check_count(a, TALLY_COUNT_EXACT, UINT64_MAX);
}

static void states_have_names(void)
{
	check_str(tally_count_state_name(TALLY_COUNT_EXACT), "exact");
	check_str(tally_count_state_name(TALLY_COUNT_SCALED), "scaled");
	check_str(tally_count_state_name(TALLY_COUNT_NEVER_RAN), "never-ran");
	check_str(tally_count_state_name(TALLY_COUNT_ERROR), "error");
	check_str(tally_count_state_name(4), "?");
	check_str(tally_count_state_name(UINT32_MAX), "?");
}

int main(void)
{
	tap_run(one_that_ran_all_the_time_is_exact);
	tap_run(one_that_ran_longer_than_it_was_enabled_is_exact);
	tap_run(one_that_was_never_enabled_is_exact);
	tap_run(one_that_ran_part_of_the_time_is_scaled);
	tap_run(scaling_does_not_overflow_in_between);
	tap_run(scaling_beyond_64_bits_saturates);
	tap_run(one_that_never_ran_has_no_value);
	tap_run(an_error_stays_one);
	tap_run(a_difference_is_settled_anew);
	tap_run(a_difference_clamps_at_nil);
	tap_run(a_difference_with_an_error_is_one);
	tap_run(what_is_true_of_a_part_is_true_of_the_whole);
	tap_run(a_sum_adds_what_each_stands_for);
	tap_run(a_sum_takes_the_worse_state_from_either_side);
	tap_run(a_sum_saturates);
	tap_run(states_have_names);
	return tap_end();
}
