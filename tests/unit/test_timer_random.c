/* SPDX-License-Identifier: MIT */
/*
 * Random programs, requests and faults of hardware, each from a seed, against the oracle: no outcome
 * may be wrong, whatever happens, and where interrupts keep to the margin none may be late. The program
 * gets all signals of others and none of the timer's.
 *
 *	test_timer_random [schedules [first-seed]]
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "oracle.h"
#include "tap.h"

#define SCHEDULES  100000 /* a few seconds */
#define REQUESTS   6      /* of a schedule */
#define MOST_INSNS 64
#define MOST_STOPS 200000
#define TIMER_FD   1000 /* that interrupts of a simulated clock are for */
#define PPM        1000000u

/* What is varied between schedules. */
enum weather {
	CALM,        /* interrupts keep to the margin */
	LATE_ONES,   /* skid beyond the margin, heavy tails, lost interrupts */
	NOISE,       /* early, doubled, stale and foreign ones, and late */
	STEPPED,     /* a clock that only steps, or cannot interrupt */
	BROKEN_LATER /* it fails at some count */
};

struct schedule {
	uint64_t seed, random;
	enum weather weather;
	struct tally_sim_insn program[MOST_INSNS];
	uint32_t count;
	struct tally_sim_opts opts;
	struct tally_sim *sim;
	struct tally_clock *clock;
	struct tally_timer *timer;
	struct oracle oracle;
	int deliver;       /* the signal of the last stop, to be delivered with the next action */
	uint64_t emulated; /* instructions that the simulation did not execute itself */
	bool syscalls, cancelled;
	uint32_t stops;
	/* The checkpoint. */
	struct tally_sim *saved;
	struct oracle saved_oracle;
	int saved_deliver;
	uint64_t saved_emulated;
	/* The request. */
	struct tally_timer_request wish;
	struct tally_point point;
	bool behind;  /* it may lie behind already */
	bool refused; /* going back to a checkpoint was */
	bool withheld;
	const char *wrong;
};

static struct {
	uint64_t schedules, requests, outcomes[8], stops;
} total;
static uint64_t schedules = SCHEDULES, first_seed = 1;

static uint64_t rnd(struct schedule *s, uint64_t bound)
{
	s->random += 0x9e3779b97f4a7c15u;
	return hash_u64(s->random) % bound;
}

static uint32_t ppm(struct schedule *s, uint32_t most)
{
	return rnd(s, 2) ? (uint32_t)rnd(s, most) : 0;
}

static struct tally_sim_insn *add(struct schedule *s, uint32_t op, uint32_t reg, int64_t value)
{
	s->program[s->count] = (struct tally_sim_insn){ .op = op, .reg = reg, .value = value };
	return &s->program[s->count++];
}

/* Straight code and forward branches; `end` is where the last of them may go. */
static void add_body(struct schedule *s, uint32_t length)
{
	uint32_t end = s->count + length;

	while (s->count < end) {
		uint32_t kind = (uint32_t)rnd(s, 100), reg = 3 + (uint32_t)rnd(s, 8);
		uint32_t target = s->count + 1 + (uint32_t)rnd(s, end - s->count);
		if (kind < 30)
			add(s, TALLY_SIM_BRANCH_IF, reg, 1 << rnd(s, 3))->target = target;
		else if (kind < 36)
			add(s, TALLY_SIM_JUMP, 0, 0)->target = target;
		else if (kind < 40)
			add(s, TALLY_SIM_REP, reg, (int64_t)rnd(s, 5));
		else if (kind < 42)
			add(s, TALLY_SIM_SYSCALL, reg, 39);
		else if (kind < 43)
			add(s, TALLY_SIM_KILL, 0, rnd(s, 2) ? SIGWINCH : SIGUSR1);
		else if (kind < 45)
			add(s, rnd(s, 2) ? TALLY_SIM_CPUID : TALLY_SIM_TSC, reg, 7);
		else
			add(s, TALLY_SIM_PLAIN, reg, 1 + (int64_t)rnd(s, 9));
	}
}

