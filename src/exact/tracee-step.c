/* SPDX-License-Identifier: MIT */
/*
 * One instruction, as it would be executed without a tracer. What is to be done about it is planned
 * before; each stop either ends the plan or goes on with it.
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* Internal results of system calls that will be started again: include/linux/errno.h. */
static bool will_restart(int64_t result)
{
	return result == -512 || result == -513 || result == -514 || result == -516;
}

static void add(struct tally_tracee *t, const struct tally_retired *more)
{
	t->retired.instructions += more->instructions;
	t->retired.branches += more->branches;
	t->retired.conditional += more->conditional;
	t->retired.taken += more->taken;
	t->total.instructions += more->instructions;
	t->total.branches += more->branches;
	t->total.conditional += more->conditional;
	t->total.taken += more->taken;
}

/* Hands what was retired since the last stop to one that is told. */
static int tell(struct tally_tracee *t, struct tally_stop *stop)
{
	stop->retired = t->retired;
	memset(&t->retired, 0, sizeof(t->retired));
	return 1;
}

/* A stop that means nothing to the caller: it looks like an interrupt, and is resumed like one. */
static int tell_interrupt(struct tally_tracee *t, struct tally_stop *stop)
{
	stop->kind = TALLY_STOP_INTERRUPT;
	stop->signal = stop->code = 0;
	return tell(t, stop);
}

static void unknown(struct tally_tracee *t)
{
	t->insn.flags |= TALLY_INSN_UNKNOWN;
	t->losses++;
}

static void count_insn(struct tally_tracee *t, uint64_t pc)
{
	uint32_t flags = t->insn.flags;
	bool conditional = flags & TALLY_INSN_CONDITIONAL;
	bool moved = pc != t->address + t->insn.len;
	struct tally_retired one = {
		.instructions = 1,
		.branches = flags & TALLY_INSN_BRANCH ? 1 : 0,
		.conditional = conditional,
		.taken = (flags & TALLY_INSN_BRANCH) && (!conditional || moved),
	};

	add(t, &one);
	/* It ended elsewhere than it could: more was executed than it alone. */
	if (!t->insn.len || (moved && !(flags & TALLY_INSN_BRANCH) && !t->insn.anywhere))
		unknown(t);
}

/* A step is over, and has been counted. */
static int end_step(struct tally_tracee *t, uint64_t pc, struct tally_stop *stop)
{
	if (t->insn.shifts)
		t->bits = 0;
	if (t->step_over) {
		t->step_over = false;
		return run_begin(t, 0);
	}
	stop->kind = TALLY_STOP_STEP;
	stop->signal = stop->code = 0;
	stop->fd = -1;
	stop->data = stop->value = 0;
	stop->address = t->address;
	stop->pc = pc;
	stop->insn = t->insn.flags;
	if (t->insn.flags & TALLY_INSN_REPEATED) {
		int r = tracee_read_regs(t);
		if (r < 0)
			return r;
		stop->repeats = (uint32_t)(t->repeats - arch_repeats(&t->regs));
	}
	return tell(t, stop);
}

/* The flags that PUSHF stored have the tracer's trap flag in them: bit 0 of the second byte. */
static int clean_pushed(struct tally_tracee *t)
{
	uint8_t byte;
	int r = tracee_read_regs(t);

	if (r < 0)
		return r;
	uint64_t at = t->regs.word[arch.sp] + 1;
	r = tally_tracee_peek(t, at, &byte, 1);
	byte &= 0xfe;
	return r < 0 ? r : tally_tracee_poke(t, at, &byte, 1);
}

static int begin_step(struct tally_tracee *t)
{
	t->plan = t->insn.how == INSN_REPEAT ? PLAN_REPEAT : PLAN_STEP;
	int r = trap_lend(t);
	return r < 0 ? r : tracee_continue(t, PTRACE_SINGLESTEP, 0);
}

static int begin_behind(struct tally_tracee *t)
{
	t->plan = PLAN_BEHIND;
	int r = trap_lend(t);
	if (r == 0)
		r = breaks_insert(t);
	/* Code that cannot be written to, of a mapping that is shared. */
	if (r == -EFAULT)
		return begin_step(t);
	return r < 0 ? r : tracee_continue(t, PTRACE_CONT, 0);
}

