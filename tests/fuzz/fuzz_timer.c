/* SPDX-License-Identifier: MIT */
/*
 * A timer that is told anything in any order, on a clock that shows anything. The input is a list of
 * commands, a byte each with what follows it. Whatever happens: a point is REACHED only when the clock
 * was seen below it and one instruction later at it, nothing runs free from the target on, and each
 * request ends once.
 */
#include <errno.h>
#include <string.h>

#include <tally/timer.h>

#include "fuzz.h"

#define TIMER_SIGNAL 16
#define TIMER_FD     7
#define MACHINE      62 /* EM_X86_64 */
#define MACHINE_REGS 27
#define MACHINE_PC   16

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *in, size_t bytes)
{
	uint64_t v = 0;

	while (bytes-- && in->at < in->end)
		v = v << 8 | *in->at++;
	return v;
}

/* The clock: shows what the input says. */
struct face {
	struct tally_clock_value shows;
	int code;
};

static struct tally_clock_about about;

static int face_about(void *self, struct tally_clock_about *out)
{
	*out = about;
	return 0;
}

static int face_read(void *self, struct tally_clock_value *out)
{
	const struct face *f = self;

	*out = f->shows;
	return f->code;
}

static int face_arm(void *self, uint64_t period)
{
	const struct face *f = self;

	must(period >= about.min_period && (!about.max_period || period <= about.max_period));
	return f->code;
}

static int face_disarm(void *self)
{
	const struct face *f = self;

	return f->code;
}

static bool face_owns(void *self, const struct tally_stop *stop)
{
	return stop->signal == TIMER_SIGNAL && stop->fd == TIMER_FD;
}

/* What must hold, followed from outside. */
struct watch {
	struct face face;
	struct tally_clock *clock;
	struct tally_timer *timer;
	bool open, below; /* the clock was last seen below the target */
	bool free_run;    /* since then */
	uint64_t target, retired;
	uint32_t kind;
	struct tally_timer_action action;
};

static void check_reached(const struct watch *w, const struct tally_timer_outcome *o)
{
	must(!o->clock.validity);
	if (w->kind == TALLY_TIMER_AT_LEAST) {
		must(o->clock.ticks >= w->target && o->late_by == o->clock.ticks - w->target);
		return;
	}
	must(o->late_by == 0);
	if (w->kind == TALLY_TIMER_EXACTLY)
		must(o->clock.ticks == w->target && !w->free_run && w->retired <= 1);
	if (w->kind == TALLY_TIMER_POINT || w->kind == TALLY_TIMER_WITHIN)
		must(o->clock.ticks == w->target);
}

static void check_done(struct watch *w)
{
	const struct tally_timer_outcome *o = tally_timer_outcome(w->timer);

	if (!w->open || o->kind == TALLY_OUTCOME_EVENT)
		return;
	must(o->kind >= TALLY_OUTCOME_REACHED && o->kind <= TALLY_OUTCOME_CLOCK_INVALID);
	if (o->kind == TALLY_OUTCOME_REACHED)
		check_reached(w, o);
	if (o->kind == TALLY_OUTCOME_LATE)
		must(o->why && o->clock.ticks >= w->target &&
		     o->late_by == o->clock.ticks - w->target);
	if (o->kind == TALLY_OUTCOME_CLOCK_INVALID)
		must(o->why);
	w->open = false;
}

static void ask_next(struct watch *w)
{
	int r = tally_timer_next(w->timer, &w->action);

	must(r == 0 || r == -EBUSY);
	must(w->action.what <= TALLY_TIMER_GO_BACK);
	must(w->open || w->action.what == TALLY_TIMER_DONE);
	if (r == 0 && w->action.what == TALLY_TIMER_DONE)
		check_done(w);
	if (w->action.what == TALLY_TIMER_RUN)
		must(w->face.shows.ticks < w->target);
	if (w->action.what != TALLY_TIMER_DONE && !w->face.code && !w->face.shows.validity &&
	    w->face.shows.ticks < w->target) {
		w->below = true;
		w->free_run = false;
		w->retired = 0;
	}
	w->free_run |= w->action.what == TALLY_TIMER_RUN;
	if (w->action.what == TALLY_TIMER_GO_BACK)
		w->free_run = false;
}

static void make_regs(struct input *in, struct tally_tracee_regs *regs)
{
	*regs = (struct tally_tracee_regs){ .machine = MACHINE, .count = MACHINE_REGS };
	regs->word[MACHINE_PC] = take(in, 1) & 3;
	regs->word[0] = take(in, 1) & 1;
}

