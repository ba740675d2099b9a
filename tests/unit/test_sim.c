/* SPDX-License-Identifier: MIT */
/* The simulated thread: executes as the oracle does, stops as ptrace(2) has it, skids as it is told. */
#include <errno.h>
#include <signal.h>

#include "base/bytes.h"
#include "oracle.h"
#include "tap.h"

static const struct tally_sim_insn program[] = {
	{ TALLY_SIM_PLAIN, .reg = 3, .value = 5 },
	{ TALLY_SIM_BRANCH_IF, .reg = 3, .value = 4, .target = 4 },
	{ TALLY_SIM_JUMP, .target = 4 },
	{ TALLY_SIM_PLAIN, .reg = 9, .value = 1 },
	{ TALLY_SIM_REP, .reg = 4, .value = 3 },
	{ TALLY_SIM_SYSCALL, .reg = 5, .value = 39 },
	{ TALLY_SIM_KILL, .value = SIGUSR1 },
	{ TALLY_SIM_CPUID, .reg = 6, .value = 2 },
	{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
	{ TALLY_SIM_EXIT, .value = 3 },
	{ TALLY_SIM_PLAIN, .reg = 10, .value = 1 },
	{ TALLY_SIM_RETURN },
};

static struct tally_sim_opts opts_of(void)
{
	return (struct tally_sim_opts){ .size = sizeof(struct tally_sim_opts), .regs = { 20 } };
}

static struct tally_sim *make(const struct tally_sim_opts *opts)
{
	struct tally_sim *sim = NULL;
	struct tally_error err;

	if (tally_sim_new(&sim, program, ARRAY_SIZE(program), opts, &err) < 0)
		printf("# %s\n", err.text);
	return sim;
}

static uint32_t go(struct tally_sim *sim, uint32_t how, int signal, struct tally_stop *stop)
{
	if (tally_sim_resume(sim, how, signal) < 0 || tally_sim_wait(sim, -1, stop) < 0)
		return UINT32_MAX;
	return stop->kind;
}

/* Steps the whole program, with signals that are delivered to a handler or ignored. */
static void step_all(uint32_t semantics, uint32_t handler)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_tracee_regs regs;
	struct tally_stop stop;
	struct oracle o;
	uint64_t retired = 0;
	int deliver = 0;

	opts.ticks = semantics;
	opts.handler = handler;
	struct tally_sim *sim = make(&opts);
	require(sim);
	oracle_start(&o, program, ARRAY_SIZE(program), &opts);
	for (;;) {
		if (deliver)
			oracle_deliver(&o);
		uint32_t kind = go(sim, TALLY_RESUME_STEP, deliver, &stop);
		if (kind != TALLY_STOP_STEP && kind != TALLY_STOP_SIGNAL)
			break;
		deliver = kind == TALLY_STOP_SIGNAL ? stop.signal : 0;
		retired += stop.retired.instructions;
		oracle_advance(&o, tally_sim_counts(sim)->executed);
		tally_sim_regs(sim, &regs);
		check(oracle_has(&o, &regs));
		check_u64(tally_sim_counts(sim)->ticks, o.ticks);
		check_u64(retired, tally_sim_counts(sim)->executed);
	}
	check_int(stop.kind, TALLY_STOP_EXITED);
	check_u64(stop.value, 3);
	check_u64(tally_sim_counts(sim)->delivered[SIGUSR1], 20);
	check_int(tally_sim_resume(sim, TALLY_RESUME_RUN, 0), -ESRCH);
	tally_sim_free(sim);
}

static void executes_as_the_oracle(void)
{
	for (uint32_t t = TALLY_TICKS_CONDITIONAL; t <= TALLY_TICKS_INSTRUCTIONS; t++) {
		step_all(t, 0);
		step_all(t, 11);
	}
}

