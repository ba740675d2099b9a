/* SPDX-License-Identifier: MIT */
/*
 * Timers on simulated threads, scenario by scenario: what a caller is promised, with the number of ticks
 * known from the program's text.
 */
#include <errno.h>
#include <signal.h>

#include "base/bytes.h"
#include "simdrive.h"
#include "tap.h"

#define AT(insn) (TALLY_SIM_TEXT + 4 * (uint64_t)(insn))

/* `n` conditional branches, which r0 begins with, two instructions each; then others. */
static const struct tally_sim_insn loop[] = {
	{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
	{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
	{ TALLY_SIM_EXIT, .value = 9 },
};

static struct tally_sim_opts loops_of(uint64_t n)
{
	return (struct tally_sim_opts){ .size = sizeof(struct tally_sim_opts),
					.regs = { n },
					.skid_max = 40,
					.skid_insns = 3,
					.margin = 60,
					.seed = n };
}

#define EXACTLY(n)  (&(struct tally_timer_request){ .kind = TALLY_TIMER_EXACTLY, .ticks = (n) })
#define AT_LEAST(n) (&(struct tally_timer_request){ .kind = TALLY_TIMER_AT_LEAST, .ticks = (n) })
#define STEPS(n, m)                     \
	(&(struct tally_timer_request){ \
		.kind = TALLY_TIMER_INSTRUCTIONS, .ticks = (n), .instructions = (m) })
#define WITHIN(n, m)                    \
	(&(struct tally_timer_request){ \
		.kind = TALLY_TIMER_WITHIN, .ticks = (n), .instructions = (m) })

static uint32_t ask(struct simdrive *d, const struct tally_timer_request *r)
{
	const struct tally_timer_outcome *o = simdrive_ask(d, r);

	return o ? o->kind : UINT32_MAX;
}

static void starts_at_zero(void)
{
	struct tally_sim_opts opts = loops_of(10);
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	check_u64(simdrive_ticks(&d), 0);
	check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_NONE);
	struct tally_timer_action action;
	check_int(tally_timer_next(d.timer, &action), 0);
	check_int(action.what, TALLY_TIMER_DONE);
	simdrive_close(&d);
}

static void refuses(struct simdrive *d, const struct tally_timer_request *r, int code)
{
	d->err.code = 0;
	check(!simdrive_ask(d, r));
	check_int(d->err.code, code);
}

static void refuses_what_cannot_be(void)
{
	struct tally_sim_opts opts = loops_of(10);
	struct tally_tracee_regs arm = { .machine = 183, .count = 34 };
	struct tally_point point = { .semantics = TALLY_TICKS_CONDITIONAL, .regs = arm };
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	refuses(&d, EXACTLY(0), -EINVAL);
	refuses(&d, AT_LEAST(0), -EINVAL);
	refuses(&d, STEPS(0, 0), -EINVAL);
	refuses(&d, WITHIN(0, 0), -EINVAL);
	refuses(&d, &(struct tally_timer_request){ .kind = 0, .ticks = 1 }, -EINVAL);
	refuses(&d, &(struct tally_timer_request){ .kind = 7, .ticks = 1 }, -EINVAL);
	refuses(&d,
		&(struct tally_timer_request){
			.kind = TALLY_TIMER_EXACTLY, .flags = TALLY_TIMER_SAME_TICK, .ticks = 1 },
		-EINVAL);
	refuses(&d,
		&(struct tally_timer_request){
			.kind = TALLY_TIMER_EXACTLY, .flags = 1u << 20, .ticks = 1 },
		-EINVAL);
	refuses(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_POINT }, -EINVAL);
	refuses(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_POINT, .point = &point },
		-EINVAL);
	/* A point of a clock that counts something else. */
	check_int(tally_sim_regs(d.sim, &point.regs), 0);
	point.semantics = TALLY_TICKS_TAKEN;
	refuses(&d, &(struct tally_timer_request){ .kind = TALLY_TIMER_POINT, .point = &point },
		-EXDEV);
	check_has(d.err.text, "taken branches");
	/* A relative one past the end of the clock. */
	check_int(tally_clock_set(d.clock, 100), 0);
	refuses(&d, EXACTLY(UINT64_MAX - 99), -ERANGE);
	simdrive_close(&d);
}

