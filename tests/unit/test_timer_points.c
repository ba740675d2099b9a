/* SPDX-License-Identifier: MIT */
/* Places that timers lead to: instructions behind a tick, addresses, points that were stored. */
#include <errno.h>
#include <signal.h>

#include "loops.h"
#include "tap.h"

/* A program in which each instruction has an address and a value of its own. */
static const struct tally_sim_insn wide[] = {
	{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
	{ TALLY_SIM_PLAIN, .reg = 4, .value = 1 },
	{ TALLY_SIM_REP, .reg = 5, .value = 7 },
	{ TALLY_SIM_PLAIN, .reg = 6, .value = 1 },
	{ TALLY_SIM_JUMP, .target = 5 },
	{ TALLY_SIM_BRANCH_IF, .reg = 3, .value = 1, .target = 7 },
	{ TALLY_SIM_PLAIN, .reg = 7, .value = 1 },
	{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
	{ TALLY_SIM_EXIT },
};

/* Where (n, m) is, by stepping only. */
static bool walk(uint64_t n, uint64_t m, struct tally_tracee_regs *regs)
{
	struct tally_sim_opts opts = loops_of(100000);
	struct tally_sim *sim = NULL;
	struct tally_stop stop;
	uint64_t ticks = 0;

	if (tally_sim_new(&sim, wide, ARRAY_SIZE(wide), &opts, NULL) < 0)
		return false;
	while (ticks < n || m) {
		m -= ticks >= n;
		tally_sim_resume(sim, TALLY_RESUME_STEP, 0);
		tally_sim_wait(sim, -1, &stop);
		ticks += stop.retired.conditional;
	}
	tally_sim_regs(sim, regs);
	tally_sim_free(sim);
	return true;
}

static void counts_instructions_behind_a_tick(void)
{
	static const uint64_t ms[] = { 0, 1, 2, 3, 4, 5, 9, 100, 101 };
	static const uint64_t ns[] = { 10, 11, 1000, 1001 };

	for (size_t i = 0; i < ARRAY_SIZE(ns); i++)
		for (size_t k = 0; k < ARRAY_SIZE(ms); k++) {
			struct tally_sim_opts opts = loops_of(100000);
			struct tally_tracee_regs got, want;
			struct simdrive d;
			require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
			check_int(ask(&d, STEPS(ns[i], ms[k])), TALLY_OUTCOME_REACHED);
			check_u64(tally_timer_outcome(d.timer)->instructions, ms[k]);
			check_u64(tally_timer_outcome(d.timer)->late_by, 0);
			tally_sim_regs(d.sim, &got);
			require(walk(ns[i], ms[k], &want));
			check_mem(&got, &want, sizeof(got));
			simdrive_close(&d);
		}
}

/* The first instruction of a program, and steps from wherever it stands. */
static void counts_instructions_from_here(void)
{
	struct tally_sim_opts opts = loops_of(100);
	struct tally_timer_request r = { .kind = TALLY_TIMER_INSTRUCTIONS,
					 .flags = TALLY_TIMER_ABSOLUTE | TALLY_TIMER_FROM_HERE,
					 .instructions = 3 };
	struct simdrive d;

	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	check_int(ask(&d, &r), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_pc(&d), AT(3));
	/* It has left that place: the same request lies behind now, by an unknown number of steps. */
	r.flags = TALLY_TIMER_ABSOLUTE;
	check_int(ask(&d, &r), TALLY_OUTCOME_LATE);
	check_u64(tally_timer_outcome(d.timer)->late_by, 0);
	check_int(ask(&d, STEPS(0, 2)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_pc(&d), AT(5));
	simdrive_close(&d);
}

static void within_ends_at_the_next_tick(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct simdrive d;

	/* Between the last branch of a round and the first of the next there are 5 instructions. */
	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	check_int(ask(&d, WITHIN(200, 5)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_pc(&d), AT(5));
	check_int(ask(&d, WITHIN(200, 6)), TALLY_OUTCOME_LATE);
	check_u64(tally_timer_outcome(d.timer)->late_by, 1);
	check_u64(tally_timer_outcome(d.timer)->instructions, 6);
	check_has(tally_timer_outcome(d.timer)->why, "next tick");
	check_int(ask(&d, STEPS(199, 6)), TALLY_OUTCOME_REACHED);
	simdrive_close(&d);
}

static void finds_addresses(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct tally_timer_request r = { .kind = TALLY_TIMER_ADDRESS,
					 .flags = TALLY_TIMER_ABSOLUTE,
					 .ticks = 501,
					 .address = AT(6) };
	struct simdrive d;

	/* Instruction 6 is only there when r3 is even: every other round, which has two ticks. */
	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	check_int(ask(&d, &r), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_pc(&d), AT(6));
	check_u64(simdrive_ticks(&d), 503);
	check(tally_timer_stats(d.timer)->breakpoints > 0);
	/* It is there already. */
	check_int(ask(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_ADDRESS,
							 .address = AT(6) }),
		  TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 503);
	/* At just that tick it is never. */
	r.flags |= TALLY_TIMER_SAME_TICK;
	r.ticks = 801;
	check_int(ask(&d, &r), TALLY_OUTCOME_LATE);
	r.ticks = 1203;
	check_int(ask(&d, &r), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 1203);
	/* An absolute one that lies behind. */
	r.flags = TALLY_TIMER_ABSOLUTE;
	r.ticks = 7;
	check_int(ask(&d, &r), TALLY_OUTCOME_LATE);
	check_u64(tally_timer_outcome(d.timer)->late_by, 1203 - 7);
	/* One that never comes: the program ends. */
	check_int(ask(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_ADDRESS,
							 .address = 0x1234 }),
		  TALLY_OUTCOME_EXITED);
	simdrive_close(&d);
}

/* The same point, taken by one kind of clock and found again by others. */
static void finds_points_again(void)
{
	static const uint32_t flags[] = { 0, TALLY_SIM_STEP_ONLY, TALLY_SIM_NO_INTERRUPTS,
					  TALLY_SIM_NO_SKID, TALLY_SIM_FOLLOWS_STEPS };

	for (uint64_t n = 1; n < 1500; n += 97) {
		struct tally_sim_opts opts = loops_of(1000);
		struct tally_tracee_regs regs;
		struct tally_point point;
		struct simdrive d;
		require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
		check_int(ask(&d, STEPS(n, n % 5)), TALLY_OUTCOME_REACHED);
		tally_sim_regs(d.sim, &regs);
		check_int(tally_point_take(&point, d.clock, &regs), 0);
		simdrive_close(&d);
		/* What belongs to the kernel and the tracer differs. */
		point.regs.word[15] = 231;
		point.regs.word[18] |= 0x100;
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
			struct tally_tracee_regs got;
			opts.flags = flags[i];
			opts.seed++;
			require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
			check_int(ask(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_POINT,
									 .point = &point }),
				  TALLY_OUTCOME_REACHED);
			tally_sim_regs(d.sim, &got);
			check_mem(&got, &regs, sizeof(got));
			simdrive_close(&d);
		}
	}
}