/* A loop with a loop within, and perhaps a handler of signals behind the end. */
static void make_program(struct schedule *s)
{
	uint32_t outer = s->count, inner;

	add_body(s, 1 + (uint32_t)rnd(s, 10));
	add(s, TALLY_SIM_PLAIN, 1, 1 + (int64_t)rnd(s, 4));
	inner = s->count;
	add_body(s, 1 + (uint32_t)rnd(s, 8));
	add(s, TALLY_SIM_BRANCH, 1, 0)->target = inner;
	add_body(s, 1 + (uint32_t)rnd(s, 10));
	add(s, TALLY_SIM_BRANCH, 0, 0)->target = outer;
	add_body(s, 1);
	add(s, TALLY_SIM_EXIT, 0, 7);
	if (rnd(s, 2)) {
		s->opts.handler = s->count + 1;
		add_body(s, 1 + (uint32_t)rnd(s, 4));
		add(s, TALLY_SIM_RETURN, 0, 0);
	}
	/* What would run off the end of a piece goes to the next instruction. */
	for (uint32_t i = 0; i < s->count; i++)
		s->program[i].target %= s->count;
}

static void make_weather(struct schedule *s)
{
	struct tally_sim_opts *o = &s->opts;

	o->skid_max = rnd(s, 12);
	o->skid_min = rnd(s, o->skid_max + 1);
	o->skid_insns = (uint32_t)rnd(s, 6);
	o->margin = o->skid_max + o->skid_insns + 1;
	if (s->weather == LATE_ONES || s->weather == NOISE) {
		o->margin = rnd(s, o->margin + 2);
		o->tail_ppm = ppm(s, PPM / 10);
		o->tail_max = rnd(s, 200);
		o->lost_ppm = ppm(s, PPM / 4);
	}
	if (s->weather == NOISE || s->weather == CALM) {
		o->early_ppm = ppm(s, PPM / 2);
		o->duplicate_ppm = ppm(s, PPM / 2);
		o->stale_ppm = ppm(s, PPM / 2);
	}
	if (s->weather == NOISE)
		o->foreign_ppm = ppm(s, 20000);
	if (s->weather == STEPPED)
		o->flags |= rnd(s, 2) ? TALLY_SIM_STEP_ONLY : TALLY_SIM_NO_INTERRUPTS;
	if (s->weather == BROKEN_LATER) {
		o->invalid_at = 1 + rnd(s, 500);
		o->invalid = TALLY_CLOCK_NOT_COUNTING + (uint32_t)rnd(s, 3);
	}
}

static void make_opts(struct schedule *s)
{
	struct tally_sim_opts *o = &s->opts;

	o->size = sizeof(*o);
	o->seed = s->random;
	o->ticks = 1 + (uint32_t)rnd(s, 4);
	o->min_period = rnd(s, 2) ? 32 : 1;
	o->max_period = rnd(s, 4) ? 0 : 64;
	o->signal = rnd(s, 2) ? SIGSTKFLT : SIGRTMAX;
	o->per_ms = 50;
	o->rate = rnd(s, 2) ? 5000 : 0;
	/* Emulated instructions are ticks that no interrupt is late by: only where LATE is allowed. */
	if (o->ticks != TALLY_TICKS_INSTRUCTIONS || s->weather == LATE_ONES || s->weather == NOISE)
		o->flags |= rnd(s, 2) ? TALLY_SIM_TRAP_CPUID | TALLY_SIM_TRAP_TSC : 0;
	if (rnd(s, 4) == 0)
		o->flags |= TALLY_SIM_SECCOMP;
	if (rnd(s, 2))
		o->flags |= TALLY_SIM_FOLLOWS_STEPS;
	if (rnd(s, 8) == 0)
		o->flags |= TALLY_SIM_NO_SKID;
	o->regs[0] = 1 + rnd(s, 60);
	for (int i = 3; i < 12; i++)
		o->regs[i] = rnd(s, 256);
	make_weather(s);
}

