/* SPDX-License-Identifier: MIT */
/* Timers when interrupts and clocks do what they should not: late, lost, old, foreign; broken. */
#include <errno.h>
#include <signal.h>

#include "loops.h"
#include "tap.h"

static void is_never_early(void)
{
	struct tally_sim_opts opts = loops_of(2000 * 150);
	struct simdrive d;
	uint64_t at = 0;

	opts.early_ppm = opts.stale_ppm = opts.duplicate_ppm = 200000;
	require(simdrive_open(&d, loop, 3, &opts, NULL));
	while (ask(&d, AT_LEAST(150)) == TALLY_OUTCOME_REACHED) {
		check(simdrive_ticks(&d) >= at + 150);
		check_u64(tally_timer_outcome(d.timer)->late_by, simdrive_ticks(&d) - at - 150);
		at = simdrive_ticks(&d);
	}
	check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_EXITED);
	check(at > 150 * 1500);
	simdrive_close(&d);
}

/* The interrupt of a long timer, still under way when a short one is set. */
static void old_interrupts_do_no_harm(void)
{
	for (uint64_t lead = 0; lead < 200; lead += 5)
		for (uint64_t round = 0; round < 50; round++) {
			struct tally_sim_opts opts = loops_of(5000);
			struct tally_timer_action action;
			struct simdrive d;
			struct tally_stop stop;
			opts.seed = lead * 50 + round;
			opts.stale_ppm = 900000;
			opts.duplicate_ppm = 300000;
			require(simdrive_open(&d, loop, 3, &opts, NULL));
			require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 300));
			check_int(tally_timer_next(d.timer, &action), 0);
			for (uint64_t i = 0; i < lead * 2; i++) {
				tally_sim_resume(d.sim, TALLY_RESUME_STEP, 0);
				tally_sim_wait(d.sim, -1, &stop);
			}
			uint64_t before = simdrive_ticks(&d);
			check_int(ask(&d, EXACTLY(15)), TALLY_OUTCOME_REACHED);
			check_u64(simdrive_ticks(&d), before + 15);
			simdrive_run_out(&d);
			check_u64(tally_sim_counts(d.sim)->delivered[SIGSTKFLT], 0);
			check_u64(tally_timer_stats(d.timer)->reached, 1);
			simdrive_close(&d);
		}
}

/* Margins from none to more than enough: late is said, and never reached at another place. */
static void a_small_margin_is_late(void)
{
	uint64_t late_ones = 0, reached = 0;

	for (uint64_t margin = 0; margin <= 80; margin += 4)
		for (uint64_t seed = 0; seed < 50; seed++) {
			struct tally_sim_opts opts = loops_of(2000);
			struct simdrive d;
			opts.seed = seed;
			require(simdrive_open(&d, loop, 3, &opts,
					      TALLY_OPTS(timer, .flags = TALLY_TIMER_FIXED_MARGIN,
							 .margin = margin)));
			uint32_t kind = ask(&d, EXACTLY(1000));
			const struct tally_timer_outcome *o = tally_timer_outcome(d.timer);
			check(kind == TALLY_OUTCOME_REACHED || kind == TALLY_OUTCOME_LATE);
			check_u64(o->late_by, simdrive_ticks(&d) - 1000);
			check(kind == TALLY_OUTCOME_LATE || simdrive_pc(&d) == AT(0));
			late_ones += kind == TALLY_OUTCOME_LATE;
			reached += kind == TALLY_OUTCOME_REACHED;
			check(margin || kind == TALLY_OUTCOME_LATE);
			check(margin < 44 || kind == TALLY_OUTCOME_REACHED);
			simdrive_close(&d);
		}
	check(late_ones > 100 && reached > 400);
}

/* Late once or twice, and then the margin has grown. */
static void learns_from_being_late(void)
{
	struct tally_sim_opts opts = loops_of(1000000);
	struct simdrive d;
	int late_ones = 0;

	opts.margin = 1;
	opts.skid_min = 35;
	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (int i = 0; i < 100; i++)
		late_ones += ask(&d, EXACTLY(5000)) == TALLY_OUTCOME_LATE;
	check_int(late_ones, 2);
	check(tally_timer_stats(d.timer)->skids.max >= 35);
	simdrive_close(&d);
}

