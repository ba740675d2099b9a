/* SPDX-License-Identifier: MIT */
/*
 * The loop around a tracee and a timer. Each thread that is met is a member; each round lets those go on
 * that stand, and looks at those that run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tally/run.h>
#include <tally/selftest.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/vec.h"
#include "exact/tracee.h"

#define NS_PER_MS 1000000u

/* How long the other threads may take to stop, which wait in the kernel. */
#define STOP_MS 1000

/* A round that moved nothing is followed by a pause, longer each time. */
#define PAUSE_MIN_NS 2000u
#define PAUSE_MAX_NS 1000000u

struct member {
	struct tally_tracee *tracee;
	struct tally_clock *clock; /* NULL: it is not counted */
	bool runs, ended;
	bool listens;      /* it was stopped by job control */
	int signal;        /* to be delivered */
	uint64_t watch_ns; /* when it is to be interrupted; 0: never */
};

struct tally_run {
	struct tally_run_opts opts;
	VEC(struct member *) members;
	struct tally_timer *timer; /* NULL: all are counted to their end */
	struct tally_timer_outcome outcome;
	VEC(struct tally_run_thread) threads;
	bool pmu;
	struct tally_selftest selftest;
	bool tried; /* `selftest` found an event that counts exactly */
	bool needs_regs;
	bool detached;
	int status;
	uint64_t end_ns; /* 0: none */
};

static int open_clock(const struct tally_run *run, struct tally_tracee *t,
		      struct tally_clock **clock, struct tally_error *err)
{
	struct tally_clock_pmu_opts opts = { .size = sizeof(opts),
					     .tried = run->tried ? &run->selftest : NULL };

	return run->pmu ? tally_clock_open_pmu(clock, t, run->opts.ticks, &opts, err)
			: tally_clock_open_step(clock, t, run->opts.ticks, err);
}

static struct member *add_member(struct tally_run *run, struct tally_tracee *t)
{
	struct member *m = calloc(1, sizeof(*m));
	struct member **at = m ? vec_push(&run->members) : NULL;

	if (!at) {
		free(m);
		return NULL;
	}
	m->tracee = t;
	*at = m;
	return m;
}

/* A new thread: its first stop is on its way. */
static int adopt(struct tally_run *run, struct member *from, int32_t tid)
{
	struct tally_tracee *t;
	int r = tally_tracee_adopt(&t, tid, from->tracee, NULL, NULL);

	if (r == -ESRCH)
		return 0; /* it is gone already */
	if (r < 0)
		return r;
	struct member *m = add_member(run, t);
	if (!m) {
		tally_tracee_free(t);
		return -ENOMEM;
	}
	m->runs = true;
	return run->timer ? 0 : open_clock(run, t, &m->clock, NULL);
}

/* What is not the timer's: passed on to the thread, or taken note of. */
static int deal_with(struct tally_run *run, struct member *m, const struct tally_stop *stop)
{
	switch (stop->kind) {
	case TALLY_STOP_SIGNAL:
		m->signal = stop->signal;
		return 0;
	case TALLY_STOP_GROUP:
		m->listens = true;
		return 0;
	case TALLY_STOP_CLONE:
		return adopt(run, m, (int32_t)stop->value);
	case TALLY_STOP_EXITED:
	case TALLY_STOP_KILLED:
	case TALLY_STOP_GONE:
		m->ended = true;
		if (m == run->members.at[0])
			run->status = stop->kind == TALLY_STOP_KILLED ? 128 + stop->signal
								      : (int)stop->value;
		return 0;
	default:
		return 0;
	}
}

static int take_stop(struct tally_run *run, struct member *m, const struct tally_stop *stop)
{
	struct tally_tracee_regs regs;
	bool timed = run->timer && m == run->members.at[0];
	int r = 0;

	m->runs = m->listens = false;
	m->signal = 0;
	m->watch_ns = 0;
	if (timed && run->needs_regs)
		r = tally_tracee_regs(m->tracee, &regs);
	if (r == -ESRCH) { /* killed: the end is on its way */
		m->runs = true;
		return 0;
	}
	if (timed && r == 0)
		r = tally_timer_stopped(run->timer, stop, run->needs_regs ? &regs : NULL);
	/* The start of a call is nothing that the timer knows: children, threads. */
	return r < 0 ? r : r == 1 ? 0 : deal_with(run, m, stop);
}

