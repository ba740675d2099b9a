/* SPDX-License-Identifier: MIT */
/* A thread that only exists in memory: executes its program, and stops as a traced thread does. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "exact/sim.h"

#define INSN_BYTES 4
#define TID        4711
/* Words of the kernel's user_regs_struct of x86-64. */
#define WORD_PC   16
#define WORD_SP   19
#define WORDS     27
#define STACK_TOP 0x7ffffffff000u
#define PER_MS    1000 /* instructions */
#define MOST_PPM  1000000u

static const char *insn_fault(const struct tally_sim_insn *insn, uint32_t count)
{
	if (insn->op > TALLY_SIM_EXIT)
		return "an unknown op";
	if (insn->reg >= TALLY_SIM_REGS)
		return "a register that there is not";
	if (insn->target >= count)
		return "a target outside of the program";
	if (insn->op == TALLY_SIM_KILL && (insn->value <= 0 || insn->value >= SIM_SIGNALS))
		return "a signal that there is not";
	return NULL;
}

static const char *opts_fault(const struct tally_sim_opts *o, uint32_t count)
{
	if (o->ticks > TALLY_TICKS_INSTRUCTIONS)
		return "an unknown semantics";
	if (o->signal < 0 || o->signal >= SIM_SIGNALS)
		return "a signal that there is not";
	if (o->skid_min > o->skid_max || o->skid_max > UINT32_MAX || o->tail_max > UINT32_MAX)
		return "a skid that cannot be";
	if (o->handler > count)
		return "a handler outside of the program";
	if (o->lost_ppm > MOST_PPM || o->early_ppm > MOST_PPM || o->duplicate_ppm > MOST_PPM ||
	    o->stale_ppm > MOST_PPM || o->tail_ppm > MOST_PPM || o->foreign_ppm > MOST_PPM ||
	    o->miscount_ppm > MOST_PPM)
		return "a chance above one";
	return NULL;
}

static int check_input(const struct tally_sim_insn *program, uint32_t count,
		       const struct tally_sim_opts *o, struct tally_error *err)
{
	const char *fault = opts_fault(o, count);

	if (fault || !count)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a simulated program cannot be started with %s",
				 fault ? fault : "no instructions");
	for (uint32_t i = 0; i < count; i++) {
		fault = insn_fault(&program[i], count);
		if (fault)
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "instruction %u of a simulated program has %s", i, fault);
	}
	return 0;
}

int tally_sim_new(struct tally_sim **out, const struct tally_sim_insn *program, uint32_t count,
		  const struct tally_sim_opts *opts, struct tally_error *err)
{
	struct tally_sim_opts known;

	int r = opts_read(&known, sizeof(known), TALLY_SIM_SECCOMP * 2 - 1, opts, err);
	if (r == 0)
		r = check_input(program, count, &known, err);
	if (r < 0)
		return r;
	struct tally_sim *sim = calloc(1, sizeof(*sim));
	if (!sim)
		return error_nomem(err, "a simulated thread");
	known.ticks = known.ticks ? known.ticks : TALLY_TICKS_CONDITIONAL;
	known.signal = known.signal ? known.signal : SIGSTKFLT;
	known.per_ms = known.per_ms ? known.per_ms : PER_MS;
	sim->program = program;
	sim->count = count;
	sim->opts = known;
	sim->random = known.seed;
	sim->next_alarm = UINT64_MAX;
	sim->next_foreign = sim_draw(sim, known.foreign_ppm);
	sim->next_miscount = sim_draw(sim, known.miscount_ppm);
	memcpy(sim->regs, known.regs, sizeof(sim->regs));
	*out = sim;
	return 0;
}

int tally_sim_copy(struct tally_sim **out, const struct tally_sim *from, struct tally_error *err)
{
	struct tally_sim *sim = malloc(sizeof(*sim));

	if (!sim)
		return error_nomem(err, "a simulated thread");
	*sim = *from;
	*out = sim;
	return 0;
}

void tally_sim_free(struct tally_sim *sim)
{
	free(sim);
}

const struct tally_sim_counts *tally_sim_counts(const struct tally_sim *sim)
{
	return &sim->counts;
}

static uint64_t address_of(uint32_t at)
{
	return TALLY_SIM_TEXT + (uint64_t)at * INSN_BYTES;
}

void sim_raise(struct tally_sim *sim, int signal, const struct sim_signal *what)
{
	struct sim_signal *s = &sim->signals[signal];

	if (s->pending) /* As the kernel has it of signals below SIGRTMIN. */
		return;
	*s = *what;
	s->pending = true;
	sim->pending++;
}

/* Hands over the first signal that is pending. */
static void take_signal(struct tally_sim *sim, struct tally_stop *stop)
{
	int signal = 1;

	while (!sim->signals[signal].pending)
		signal++;
	struct sim_signal *s = &sim->signals[signal];
	s->pending = false;
	sim->pending--;
	if (s->ours)
		sim->counts.interrupts++;
	else if (signal == sim->opts.signal)
		sim->counts.foreign++;
	stop->kind = TALLY_STOP_SIGNAL;
	stop->signal = signal;
	stop->code = s->code;
	stop->fd = s->fd;
}