/* A program that sets the trap flag itself is to get its SIGTRAP: the stop stays a signal's. */
static int after_step(struct tally_tracee *t, struct tally_stop *stop)
{
	bool was = t->own_trap_flag;
	int r = t->insn.announces ? region_announced(t) : 0;

	if (r != 0)
		return r < 0 ? r : begin_behind(t);
	count_insn(t, t->pc);
	if (t->insn.how == INSN_PUSHF && !was)
		r = clean_pushed(t);
	if (r == 0 && (t->insn.flags & TALLY_INSN_CARE)) {
		r = tracee_read_regs(t);
		t->own_trap_flag = arch_steps_itself(&t->regs);
		t->loaded_flags = t->insn.loads_flags;
	}
	if (r < 0)
		return r;
	return was && !t->step_over ? tell(t, stop) : end_step(t, t->pc, stop);
}

/* A breakpoint behind it tells when it has been executed. */
static int step_behind(struct tally_tracee *t)
{
	if (!t->facts.alone)
		return begin_step(t);
	t->breaks.count = 0;
	breaks_add(t, t->address + t->insn.len);
	return begin_behind(t);
}

static int step_repeat(struct tally_tracee *t)
{
	int r = tracee_read_regs(t);

	if (r < 0)
		return r;
	t->repeats = arch_repeats(&t->regs);
	if (t->repeats < 2 || t->own_trap_flag ||
	    arch_repeat_writes(&t->regs, t->insn.element, t->address + t->insn.len))
		return begin_step(t);
	return step_behind(t);
}

/* Entered and left by stops of its own, which need no trap flag and no SIGTRAP. */
static int step_call(struct tally_tracee *t)
{
	int r = trap_return(t);

	if (r < 0)
		return r;
	code_forget(t);
	t->plan = PLAN_CALL;
	return tracee_continue(t, PTRACE_SYSCALL, 0);
}

static int step_region(struct tally_tracee *t)
{
	int r = t->facts.alone ? region_begin(t) : -EBUSY;

	if (r < 0)
		return r == -ESRCH ? r : begin_step(t);
	return begin_behind(t);
}

/* The kernel acts like a function that returns, and no instruction of the program's is executed. */
static int step_emulated(struct tally_tracee *t)
{
	uint64_t back;
	int r = tracee_read_regs(t);

	if (r < 0)
		return r;
	memset(&t->insn, 0, sizeof(t->insn));
	t->insn.flags = TALLY_INSN_SYSCALL | TALLY_INSN_CARE;
	t->insn.how = INSN_BEHIND;
	r = tally_tracee_peek(t, t->regs.word[arch.sp], &back, sizeof(back));
	if (r < 0 || !t->facts.alone)
		return begin_step(t);
	code_forget(t);
	t->breaks.count = 0;
	breaks_add(t, back);
	return begin_behind(t);
}

static int (*const begins[INSN_HOWS])(struct tally_tracee *t) = {
	[INSN_PLAIN] = begin_step,   [INSN_CALL] = step_call,   [INSN_REPEAT] = step_repeat,
	[INSN_BEHIND] = step_behind, [INSN_PUSHF] = begin_step, [INSN_REGION] = step_region,
};

/*
 * Sets up a signal's handler, or whatever the signal does, and executes nothing: a pending interrupt
 * stops the thread before it is back in the program. Without a signal it ends the kernel's stepping,
 * which would take its own trap flag for the program's behind a step over POPF or IRET
 * (enable_single_step(), arch/x86/kernel/step.c, relies on a flag of the last step).
 */
static int begin_deliver(struct tally_tracee *t, int signal)
{
	int r = trap_return(t);

	if (r < 0)
		return r;
	code_forget(t);
	t->restarts &= !signal;
	t->loaded_flags = t->masked = false;
	t->plan = PLAN_DELIVER;
	t->asked = true;
	long sent = sys()->ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	return sent < 0 ? (int)sent : tracee_continue(t, PTRACE_CONT, signal);
}