static bool start(struct schedule *s)
{
	struct tally_timer_opts opts = { .size = sizeof(opts), .watch_ms = rnd(s, 2) ? 5 : 0 };

	s->weather = (enum weather)rnd(s, 5);
	s->syscalls = rnd(s, 2);
	if (s->weather != BROKEN_LATER && rnd(s, 3) == 0)
		opts.flags = TALLY_TIMER_CHECKPOINTS;
	make_opts(s);
	make_program(s);
	oracle_start(&s->oracle, s->program, s->count, &s->opts);
	return tally_sim_new(&s->sim, s->program, s->count, &s->opts, NULL) == 0 &&
	       tally_sim_clock(&s->clock, s->sim, NULL) == 0 &&
	       tally_timer_new(&s->timer, s->clock, &opts, NULL) == 0;
}

static void end(struct schedule *s)
{
	tally_timer_free(s->timer);
	tally_clock_free(s->clock);
	tally_sim_free(s->sim);
	tally_sim_free(s->saved);
}

/* The thread stopped: the oracle catches up, and both are at the same place. */
static void follow(struct schedule *s)
{
	uint64_t executed = tally_sim_counts(s->sim)->executed + s->emulated;
	struct tally_tracee_regs regs;

	oracle_advance(&s->oracle, executed);
	tally_sim_regs(s->sim, &regs);
	if (s->oracle.executed != executed || !oracle_has(&s->oracle, &regs))
		s->wrong = "the simulation is not where the oracle is";
}

/* Executes a trapped instruction for the thread. */
static void emulate(struct schedule *s)
{
	const struct tally_sim_insn *insn = &s->program[s->oracle.at];
	struct tally_tracee_regs regs;

	tally_sim_regs(s->sim, &regs);
	regs.word[insn->reg] += (uint64_t)insn->value;
	regs.word[ORACLE_PC] += 4;
	tally_sim_set_regs(s->sim, &regs);
	tally_timer_emulated(s->timer, 1, &regs);
	if (s->opts.ticks == TALLY_TICKS_INSTRUCTIONS)
		tally_clock_adjust(s->clock, 1);
	s->emulated++;
	oracle_step(&s->oracle);
}

static bool is_timers(const struct schedule *s, const struct tally_stop *stop)
{
	return stop->kind == TALLY_STOP_SIGNAL && stop->signal == s->opts.signal &&
	       stop->code == 1 && stop->fd == TIMER_FD;
}

static void make_point(struct schedule *s)
{
	struct oracle ahead = s->oracle;

	ahead.wish.kind = 0;
	oracle_advance(&ahead, ahead.executed + rnd(s, 800));
	s->point = (struct tally_point){ .ticks = ahead.ticks, .semantics = ahead.semantics };
	s->point.regs.machine = 62;
	s->point.regs.count = 27;
	memcpy(s->point.regs.word, ahead.reg, sizeof(ahead.reg));
	s->point.regs.word[ORACLE_PC] = oracle_pc(&ahead);
	s->point.regs.word[ORACLE_SP] = 0x7ffffffff000u - 8 * (uint64_t)ahead.depth;
	s->wish.point = &s->point;
}

static void make_wish(struct schedule *s)
{
	static const uint64_t ranges[] = { 4, 40, 400 };
	struct tally_timer_request *w = &s->wish;

	*w = (struct tally_timer_request){ .size = sizeof(*w) };
	w->kind = TALLY_TIMER_AT_LEAST + (uint32_t)rnd(s, 6);
	w->ticks = 1 + rnd(s, ranges[rnd(s, 3)]);
	w->instructions = rnd(s, 3) ? rnd(s, 4) : rnd(s, 40);
	w->address = TALLY_SIM_TEXT + 4 * rnd(s, s->count);
	w->flags = rnd(s, 2) ? TALLY_TIMER_KEEP : 0;
	if (w->kind == TALLY_TIMER_ADDRESS)
		w->flags |= rnd(s, 3) ? 0 : TALLY_TIMER_SAME_TICK;
	if (w->kind == TALLY_TIMER_POINT)
		make_point(s);
	if (rnd(s, 4) == 0) {
		w->flags |= TALLY_TIMER_ABSOLUTE;
		w->ticks += s->oracle.ticks > 3 ? s->oracle.ticks - 3 : 0;
	}
}