static void make_request(struct watch *w, struct input *in)
{
	struct tally_tracee_regs regs;
	struct tally_point point = { .semantics = about.ticks };
	struct tally_timer_request r = { .size = sizeof(r), .regs = &regs, .point = &point };

	make_regs(in, &regs);
	make_regs(in, &point.regs);
	r.kind = (uint32_t)take(in, 1) % 8;
	r.flags = (uint32_t)take(in, 1) & 15;
	r.ticks = point.ticks = take(in, 2);
	r.instructions = take(in, 1);
	r.address = take(in, 1) & 3;
	uint64_t from = r.flags & TALLY_TIMER_ABSOLUTE || r.kind == TALLY_TIMER_POINT
				? 0
				: w->face.shows.ticks;
	if (tally_timer_request(w->timer, &r, NULL) < 0)
		return;
	w->open = true;
	w->kind = r.kind;
	w->target = from + r.ticks;
	w->below = w->free_run = false;
	w->retired = 0;
}

static void make_stop(struct watch *w, struct input *in)
{
	struct tally_stop stop = { .kind = (uint32_t)take(in, 1) % (TALLY_STOP_GONE + 3) };
	struct tally_tracee_regs regs;
	uint64_t bits = take(in, 1);

	make_regs(in, &regs);
	stop.signal = bits & 1 ? TIMER_SIGNAL : 5;
	stop.fd = bits & 2 ? TIMER_FD : 3;
	stop.insn = bits & 4 ? TALLY_INSN_UNKNOWN : 0;
	stop.retired.instructions = (bits >> 3) & 3;
	stop.retired.conditional = stop.retired.branches = bits >> 5 & 1;
	stop.pc = regs.word[MACHINE_PC];
	bool ours = tally_clock_owns(w->clock, &stop);
	int r = tally_timer_stopped(w->timer, &stop, bits & 64 ? NULL : &regs);
	if (r >= 0 && w->open)
		w->retired += stop.retired.instructions + (stop.insn ? 2 : 0);
	must(!ours || r != 0);
	if (r == 0 && w->open)
		check_done(w);
}

static void show(struct watch *w, struct input *in)
{
	uint64_t how = take(in, 1);

	w->face.code = how & 1 ? -ESRCH : 0;
	w->face.shows.validity = how & 2 ? TALLY_CLOCK_NOT_COUNTING : TALLY_CLOCK_VALID;
	if (how & 4)
		w->face.shows.ticks = take(in, 2);
	else
		w->face.shows.ticks += how >> 3;
}

static void command(struct watch *w, struct input *in)
{
	switch (take(in, 1) % 10) {
	case 0:
		make_request(w, in);
		break;
	case 1:
	case 2:
		make_stop(w, in);
		break;
	case 3:
	case 4:
		show(w, in);
		break;
	case 5:
		tally_timer_observe(w->timer);
		break;
	case 6:
		tally_timer_cancel_later(w->timer);
		break;
	case 7:
		tally_timer_answer(w->timer, take(in, 1) & 1 ? 0 : -ESRCH);
		break;
	default:
		ask_next(w);
	}
	const struct tally_timer_outcome *o = tally_timer_outcome(w->timer);
	if (o->kind == TALLY_OUTCOME_CANCELLED)
		w->open = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tally_clock_ops ops = {
		.size = sizeof(ops),
		.about = face_about,
		.read = face_read,
		.arm = face_arm,
		.disarm = face_disarm,
		.owns = face_owns,
	};
	struct input in = { data, data + size };
	struct tally_timer_opts opts = { .size = sizeof(opts) };
	struct watch w = { .open = false };

	about = (struct tally_clock_about){ .ticks = TALLY_TICKS_CONDITIONAL, .backend = "fuzz" };
	about.can = (uint32_t)take(&in, 1) & 15;
	about.margin = take(&in, 1);
	about.min_period = 1 + take(&in, 1) % 64;
	about.max_period = about.min_period + take(&in, 1);
	opts.flags = (uint32_t)take(&in, 1) & 3;
	opts.margin = take(&in, 1);
	if (tally_clock_new(&w.clock, &ops, &w.face, NULL) < 0)
		return 0;
	must(tally_timer_new(&w.timer, w.clock, &opts, NULL) == 0);
	while (in.at < in.end)
		command(&w, &in);
	tally_timer_free(w.timer);
	tally_clock_free(w.clock);
	return 0;
}