int step_begin(struct tally_tracee *t, int signal)
{
	int r;

	if (t->in_call)
		return step_call(t);
	if (signal)
		return begin_deliver(t, signal);
	if (t->loaded_flags)
		return begin_deliver(t, 0);
	if (t->restarts)
		return step_call(t);
	r = tracee_read_pc(t);
	/* Behind a stop of another kind it may stand in a call that was interrupted. */
	if (r == 0 && t->stop.kind != TALLY_STOP_STEP) {
		r = tracee_read_regs(t);
		if (r == 0 && arch_restarts(&t->regs))
			return step_call(t);
		t->own_trap_flag = r == 0 && arch_steps_itself(&t->regs);
	}
	if (r == 0)
		r = code_insn(t, t->pc, &t->insn);
	if (r < 0)
		return r;
	t->address = t->pc;
	t->repeats = 0;
	return arch_emulated(t->pc) ? step_emulated(t) : begins[t->insn.how](t);
}

int run_begin(struct tally_tracee *t, int signal)
{
	bool calls = t->how == TALLY_RESUME_SYSCALL || t->break_at || t->pin || t->keep ||
		     t->starts;
	int r = keep_back(t, &signal);

	if (r < 0)
		return r;
	/* A handler may block what is to be kept: it is entered first. */
	if (signal && t->keep && !t->in_call) {
		t->run_behind = true;
		return begin_deliver(t, signal);
	}
	if (t->break_at && !t->in_call && !signal) {
		r = tracee_read_pc(t);
		if (r == 0 && t->pc == t->break_at) {
			t->step_over = true;
			return step_begin(t, 0);
		}
	}
	if (r == 0)
		r = trap_return(t);
	if (r == 0 && t->break_at && !t->in_call) {
		r = trap_lend(t);
		t->breaks.count = 0;
		breaks_add(t, t->break_at);
		if (r == 0)
			r = breaks_insert(t);
	}
	if (r == 0 && !t->in_call)
		r = keep_lend(t);
	if (r < 0)
		return r;
	t->losses++;
	t->restarts = t->loaded_flags = false;
	t->bits = 0;
	t->address = 0;
	memset(&t->insn, 0, sizeof(t->insn));
	code_forget(t);
	t->plan = PLAN_RUN;
	t->in_call &= calls; /* else its exit is not seen */
	return tracee_continue(t, calls ? PTRACE_SYSCALL : PTRACE_CONT, signal);
}

int resume_begin(struct tally_tracee *t, int signal)
{
	return t->how == TALLY_RESUME_STEP ? step_begin(t, signal) : run_begin(t, signal);
}

static bool is_trap(const struct tally_stop *stop)
{
	return stop->kind == TALLY_STOP_SIGNAL && stop->signal == SIGTRAP;
}

/* Whether the trap of what has been executed waits behind another stop. */
static bool trap_is_pending(const struct tally_tracee *t)
{
	struct __ptrace_peeksiginfo_args args = { .off = 0, .flags = 0, .nr = 1 };
	siginfo_t info;

	while (sys()->ptrace(PTRACE_PEEKSIGINFO, t->tid, (unsigned long)&args,
			     (unsigned long)&info) == 1) {
		if (info.si_signo == SIGTRAP && info.si_code > 0 && info.si_code != CODE_PERF)
			return true;
		args.off++;
	}
	return false;
}

/*
 * Stops by an interrupt and by job control come before signals. The trap is looked at first; then the
 * other stop is asked for again, which an interrupt does for both.
 */
static bool is_early(const struct tally_tracee *t, const struct tally_stop *stop)
{
	bool traps = t->plan == PLAN_STEP || t->plan == PLAN_REPEAT || t->plan == PLAN_BEHIND ||
		     (t->plan == PLAN_RUN && t->break_at);

	return (stop->kind == TALLY_STOP_INTERRUPT || stop->kind == TALLY_STOP_GROUP) && traps &&
	       trap_is_pending(t);
}

static int after_early(struct tally_tracee *t)
{
	t->again = true;
	return tracee_continue(
		t, t->plan == PLAN_STEP || t->plan == PLAN_REPEAT ? PTRACE_SINGLESTEP : PTRACE_CONT,
		0);
}

