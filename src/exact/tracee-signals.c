/* SPDX-License-Identifier: MIT */
/*
 * A trap is a forced SIGTRAP: of a program that blocks or ignores that signal the kernel takes it out
 * of the mask, and sets its action to the default (force_sig_info_to_task(), kernel/signal.c). So while
 * a blocking program is stepped SIGTRAP is lent out of its mask, and given back before anybody could
 * see that; what an ignoring one loses is put back by a system call of its own.
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "exact/tracee.h"

#define TRAP_BIT (1ull << (SIGTRAP - 1))

/* The kernel's struct sigaction (include/linux/signal_types.h), on both architectures. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

/* What functions that are called there may use: the x86-64 ABI's red zone, and more. */
#define BELOW_STACK 512u

static int set_mask(struct tally_tracee *t, uint64_t mask)
{
	return (int)sys()->ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(mask), (unsigned long)&mask);
}

/*
 * Behind ppoll(2), sigsuspend(2) and their like that a signal has ended, the mask of their time holds
 * until that is delivered, and the kernel puts the other one back. It must not be touched: the signal
 * comes before anything is executed.
 */
static bool is_masked(struct tally_tracee *t)
{
	bool masked = t->masked;

	t->masked = false;
	if (masked)
		code_forget(t);
	return masked;
}

int trap_lend(struct tally_tracee *t)
{
	if (is_masked(t))
		return 0;
	int r = code_facts(t);
	if (r < 0)
		return r;
	t->owes_ignore |= t->facts.trap_ignored;
	if (t->lent || !(t->facts.mask & TRAP_BIT))
		return 0;
	r = set_mask(t, t->facts.mask & ~TRAP_BIT);
	t->lent = r == 0;
	return r;
}

static int sigaction_there(struct tally_tracee *t, uint64_t act, uint64_t old)
{
	const uint64_t args[6] = { SIGTRAP, act, old, sizeof(uint64_t) };
	int64_t result = 0;
	int r = inject(t, SYS_rt_sigaction, args, &result);

	return r < 0 ? r : (int)result;
}

/* Through the program's own stack, whose bytes are put back. */
static int ignore_again(struct tally_tracee *t)
{
	struct kernel_action action;
	uint8_t saved[sizeof(action)];
	int r = tracee_read_regs(t);

	if (r < 0)
		return r;
	uint64_t at = (t->regs.word[arch.sp] - BELOW_STACK) & ~(uint64_t)15;
	r = tally_tracee_peek(t, at, saved, sizeof(saved));
	if (r < 0)
		return r;
	r = sigaction_there(t, 0, at);
	if (r == 0)
		r = tally_tracee_peek(t, at, &action, sizeof(action));
	if (r == 0 && action.handler == (uint64_t)(uintptr_t)SIG_DFL) {
		action.handler = (uint64_t)(uintptr_t)SIG_IGN;
		r = tally_tracee_poke(t, at, &action, sizeof(action));
		if (r == 0)
			r = sigaction_there(t, at, 0);
	}
	int back = tally_tracee_poke(t, at, saved, sizeof(saved));
	return r < 0 ? r : back;
}

int trap_return(struct tally_tracee *t)
{
	int r = 0;

	if (t->lent) {
		r = set_mask(t, t->facts.mask);
		t->lent = false;
	}
	/* A SIGTRAP that the program would not have got yet is pending once more. */
	if (r == 0 && t->trap.state == HELD_TAKEN) {
		r = syscall(SYS_tgkill, t->pid, t->tid, SIGTRAP) < 0 ? -errno : 0;
		t->trap.state = HELD_SENT;
	}
	if (r == 0 && t->owes_ignore && !t->in_call) {
		t->owes_ignore = false;
		r = ignore_again(t);
	}
	return r;
}

/* Whether a stop is of a signal that was sent once more; then it gets back what it had with it. */
static bool is_held(const struct held *held, const struct tally_stop *stop)
{
	return held->state == HELD_SENT && stop->kind == TALLY_STOP_SIGNAL &&
	       stop->signal == held->info.si_signo && stop->code == SI_TKILL;
}