/* Asks for something, and lets the oracle know. False: it was refused. */
static bool request(struct schedule *s)
{
	struct tally_tracee_regs regs;
	struct tally_error err;

	make_wish(s);
	tally_sim_regs(s->sim, &regs);
	s->wish.regs = &regs;
	int r = tally_timer_request(s->timer, &s->wish, &err);
	if (r < 0) {
		if (s->weather != BROKEN_LATER)
			s->wrong = "a sound request was refused";
		return false;
	}
	uint64_t target = s->wish.flags & TALLY_TIMER_ABSOLUTE ? s->wish.ticks
							       : s->oracle.ticks + s->wish.ticks;
	if (s->wish.kind == TALLY_TIMER_POINT)
		target = s->point.ticks;
	s->behind = (s->wish.flags & TALLY_TIMER_ABSOLUTE) && target <= s->oracle.ticks;
	s->cancelled = s->refused = false;
	oracle_wish(&s->oracle, &s->wish, target);
	return true;
}

/* Whether this outcome is right. NULL: it is. */
static const char *judge_reached(const struct schedule *s, const struct tally_timer_outcome *got)
{
	const struct oracle *o = &s->oracle;

	if (got->clock.ticks != o->ticks)
		return "it shows another time than it is";
	if (s->weather == BROKEN_LATER && tally_sim_counts(s->sim)->ticks >= s->opts.invalid_at)
		return "it was reached by a broken clock";
	if (s->wish.kind != TALLY_TIMER_AT_LEAST)
		return o->met_at == o->executed ? NULL : "it is not there";
	if (o->ticks < o->target)
		return "it was too early";
	return got->late_by == o->ticks - o->target ? NULL : "it is late by another number";
}

static const char *judge_late(const struct schedule *s, const struct tally_timer_outcome *got)
{
	const struct oracle *o = &s->oracle;
	bool ends = s->wish.kind == TALLY_TIMER_WITHIN || s->wish.kind == TALLY_TIMER_POINT ||
		    (s->wish.flags & TALLY_TIMER_SAME_TICK);
	bool may = s->behind || s->refused || s->weather == LATE_ONES || s->weather == NOISE ||
		   (ends && o->met_at == ORACLE_NEVER && o->ticks > o->target);

	if (got->clock.ticks != o->ticks || !got->why)
		return "late: it shows another time than it is, or no reason";
	if (o->ticks < o->target || got->late_by != o->ticks - o->target)
		return "it is late by another number";
	return may ? NULL : "it was late without a reason";
}

static const char *judge(const struct schedule *s, const struct tally_timer_outcome *got)
{
	const struct oracle *o = &s->oracle;
	bool calm = s->weather != LATE_ONES && s->weather != NOISE;

	switch (got->kind) {
	case TALLY_OUTCOME_REACHED:
		return judge_reached(s, got);
	case TALLY_OUTCOME_LATE:
		return judge_late(s, got);
	case TALLY_OUTCOME_CANCELLED:
		return s->cancelled ? NULL : "nobody cancelled it";
	case TALLY_OUTCOME_EXITED:
		if (!oracle_at_end(o))
			return "it has not exited";
		if (o->met_at == ORACLE_NEVER)
			return NULL;
		if (!got->why)
			return "it did not end first";
		return calm && !s->refused && s->wish.kind != TALLY_TIMER_AT_LEAST
			       ? "it ran past the point"
			       : NULL;
	case TALLY_OUTCOME_CLOCK_INVALID:
		return s->weather == BROKEN_LATER ? NULL : "the clock was sound";
	default:
		return "that is no outcome of a request that is done";
	}
}

static void take_checkpoint(struct schedule *s)
{
	tally_sim_free(s->saved);
	if (tally_sim_copy(&s->saved, s->sim, NULL) < 0)
		s->saved = NULL;
	s->saved_oracle = s->oracle;
	s->saved_deliver = s->deliver;
	s->saved_emulated = s->emulated;
	tally_timer_answer(s->timer, s->saved && rnd(s, 8) ? 0 : -ENOMEM);
}