static void stops_at_system_calls(void)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_sim *sim = make(&opts);
	struct tally_stop stop;

	require(sim);
	check_int(go(sim, TALLY_RESUME_SYSCALL, 0, &stop), TALLY_STOP_SYSCALL_ENTRY);
	check_u64(stop.value, 39);
	uint64_t before = tally_sim_counts(sim)->executed;
	check_int(go(sim, TALLY_RESUME_SYSCALL, 0, &stop), TALLY_STOP_SYSCALL_EXIT);
	check_u64(tally_sim_counts(sim)->executed, before + 1);
	/* A step from the entry ends behind the call. */
	check_int(go(sim, TALLY_RESUME_SYSCALL, 0, &stop), TALLY_STOP_SYSCALL_ENTRY);
	check_int(go(sim, TALLY_RESUME_STEP, 0, &stop), TALLY_STOP_STEP);
	check_u64(stop.pc, TALLY_SIM_TEXT + 4 * 7);
	/* The call was a kill: its signal is delivered before the next instruction. */
	check_int(go(sim, TALLY_RESUME_STEP, 0, &stop), TALLY_STOP_SIGNAL);
	check_int(stop.signal, SIGUSR1);
	/* Left to run from an entry, the exit is not told. */
	check_int(go(sim, TALLY_RESUME_SYSCALL, 0, &stop), TALLY_STOP_SYSCALL_ENTRY);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_SIGNAL);
	tally_sim_free(sim);
}

static void enters_handlers(void)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_stop stop;

	opts.handler = 11;
	struct tally_sim *sim = make(&opts);
	require(sim);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_SIGNAL);
	uint64_t before = tally_sim_counts(sim)->executed;
	/* A step that delivers a signal stops at the handler's entry. */
	check_int(go(sim, TALLY_RESUME_STEP, SIGUSR1, &stop), TALLY_STOP_STEP);
	check_u64(stop.pc, TALLY_SIM_TEXT + 4 * 10);
	check_u64(stop.retired.instructions, 0);
	check_u64(tally_sim_counts(sim)->executed, before);
	check_int(go(sim, TALLY_RESUME_STEP, 0, &stop), TALLY_STOP_STEP);
	check_int(go(sim, TALLY_RESUME_STEP, 0, &stop), TALLY_STOP_STEP);
	check_u64(stop.pc, TALLY_SIM_TEXT + 4 * 7);
	tally_sim_free(sim);
}

static void traps(void)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_tracee_regs regs;
	struct tally_stop stop;

	opts.flags = TALLY_SIM_TRAP_CPUID;
	struct tally_sim *sim = make(&opts);
	require(sim);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_SIGNAL);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_CPUID);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_CPUID);
	check_int(tally_sim_regs(sim, &regs), 0);
	check_u64(regs.word[ORACLE_PC], TALLY_SIM_TEXT + 4 * 7);
	regs.word[ORACLE_PC] += 4;
	check_int(tally_sim_set_regs(sim, &regs), 0);
	check_int(go(sim, TALLY_RESUME_STEP, 0, &stop), TALLY_STOP_STEP);
	check_u64(stop.address, TALLY_SIM_TEXT + 4 * 8);
	check_u64(stop.retired.conditional, 1);
	regs.machine = 183;
	check_int(tally_sim_set_regs(sim, &regs), -EINVAL);
	tally_sim_free(sim);
}

static void breaks_and_is_interrupted(void)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_sim *sim = make(&opts);
	struct tally_stop stop;

	require(sim);
	check_int(tally_sim_break(sim, TALLY_SIM_TEXT + 4 * 4), 0);
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_BREAKPOINT);
	check_u64(stop.pc, TALLY_SIM_TEXT + 4 * 4);
	/* It is at the breakpoint still. */
	check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_BREAKPOINT);
	check_int(tally_sim_break(sim, 0), 0);
	check_int(tally_sim_resume(sim, TALLY_RESUME_RUN, 0), 0);
	check_int(tally_sim_wait(sim, 0, &stop), 0);
	check_int(stop.kind, TALLY_STOP_NONE);
	check_int(tally_sim_interrupt(sim), 0);
	check_int(tally_sim_wait(sim, -1, &stop), 0);
	check(stop.kind == TALLY_STOP_INTERRUPT || stop.kind == TALLY_STOP_SIGNAL);
	tally_sim_free(sim);
}