/* SIGTRAP that somebody sent while it was only lent: the program blocks it. */
static int keep_trap(struct tally_tracee *t)
{
	long r = sys()->ptrace(PTRACE_GETSIGINFO, t->tid, 0, (unsigned long)&t->trap.info);

	if (r < 0)
		return (int)r;
	t->trap.state = HELD_TAKEN;
	return step_begin(t, 0);
}

static int on_step(struct tally_tracee *t, struct tally_stop *stop)
{
	if (is_trap(stop) && t->insn.traps && stop->code > 0) {
		count_insn(t, t->address + t->insn.len);
		return tell(t, stop);
	}
	if (is_trap(stop) && t->lent && stop->code <= 0)
		return keep_trap(t);
	if (!is_trap(stop) || stop->code != CODE_TRACE)
		return tell(t, stop);
	if (t->plan == PLAN_REPEAT && t->pc == t->address && !t->again)
		return tracee_continue(t, PTRACE_SINGLESTEP, 0);
	if (t->plan == PLAN_REPEAT && t->pc == t->address) {
		t->again = false;
		return tell_interrupt(t, stop);
	}
	return after_step(t, stop);
}

static int on_call(struct tally_tracee *t, struct tally_stop *stop)
{
	static const struct tally_retired call = { .instructions = 1 };
	int r = 0;

	if (stop->kind == TALLY_STOP_SYSCALL_ENTRY) {
		memset(&t->insn, 0, sizeof(t->insn));
		t->insn.flags = TALLY_INSN_SYSCALL | TALLY_INSN_CARE;
		t->insn.len = arch.call_len;
		t->address = t->pc - arch.call_len;
		t->in_call = true;
		add(t, &call);
		if (t->pin)
			r = pin_entry(t, stop);
		return r < 0 ? r : tracee_continue(t, PTRACE_SYSCALL, 0);
	}
	if (stop->kind != TALLY_STOP_SYSCALL_EXIT)
		return tell(t, stop);
	if (t->pin)
		r = pin_exit(t, stop);
	if (r == 0)
		r = tracee_read_regs(t);
	if (r < 0)
		return r;
	t->own_trap_flag = arch_steps_itself(&t->regs);
	return end_step(t, t->pc, stop);
}

static int on_deliver(struct tally_tracee *t, struct tally_stop *stop)
{
	if (stop->kind != TALLY_STOP_INTERRUPT ||
	    atomic_exchange_explicit(&t->interrupted, false, memory_order_relaxed)) {
		t->run_behind = false;
		return tell(t, stop);
	}
	t->asked = false;
	t->stop.kind = TALLY_STOP_INTERRUPT;
	if (t->run_behind) {
		t->run_behind = false;
		return run_begin(t, 0);
	}
	return step_begin(t, 0);
}

static int on_break(struct tally_tracee *t, struct tally_stop *stop)
{
	if (is_trap(stop) && stop->code == CODE_TRACE) /* of a program that steps itself */
		return after_step(t, stop);
	if (is_trap(stop) && t->lent && stop->code <= 0)
		return keep_trap(t);
	int r = is_trap(stop) ? tracee_read_regs(t) : 0;
	int at = is_trap(stop) && r == 0 ? breaks_hit(t, t->pc) : -1;
	if (r < 0 || at < 0)
		return r < 0 ? r : tell(t, stop);
	r = tracee_move_pc(t, t->breaks.at[at].address);
	if (r < 0)
		return r;
	if (t->insn.how == INSN_REGION) {
		add(t, &t->breaks.at[at].retired);
		if (t->breaks.at[at].unknown)
			unknown(t);
	} else if (t->insn.len) {
		count_insn(t, t->pc);
	}
	return end_step(t, t->pc, stop);
}

/* In a run, system calls are stopped at for the breakpoint's sake, and that of the bound CPU. */
static int run_through_call(struct tally_tracee *t, struct tally_stop *stop, bool entry)
{
	int r = 0;

	if (t->pin)
		r = entry ? pin_entry(t, stop) : pin_exit(t, stop);
	if (r < 0)
		return r;
	return t->how == TALLY_RESUME_SYSCALL ? tell(t, stop) : run_begin(t, 0);
}