static void a_point_that_never_comes_is_late(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct tally_tracee_regs regs;
	struct tally_point point;
	struct simdrive d;

	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	tally_sim_regs(d.sim, &regs);
	check_int(tally_point_take(&point, d.clock, &regs), 0);
	check_int(tally_point_take(&point, d.clock, NULL), -EINVAL);
	point.ticks = 700;
	point.regs.word[9] = 77;
	check_int(ask(&d,
		      &(struct tally_timer_request){ .kind = TALLY_TIMER_POINT, .point = &point }),
		  TALLY_OUTCOME_LATE);
	check_u64(tally_timer_outcome(d.timer)->late_by, simdrive_ticks(&d) - 700);
	check_has(tally_timer_outcome(d.timer)->why, "registers");
	simdrive_close(&d);
}

/* One program, a thousand times, by clocks of all kinds: the same registers. */
static void is_deterministic(void)
{
	static const uint32_t flags[] = { 0, TALLY_SIM_STEP_ONLY, TALLY_SIM_NO_INTERRUPTS };

	for (uint64_t n = 1; n <= 1000; n++) {
		struct tally_tracee_regs got[ARRAY_SIZE(flags)];
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
			struct tally_sim_opts opts = loops_of(700);
			struct simdrive d;
			opts.flags = flags[i];
			opts.seed = n + i;
			require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
			check_int(ask(&d, STEPS(n, n % 7)), TALLY_OUTCOME_REACHED);
			tally_sim_regs(d.sim, &got[i]);
			simdrive_close(&d);
		}
		check_mem(&got[1], &got[0], sizeof(got[0]));
		check_mem(&got[2], &got[0], sizeof(got[0]));
	}
}

/* Steps that execute several instructions at once: no place within can be reached. */
static void knows_what_is_one_step(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct tally_timer_action action;
	struct simdrive d;
	struct tally_stop stop, two;

	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 1));
	for (int i = 0; i < 4; i++)
		require(simdrive_once(&d, &stop));
	/* JUMP and BRANCH_IF as one. */
	check_int(tally_timer_next(d.timer, &action), 0);
	tally_sim_resume(d.sim, TALLY_RESUME_STEP, 0);
	tally_sim_wait(d.sim, -1, &stop);
	tally_sim_resume(d.sim, TALLY_RESUME_STEP, 0);
	tally_sim_wait(d.sim, -1, &two);
	two.retired.instructions += stop.retired.instructions;
	check_int(tally_timer_stopped(d.timer, &two, NULL), 1);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_LATE);
	check_has(tally_timer_outcome(d.timer)->why, "one step");
	/* What could not be told at all ends the counting of steps. */
	struct tally_timer_request r = {
		.size = sizeof(r), .kind = TALLY_TIMER_INSTRUCTIONS, .ticks = 1, .instructions = 5
	};
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	while (tally_timer_outcome(d.timer)->kind == TALLY_OUTCOME_NONE && simdrive_ticks(&d) < 2)
		require(simdrive_once(&d, &stop));
	check_int(tally_timer_next(d.timer, &action), 0);
	check_int(action.what, TALLY_TIMER_STEP);
	stop = (struct tally_stop){ .kind = TALLY_STOP_STEP, .insn = TALLY_INSN_UNKNOWN };
	check_int(tally_timer_stopped(d.timer, &stop, NULL), 1);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_CLOCK_INVALID);
	simdrive_close(&d);
}