static void needs_registers_for_addresses(void)
{
	struct tally_sim_opts opts = loops_of(10);
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_ADDRESS,
					 .address = AT(1) };
	struct tally_stop step = { .kind = TALLY_STOP_STEP };
	struct tally_tracee_regs regs;
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	check_int(tally_timer_request(d.timer, &r, &d.err), -EINVAL);
	tally_sim_regs(d.sim, &regs);
	r.regs = &regs;
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	check_int(tally_timer_stopped(d.timer, &step, NULL), -EINVAL);
	check_int(tally_timer_emulated(d.timer, 1, NULL), -EINVAL);
	step.kind = TALLY_STOP_NONE;
	check_int(tally_timer_stopped(d.timer, &step, &regs), -EAGAIN);
	simdrive_close(&d);
}

/* Programs of delta - 1 and delta branches, by interrupt and by steps alone. */
static void is_exact(uint64_t delta)
{
	struct tally_sim_opts opts = loops_of(delta - 1);
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	check_int(ask(&d, EXACTLY(delta)), TALLY_OUTCOME_EXITED);
	check_u64(tally_timer_outcome(d.timer)->stop.value, 9);
	check(!tally_timer_outcome(d.timer)->why);
	simdrive_close(&d);
	opts = loops_of(delta);
	require(simdrive_open(&d, loop, 3, &opts, NULL));
	check_int(ask(&d, EXACTLY(delta)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), delta);
	check_u64(simdrive_pc(&d), AT(2));
	check_int(ask(&d, EXACTLY(1)), TALLY_OUTCOME_EXITED);
	const struct tally_timer_stats *stats = tally_timer_stats(d.timer);
	check_u64(stats->reached, 1);
	check_u64(stats->exited, 1);
	check(delta < 100 ? !stats->programmed : stats->programmed == 1 && stats->fired == 1);
	simdrive_close(&d);
}

static void is_exact_far_and_near(void)
{
	is_exact(10000);
	is_exact(15);
	is_exact(2);
}

static void is_exact_again_and_again(void)
{
	struct tally_sim_opts opts = loops_of(500 * 150);
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (uint64_t i = 1; i <= 500; i++) {
		check_int(ask(&d, EXACTLY(150)), TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), 150 * i);
	}
	check_int(ask(&d, EXACTLY(1)), TALLY_OUTCOME_EXITED);
	simdrive_close(&d);
}

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

/* The clock is read at the target, whatever else was counted and armed. */
static void shows_start_plus_delta(void)
{
	static const uint64_t counts[] = { 100, 1000, 10000, 100000, 1000000 };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct tally_sim_opts opts = loops_of(counts[i] + 10);
		struct simdrive d;
		require(simdrive_open(&d, loop, 3, &opts, NULL));
		for (int k = 0; k < 10; k++)
			check_u64(simdrive_ticks(&d), 0);
		check_int(ask(&d, EXACTLY(counts[i])), TALLY_OUTCOME_REACHED);
		for (int k = 0; k < 10; k++)
			check_u64(simdrive_ticks(&d), counts[i]);
		simdrive_close(&d);
	}
}

static void replaces_requests(void)
{
	struct tally_sim_opts opts = loops_of(20000);
	struct simdrive d;
	struct tally_stop stop;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (uint64_t n = 1000; n < 4000; n += 1000) {
		struct tally_timer_request r = { .size = sizeof(r),
						 .kind = TALLY_TIMER_EXACTLY,
						 .ticks = n };
		check_int(tally_timer_request(d.timer, &r, &d.err), 0);
		/* Armed, and then not heard of any more. */
		struct tally_timer_action action;
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_RUN);
	}
	check_int(ask(&d, EXACTLY(8000)), TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 8000);
	check(!simdrive_once(&d, &stop)); /* one shot */
	simdrive_run_out(&d);
	check_u64(tally_timer_stats(d.timer)->reached, 1);
	check_u64(tally_sim_counts(d.sim)->delivered[SIGSTKFLT], 0);
	simdrive_close(&d);
}