static void shares_what_it_learns(void)
{
	struct tally_calibration *seen = NULL;
	struct tally_sim_opts opts = loops_of(100000);
	struct simdrive d;

	require(tally_calibration_new(&seen, "sim", NULL) == 0);
	opts.margin = 1000;
	for (int i = 0; i < 4000; i++)
		tally_calibration_add(seen, 43);
	require(simdrive_open(&d, loop, 3, &opts, TALLY_OPTS(timer, .calibration = seen)));
	check_int(ask(&d, EXACTLY(50000)), TALLY_OUTCOME_REACHED);
	check(tally_timer_stats(d.timer)->steps <= 2 * 44);
	check_u64(tally_calibration_skids(seen)->count, 4001);
	simdrive_close(&d);
	tally_calibration_free(seen);
}

static void lost_interrupts_are_found(void)
{
	struct tally_sim_opts opts = loops_of(10000000);
	struct simdrive d;

	opts.lost_ppm = 1000000;
	opts.per_ms = 100;
	require(simdrive_open(&d, loop, 3, &opts, TALLY_OPTS(timer, .watch_ms = 10)));
	check_int(ask(&d, EXACTLY(5000)), TALLY_OUTCOME_LATE);
	check(tally_timer_outcome(d.timer)->late_by <= 510);
	check_u64(tally_timer_stats(d.timer)->lost, 1);
	check_has(tally_timer_outcome(d.timer)->why, "interrupt");
	check_int(ask(&d, AT_LEAST(1000)), TALLY_OUTCOME_REACHED);
	check_u64(tally_timer_stats(d.timer)->lost, 2);
	/* A wide margin bears the loss. */
	check_int(tally_timer_stats(d.timer)->reached, 1);
	simdrive_close(&d);
	require(simdrive_open(&d, loop, 3, &opts,
			      TALLY_OPTS(timer, .watch_ms = 10, .margin = 1000)));
	check_int(ask(&d, EXACTLY(5000)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 5000);
	simdrive_close(&d);
}

/* The same number sent by others: it is the program's. */
static void leaves_signals_of_others(void)
{
	const struct tally_sim_insn program[] = {
		{ TALLY_SIM_KILL, .value = SIGSTKFLT },
		{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
		{ TALLY_SIM_EXIT },
	};
	struct tally_sim_opts opts = loops_of(400);
	struct simdrive d;

	require(simdrive_open(&d, program, ARRAY_SIZE(program), &opts, NULL));
	check_int(ask(&d, EXACTLY(200)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 200);
	check_u64(tally_sim_counts(d.sim)->delivered[SIGSTKFLT], 200);
	simdrive_run_out(&d);
	check_u64(tally_sim_counts(d.sim)->delivered[SIGSTKFLT], 400);
	simdrive_close(&d);
}

static void distrusts_a_clock(struct tally_sim_opts opts, uint32_t validity, const char *why)
{
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	check_int(ask(&d, EXACTLY(1000)), TALLY_OUTCOME_CLOCK_INVALID);
	check_int(tally_timer_outcome(d.timer)->clock.validity, validity);
	check_has(tally_timer_outcome(d.timer)->why, why);
	check_u64(tally_timer_stats(d.timer)->invalid, 1);
	simdrive_close(&d);
}

static void distrusts_clocks(void)
{
	struct tally_sim_opts opts = loops_of(10000);

	opts.invalid_at = 950;
	opts.invalid = TALLY_CLOCK_NOT_COUNTING;
	distrusts_a_clock(opts, TALLY_CLOCK_NOT_COUNTING, "on the hardware");
	opts.invalid = TALLY_CLOCK_REVOKED;
	distrusts_a_clock(opts, TALLY_CLOCK_REVOKED, "took the counter away");
	opts.invalid_at = 0;
	opts.backward_at = 996; /* while the last ticks are stepped */
	opts.backward = 2;
	distrusts_a_clock(opts, TALLY_CLOCK_BACKWARD, "backward");
	/* A counter that counts what is no branch is found out by the steps. */
	opts.backward_at = 0;
	opts.miscount_ppm = 100000;
	opts.flags = TALLY_SIM_FOLLOWS_STEPS;
	distrusts_a_clock(opts, TALLY_CLOCK_VALID, "other than what it executed");
}

/* A request on a clock that does not hold is no request. */
static void refuses_requests_on_a_broken_clock(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct simdrive d;
	struct tally_stop stop;

	opts.invalid_at = 1;
	opts.invalid = TALLY_CLOCK_NOT_COUNTING;
	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (int i = 0; i < 2; i++) {
		tally_sim_resume(d.sim, TALLY_RESUME_STEP, 0);
		tally_sim_wait(d.sim, -1, &stop);
	}
	check(!simdrive_ask(&d, EXACTLY(10)));
	check_int(d.err.code, -EIO);
	check_has(d.err.text, "on the hardware");
	simdrive_close(&d);
}

/* A caller with checkpoints: forks of the thread. */
static uint32_t go_with_checkpoints(struct simdrive *d, int *taken, int *back)
{
	struct tally_timer_action action;
	struct tally_sim *saved = NULL, *sim;
	struct tally_clock *clock;
	uint64_t ticks = 0;
	struct tally_stop stop;

	for (;;) {
		while (simdrive_once(d, &stop))
			;
		if (tally_timer_next(d->timer, &action) == 0)
			break; /* done */
		/* simdrive_once() asked, and could not perform it: the first question is to take. */
		if (!saved) {
			check_int(tally_sim_copy(&saved, d->sim, NULL), 0);
			ticks = simdrive_ticks(d);
			++*taken;
		} else {
			check_int(tally_sim_copy(&sim, saved, NULL), 0);
			check_int(tally_sim_clock(&clock, sim, NULL), 0);
			check_int(tally_clock_set(clock, ticks), 0);
			check_int(tally_timer_move(d->timer, clock, NULL), 0);
			tally_clock_free(d->clock);
			tally_sim_free(d->sim);
			d->sim = sim;
			d->clock = clock;
			++*back;
		}
		tally_timer_answer(d->timer, 0);
	}
	tally_sim_free(saved);
	return tally_timer_outcome(d->timer)->kind;
}

static void goes_back_when_it_is_late(void)
{
	for (uint64_t skid = 0; skid < 3000; skid += 250) {
		struct tally_sim_opts opts = loops_of(100000);
		struct simdrive d;
		int taken = 0, back = 0;
		opts.margin = 100;
		opts.skid_min = opts.skid_max = skid;
		opts.skid_insns = 0;
		require(simdrive_open(&d, loop, 3, &opts,
				      TALLY_OPTS(timer, .flags = TALLY_TIMER_CHECKPOINTS)));
		require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 20000));
		check_int(go_with_checkpoints(&d, &taken, &back), TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), 20000);
		check_u64(tally_sim_counts(d.sim)->ticks, 20000);
		check_int(taken, 1);
		check(!!back == (skid > 0));
		check_u64(tally_timer_stats(d.timer)->retries, (uint64_t)back);
		simdrive_close(&d);
	}
}