static void go_back(struct schedule *s)
{
	struct tally_sim *sim;
	struct tally_clock *clock;

	if (!s->saved)
		s->wrong = "it goes back behind an event";
	if (!s->saved || rnd(s, 8) == 0 || tally_sim_copy(&sim, s->saved, NULL) < 0) {
		s->refused = true;
		tally_timer_answer(s->timer, -ESRCH);
		return;
	}
	if (tally_sim_clock(&clock, sim, NULL) < 0 ||
	    tally_clock_set(clock, s->saved_oracle.ticks) < 0 ||
	    tally_timer_move(s->timer, clock, NULL) < 0)
		s->wrong = "no clock for the checkpoint";
	tally_clock_free(s->clock);
	tally_sim_free(s->sim);
	s->sim = sim;
	s->clock = clock;
	s->oracle = s->saved_oracle;
	s->deliver = s->saved_deliver;
	s->emulated = s->saved_emulated;
	tally_timer_answer(s->timer, 0);
}

static void maybe_cancel(struct schedule *s)
{
	uint64_t how = rnd(s, 24);

	if (how > 4)
		return;
	s->cancelled = how > 2 || !(s->wish.flags & TALLY_TIMER_KEEP);
	if (how <= 2)
		tally_timer_observe(s->timer);
	else if (how == 3)
		tally_timer_cancel(s->timer);
	else
		tally_timer_cancel_later(s->timer);
	if (s->cancelled && tally_timer_outcome(s->timer)->kind != TALLY_OUTCOME_CANCELLED)
		s->wrong = "it was not cancelled";
}

/* A stop that is for the caller. */
static void handle_event(struct schedule *s, const struct tally_stop *stop)
{
	const struct tally_timer_outcome *got = tally_timer_outcome(s->timer);

	if (stop->kind == TALLY_STOP_EXITED)
		return;
	if (got->kind != TALLY_OUTCOME_EVENT || got->stop.kind != stop->kind)
		s->wrong = "an event was not told";
	tally_sim_free(s->saved);
	s->saved = NULL;
	if (stop->kind == TALLY_STOP_CPUID || stop->kind == TALLY_STOP_TSC)
		emulate(s);
	if (stop->kind == TALLY_STOP_SIGNAL)
		s->deliver = stop->signal;
	maybe_cancel(s);
}

static void perform(struct schedule *s, const struct tally_timer_action *action)
{
	struct tally_tracee_regs regs;
	struct tally_stop stop;

	if (s->deliver)
		oracle_deliver(&s->oracle);
	if (tally_sim_perform(s->sim, action, s->deliver, s->syscalls, &stop) < 0) {
		s->wrong = "an action could not be performed";
		return;
	}
	s->deliver = 0;
	follow(s);
	tally_sim_regs(s->sim, &regs);
	int ours = tally_timer_stopped(s->timer, &stop, action->needs_regs ? &regs : NULL);
	/* A stop behind the point may be kept back, to be undone by going back to the checkpoint. */
	s->withheld = ours && stop.kind == TALLY_STOP_SIGNAL && !is_timers(s, &stop);
	if (!ours && is_timers(s, &stop))
		s->wrong = "a signal of the timer was taken for another's";
	if (ours == 0)
		handle_event(s, &stop);
}

/* Drives a request to its end. */
static void drive(struct schedule *s)
{
	struct tally_timer_action action;

	while (!s->wrong) {
		if (s->stops++ > MOST_STOPS)
			s->wrong = "it takes for ever";
		if (tally_timer_next(s->timer, &action) < 0)
			s->wrong = "it has no answer";
		if (s->withheld && action.what != TALLY_TIMER_GO_BACK &&
		    tally_timer_outcome(s->timer)->kind != TALLY_OUTCOME_EVENT)
			s->wrong = "a signal of another was taken for the timer's";
		s->withheld = false;
		if (action.what == TALLY_TIMER_DONE &&
		    tally_timer_outcome(s->timer)->kind != TALLY_OUTCOME_EVENT)
			break;
		if (action.what == TALLY_TIMER_TAKE)
			take_checkpoint(s);
		else if (action.what == TALLY_TIMER_GO_BACK)
			go_back(s);
		else if (action.what == TALLY_TIMER_DONE)
			handle_event(s, &tally_timer_outcome(s->timer)->stop);
		else
			perform(s, &action);
	}
	const struct tally_timer_outcome *got = tally_timer_outcome(s->timer);
	if (!s->wrong)
		s->wrong = judge(s, got);
	total.outcomes[got->kind % ARRAY_SIZE(total.outcomes)]++;
}

