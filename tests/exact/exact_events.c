/* SPDX-License-Identifier: MIT */
/*
 * What happens before a timer's point cancels it, however little is left, when the tool observes it; what
 * the tool does not observe, and what it does itself, does not. On the step clock, of a real program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "exact/driving.h"
#include "tap.h"

#define DELTA  2000 /* branches to the point */
#define BEHIND 50   /* of the program, behind the event */

static const unsigned lefts[] = { DELTA / 2, 1000, 100, 10, 2, 1 };

/* Whether there is an instruction that reads a clock and can be trapped. */
#if defined(__x86_64__)
#define HAS_CLOCK true
#else
#define HAS_CLOCK false
#endif

/* What the tool looks at. */
enum seen {
	SEES_CALLS = 1u << 0,
	SEES_SIGNALS = 1u << 1,
	SEES_CLOCKS = 1u << 2,
};

/* Registers of x86-64's struct user_regs_struct. */
enum {
	X86_RAX = 10,
	X86_RDX = 12,
	X86_RIP = 16,
};

static int resume_and_wait(struct driven *d, int signal, struct tally_stop *stop)
{
	int r = tally_tracee_resume(d->tracee, TALLY_RESUME_STEP, signal);

	return r < 0 ? r : tally_tracee_wait(d->tracee, -1, stop);
}

/* Steps to the call by which the program marks where its branches begin. */
static bool reach_mark(struct driven *d)
{
	struct tally_stop stop;

	do
		if (resume_and_wait(d, 0, &stop) < 0 || stop.kind != TALLY_STOP_STEP ||
		    tally_clock_stepped(d->clock, &stop) < 0)
			return false;
	while (!(stop.insn & TALLY_INSN_SYSCALL));
	return true;
}

/* Starts it, with a clock that reads 0 where its branches begin. */
static bool start(struct driven *d, char *kind, unsigned before, unsigned behind)
{
	char first[16], second[16], *none[] = { NULL };
	char *argv[] = { getenv("EVENTS"), kind, first, second, NULL };
	uint32_t flags = TALLY_TRACEE_NO_RANDOM | TALLY_TRACEE_PIN;

	snprintf(first, sizeof(first), "%u", before);
	snprintf(second, sizeof(second), "%u", behind);
	memset(d, 0, sizeof(*d));
	if (!strcmp(kind, "clock"))
		flags |= TALLY_TRACEE_TRAP_TSC;
	return tally_tracee_launch(&d->tracee, argv,
				   TALLY_OPTS(tracee, .flags = flags, .envp = none),
				   &d->err) == 0 &&
	       tally_clock_open_step(&d->clock, d->tracee, TALLY_TICKS_CONDITIONAL, &d->err) == 0 &&
	       reach_mark(d) && tally_clock_set(d->clock, 0) == 0 && drive_time(d, 0, 0) == 0;
}

/* Answers a trapped read of the clock. */
static void emulate(struct driven *d, const struct tally_stop *stop)
{
	d->regs.word[X86_RAX] = d->regs.word[X86_RDX] = 0;
	d->regs.word[X86_RIP] += stop->value;
	tally_tracee_set_regs(d->tracee, &d->regs);
	tally_timer_emulated(d->timer, 1, &d->regs);
}

static bool is_seen(const struct tally_stop *stop, uint32_t seen)
{
	return (stop->kind == TALLY_STOP_STEP && stop->insn & TALLY_INSN_SYSCALL &&
		seen & SEES_CALLS) ||
	       (stop->kind == TALLY_STOP_SIGNAL && seen & SEES_SIGNALS) ||
	       (stop->kind == TALLY_STOP_TSC && seen & SEES_CLOCKS);
}

/* Calls of the tool's own are not on the clock. */
static void inject(struct driven *d)
{
	static const uint64_t none[6] = { 0 };
	int64_t result = 0;

	check_int(tally_clock_pause(d->clock), 0);
	for (int i = 0; i < 10; i++)
		check_int(tally_tracee_syscall(d->tracee, SYS_getpid, none, &result), 0);
	check_int(result, tally_tracee_tid(d->tracee));
	check_int(tally_clock_resume(d->clock), 0);
}

