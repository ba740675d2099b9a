/* SPDX-License-Identifier: MIT */
/* Requests in short, and the program that most tests of timers take: a loop. */
#ifndef TESTS_LOOPS_H
#define TESTS_LOOPS_H

#include "base/bytes.h"
#include "simdrive.h"

#define AT(insn) (TALLY_SIM_TEXT + 4 * (uint64_t)(insn))

/* `n` conditional branches, which r0 begins with, two instructions each; then others. */
static const struct tally_sim_insn loop[] = {
	{ TALLY_SIM_PLAIN, .reg = 3, .value = 1 },
	{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
	{ TALLY_SIM_EXIT, .value = 9 },
};

static inline struct tally_sim_opts loops_of(uint64_t n)
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

static inline uint32_t ask(struct simdrive *d, const struct tally_timer_request *r)
{
	const struct tally_timer_outcome *o = simdrive_ask(d, r);

	return o ? o->kind : UINT32_MAX;
}

#endif
