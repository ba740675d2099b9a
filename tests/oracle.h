/* SPDX-License-Identifier: MIT */
/*
 * Knows where a simulated program really is: a plain interpreter of its own, which is told how many
 * instructions were executed and which signals were delivered, and watches for the first boundary at
 * which a request is fulfilled. It knows nothing of counters, interrupts and margins.
 */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <string.h>

#include <tally/sim.h>
#include <tally/timer.h>

#define ORACLE_DEPTH 8
#define ORACLE_NEVER UINT64_MAX
#define ORACLE_PC    16 /* rip in the kernel's user_regs_struct */
#define ORACLE_SP    19

struct oracle {
	const struct tally_sim_insn *program;
	uint32_t count, handler; /* the latter plus 1 */
	uint32_t semantics;      /* enum tally_ticks */
	uint64_t reg[TALLY_SIM_REGS];
	uint32_t at, returns[ORACLE_DEPTH], depth;
	uint64_t executed, ticks; /* ticks as the clock should read */
	/* The request. */
	struct tally_timer_request wish;
	uint64_t target;   /* what the clock is to read */
	uint64_t first_at; /* executed, where the clock first read `target` or more */
	uint64_t first;    /* what it read there */
	uint64_t met_at;   /* executed, where the request was first fulfilled */
	uint64_t
		signalled; /* signals delivered to the handler, since an address may be met by that */
};

static inline void oracle_start(struct oracle *o, const struct tally_sim_insn *program,
				uint32_t count, const struct tally_sim_opts *opts)
{
	*o = (struct oracle){ .program = program,
			      .count = count,
			      .handler = opts->handler,
			      .semantics = opts->ticks ? opts->ticks : TALLY_TICKS_CONDITIONAL };
	memcpy(o->reg, opts->regs, sizeof(o->reg));
	o->met_at = o->first_at = ORACLE_NEVER;
}

static inline uint64_t oracle_pc(const struct oracle *o)
{
	return TALLY_SIM_TEXT + 4 * (uint64_t)o->at;
}

/* Whether the program is where these registers are. */
static inline bool oracle_has(const struct oracle *o, const struct tally_tracee_regs *regs)
{
	return regs->word[ORACLE_PC] == oracle_pc(o) &&
	       !memcmp(regs->word, o->reg, sizeof(o->reg)) &&
	       regs->word[ORACLE_SP] == 0x7ffffffff000u - 8 * (uint64_t)o->depth;
}

static inline bool oracle_met(const struct oracle *o)
{
	const struct tally_timer_request *w = &o->wish;
	uint64_t behind = o->executed - o->first_at;
	bool there = o->first_at != ORACLE_NEVER;

	switch (w->kind) {
	case TALLY_TIMER_AT_LEAST:
		return there;
	case TALLY_TIMER_EXACTLY:
		return there && o->first == o->target && behind == 0;
	case TALLY_TIMER_INSTRUCTIONS:
		return there && o->first == o->target && behind == w->instructions;
	case TALLY_TIMER_WITHIN:
		return there && o->ticks == o->target && behind == w->instructions;
	case TALLY_TIMER_ADDRESS:
		return o->ticks >= o->target && oracle_pc(o) == w->address &&
		       (!(w->flags & TALLY_TIMER_SAME_TICK) || o->ticks == o->target);
	default:
		return o->ticks == o->target && oracle_has(o, &w->point->regs);
	}
}

/* Looks at the boundary where the program stands. */
static inline void oracle_look(struct oracle *o)
{
	if (!o->wish.kind)
		return;
	if (o->first_at == ORACLE_NEVER && o->ticks >= o->target) {
		o->first_at = o->executed;
		o->first = o->ticks;
	}
	if (o->met_at == ORACLE_NEVER && oracle_met(o))
		o->met_at = o->executed;
}

/* A request that was made where the program stands, with the clock to read `target`. */
static inline void oracle_wish(struct oracle *o, const struct tally_timer_request *wish,
			       uint64_t target)
{
	o->wish = *wish;
	o->target = target;
	o->met_at = o->first_at = ORACLE_NEVER;
	oracle_look(o);
}

static inline bool oracle_at_end(const struct oracle *o)
{
	return o->at >= o->count || o->program[o->at].op == TALLY_SIM_EXIT;
}

static inline void oracle_count(struct oracle *o, bool branch, bool conditional, bool taken)
{
	o->executed++;
	switch (o->semantics) {
	case TALLY_TICKS_CONDITIONAL:
		o->ticks += conditional;
		break;
	case TALLY_TICKS_TAKEN:
		o->ticks += branch && taken;
		break;
	case TALLY_TICKS_BRANCHES:
		o->ticks += branch;
		break;
	default:
		o->ticks++;
	}
}

static inline void oracle_step(struct oracle *o)
{
	const struct tally_sim_insn *i = &o->program[o->at];
	bool conditional = i->op == TALLY_SIM_BRANCH || i->op == TALLY_SIM_BRANCH_IF;
	bool branch = conditional || i->op == TALLY_SIM_JUMP, taken = i->op == TALLY_SIM_JUMP;

	o->at++;
	if (i->op == TALLY_SIM_BRANCH)
		taken = --o->reg[i->reg] != 0;
	else if (i->op == TALLY_SIM_BRANCH_IF)
		taken = (o->reg[i->reg] & (uint64_t)i->value) != 0;
	else if (i->op == TALLY_SIM_RETURN)
		o->at = o->depth ? o->returns[--o->depth] : o->at;
	else if (i->op == TALLY_SIM_SYSCALL)
		o->reg[i->reg] = 0;
	else if (!branch && i->op != TALLY_SIM_KILL)
		o->reg[i->reg] += (uint64_t)i->value;
	if (taken)
		o->at = i->target;
	oracle_count(o, branch, conditional, taken);
	oracle_look(o);
}

/* The program went on to where so many instructions have been executed. */
static inline void oracle_advance(struct oracle *o, uint64_t executed)
{
	while (o->executed < executed && !oracle_at_end(o))
		oracle_step(o);
}

static inline void oracle_deliver(struct oracle *o)
{
	if (!o->handler || o->depth == ORACLE_DEPTH)
		return;
	o->returns[o->depth++] = o->at;
	o->at = o->handler - 1;
	oracle_look(o);
}

#endif
