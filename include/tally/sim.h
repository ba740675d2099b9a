/* SPDX-License-Identifier: MIT */
/*
 * tally_sim: a thread that only exists in memory, with a counter that has every fault of
 * hardware, to try out loops around timers: it stops, steps and is interrupted like a traced
 * thread, the same way each time for the same seed.
 *
 *	static const struct tally_sim_insn program[] = {
 *		{ TALLY_SIM_PLAIN, .reg = 1, .value = 3 },
 *		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },	// 1000 times
 *		{ TALLY_SIM_EXIT },
 *	};
 *	tally_sim_new(&sim, program, 3, TALLY_OPTS(sim, .regs = { 1000 }, .skid_max = 40), &err);
 *	tally_sim_clock(&clock, sim, &err);
 *
 * Registers are those of x86-64 (EM_X86_64): register i of a program is word i, i below 15.
 */
#ifndef TALLY_SIM_H
#define TALLY_SIM_H

#include <tally/api.h>
#include <tally/clock.h>
#include <tally/error.h>
#include <tally/timer.h>
#include <tally/tracee.h>

TALLY_BEGIN_DECLS

struct tally_sim;

#define TALLY_SIM_REGS 15
/* Where instruction 0 stands; each takes 4 bytes. */
#define TALLY_SIM_TEXT 0x401000u

enum tally_sim_op {
	TALLY_SIM_PLAIN = 0, /* adds `value` to `reg` */
	TALLY_SIM_BRANCH, /* conditional: takes 1 from `reg`, and goes to `target` unless that is 0 */
	TALLY_SIM_BRANCH_IF, /* conditional: to `target` when `reg` has a bit of `value` */
	TALLY_SIM_JUMP,      /* to `target` */
	TALLY_SIM_REP,       /* one instruction: adds 1 to `reg`, `value` times */
	TALLY_SIM_SYSCALL,   /* of number `value`; the result, 0, goes to `reg` */
	TALLY_SIM_KILL,      /* a system call: sends signal `value` to itself */
	TALLY_SIM_CPUID,     /* with TALLY_SIM_TRAP_CPUID it stops; else adds `value` to `reg` */
	TALLY_SIM_TSC,       /* likewise with TALLY_SIM_TRAP_TSC */
	TALLY_SIM_RETURN,    /* from the handler of a signal; else as PLAIN */
	TALLY_SIM_EXIT,      /* with status `value`; so is running off the program's end, with 0 */
};

struct tally_sim_insn {
	uint32_t op;     /* enum tally_sim_op */
	uint32_t reg;    /* below TALLY_SIM_REGS */
	uint32_t target; /* index of an instruction */
	uint32_t reserved;
	int64_t value;
};

enum tally_sim_flags {
	TALLY_SIM_STEP_ONLY = 1u << 0,     /* the clock counts what is stepped alone */
	TALLY_SIM_NO_INTERRUPTS = 1u << 1, /* it counts, but cannot be armed */
	TALLY_SIM_NO_SKID = 1u << 2,       /* it promises that interrupts never come late */
	TALLY_SIM_TRAP_CPUID = 1u << 3,
	TALLY_SIM_TRAP_TSC = 1u << 4,
	TALLY_SIM_FOLLOWS_STEPS = 1u << 5, /* the clock says TALLY_CLOCK_FOLLOWS_STEPS */
	/* Each system call stops it with TALLY_STOP_SECCOMP, in steps, too. */
	TALLY_SIM_SECCOMP = 1u << 6,
};