/* `lead` branches, an event, and then many more. */
static void run_to_event(uint64_t lead, uint32_t op, uint64_t delta, uint64_t observed,
			 uint32_t want)
{
	const struct tally_sim_insn program[] = {
		{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
		{ op, .reg = 4, .value = SIGWINCH },
		{ TALLY_SIM_PLAIN, .reg = 1, .value = 20000 },
		{ TALLY_SIM_BRANCH, .reg = 1, .target = 4 },
		{ TALLY_SIM_EXIT },
	};
	struct tally_sim_opts opts = loops_of(lead);
	struct tally_tracee_regs regs;
	struct simdrive d;
	struct tally_stop stop;

	opts.flags = TALLY_SIM_TRAP_CPUID | TALLY_SIM_TRAP_TSC | TALLY_SIM_SECCOMP;
	require(simdrive_open(&d, program, ARRAY_SIZE(program), &opts, NULL));
	d.observed = observed;
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_EXACTLY,
					 .ticks = delta };
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	while (simdrive_once(&d, &stop)) {
		if (stop.kind != TALLY_STOP_CPUID && stop.kind != TALLY_STOP_TSC)
			continue;
		tally_sim_regs(d.sim, &regs);
		regs.word[SIMDRIVE_PC] += 4;
		tally_sim_set_regs(d.sim, &regs);
		tally_timer_emulated(d.timer, 1, &regs);
	}
	const struct tally_timer_outcome *o = tally_timer_outcome(d.timer);
	if (o->kind != want)
		printf("# event %u behind %" PRIu64 " of %" PRIu64 ": %s\n", op, lead, delta,
		       tally_outcome_name(o->kind));
	check_int(o->kind, want);
	if (want == TALLY_OUTCOME_CANCELLED)
		check_int(o->cause, TALLY_TIMER_BY_EVENT);
	else
		check_u64(simdrive_ticks(&d), delta);
	simdrive_close(&d);
}

/*
 * An event cancels when it comes before the target, be it hundreds of ticks before or one, while it
 * runs and while it is stepped; not when it comes behind, and not when nobody observes it.
 */
static void is_cancelled_by_events(void)
{
	static const uint32_t ops[] = { TALLY_SIM_SYSCALL, TALLY_SIM_KILL, TALLY_SIM_CPUID,
					TALLY_SIM_TSC };
	static const uint64_t deltas[] = { 10000, 100, 15 };
	const uint64_t all = ~0ull;

	for (size_t d = 0; d < ARRAY_SIZE(deltas); d++)
		for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
			uint64_t delta = deltas[d];
			const uint64_t left[] = { delta / 2, 1000, 100, 10, 2, 1 };
			for (size_t k = 0; k < ARRAY_SIZE(left); k++) {
				if (left[k] >= delta)
					continue;
				run_to_event(delta - left[k], ops[i], delta, all,
					     TALLY_OUTCOME_CANCELLED);
				run_to_event(delta - left[k], ops[i], delta, 0,
					     TALLY_OUTCOME_REACHED);
			}
			run_to_event(delta, ops[i], delta, all, TALLY_OUTCOME_REACHED);
			run_to_event(delta + 1, ops[i], delta, all, TALLY_OUTCOME_REACHED);
		}
}

static void keeps_what_is_to_be_kept(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct simdrive d;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_EXACTLY,
					 .flags = TALLY_TIMER_KEEP,
					 .ticks = 500 };
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	tally_timer_observe(d.timer);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 500);
	simdrive_close(&d);
}

/* At once, and lazily: then the interrupt still comes, and is nobody's business but the timer's. */
static void is_cancelled_by_the_caller(void)
{
	for (int lazily = 0; lazily < 2; lazily++) {
		struct tally_sim_opts opts = loops_of(20000);
		struct tally_timer_action action;
		struct simdrive d;
		require(simdrive_open(&d, loop, 3, &opts, NULL));
		struct tally_timer_request r = { .size = sizeof(r),
						 .kind = TALLY_TIMER_EXACTLY,
						 .ticks = 5000 };
		check_int(tally_timer_request(d.timer, &r, &d.err), 0);
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_RUN);
		if (lazily)
			tally_timer_cancel_later(d.timer);
		else
			check_int(tally_timer_cancel(d.timer), 0);
		check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_CANCELLED);
		check_int(tally_timer_outcome(d.timer)->cause, TALLY_TIMER_BY_CALLER);
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_DONE);
		simdrive_run_out(&d);
		check_u64(tally_sim_counts(d.sim)->interrupts, lazily);
		check_u64(tally_timer_stats(d.timer)->unasked, lazily);
		check_u64(tally_sim_counts(d.sim)->delivered[SIGSTKFLT], 0);
		simdrive_close(&d);
	}
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
			struct tally_timer_request r = { .size = sizeof(r),
							 .kind = TALLY_TIMER_EXACTLY,
							 .ticks = 300 };
			check_int(tally_timer_request(d.timer, &r, &d.err), 0);
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