/* A signal reaches the program. */
static void deliver(struct tally_sim *sim, int signal)
{
	sim->counts.delivered[signal]++;
	if (!sim->opts.handler || sim->depth == SIM_NESTED)
		return;
	sim->returns[sim->depth++] = sim->at;
	sim->at = sim->opts.handler - 1;
	sim->entered = true;
}

/* Whether this instruction stops the thread before it is executed. */
static bool traps(const struct tally_sim *sim, const struct tally_sim_insn *insn,
		  struct tally_stop *stop)
{
	if (insn->op == TALLY_SIM_CPUID && (sim->opts.flags & TALLY_SIM_TRAP_CPUID))
		stop->kind = TALLY_STOP_CPUID;
	else if (insn->op == TALLY_SIM_TSC && (sim->opts.flags & TALLY_SIM_TRAP_TSC))
		stop->kind = TALLY_STOP_TSC;
	else
		return false;
	return true;
}

static uint32_t branch(struct tally_sim *sim, const struct tally_sim_insn *insn, bool taken,
		       struct tally_retired *retired)
{
	bool conditional = insn->op != TALLY_SIM_JUMP;

	if (taken)
		sim->at = insn->target;
	retired->branches = 1;
	retired->taken = taken;
	retired->conditional = conditional;
	return TALLY_INSN_BRANCH | (conditional ? TALLY_INSN_CONDITIONAL : 0);
}

static void return_from_handler(struct tally_sim *sim)
{
	if (sim->depth)
		sim->at = sim->returns[--sim->depth];
}

/* Executes one instruction, and tells its bits (enum tally_insn) and what it retires. */
static uint32_t execute(struct tally_sim *sim, struct tally_retired *retired)
{
	const struct tally_sim_insn *insn = &sim->program[sim->at++];
	uint64_t *reg = &sim->regs[insn->reg];

	*retired = (struct tally_retired){ .instructions = 1 };
	switch (insn->op) {
	case TALLY_SIM_BRANCH:
		return branch(sim, insn, --*reg != 0, retired);
	case TALLY_SIM_BRANCH_IF:
		return branch(sim, insn, *reg & (uint64_t)insn->value, retired);
	case TALLY_SIM_JUMP:
		return branch(sim, insn, true, retired);
	case TALLY_SIM_REP:
		*reg += (uint64_t)insn->value;
		return TALLY_INSN_REPEATED;
	case TALLY_SIM_SYSCALL:
		*reg = 0;
		return TALLY_INSN_SYSCALL;
	case TALLY_SIM_KILL:
		sim_raise(sim, (int)insn->value, &(struct sim_signal){ .code = SI_USER });
		return TALLY_INSN_SYSCALL;
	case TALLY_SIM_RETURN:
		return_from_handler(sim);
		return 0;
	default:
		*reg += (uint64_t)insn->value;
		return 0;
	}
}

static bool is_syscall(const struct tally_sim_insn *insn)
{
	return insn->op == TALLY_SIM_SYSCALL || insn->op == TALLY_SIM_KILL;
}

/* The stop at the entry of a system call, after which the call is executed. */
static bool enters_syscall(struct tally_sim *sim, const struct tally_sim_insn *insn,
			   struct tally_stop *stop)
{
	if (!is_syscall(insn))
		return false;
	if (sim->opts.flags & TALLY_SIM_SECCOMP) {
		stop->kind = TALLY_STOP_SECCOMP;
	} else if (sim->how == TALLY_RESUME_SYSCALL) {
		stop->kind = TALLY_STOP_SYSCALL_ENTRY;
		stop->value = (uint64_t)insn->value;
	} else {
		return false;
	}
	sim->in_syscall = true;
	return true;
}

static bool is_exit(const struct tally_sim *sim)
{
	return sim->at >= sim->count || sim->program[sim->at].op == TALLY_SIM_EXIT;
}

static void stop_exited(struct tally_sim *sim, struct tally_stop *stop)
{
	stop->kind = TALLY_STOP_EXITED;
	stop->value = sim->at < sim->count ? (uint64_t)sim->program[sim->at].value & 0xff : 0;
	sim->ended = true;
}

/* What keeps the next instruction from being executed. */
static bool stops_before(struct tally_sim *sim, struct tally_stop *stop)
{
	if (sim->in_syscall) /* It is executed to its end first. */
		return false;
	if (sim->entered && sim->how == TALLY_RESUME_STEP) {
		stop->kind = TALLY_STOP_STEP;
		stop->pc = address_of(sim->at);
		stop->repeats = 1;
		return true;
	}
	if (sim->pending) {
		take_signal(sim, stop);
		return true;
	}
	if (sim->interrupted && sim->interrupt_in-- == 0) {
		sim->interrupted = false;
		stop->kind = TALLY_STOP_INTERRUPT;
		return true;
	}
	if (sim->break_at && address_of(sim->at) == sim->break_at) {
		stop->kind = TALLY_STOP_BREAKPOINT;
		stop->pc = sim->break_at;
		return true;
	}
	if (is_exit(sim)) {
		stop_exited(sim, stop);
		return true;
	}
	const struct tally_sim_insn *insn = &sim->program[sim->at];
	return traps(sim, insn, stop) || enters_syscall(sim, insn, stop);
}