static int resume(struct member *m, uint32_t how)
{
	int r = tally_tracee_resume(m->tracee, m->listens ? TALLY_RESUME_LISTEN : how, m->signal);

	m->runs = r == 0;
	m->signal = 0;
	return r;
}

/* What the timer asks for. 1: it is done. */
static int act(struct tally_run *run, struct member *m)
{
	struct tally_timer_action action;
	uint32_t how = TALLY_RESUME_RUN;
	int r = tally_timer_next(run->timer, &action);

	if (r < 0)
		return r;
	if (action.what == TALLY_TIMER_DONE)
		return 1;
	run->needs_regs = action.needs_regs;
	if (action.what == TALLY_TIMER_STEP)
		how = TALLY_RESUME_STEP;
	/* Where no breakpoint may be, it is stepped there. */
	if (action.what == TALLY_TIMER_RUN_TO && tally_tracee_break(m->tracee, action.address) < 0)
		how = TALLY_RESUME_STEP;
	if (action.watch_ms && how == TALLY_RESUME_RUN)
		m->watch_ns = clock_ns(CLOCK_MONOTONIC) + action.watch_ms * (uint64_t)NS_PER_MS;
	return resume(m, how);
}

static int go_on(struct tally_run *run, struct member *m)
{
	if (m == run->members.at[0] && run->timer && !m->listens)
		return act(run, m);
	return resume(m, run->timer || run->pmu ? TALLY_RESUME_RUN : TALLY_RESUME_STEP);
}

static unsigned alive(const struct tally_run *run)
{
	unsigned count = 0;

	for (size_t i = 0; i < run->members.count; i++)
		count += !run->members.at[i]->ended;
	return count;
}

/*
 * How long one may be waited for: a step is over soon, so it is waited out; else for ever when it is
 * the only one and nothing else is due.
 */
static int patience(const struct tally_run *run, const struct member *m)
{
	if (m->tracee->how == TALLY_RESUME_STEP && m->tracee->plan != PLAN_CALL)
		return -1;
	if (alive(run) > 1)
		return 0;
	if (!m->watch_ns && !run->end_ns)
		return -1;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), due = m->watch_ns;
	if (!due || (run->end_ns && run->end_ns < due))
		due = run->end_ns;
	return due > now ? (int)((due - now) / NS_PER_MS) + 1 : 0;
}

static void watch(struct member *m)
{
	if (!m->watch_ns || clock_ns(CLOCK_MONOTONIC) < m->watch_ns)
		return;
	m->watch_ns = 0;
	tally_tracee_interrupt(m->tracee);
}

/* Lets it go on and looks at it. 2: it is done; 1: it has moved; 0; or -errno. */
static int serve(struct tally_run *run, struct member *m)
{
	struct tally_stop stop;
	int r = m->runs ? 0 : go_on(run, m);

	if (r != 0)
		return r == 1 ? 2 : r;
	watch(m);
	do
		r = tally_tracee_wait(m->tracee, patience(run, m), &stop);
	while (r == -EINTR);
	if (r < 0 || stop.kind == TALLY_STOP_NONE)
		return r;
	r = take_stop(run, m, &stop);
	return r < 0 ? r : 1;
}

/* Until the timer is done or all have ended. */
static int loop(struct tally_run *run)
{
	uint64_t pause = PAUSE_MIN_NS;

	while (alive(run)) {
		bool moved = false;
		for (size_t i = 0; i < run->members.count; i++) {
			if (run->members.at[i]->ended)
				continue;
			int r = serve(run, run->members.at[i]);
			if (r < 0 || r == 2)
				return r < 0 ? r : 0;
			moved |= r == 1;
			if (run->timer && run->members.at[0]->ended)
				return 0;
		}
		if (run->end_ns && clock_ns(CLOCK_MONOTONIC) >= run->end_ns)
			return -ETIME;
		pause = moved ? PAUSE_MIN_NS : pause < PAUSE_MAX_NS ? pause * 2 : pause;
		if (!moved)
			sys()->sleep_ns(pause);
	}
	return 0;
}