/* Without a request: late interrupts still come, and are the timer's. */
static void run_out(struct schedule *s)
{
	struct tally_stop stop;

	s->oracle.wish.kind = 0;
	while (!s->wrong) {
		if (s->deliver)
			oracle_deliver(&s->oracle);
		if (tally_sim_resume(s->sim, TALLY_RESUME_RUN, s->deliver) < 0 ||
		    tally_sim_wait(s->sim, -1, &stop) < 0 || stop.kind == TALLY_STOP_EXITED)
			break;
		follow(s);
		bool signal = stop.kind == TALLY_STOP_SIGNAL;
		int ours = tally_timer_stopped(s->timer, &stop, NULL);
		if (ours != is_timers(s, &stop))
			s->wrong = "a signal was taken for another's, without a request";
		s->deliver = signal && !ours ? stop.signal : 0;
		if (stop.kind == TALLY_STOP_CPUID || stop.kind == TALLY_STOP_TSC)
			emulate(s);
	}
	const struct tally_sim_counts *counts = tally_sim_counts(s->sim);
	if (!s->wrong && counts->delivered[s->opts.signal] != counts->foreign)
		s->wrong = "the program got a signal of the timer, or not one of its own";
}

static void explain(const struct schedule *s)
{
	const struct tally_timer_outcome *got = tally_timer_outcome(s->timer);
	const struct oracle *o = &s->oracle;

	printf("# weather %u, semantics %u, kind %u, flags %#x: %s, late by %" PRIu64
	       ", clock %" PRIu64 " (%s)\n",
	       s->weather, o->semantics, s->wish.kind, s->wish.flags, tally_outcome_name(got->kind),
	       got->late_by, got->clock.ticks, got->why ? got->why : "");
	printf("# target %" PRIu64 ", executed %" PRIu64 ", ticks %" PRIu64 ", met at %" PRId64
	       "\n",
	       o->target, o->executed, o->ticks, (int64_t)o->met_at);
}

static const char *run(uint64_t seed)
{
	struct schedule s = { .seed = seed, .random = hash_u64(seed) };

	if (!start(&s))
		s.wrong = "it could not be started";
	for (int i = 0; i < REQUESTS && !s.wrong; i++) {
		if (!request(&s))
			break;
		drive(&s);
		total.requests++;
		if (tally_timer_outcome(s.timer)->kind == TALLY_OUTCOME_EXITED)
			break;
	}
	run_out(&s);
	if (s.wrong)
		explain(&s);
	total.stops += s.stops;
	end(&s);
	return s.wrong;
}

static void outcomes_are_right(void)
{
	for (uint64_t seed = first_seed; seed < first_seed + schedules; seed++) {
		const char *wrong = run(seed);
		total.schedules++;
		if (wrong) {
			printf("# seed %" PRIu64 ": %s\n", seed, wrong);
			check(!wrong);
			return;
		}
	}
}

/* Otherwise the schedules would try little. */
static void outcomes_are_varied(void)
{
	for (uint32_t kind = TALLY_OUTCOME_REACHED; kind <= TALLY_OUTCOME_CLOCK_INVALID; kind++) {
		if (kind == TALLY_OUTCOME_EVENT)
			continue;
		printf("# %s: %" PRIu64 "\n", tally_outcome_name(kind), total.outcomes[kind]);
		check(total.outcomes[kind] > total.requests / 1000);
	}
	printf("# %" PRIu64 " schedules, %" PRIu64 " requests, %" PRIu64 " stops\n",
	       total.schedules, total.requests, total.stops);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		schedules = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first_seed = strtoull(argv[2], NULL, 10);
	tap_run(outcomes_are_right);
	tap_run(outcomes_are_varied);
	return tap_end();
}