/* Executes the next one; whether the thread stops behind it. */
static bool stops_behind(struct tally_sim *sim, struct tally_stop *stop)
{
	const struct tally_sim_insn *insn = &sim->program[sim->at];
	struct tally_retired retired;
	uint32_t at = sim->at, bits = execute(sim, &retired);

	sim_retired(sim, &retired);
	if (sim->how == TALLY_RESUME_STEP) {
		stop->kind = TALLY_STOP_STEP;
		stop->address = address_of(at);
		stop->pc = address_of(sim->at);
		stop->retired = retired;
		stop->insn = bits;
	} else if (sim->in_syscall && sim->how == TALLY_RESUME_SYSCALL) {
		stop->kind = TALLY_STOP_SYSCALL_EXIT;
	}
	sim->in_syscall = false;
	if (stop->kind == TALLY_STOP_NONE)
		return false;
	stop->repeats = insn->op == TALLY_SIM_REP ? (uint32_t)insn->value : 1;
	return true;
}

int tally_sim_resume(struct tally_sim *sim, uint32_t how, int signal)
{
	if (how > TALLY_RESUME_STEP || signal < 0 || signal >= SIM_SIGNALS)
		return -EINVAL;
	if (sim->ended)
		return -ESRCH;
	sim->how = how;
	sim->running = true;
	sim->entered = false;
	if (signal)
		deliver(sim, signal);
	sim->counts.resumed++;
	return 0;
}

int tally_sim_wait(struct tally_sim *sim, int timeout_ms, struct tally_stop *stop)
{
	uint64_t left = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * sim->opts.per_ms;

	*stop = (struct tally_stop){ .tid = TID };
	if (sim->ended)
		return -ESRCH;
	while (sim->running) {
		if (stops_before(sim, stop) || stops_behind(sim, stop))
			sim->running = false;
		else if (left-- == 0)
			break;
	}
	return 0;
}

int tally_sim_interrupt(struct tally_sim *sim)
{
	if (sim->ended)
		return -ESRCH;
	if (!sim->interrupted) {
		sim->interrupted = true;
		sim->interrupt_in = (uint32_t)sim_random(sim, 4);
	}
	return 0;
}

int tally_sim_break(struct tally_sim *sim, uint64_t address)
{
	if (sim->ended)
		return -ESRCH;
	sim->break_at = address;
	return 0;
}

int tally_sim_regs(const struct tally_sim *sim, struct tally_tracee_regs *regs)
{
	memset(regs, 0, sizeof(*regs));
	regs->machine = EM_X86_64;
	regs->count = WORDS;
	memcpy(regs->word, sim->regs, sizeof(sim->regs));
	regs->word[WORD_PC] = address_of(sim->at);
	regs->word[WORD_SP] = STACK_TOP - sim->depth * sizeof(uint64_t);
	return sim->ended ? -ESRCH : 0;
}

int tally_sim_set_regs(struct tally_sim *sim, const struct tally_tracee_regs *regs)
{
	uint64_t at = (regs->word[WORD_PC] - TALLY_SIM_TEXT) / INSN_BYTES;

	if (sim->ended)
		return -ESRCH;
	if (regs->machine != EM_X86_64 || regs->count < WORDS || at > sim->count)
		return -EINVAL;
	memcpy(sim->regs, regs->word, sizeof(sim->regs));
	sim->at = (uint32_t)at;
	return 0;
}

/* Waits as a caller with a watchdog does. */
static int wait_watched(struct tally_sim *sim, uint32_t watch_ms, struct tally_stop *stop)
{
	int timeout = watch_ms && watch_ms < INT32_MAX ? (int)watch_ms : -1;
	int r = tally_sim_wait(sim, timeout, stop);

	if (r == 0 && stop->kind == TALLY_STOP_NONE) {
		tally_sim_interrupt(sim);
		r = tally_sim_wait(sim, -1, stop);
	}
	return r;
}

int tally_sim_perform(struct tally_sim *sim, const struct tally_timer_action *action, int signal,
		      bool syscalls, struct tally_stop *stop)
{
	uint32_t how = syscalls ? TALLY_RESUME_SYSCALL : TALLY_RESUME_RUN;

	if (action->what != TALLY_TIMER_RUN && action->what != TALLY_TIMER_RUN_TO &&
	    action->what != TALLY_TIMER_STEP)
		return -EINVAL;
	sim->break_at = action->what == TALLY_TIMER_RUN_TO ? action->address : 0;
	if (action->what == TALLY_TIMER_STEP)
		how = TALLY_RESUME_STEP;
	int r = tally_sim_resume(sim, how, signal);
	if (r == 0)
		r = wait_watched(sim, action->watch_ms, stop);
	sim->break_at = 0;
	return r;
}