/* Injected calls: the clock is paused, and the target stays where it was. */
static void injected_code_does_not_count(void)
{
	struct tally_sim_opts opts = loops_of(10000);
	struct simdrive d;
	struct tally_stop stop;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	for (int round = 0; round < 20; round++) {
		check_int(ask(&d, EXACTLY(200)), TALLY_OUTCOME_REACHED);
		uint64_t before = simdrive_ticks(&d);
		check_int(tally_clock_pause(d.clock), 0);
		for (int i = 0; i < 57; i++) {
			tally_sim_resume(d.sim, TALLY_RESUME_STEP, 0);
			tally_sim_wait(d.sim, -1, &stop);
		}
		check_int(tally_clock_resume(d.clock), 0);
		check_u64(simdrive_ticks(&d), before);
	}
	check_u64(simdrive_ticks(&d), 20 * 200);
	check(tally_sim_counts(d.sim)->ticks >= 20 * 200 + 20 * 28);
	simdrive_close(&d);
}

/* In the middle of a request the interrupt that was armed has to move with the clock. */
static void a_moved_clock_is_armed_anew(void)
{
	static const int64_t moves[] = { 700, -300 };

	for (size_t i = 0; i < ARRAY_SIZE(moves); i++) {
		const struct tally_sim_insn program[] = {
			{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
			{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
			{ TALLY_SIM_SYSCALL, .reg = 4 },
			{ TALLY_SIM_BRANCH, .reg = 1, .target = 3 },
			{ TALLY_SIM_EXIT },
		};
		struct tally_sim_opts opts = loops_of(500);
		struct simdrive d;
		struct tally_stop stop;
		opts.regs[1] = 5000;
		require(simdrive_open(&d, program, ARRAY_SIZE(program), &opts, NULL));
		d.syscalls = true;
		struct tally_timer_request r = { .size = sizeof(r),
						 .kind = TALLY_TIMER_EXACTLY,
						 .ticks = 2000 };
		check_int(tally_timer_request(d.timer, &r, &d.err), 0);
		require(simdrive_once(&d, &stop));
		check_int(stop.kind, TALLY_STOP_SYSCALL_ENTRY);
		check_int(tally_clock_adjust(d.clock, moves[i]), 0);
		check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_REACHED);
		check_u64(simdrive_ticks(&d), 2000);
		check_u64(tally_sim_counts(d.sim)->ticks, (uint64_t)(2000 - moves[i]));
		check_u64(tally_timer_stats(d.timer)->early, 0);
		simdrive_close(&d);
	}
}

/* A busy wait, cut into slices: as many as there are whole ones, and no event between. */
static void cuts_a_busy_wait(void)
{
	struct tally_sim_opts opts = loops_of(1000000);
	struct simdrive d;
	uint32_t slices = 0;

	require(simdrive_open(&d, loop, 3, &opts, NULL));
	while (ask(&d, EXACTLY(12000)) == TALLY_OUTCOME_REACHED)
		slices++;
	check_int(slices, 1000000 / 12000);
	check_int(d.events, 1); /* its end */
	simdrive_close(&d);
	require(simdrive_open(&d, loop, 3, &opts, NULL));
	simdrive_run_out(&d);
	check_u64(tally_sim_counts(d.sim)->interrupts, 0);
	simdrive_close(&d);
}

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

static void tells_of_events_and_goes_on(void)
{
	const struct tally_sim_insn program[] = {
		{ TALLY_SIM_SYSCALL, .reg = 4, .value = 39 },
		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
		{ TALLY_SIM_EXIT },
	};
	struct tally_sim_opts opts = loops_of(1000);
	struct tally_timer_action action;
	struct simdrive d;
	struct tally_stop stop;

	require(simdrive_open(&d, program, 3, &opts, NULL));
	d.syscalls = true;
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_EXACTLY,
					 .ticks = 300 };
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	require(simdrive_once(&d, &stop));
	check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_EVENT);
	check_int(tally_timer_outcome(d.timer)->stop.kind, TALLY_STOP_SYSCALL_ENTRY);
	check_u64(tally_timer_outcome(d.timer)->stop.value, 39);
	check_u64(tally_timer_outcome(d.timer)->clock.ticks, 0);
	/* Asked again and again it arms once. */
	for (int i = 0; i < 5; i++) {
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_RUN);
		check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_NONE);
	}
	check_u64(tally_timer_stats(d.timer)->programmed, 1);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_REACHED);
	check_u64(simdrive_ticks(&d), 300);
	check(d.events >= 2 * 200);
	check_u64(tally_timer_stats(d.timer)->programmed, 1);
	simdrive_close(&d);
}