/* The other threads are to stand still with the first one. */
static void stop_others(struct tally_run *run)
{
	struct tally_stop stop;

	for (size_t i = 1; i < run->members.count; i++)
		if (run->members.at[i]->runs && !run->members.at[i]->ended)
			tally_tracee_interrupt(run->members.at[i]->tracee);
	for (size_t i = 1; i < run->members.count; i++) {
		struct member *m = run->members.at[i];
		if (m->runs && !m->ended && tally_tracee_wait(m->tracee, STOP_MS, &stop) == 0 &&
		    stop.kind != TALLY_STOP_NONE)
			take_stop(run, m, &stop);
	}
}

static int sum_up(struct tally_run *run)
{
	bool exact;

	for (size_t i = 0; i < run->members.count; i++) {
		struct member *m = run->members.at[i];
		struct tally_run_thread *thread = vec_push(&run->threads);
		if (!thread)
			return -ENOMEM;
		thread->tid = tally_tracee_tid(m->tracee);
		tally_tracee_retired(m->tracee, &thread->retired, &exact);
		if (m->clock)
			tally_clock_read(m->clock, &thread->clock);
		else
			thread->clock.validity = TALLY_CLOCK_NOT_COUNTING;
	}
	if (run->timer)
		run->outcome = *tally_timer_outcome(run->timer);
	else
		run->outcome.kind = TALLY_OUTCOME_EXITED;
	return 0;
}

/* Whether an event was found by trying that counts exactly. */
static bool try_out(struct tally_run *run)
{
	if (run->opts.ticks > TALLY_TICKS_TAKEN) /* events that interrupts add to */
		return false;
	return tally_selftest_run(NULL, NULL, NULL, &run->selftest, NULL) == 0 &&
	       run->selftest.ticks == run->opts.ticks;
}

/* Why the counters do not do: that they cannot be had, or that they do not count exactly. */
static void say_why_not(struct tally_run *run, struct member *first, struct tally_error *why)
{
	struct tally_clock *clock = NULL;

	if (open_clock(run, first->tracee, &clock, why) < 0)
		return;
	error_set(why, -ENOTSUP, TALLY_CAUSE_UNSUPPORTED,
		  "the counters of this machine do not count %s exactly; 'tally doctor' tells what "
		  "was tried",
		  tally_ticks_name(run->opts.ticks));
	tally_clock_free(clock);
}

/* The first thread's clock, with why it is not the PMU's. Unasked a counter has to be tried out. */
static int choose_clock(struct tally_run *run, struct member *first, struct tally_error *why,
			struct tally_error *err)
{
	why->text[0] = 0;
	run->pmu = run->opts.clock != TALLY_RUN_STEP;
	run->tried = run->pmu && try_out(run);
	if (run->pmu && !run->tried && run->opts.clock == TALLY_RUN_AUTO) {
		say_why_not(run, first, why);
		run->pmu = false;
	}
	if (run->pmu && run->opts.clock == TALLY_RUN_AUTO) {
		if (open_clock(run, first->tracee, &first->clock, why) == 0) {
			why->text[0] = 0;
			return 0;
		}
		run->pmu = run->tried = false;
	}
	return open_clock(run, first->tracee, &first->clock, err);
}

static int prepare(struct tally_run *run, struct tally_error *err)
{
	struct tally_error why;
	struct member *first = run->members.at[0];
	int r = choose_clock(run, first, &why, err);

	if (r == 0 && run->opts.request)
		r = tally_timer_new(&run->timer, first->clock, NULL, err);
	if (r == 0 && run->timer)
		r = tally_timer_request(run->timer, run->opts.request, err);
	if (r == 0 && run->timer)
		r = tally_tracee_keep(first->tracee, tally_clock_about(first->clock)->signal);
	if (r < 0)
		return r;
	if (run->opts.begin)
		r = run->opts.begin(run->opts.arg, tally_clock_about(first->clock), why.text);
	if (r != 0)
		error_set(err, r, TALLY_CAUSE_NONE, "it was not to be run");
	return r;
}