/* Leads it to DELTA branches; how that ended. */
static const struct tally_timer_outcome *lead(struct driven *d, uint32_t flags, uint32_t seen,
					      bool injects)
{
	struct tally_timer_request request = {
		.size = sizeof(request), .kind = TALLY_TIMER_EXACTLY, .flags = flags, .ticks = DELTA
	};
	struct tally_timer_action action;
	struct tally_stop stop = { 0 };
	int signal = 0, r = tally_timer_request(d->timer, &request, &d->err);

	while (r >= 0) {
		if (injects && stop.kind == TALLY_STOP_STEP && stop.insn & TALLY_INSN_SYSCALL)
			inject(d);
		r = tally_timer_next(d->timer, &action);
		if (r < 0 || action.what == TALLY_TIMER_DONE)
			break;
		r = resume_and_wait(d, signal, &stop);
		if (r == 0)
			r = tally_tracee_regs(d->tracee, &d->regs);
		if (r == 0)
			r = tally_timer_stopped(d->timer, &stop, &d->regs);
		if (r >= 0 && stop.kind == TALLY_STOP_TSC)
			emulate(d, &stop);
		if (r >= 0 && is_seen(&stop, seen))
			tally_timer_observe(d->timer);
		signal = stop.kind == TALLY_STOP_SIGNAL ? stop.signal : 0;
	}
	check(r >= 0);
	return tally_timer_outcome(d->timer);
}

static void cancels(char *kind, uint32_t seen)
{
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++) {
		struct driven d;
		if (check(start(&d, kind, DELTA - lefts[i], lefts[i] + BEHIND))) {
			const struct tally_timer_outcome *o = lead(&d, 0, seen, false);
			check_int(o->kind, TALLY_OUTCOME_CANCELLED);
			check_int(o->cause, TALLY_TIMER_BY_EVENT);
			check_u64(o->clock.ticks, DELTA - lefts[i]);
		}
		drive_end(&d);
	}
}

/* The point is reached all the same. */
static void does_not_cancel(char *kind, unsigned left, uint32_t flags, uint32_t seen, bool injects)
{
	struct driven d;

	if (check(start(&d, kind, DELTA - left, left + BEHIND))) {
		const struct tally_timer_outcome *o = lead(&d, flags, seen, injects);
		check_int(o->kind, TALLY_OUTCOME_REACHED);
		check_u64(o->clock.ticks, DELTA);
	}
	drive_end(&d);
}

static char call[] = "call", signal_[] = "signal", clock_[] = "clock";

static void a_call_cancels(void)
{
	cancels(call, SEES_CALLS);
}

static void a_signal_to_itself_cancels(void)
{
	cancels(signal_, SEES_SIGNALS);
}

static void a_trapped_read_of_the_clock_cancels(void)
{
	char *argv[] = { getenv("EVENTS"), NULL };
	struct tally_tracee *tracee = NULL;
	int r = tally_tracee_launch(&tracee, argv,
				    TALLY_OPTS(tracee, .flags = TALLY_TRACEE_TRAP_TSC), NULL);

	tally_tracee_free(tracee);
	if (r == -ENODEV || !HAS_CLOCK)
		tap_skip("time-stamp reads cannot be trapped on this machine");
	cancels(clock_, SEES_CLOCKS);
}

/* With no branch left it was there before the event. */
static void the_point_comes_before_what_follows_it(void)
{
	does_not_cancel(call, 0, 0, SEES_CALLS, false);
	does_not_cancel(signal_, 0, 0, SEES_SIGNALS, false);
}

static void what_nobody_observes_does_not_cancel(void)
{
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++) {
		does_not_cancel(call, lefts[i], 0, 0, false);
		does_not_cancel(signal_, lefts[i], 0, SEES_CLOCKS, false);
		does_not_cancel(signal_, lefts[i], TALLY_TIMER_KEEP, SEES_SIGNALS, false);
	}
}

static void calls_of_the_tool_are_not_on_the_clock(void)
{
	for (size_t i = 0; i < sizeof(lefts) / sizeof(lefts[0]); i++)
		does_not_cancel(call, lefts[i], 0, 0, true);
}

int main(void)
{
	tap_run(a_call_cancels);
	tap_run(a_signal_to_itself_cancels);
	tap_run(a_trapped_read_of_the_clock_cancels);
	tap_run(the_point_comes_before_what_follows_it);
	tap_run(what_nobody_observes_does_not_cancel);
	tap_run(calls_of_the_tool_are_not_on_the_clock);
	return tap_end();
}
