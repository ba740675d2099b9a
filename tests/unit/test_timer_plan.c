/* SPDX-License-Identifier: MIT */
/* Margins and periods: what is armed for how far a target is, and what experience changes. */
#include <signal.h>

#include "exact/calibration.h"
#include "exact/timer-plan.h"
#include "tap.h"

static struct tally_clock_about about = { .margin = 100, .min_period = 1 };
static struct tally_skids none;

static struct plan plan_of(const struct tally_skids *seen, bool can_go_back, uint32_t retries)
{
	return plan_exact(&(struct plan_wish){ .clock = &about,
					       .seen = seen,
					       .late_one_in = 1000,
					       .can_go_back = can_go_back,
					       .retries = retries });
}

/* A period keeps off the target by the margin, or is none. */
static void keeps_the_margin(void)
{
	struct plan p = plan_of(&none, false, 0);

	check_u64(p.full, 100);
	check_u64(p.last, 100);
	check_u64(plan_period(&p, 0), 0);
	check_u64(plan_period(&p, 1), 0);
	check_u64(plan_period(&p, 100), 0);
	check_u64(plan_period(&p, 105), 0); /* fewer than are worth an interrupt */
	check_u64(plan_period(&p, 106), 6);
	check_u64(plan_period(&p, 10000), 9900);
	check_u64(plan_period(&p, UINT64_MAX), UINT64_MAX - 100);
}

static void keeps_to_what_can_be_armed(void)
{
	about.min_period = 32;
	about.max_period = 500;
	struct plan p = plan_of(&none, false, 0);
	check_u64(plan_period(&p, 131), 0);
	check_u64(plan_period(&p, 132), 32);
	check_u64(plan_period(&p, 600), 500);
	check_u64(plan_period(&p, 601), 500);
	about.min_period = about.max_period = 3;
	p = plan_of(&none, false, 0);
	check_u64(plan_period(&p, 103), 3);
	check_u64(plan_period(&p, 102), 0);
	about.min_period = 1;
	about.max_period = 0;
}

/* The last tick is always stepped to. */
static void never_arms_for_the_target_itself(void)
{
	about.margin = 0;
	struct plan p = plan_of(&none, false, 0);
	check_u64(plan_period(&p, 1000), 999);
	p = plan_at_least(&about);
	check_u64(plan_period(&p, 1000), 1000);
	check_u64(plan_period(&p, 5), 0);
	p = plan_exact(&(struct plan_wish){
		.clock = &about, .seen = &none, .late_one_in = 1000, .fixed = true });
	check_u64(plan_period(&p, 1000), 1000);
	about.margin = 100;
}

static void add(struct tally_skids *s, uint64_t skid, int times)
{
	for (int i = 0; i < times; i++)
		skids_add(s, skid);
}

static void learns(void)
{
	struct tally_skids s = { 0 };

	/* Too little to go below what is stated. */
	add(&s, 3, 3999);
	check_u64(plan_of(&s, false, 0).full, 100);
	add(&s, 3, 1);
	check_u64(plan_of(&s, false, 0).full, 3);
	/* Four of 4004 may be later, a fifth may not. */
	add(&s, 5000, 4);
	check_u64(plan_of(&s, false, 0).full, 3);
	add(&s, 5000, 1);
	check_u64(plan_of(&s, false, 0).full, 8191);
}

static void is_warned_by_two(void)
{
	struct tally_skids s = { 0 };

	add(&s, 10, 20);
	add(&s, 60000, 1);
	check_u64(plan_of(&s, false, 0).full, 100);
	add(&s, 50000, 1);
	/* Both lie in the bucket from 32768 on. */
	check_u64(plan_of(&s, false, 0).full, 65535);
}

static void shrinks_ahead_of_a_checkpoint(void)
{
	about.margin = 10000;
	struct plan p = plan_of(&none, true, 0);
	check_u64(p.full, 10000);
	check_u64(p.last, 156);
	/* 10000, 1250, 156: each only where the one before leaves too little. */
	check_u64(plan_period(&p, 50000), 40000);
	check_u64(plan_period(&p, 10006), 6);
	check_u64(plan_period(&p, 10005), 10005 - 1250);
	check_u64(plan_period(&p, 1256), 6);
	check_u64(plan_period(&p, 1255), 1255 - 156);
	check_u64(plan_period(&p, 161), 0);
	/* Each retry is wider than the last, up to stepping all of it. */
	check_u64(plan_of(&none, true, 1).full, 80000);
	check_u64(plan_of(&none, true, 1).last, 80000);
	check_u64(plan_of(&none, true, 64).full, UINT64_MAX);
	about.margin = 100;
}

static void takes_the_callers_margin(void)
{
	struct tally_skids s = { 0 };
	struct plan_wish w = { .clock = &about, .seen = &s, .margin = 7, .late_one_in = 1000 };

	add(&s, 1, 5000);
	check_u64(plan_exact(&w).full, 7);
	add(&s, 40, 20);
	check_u64(plan_exact(&w).full, 63);
	w.fixed = true;
	check_u64(plan_exact(&w).full, 7);
}

static void watches_by_the_rate(void)
{
	about.rate = 0;
	check_int(plan_watch_ms(&about, 1000), 1000);
	about.rate = 1e6;
	check_int(plan_watch_ms(&about, 1), 20);
	check_int(plan_watch_ms(&about, 1000000), 4000);
	check_int(plan_watch_ms(&about, UINT64_MAX), 60000);
	about.rate = 0;
}

static void bounds_are_right(void)
{
	struct tally_skids s = { 0 };

	check_u64(skids_bound(&s, 0), 0);
	add(&s, 0, 5);
	check_u64(skids_bound(&s, 0), 0);
	add(&s, 1, 1);
	check_u64(skids_bound(&s, 0), 1);
	check_u64(skids_bound(&s, 1), 0);
	add(&s, 5, 1);
	check_u64(skids_bound(&s, 0), 7);
	add(&s, 1000, 1);
	check_u64(skids_bound(&s, 1), 7);
	check_u64(skids_bound(&s, 3), 0);
	add(&s, UINT64_MAX, 1);
	check_u64(skids_bound(&s, 0), UINT64_MAX);
	check_u64(s.bucket[TALLY_SKID_BUCKETS - 1], 1);
	check_u64(s.count, 9);
}

int main(void)
{
	tap_run(keeps_the_margin);
	tap_run(keeps_to_what_can_be_armed);
	tap_run(never_arms_for_the_target_itself);
	tap_run(learns);
	tap_run(is_warned_by_two);
	tap_run(shrinks_ahead_of_a_checkpoint);
	tap_run(takes_the_callers_margin);
	tap_run(watches_by_the_rate);
	tap_run(bounds_are_right);
	return tap_end();
}