/* What a clock that reads more than 2^31, or nearly 2^64, changes: nothing. */
static void large_numbers_are_no_different(void)
{
	static const uint64_t starts[] = { 1ull << 31, 1ull << 32, 1ull << 63, UINT64_MAX - 6000 };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct tally_sim_opts opts = loops_of(100000);
		struct simdrive d;
		require(simdrive_open(&d, loop, 3, &opts, NULL));
		check_int(tally_clock_set(d.clock, starts[i]), 0);
		check_int(ask(&d, EXACTLY(5000)), TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), starts[i] + 5000);
		check_u64(tally_sim_counts(d.sim)->ticks, 5000);
		simdrive_close(&d);
	}
}

static void seeks_forward_to_any_tick(void)
{
	static const uint64_t ticks[] = { 1, 2, 3, 499, 500, 998, 999, 1000 };
	struct tally_sim_opts opts = loops_of(1000);
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++) {
		check_int(ask(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_EXACTLY,
								 .flags = TALLY_TIMER_ABSOLUTE,
								 .ticks = ticks[i] }),
			  TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), ticks[i]);
	}
	/* Backward is late, by how much. */
	check_int(ask(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_EXACTLY,
							 .flags = TALLY_TIMER_ABSOLUTE,
							 .ticks = 400 }),
		  TALLY_OUTCOME_LATE);
	check_u64(tally_timer_outcome(d.timer)->late_by, 600);
	check_has(tally_timer_outcome(d.timer)->why, "behind");
	simdrive_close(&d);
}

/* A counter that cannot be programmed for fewer than 32, or more than 500. */
static void keeps_to_the_clocks_periods(void)
{
	for (uint64_t delta = 1; delta < 2000; delta += 13) {
		struct tally_sim_opts opts = loops_of(4000);
		struct simdrive d;
		opts.min_period = 32;
		opts.max_period = 500;
		require(simdrive_open(&d, loop, 3, &opts, NULL));
		check_int(ask(&d, EXACTLY(delta)), TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), delta);
		check(delta < 92 ? !tally_timer_stats(d.timer)->programmed
				 : tally_timer_stats(d.timer)->programmed > 0);
		simdrive_close(&d);
	}
}

/* A deterministic schedule of signals to a handler: each k ticks, twice the same. */
static void schedules_signals(void)
{
	const struct tally_sim_insn program[] = {
		{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
		{ TALLY_SIM_BRANCH_IF, .reg = 4, .value = 1, .target = 0 },
		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
		{ TALLY_SIM_EXIT },
		{ TALLY_SIM_REP, .reg = 5, .value = 3 },
		{ TALLY_SIM_BRANCH_IF, .reg = 5, .value = 2, .target = 6 },
		{ TALLY_SIM_RETURN },
	};
	static const uint64_t every[] = { 100, 250, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(every); i++) {
		struct tally_tracee_regs last[2];
		uint64_t executed[2];
		for (int run = 0; run < 2; run++) {
			struct tally_sim_opts opts = loops_of(3000);
			struct simdrive d;
			opts.handler = 5;
			opts.seed = (uint64_t)run;
			require(simdrive_open(&d, program, ARRAY_SIZE(program), &opts, NULL));
			while (ask(&d, EXACTLY(every[i])) == TALLY_OUTCOME_REACHED) {
				d.deliver = SIGUSR1;
				tally_sim_regs(d.sim, &last[run]);
				executed[run] = tally_sim_counts(d.sim)->executed;
			}
			check(tally_sim_counts(d.sim)->delivered[SIGUSR1] >= 6000 / every[i]);
			simdrive_close(&d);
		}
		check_mem(&last[0], &last[1], sizeof(last[0]));
		check_u64(executed[0], executed[1]);
	}
}

int main(void)
{
	tap_run(counts_instructions_behind_a_tick);
	tap_run(counts_instructions_from_here);
	tap_run(within_ends_at_the_next_tick);
	tap_run(finds_addresses);
	tap_run(finds_points_again);
	tap_run(a_point_that_never_comes_is_late);
	tap_run(is_deterministic);
	tap_run(knows_what_is_one_step);
	tap_run(large_numbers_are_no_different);
	tap_run(seeks_forward_to_any_tick);
	tap_run(keeps_to_the_clocks_periods);
	tap_run(schedules_signals);
	return tap_end();
}