static void a_wrong_checkpoint_is_found_out(void)
{
	struct tally_sim_opts opts = loops_of(100000);
	struct tally_timer_action action;
	struct simdrive d;

	opts.margin = 10;
	opts.skid_min = opts.skid_max = 500;
	require(simdrive_open(&d, loop, 3, &opts,
			      TALLY_OPTS(timer, .flags = TALLY_TIMER_CHECKPOINTS)));
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 20000));
	check_int(tally_timer_next(d.timer, &action), 0);
	check_int(action.what, TALLY_TIMER_TAKE);
	check_int(tally_timer_next(d.timer, &action), -EBUSY);
	tally_timer_answer(d.timer, 0);
	simdrive_go(&d);
	check_int(tally_timer_next(d.timer, &action), -EBUSY); /* GO_BACK was asked for */
	tally_timer_answer(d.timer, 0);                        /* a lie */
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_CLOCK_INVALID);
	check_has(tally_timer_outcome(d.timer)->why, "checkpoint");
	/* Told the truth it is just late. */
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 5000));
	simdrive_go(&d);
	tally_timer_answer(d.timer, 0);
	simdrive_go(&d);
	tally_timer_answer(d.timer, -ESRCH);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_LATE);
	simdrive_close(&d);
}

int main(void)
{
	tap_run(is_never_early);
	tap_run(old_interrupts_do_no_harm);
	tap_run(a_small_margin_is_late);
	tap_run(learns_from_being_late);
	tap_run(shares_what_it_learns);
	tap_run(lost_interrupts_are_found);
	tap_run(leaves_signals_of_others);
	tap_run(distrusts_clocks);
	tap_run(refuses_requests_on_a_broken_clock);
	tap_run(goes_back_when_it_is_late);
	tap_run(a_wrong_checkpoint_is_found_out);
	return tap_end();
}