static int on_run(struct tally_tracee *t, struct tally_stop *stop)
{
	bool entry = stop->kind == TALLY_STOP_SYSCALL_ENTRY;
	int r;

	if (entry || stop->kind == TALLY_STOP_SYSCALL_EXIT) {
		t->in_call = entry;
		return run_through_call(t, stop, entry);
	}
	if (!is_trap(stop) || stop->code <= 0 || stop->code == CODE_PERF || !t->break_at)
		return tell(t, stop);
	r = tracee_read_regs(t);
	if (r < 0)
		return r;
	if (breaks_hit(t, t->pc) < 0)
		return tell(t, stop);
	r = tracee_move_pc(t, t->break_at);
	if (r < 0)
		return r;
	t->break_at = 0;
	stop->kind = TALLY_STOP_BREAKPOINT;
	stop->signal = stop->code = 0;
	stop->pc = t->pc;
	return tell(t, stop);
}

static int (*const on_stop[])(struct tally_tracee *t, struct tally_stop *stop) = {
	[PLAN_RUN] = on_run,     [PLAN_DELIVER] = on_deliver, [PLAN_STEP] = on_step,
	[PLAN_REPEAT] = on_step, [PLAN_CALL] = on_call,       [PLAN_BEHIND] = on_break,
};

/* Ran into a breakpoint of another one of the family, which is none of the program's. */
static bool is_strange(struct tally_tracee *t, const struct tally_stop *stop)
{
	if (!is_trap(stop) || stop->code <= 0 || stop->code == CODE_PERF ||
	    stop->code == CODE_TRACE || t->next == t)
		return false;
	return tracee_read_regs(t) == 0 && breaks_hit(t, t->pc) < 0 && breaks_of_family(t, t->pc);
}

static int after_strange(struct tally_tracee *t, struct tally_stop *stop)
{
	int r = tracee_move_pc(t, t->pc - arch.break_moves);

	return r < 0 ? r : tell_interrupt(t, stop);
}

/* Stops within a system call. */
static bool is_inside(uint32_t kind)
{
	return kind >= TALLY_STOP_SECCOMP && kind <= TALLY_STOP_VFORK_DONE;
}

static void follow_state(struct tally_tracee *t, const struct tally_stop *stop)
{
	t->in_call |= is_inside(stop->kind);
	if (stop->kind == TALLY_STOP_SYSCALL_EXIT) {
		t->in_call = false;
		t->restarts = will_restart((int64_t)stop->value);
		t->masked = t->restarts || (int64_t)stop->value == -EINTR;
	} else if (stop->kind == TALLY_STOP_EXEC) {
		t->starts = true;
		t->bits = 0;
		t->owes_ignore = t->lent = false;
		t->call_at = t->break_at = 0;
	}
}

int step_stopped(struct tally_tracee *t, struct tally_stop *stop)
{
	bool gone = t->state == TRACEE_GONE;
	int r = gone ? 0 : breaks_remove(t);

	if (r == 0 || r == -EFAULT)
		r = gone ? 0 : keep_return(t);
	if (r < 0)
		return r;
	if (gone || stop->kind == TALLY_STOP_EXITING) {
		t->in_call |= !gone;
		return tell(t, stop);
	}
	if (is_strange(t, stop))
		return after_strange(t, stop);
	if (is_early(t, stop))
		return after_early(t);
	if (stop->kind == TALLY_STOP_INTERRUPT && t->asked && t->plan != PLAN_DELIVER) {
		/* Ours, of a delivery that another stop came before. */
		t->asked = false;
		if (!atomic_load_explicit(&t->interrupted, memory_order_relaxed))
			return resume_begin(t, 0);
	}
	r = held_restore(t, stop);
	if (r != 0)
		return r < 0 ? r : resume_begin(t, stop->signal);
	follow_state(t, stop);
	if (stop->kind == TALLY_STOP_SYSCALL_EXIT && t->starts) {
		t->starts = false;
		r = tracee_open_files(t);
		if (r == 0)
			r = traps_arm(t);
		if (r < 0)
			return r;
	}
	r = traps_judge(t, stop);
	return r < 0 ? r : on_stop[t->plan](t, stop);
}