static int loop_error(int code, const struct tally_run *run, struct tally_error *err)
{
	if (code == -ETIME)
		return error_set(err, code, TALLY_CAUSE_LIMIT,
				 "it was not done within %llu ms, and was given up",
				 (unsigned long long)run->opts.max_ms);
	return error_set(err, code, TALLY_CAUSE_IO, "the command can no longer be traced: %s",
			 strerror(-code));
}

int tally_tracee_run(struct tally_run **out, char *const argv[], const struct tally_run_opts *opts,
		     struct tally_error *err)
{
	struct tally_tracee *t;
	struct tally_run *run = calloc(1, sizeof(*run));
	int r;

	if (!run)
		return error_nomem(err, "a run");
	run->status = -1;
	r = opts_read(&run->opts, sizeof(run->opts), TALLY_RUN_NO_PIN | TALLY_RUN_RANDOM, opts,
		      err);
	if (r < 0)
		goto fail;
	if (!run->opts.ticks)
		run->opts.ticks = TALLY_TICKS_CONDITIONAL;
	uint32_t flags = TALLY_TRACEE_FOLLOW_THREADS;
	flags |= run->opts.flags & TALLY_RUN_NO_PIN ? 0 : TALLY_TRACEE_PIN;
	flags |= run->opts.flags & TALLY_RUN_RANDOM ? 0 : TALLY_TRACEE_NO_RANDOM;
	r = tally_tracee_launch(&t, argv,
				TALLY_OPTS(tracee, .flags = flags, .envp = run->opts.envp), err);
	if (r < 0)
		goto fail;
	if (!add_member(run, t)) {
		tally_tracee_free(t);
		r = error_nomem(err, "a run");
		goto fail;
	}
	r = prepare(run, err);
	if (r != 0)
		goto fail;
	if (run->opts.max_ms)
		run->end_ns = clock_ns(CLOCK_MONOTONIC) + run->opts.max_ms * NS_PER_MS;
	r = loop(run);
	if (r == 0) {
		stop_others(run);
		r = sum_up(run);
	}
	if (r < 0) {
		loop_error(r, run, err);
		goto fail;
	}
	*out = run;
	return 0;
fail:
	tally_run_free(run);
	return r;
}

const struct tally_timer_outcome *tally_run_outcome(const struct tally_run *run)
{
	return &run->outcome;
}

struct tally_tracee *tally_run_tracee(const struct tally_run *run)
{
	return run->members.at[0]->tracee;
}

struct tally_clock *tally_run_clock(const struct tally_run *run)
{
	return run->members.at[0]->clock;
}

uint32_t tally_run_threads(const struct tally_run *run, const struct tally_run_thread **threads)
{
	*threads = run->threads.at;
	return (uint32_t)run->threads.count;
}

int tally_run_status(const struct tally_run *run)
{
	return run->status;
}

int tally_run_detach(struct tally_run *run)
{
	int result = 0;

	for (size_t i = run->members.count; i-- > 0;) {
		struct member *m = run->members.at[i];
		int r = m->ended || m->runs ? 0 : tally_tracee_detach(m->tracee, SIGSTOP);
		if (r < 0 && result == 0)
			result = r;
	}
	return result;
}

void tally_run_free(struct tally_run *run)
{
	if (!run)
		return;
	tally_timer_free(run->timer);
	/* The first one last: it is whom the others were adopted from, and ends them all. */
	for (size_t i = run->members.count; i-- > 0;) {
		tally_clock_free(run->members.at[i]->clock);
		tally_tracee_free(run->members.at[i]->tracee);
		free(run->members.at[i]);
	}
	vec_done(&run->members);
	vec_done(&run->threads);
	free(run);
}