/* Chances are in a million (ppm), of each interrupt where nothing else is said. */
struct tally_sim_opts {
	uint32_t size, flags; /* enum tally_sim_flags */
	uint64_t seed;
	uint32_t ticks;   /* enum tally_ticks; 0: conditional branches */
	int32_t signal;   /* of interrupts; 0: SIGSTKFLT */
	uint32_t per_ms;  /* instructions in a millisecond; 0: 1000 */
	uint32_t handler; /* the instruction that handles signals, plus 1; 0: they are ignored */
	uint64_t min_period, max_period; /* of arming; 0: 1, no limit */
	uint64_t margin;                 /* that the clock states */
	double rate;                     /* that it states */
	/* How late: ticks, evenly spread, and then up to so many instructions more. */
	uint64_t skid_min, skid_max;
	uint32_t skid_insns;
	uint32_t tail_ppm; /* of being up to `tail_max` ticks late instead */
	uint64_t tail_max;
	uint32_t lost_ppm;      /* of never coming */
	uint32_t early_ppm;     /* of coming anywhere before */
	uint32_t duplicate_ppm; /* of another one, up to 2 * skid_max + 2 ticks behind */
	uint32_t stale_ppm;     /* of coming although disarmed, or armed anew */
	uint32_t foreign_ppm;   /* of a signal of that number by somebody else, each instruction */
	uint32_t miscount_ppm;  /* of a tick too many, each instruction */
	/* The count from which on a read fails so, and goes back by `backward`; 0: never. */
	uint64_t invalid_at, backward_at, backward;
	uint32_t invalid; /* enum tally_clock_validity */
	uint32_t reserved;
	uint64_t regs[TALLY_SIM_REGS]; /* at the start */
};

/* What happened to the thread. */
struct tally_sim_counts {
	uint64_t executed;                  /* instructions */
	uint64_t ticks;                     /* the truth, without faults */
	uint64_t interrupts, lost, foreign; /* that stopped it, that never came; by somebody else */
	uint64_t delivered[65];             /* signals that it got, by number */
	uint64_t resumed;                   /* how often */
};

/*
 * A thread, stopped before its first instruction. The program is borrowed. `opts` may be NULL.
 * Errors: -EINVAL (an instruction with an unknown op, register or target; an option that cannot
 * be), -E2BIG, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_sim_new(struct tally_sim **out, const struct tally_sim_insn *program,
			    uint32_t count, const struct tally_sim_opts *opts,
			    struct tally_error *err);
/* Another one in the same state, with the same interrupts ahead: a checkpoint. Errors: -ENOMEM.
 * Since: 0.1 */
TALLY_API int tally_sim_copy(struct tally_sim **out, const struct tally_sim *from,
			     struct tally_error *err);
TALLY_API void tally_sim_free(struct tally_sim *sim);

/* Its clock, at 0 now. One a thread; the thread must outlive it. Errors: -ENOMEM. Since: 0.1 */
TALLY_API int tally_sim_clock(struct tally_clock **out, struct tally_sim *sim,
			      struct tally_error *err);

/*
 * As tally_tracee_resume, _wait, _interrupt, _break, _regs and _set_regs. Each wait takes simulated
 * time; with timeout_ms < 0 a thread that loops for ever makes it wait as long. In SYSCALL mode a
 * signal number that is not 0 is delivered.
 * Errors: -ESRCH (it has ended), -EINVAL (an unknown mode, another machine's registers). Since: 0.1
 */
TALLY_API int tally_sim_resume(struct tally_sim *sim, uint32_t how, int signal);
TALLY_API int tally_sim_wait(struct tally_sim *sim, int timeout_ms, struct tally_stop *stop);
TALLY_API int tally_sim_interrupt(struct tally_sim *sim);
TALLY_API int tally_sim_break(struct tally_sim *sim, uint64_t address);
TALLY_API int tally_sim_regs(const struct tally_sim *sim, struct tally_tracee_regs *regs);
TALLY_API int tally_sim_set_regs(struct tally_sim *sim, const struct tally_tracee_regs *regs);

/*
 * Performs an action of a timer (RUN, STEP, RUN_TO) by these, watchdog included, and waits for what
 * stops it. `signal`: to deliver. RUN stops at system calls, too, when `syscalls` is true.
 * Errors: -EINVAL (another action), -ESRCH. Since: 0.1
 */
TALLY_API int tally_sim_perform(struct tally_sim *sim, const struct tally_timer_action *action,
				int signal, bool syscalls, struct tally_stop *stop);

TALLY_API const struct tally_sim_counts *tally_sim_counts(const struct tally_sim *sim);

TALLY_END_DECLS

#endif