static int put_back(struct tally_tracee *t, struct held *held, struct tally_stop *stop)
{
	long r = sys()->ptrace(PTRACE_SETSIGINFO, t->tid, 0, (unsigned long)&held->info);

	held->state = HELD_NONE;
	stop->code = held->info.si_code;
	return (int)r;
}

int held_take(struct tally_tracee *t)
{
	long r = sys()->ptrace(PTRACE_GETSIGINFO, t->tid, 0, (unsigned long)&t->redeliver.info);

	if (r == 0)
		t->redeliver.state = HELD_TAKEN;
	return (int)r;
}

int held_send(struct tally_tracee *t)
{
	t->redeliver.state = HELD_SENT;
	return syscall(SYS_tgkill, t->pid, t->tid, t->redeliver.info.si_signo) < 0 ? -errno : 0;
}

int held_restore(struct tally_tracee *t, struct tally_stop *stop)
{
	int r;

	if (is_held(&t->trap, stop))
		return put_back(t, &t->trap, stop);
	if (!is_held(&t->redeliver, stop))
		return 0;
	r = put_back(t, &t->redeliver, stop);
	return r < 0 ? r : 1;
}

static uint64_t keep_bit(const struct tally_tracee *t)
{
	return t->keep ? 1ull << (t->keep - 1) : 0;
}

int keep_lend(struct tally_tracee *t)
{
	uint64_t mask;

	if (!t->keep)
		return 0;
	if (is_masked(t)) {
		t->kept_mask = 0;
		return 0;
	}
	long r = sys()->ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), (unsigned long)&mask);
	if (r < 0)
		return (int)r;
	t->kept_mask = mask;
	if (mask & keep_bit(t)) {
		t->keep_lent = true;
		return set_mask(t, mask & ~keep_bit(t));
	}
	/* One that the program was sent while it blocked it. */
	if (t->kept.state != HELD_TAKEN)
		return 0;
	t->redeliver = t->kept;
	t->kept.state = HELD_NONE;
	return held_send(t);
}

int keep_return(struct tally_tracee *t)
{
	if (!t->keep_lent)
		return 0;
	t->keep_lent = false;
	return set_mask(t, t->kept_mask);
}

int keep_back(struct tally_tracee *t, int *signal)
{
	if (!(t->kept_mask & keep_bit(t)) || *signal != t->keep)
		return 0;
	*signal = 0;
	long r = sys()->ptrace(PTRACE_GETSIGINFO, t->tid, 0, (unsigned long)&t->kept.info);
	if (r == 0)
		t->kept.state = HELD_TAKEN;
	return (int)r;
}

int tally_tracee_keep(struct tally_tracee *tracee, int signal)
{
	if (signal < 0 || signal > 64 || signal == SIGKILL || signal == SIGSTOP ||
	    signal == SIGTRAP)
		return -EINVAL;
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	tracee->keep = signal;
	tracee->kept_mask = 0;
	return 0;
}

int tally_tracee_siginfo(struct tally_tracee *tracee, siginfo_t *info)
{
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	if (tracee->redeliver.state == HELD_TAKEN) {
		*info = tracee->redeliver.info;
		return 0;
	}
	return (int)sys()->ptrace(PTRACE_GETSIGINFO, tracee->tid, 0, (unsigned long)info);
}

int tally_tracee_set_siginfo(struct tally_tracee *tracee, const siginfo_t *info)
{
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	if (tracee->redeliver.state == HELD_TAKEN) {
		tracee->redeliver.info = *info;
		return 0;
	}
	return (int)sys()->ptrace(PTRACE_SETSIGINFO, tracee->tid, 0, (unsigned long)info);
}

int tally_tracee_sigmask(struct tally_tracee *tracee, uint64_t *mask)
{
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	uint64_t now;
	long r = sys()->ptrace(PTRACE_GETSIGMASK, tracee->tid, sizeof(now), (unsigned long)&now);
	if (r == 0)
		*mask = tracee->lent ? now | TRAP_BIT : now;
	return (int)r;
}

int tally_tracee_set_sigmask(struct tally_tracee *tracee, uint64_t mask)
{
	if (tracee->state != TRACEE_STOPPED)
		return tracee->state == TRACEE_GONE ? -ESRCH : -EINVAL;
	tracee->lent = false;
	code_forget(tracee);
	return set_mask(tracee, mask);
}