static const struct tally_sim_insn endless[] = {
	{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
	{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
};

/* Interrupts come as late as was asked for, and no later. */
static void skids_as_told(void)
{
	struct tally_sim_opts opts = opts_of();
	struct tally_sim *sim = NULL;
	struct tally_clock *clock = NULL;
	struct tally_clock_value now;
	struct tally_stop stop;
	uint64_t due = 0, least = UINT64_MAX, most = 0;

	opts.regs[0] = 0;
	opts.skid_min = 3;
	opts.skid_max = 20;
	require(tally_sim_new(&sim, endless, 2, &opts, NULL) == 0);
	require(tally_sim_clock(&clock, sim, NULL) == 0);
	for (int i = 0; i < 2000; i++) {
		tally_clock_read(clock, &now);
		due = now.ticks + 100;
		check_int(tally_clock_arm(clock, 100), 0);
		check_int(go(sim, TALLY_RESUME_RUN, 0, &stop), TALLY_STOP_SIGNAL);
		check(tally_clock_owns(clock, &stop));
		tally_clock_read(clock, &now);
		least = now.ticks - due < least ? now.ticks - due : least;
		most = now.ticks - due > most ? now.ticks - due : most;
	}
	check_u64(least, 3);
	check_u64(most, 20);
	/* One an arming. */
	check_int(tally_sim_resume(sim, TALLY_RESUME_RUN, 0), 0);
	check_int(tally_sim_wait(sim, 100, &stop), 0);
	check_int(stop.kind, TALLY_STOP_NONE);
	tally_clock_free(clock);
	tally_sim_free(sim);
}

static void is_the_same_for_a_seed(void)
{
	uint64_t ticks[2][50];

	for (int run = 0; run < 2; run++) {
		struct tally_sim_opts opts = opts_of();
		struct tally_sim *sim = NULL;
		struct tally_clock *clock = NULL;
		struct tally_clock_value now;
		struct tally_stop stop;
		opts.seed = 42;
		opts.skid_max = 500;
		opts.foreign_ppm = 100;
		opts.duplicate_ppm = 500000;
		opts.regs[0] = 0;
		require(tally_sim_new(&sim, endless, 2, &opts, NULL) == 0);
		require(tally_sim_clock(&clock, sim, NULL) == 0);
		for (int i = 0; i < 50; i++) {
			tally_clock_arm(clock, 100);
			go(sim, TALLY_RESUME_RUN, 0, &stop);
			tally_clock_read(clock, &now);
			ticks[run][i] = now.ticks;
		}
		tally_clock_free(clock);
		tally_sim_free(sim);
	}
	check_mem(ticks[0], ticks[1], sizeof(ticks[0]));
}

static void refuses(struct tally_sim_insn insn, struct tally_sim_opts opts, const char *why)
{
	struct tally_sim *sim = NULL;
	struct tally_error err = { 0 };

	check_int(tally_sim_new(&sim, &insn, 1, &opts, &err), -EINVAL);
	check_has(err.text, why);
}

static void refuses_what_cannot_be(void)
{
	struct tally_sim_insn plain = { TALLY_SIM_PLAIN }, bad;
	struct tally_sim_opts sound = opts_of(), opts;
	struct tally_sim *sim = NULL;

	bad = plain, bad.op = 99;
	refuses(bad, sound, "unknown op");
	bad = plain, bad.reg = TALLY_SIM_REGS;
	refuses(bad, sound, "register");
	bad = plain, bad.target = 1;
	refuses(bad, sound, "target");
	bad = plain, bad.op = TALLY_SIM_KILL, bad.value = 65;
	refuses(bad, sound, "signal");
	opts = sound, opts.ticks = TALLY_TICKS_OTHER;
	refuses(plain, opts, "semantics");
	opts = sound, opts.signal = 65;
	refuses(plain, opts, "signal");
	opts = sound, opts.skid_min = 2;
	refuses(plain, opts, "skid");
	opts = sound, opts.handler = 2;
	refuses(plain, opts, "handler");
	opts = sound, opts.lost_ppm = 1000001;
	refuses(plain, opts, "chance");
	opts = sound, opts.flags = 1u << 30;
	refuses(plain, opts, "flags");
	check_int(tally_sim_new(&sim, &plain, 0, &sound, NULL), -EINVAL);
	check(!sim);
	sim = make(&sound);
	require(sim);
	check_int(tally_sim_resume(sim, TALLY_RESUME_LISTEN, 0), -EINVAL);
	check_int(tally_sim_resume(sim, TALLY_RESUME_RUN, 65), -EINVAL);
	tally_sim_free(sim);
	tally_sim_free(NULL);
}

int main(void)
{
	tap_run(executes_as_the_oracle);
	tap_run(stops_at_system_calls);
	tap_run(enters_handlers);
	tap_run(traps);
	tap_run(breaks_and_is_interrupted);
	tap_run(skids_as_told);
	tap_run(is_the_same_for_a_seed);
	tap_run(refuses_what_cannot_be);
	return tap_end();
}
