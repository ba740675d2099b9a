/* SPDX-License-Identifier: MIT */
/*
 * Timers on simulated threads, scenario by scenario: what a caller is promised, with the number of ticks
 * known from the program's text.
 */
#include <errno.h>
#include <signal.h>

#include "loops.h"
#include "tap.h"

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
		require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, n));
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
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, delta));
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
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, TALLY_TIMER_KEEP, 500));
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
		require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 5000));
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
		require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 2000));
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
	require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 300));
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
		require(simdrive_begin(&d, TALLY_TIMER_EXACTLY, 0, 300));
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(tally_timer_stopped(d.timer, &stop, NULL), 0);
		check_int(tally_timer_outcome(d.timer)->kind, TALLY_OUTCOME_EXITED);
		check_int(tally_timer_outcome(d.timer)->stop.kind, kinds[i]);
		check_int(tally_timer_next(d.timer, &action), 0);
		check_int(action.what, TALLY_TIMER_DONE);
		simdrive_close(&d);
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
	tap_run(shows_start_plus_delta);
	tap_run(replaces_requests);
	tap_run(is_cancelled_by_events);
	tap_run(keeps_what_is_to_be_kept);
	tap_run(is_cancelled_by_the_caller);
	tap_run(injected_code_does_not_count);
	tap_run(a_moved_clock_is_armed_anew);
	tap_run(cuts_a_busy_wait);
	tap_run(tells_of_events_and_goes_on);
	tap_run(says_how_it_ended);
	tap_run(has_names);
	return tap_end();
}
