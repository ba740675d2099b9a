/* SPDX-License-Identifier: MIT */
/*
 * A simulated thread, inside: sim.c executes, clock-sim.c is the counter with its interrupts,
 * which come as signals that are pending until the thread's next stop.
 */
#ifndef EXACT_SIM_H
#define EXACT_SIM_H

#include <tally/sim.h>

#define SIM_SIGNALS 65
#define SIM_FD      1000 /* that interrupts are for */
#define SIM_ALARMS  4    /* interrupts that are under way at a time */
#define SIM_NESTED  8    /* handlers within handlers */

/* An interrupt under way: it comes so many instructions behind a tick. */
struct sim_alarm {
	bool on;
	uint64_t tick;
	uint32_t insns;
};

struct sim_signal {
	bool pending, ours;
	int32_t code, fd;
};

struct tally_sim {
	const struct tally_sim_insn *program;
	uint32_t count;
	struct tally_sim_opts opts;
	uint64_t random;
	/* The thread. */
	uint64_t regs[TALLY_SIM_REGS];
	uint32_t at; /* the next instruction; `count`: it is about to exit */
	uint32_t returns[SIM_NESTED], depth;
	uint64_t break_at;
	uint32_t how; /* enum tally_tracee_resume */
	bool running, ended, in_syscall, interrupted;
	bool entered;          /* a handler, by what it was resumed with */
	uint32_t interrupt_in; /* instructions until an interruption takes effect */
	struct sim_signal signals[SIM_SIGNALS];
	uint32_t pending; /* how many signals are */
	/* The counter. */
	bool has_clock;
	uint64_t counted; /* with its faults */
	uint64_t base;    /* `counted` when the clock was made */
	struct sim_alarm armed, others[SIM_ALARMS];
	uint64_t
		next_alarm; /* none is due while fewer have been counted; UINT64_MAX: none at all */
	uint64_t next_foreign, next_miscount; /* by instructions executed; UINT64_MAX: never */
	struct tally_sim_counts counts;
};

/* A number below `bound`, which is not 0. */
uint64_t sim_random(struct tally_sim *sim, uint64_t bound);
bool sim_chance(struct tally_sim *sim, uint32_t ppm);
/* After how many instructions something with this chance in each happens next; UINT64_MAX: never. */
uint64_t sim_draw(struct tally_sim *sim, uint32_t ppm);

/* Makes a signal pending, unless one of that number already is. */
void sim_raise(struct tally_sim *sim, int signal, const struct sim_signal *what);

/* An instruction was executed, in a step or not: counts, and raises what is due. */
void sim_retired(struct tally_sim *sim, const struct tally_retired *retired);

#endif