/* Of a thread that is killed, or whose execve another thread made. */
static void says_how_it_ended(void)
{
	static const uint32_t kinds[] = { TALLY_STOP_EXITED, TALLY_STOP_KILLED, TALLY_STOP_GONE };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct tally_sim_opts opts = loops_of(1000);
		struct tally_timer_action action;
		struct tally_stop stop = { .kind = kinds[i], .signal = SIGKILL };
		struct simdrive d;
		require(simdrive_open(&d, loop, 3, &opts, NULL));
		struct tally_timer_request r = { .size = sizeof(r),
						 .kind = TALLY_TIMER_EXACTLY,
						 .ticks = 300 };
		check_int(tally_timer_request(d.timer, &r, &d.err), 0);
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(tally_timer_stopped(d.timer, &stop, NULL), 0);
		check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_EXITED);
		check_int(tally_timer_outcome(d.timer)->stop.kind, kinds[i]);
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_DONE);
		simdrive_close(&d);
	}
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
	refuses(&d, EXACTLY(10), -EIO);
	check_has(d.err.text, "on the hardware");
	simdrive_close(&d);
}

/* Steps that execute several instructions at once: no place within can be reached. */
static void knows_what_is_one_step(void)
{
	struct tally_sim_opts opts = loops_of(1000);
	struct tally_timer_action action;
	struct simdrive d;
	struct tally_stop stop, two;

	require(simdrive_open(&d, wide, ARRAY_SIZE(wide), &opts, NULL));
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_EXACTLY,
					 .ticks = 1 };
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
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
	r.kind = TALLY_TIMER_INSTRUCTIONS;
	r.instructions = 5;
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
		struct tally_timer_request r = { .size = sizeof(r),
						 .kind = TALLY_TIMER_EXACTLY,
						 .ticks = 20000 };
		check_int(tally_timer_request(d.timer, &r, &d.err), 0);
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
	struct tally_timer_request r = { .size = sizeof(r),
					 .kind = TALLY_TIMER_EXACTLY,
					 .ticks = 20000 };
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
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
	r.ticks = 5000;
	check_int(tally_timer_request(d.timer, &r, &d.err), 0);
	simdrive_go(&d);
	tally_timer_answer(d.timer, 0);
	simdrive_go(&d);
	tally_timer_answer(d.timer, -ESRCH);
	check_int(simdrive_go(&d)->kind, TALLY_OUTCOME_LATE);
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

static void has_names(void)
{
	check_str(tally_outcome_name(TALLY_OUTCOME_REACHED), "reached");
	check_str(tally_outcome_name(TALLY_OUTCOME_CLOCK_INVALID), "clock invalid");
	check_str(tally_outcome_name(77), "?");
}

int main(void)
{
	tap_run(starts_at_zero);
	tap_run(refuses_what_cannot_be);
	tap_run(needs_registers_for_addresses);
	tap_run(is_exact_far_and_near);
	tap_run(is_exact_again_and_again);
	tap_run(is_never_early);
	tap_run(shows_start_plus_delta);
	tap_run(replaces_requests);
	tap_run(is_cancelled_by_events);
	tap_run(keeps_what_is_to_be_kept);
	tap_run(is_cancelled_by_the_caller);
	tap_run(old_interrupts_do_no_harm);
	tap_run(injected_code_does_not_count);
	tap_run(a_moved_clock_is_armed_anew);
	tap_run(cuts_a_busy_wait);
	tap_run(counts_instructions_behind_a_tick);
	tap_run(counts_instructions_from_here);
	tap_run(within_ends_at_the_next_tick);
	tap_run(finds_addresses);
	tap_run(finds_points_again);
	tap_run(a_point_that_never_comes_is_late);
	tap_run(is_deterministic);
	tap_run(a_small_margin_is_late);
	tap_run(learns_from_being_late);
	tap_run(shares_what_it_learns);
	tap_run(lost_interrupts_are_found);
	tap_run(leaves_signals_of_others);
	tap_run(tells_of_events_and_goes_on);
	tap_run(says_how_it_ended);
	tap_run(distrusts_clocks);
	tap_run(refuses_requests_on_a_broken_clock);
	tap_run(knows_what_is_one_step);
	tap_run(goes_back_when_it_is_late);
	tap_run(a_wrong_checkpoint_is_found_out);
	tap_run(large_numbers_are_no_different);
	tap_run(seeks_forward_to_any_tick);
	tap_run(keeps_to_the_clocks_periods);
	tap_run(schedules_signals);
	tap_run(has_names);
	return tap_end();
}
