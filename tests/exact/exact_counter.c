/* SPDX-License-Identifier: MIT */
/*
 * Timers on hardware counters. The program counts down in a register, so that where it is it tells by
 * itself: between two places lie as many rounds as a clock must have ticked.
 *
 * Emulators of arm64 (QEMU 7.2 to 10.0) bring the overflow of an event counter up to a tick late (see
 * live/live_pmu_sample.c). A timer cannot be exact there; it has to say LATE, and by how much.
 */
#include "driving.h"
#include "own-clock.h"
#include "pmu.h"

/* Beyond this an interrupt is not late by the skid of any CPU. */
#define LONGEST_SKID 20000u
/* Beyond this a target takes so many steps that there are fewer of them. */
#define SHORT_SKID 256u
#define MANY       1000
#define FEW        40
#define LATE       100     /* with a margin that is too small, which takes no steps */
#define FAR        60000u  /* ticks to a random target, at most */
#define BEGIN      200000u /* ticks behind which the program is in its loop */

/* A clock to try. */
struct kind {
	const char *name;
	uint32_t ticks;
	const char *
		event; /* that it counts by, and has to be the same each time; NULL: the library knows */
	bool by_branch; /* it ticks once a round, else with each instruction */
	bool other;     /* its event is to be given: cycles */
	bool own;
};

static const struct kind conditional = { .name = "conditional branches",
					 .ticks = TALLY_TICKS_CONDITIONAL,
					 .by_branch = true };
static const struct kind branches = {
	.name = "branches", .ticks = TALLY_TICKS_BRANCHES, .event = "branches:u", .by_branch = true
};
static const struct kind instructions = { .name = "instructions",
					  .ticks = TALLY_TICKS_INSTRUCTIONS,
					  .event = "instructions:u" };
static const struct kind cycles = {
	.name = "cycles", .ticks = TALLY_TICKS_OTHER, .event = "cycles:u", .other = true
};
static const struct kind by_cycles = { .name = "instructions by interrupts of cycles",
				       .event = "cycles:u",
				       .own = true };

/* Half an hour for each kind of clock, where interrupts are late by thousands of instructions. */
static bool slow(void)
{
	return getenv("TALLY_SLOW");
}

static uint32_t seed = 20260704;

static uint64_t random_below(uint64_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 4) % n;
}

static uint64_t rounds_left(const struct tally_tracee_regs *regs)
{
	for (uint32_t i = 0; i < regs->count; i++) {
		const char *name = tally_tracee_regs_name(regs->machine, i);
		if (name && !strcmp(name, LOOP_REGISTER))
			return regs->word[i];
	}
	return 0;
}

/* The first of the loop's two instructions. At the second one the round is counted, and not done. */
static uint64_t loop_start;

static bool at_loop_start(const struct tally_tracee_regs *regs)
{
	return tally_tracee_regs_pc(regs) == loop_start;
}

/* What the program itself says of the ticks that have been, but for a number that is the same for all. */
static uint64_t ticks_done(const struct kind *kind, const struct tally_tracee_regs *regs)
{
	uint64_t done = 0 - rounds_left(regs);

	if (kind->by_branch)
		return done - (at_loop_start(regs) ? 0 : 1);
	return done * LOOP_INSTRUCTIONS - (at_loop_start(regs) ? 0 : 1);
}

static int open_clock(struct driven *d, const struct kind *kind)
{
	struct tally_attr attr;

	if (kind->own)
		return open_own(d);
	tally_attr_init(&attr, TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES);
	return tally_clock_open_pmu(&d->clock, d->tracee, kind->ticks,
				    TALLY_OPTS(clock_pmu, .attr = kind->other ? &attr : NULL),
				    &d->err);
}

static bool lead(struct driven *d, uint32_t request, uint64_t ticks, uint64_t steps)
{
	int r = drive_to(d, (struct tally_timer_request){
				    .kind = request, .ticks = ticks, .instructions = steps });

	if (r < 0)
		printf("# %s\n", d->err.text);
	return check_int(r, 0);
}

/* Starts the program with a clock and leads it into its loop. The clock's error is left to the caller. */
static bool start(struct driven *d, const struct kind *kind, int *clock_error)
{
	char *argv[] = { getenv("ROUNDS"), (char[]){ "4000000000" }, NULL };

	*clock_error = 0;
	if (!check_int(drive_start(d, argv), 0))
		return false;
	*clock_error = open_clock(d, kind);
	if (*clock_error < 0 || !check_int(drive_time(d, 0, 0), 0) ||
	    !lead(d, TALLY_TIMER_AT_LEAST, BEGIN, 0))
		return false;
	/* They follow each other: a step tells which is the first one. */
	uint64_t here = tally_tracee_regs_pc(&d->regs);
	if (!lead(d, TALLY_TIMER_INSTRUCTIONS, 0, 1))
		return false;
	uint64_t there = tally_tracee_regs_pc(&d->regs);
	loop_start = here < there ? here : there;
	return check(here != there);
}

struct skid {
	uint64_t least, most;
};

/* How late interrupts are, of some; the program has gone past then, which AT_LEAST allows. */
static struct skid learn_skid(struct driven *d)
{
	struct skid skid = { UINT64_MAX, 0 };

	if (!check_int(drive_time(d, 0, 0), 0))
		return (struct skid){ 0 };
	for (int i = 0; i < 100; i++) {
		if (!lead(d, TALLY_TIMER_AT_LEAST, 5000 + random_below(5000), 0))
			return (struct skid){ 0 };
		const struct tally_timer_outcome *o = tally_timer_outcome(d->timer);
		check_str(tally_outcome_name(o->kind), "reached");
		skid.least = o->late_by < skid.least ? o->late_by : skid.least;
		skid.most = o->late_by > skid.most ? o->late_by : skid.most;
	}
	/* Nothing but the interrupts made it late: each was asked for at its target. */
	check_u64(tally_timer_stats(d->timer)->skids.max, skid.most);
	return skid;
}

/* A bit more than has been seen. Each tick of it may take a step, which is slow. */
static uint64_t margin_for(uint64_t skid)
{
	return skid + skid / 4 + 4;
}

struct tries {
	int reached, late;
	uint64_t latest;
};

/* A target, and whether what is said of it is what the program says. */
static bool try_target(struct driven *d, const struct kind *kind, struct tries *tries)
{
	struct tally_clock_value before;
	uint64_t distance = 1 + random_below(FAR), done = ticks_done(kind, &d->regs);

	tally_clock_read(d->clock, &before);
	if (!lead(d, TALLY_TIMER_EXACTLY, distance, 0))
		return false;
	const struct tally_timer_outcome *o = tally_timer_outcome(d->timer);
	uint64_t went = ticks_done(kind, &d->regs) - done;
	bool right = check_int(o->clock.validity, TALLY_CLOCK_VALID) &&
		     check_u64(o->clock.ticks - before.ticks, went);
	if (o->kind == TALLY_OUTCOME_REACHED) {
		tries->reached++;
		return check_u64(went, distance) && right &&
		       check(!kind->by_branch || at_loop_start(&d->regs));
	}
	tries->late++;
	tries->latest = o->late_by > tries->latest ? o->late_by : tries->latest;
	return check_str(tally_outcome_name(o->kind), "late") && right &&
	       check_u64(o->late_by, went - distance);
}

static struct tries try_targets(struct driven *d, const struct kind *kind, int count)
{
	struct tries tries = { 0 };

	for (int i = 0; i < count; i++)
		if (!try_target(d, kind, &tries))
			break;
	printf("# %s: %d targets reached, %d late, by up to %" PRIu64 "\n", kind->name,
	       tries.reached, tries.late, tries.latest);
	check_int(tries.reached + tries.late, count);
	return tries;
}

/* With a margin that is too small for what comes: it is late, or it is right. */
static void check_late(struct driven *d, const struct kind *kind, uint64_t margin, uint64_t skid)
{
	if (!check_int(drive_time(d, margin, TALLY_TIMER_FIXED_MARGIN), 0))
		return;
	struct tries tries = try_targets(d, kind, LATE);
	check(tries.late > 0);
	check(tries.latest <= skid * 2 + 1000);
}

/* The interrupt comes one tick before the target, which is stepped to. */
static void check_least_margin(struct driven *d, const struct kind *kind, uint64_t skid)
{
	if (!check_int(drive_time(d, skid + 1, TALLY_TIMER_FIXED_MARGIN), 0))
		return;
	check_int(try_targets(d, kind, LATE).late, 0);
}

static void check_exact(struct driven *d, const struct kind *kind)
{
	struct skid seen = learn_skid(d);
	uint64_t skid = seen.most;

	printf("# %s: interrupts late by %" PRIu64 " to %" PRIu64 "\n", kind->name, seen.least,
	       seen.most);
	if (skid > LONGEST_SKID) {
		check_late(d, kind, 100, skid);
		return;
	}
	if (!check_int(drive_time(d, margin_for(skid), 0), 0))
		return;
	struct tries tries = try_targets(d, kind, slow() || skid <= SHORT_SKID ? MANY : FEW);
	check_int(tries.late, 0);
	/* Of a clock that reads the target nobody knows for how long it has: late by 0. */
	check_late(d, kind, 0, skid);
	/* On an emulated CPU interrupts may all be late by as much. */
	if (seen.least == seen.most)
		check_least_margin(d, kind, skid);
}

/* The same each time, but of interrupts, which some CPUs count. */
static bool counts_the_same(const char *event)
{
	struct opened o;
	uint64_t first = 0;
	bool same = true;

	if (!open_moving(&o, event, 0, 0))
		return false;
	for (int i = 0; i < 50; i++) {
		uint64_t all = count_loop(o.counter, 1000001);
		all -= count_loop(o.counter, 1);
		first = i ? first : all;
		same = same && all == first;
	}
	close_all(&o);
	return same && (first == 1000000 || first == 2000000);
}

#define TRY(kind)                                                                             \
	do {                                                                                  \
		struct driven d;                                                              \
		int error;                                                                    \
		NEED_PMU();                                                                   \
		if (!LOOP_INSTRUCTIONS)                                                       \
			tap_skip("the loop is not written in assembly here");                 \
		if ((kind).event && !counts_the_same((kind).event))                           \
			tap_skip("what it counts is not the same each time on this machine"); \
		bool started = start(&d, &(kind), &error);                                    \
		if (started)                                                                  \
			check_exact(&d, &(kind));                                             \
		drive_end(&d);                                                                \
		if (error < 0) {                                                              \
			snprintf(why, sizeof(why), "%s", d.err.text);                         \
			tap_skip(why);                                                        \
		}                                                                             \
		check(started);                                                               \
	} while (0)

static char why[TALLY_ERROR_TEXT];

static void conditional_branches_are_reached(void)
{
	TRY(conditional);
}

static void branches_are_reached(void)
{
	TRY(branches);
}

static void instructions_are_reached(void)
{
	TRY(instructions);
}

static void cycles_are_reached(void)
{
	TRY(cycles);
}

static void instructions_are_reached_by_interrupts_of_cycles(void)
{
	TRY(by_cycles);
}

#define PLACES     100
#define PLACES_MAX 1000 /* when there is time */

/* Where a run of the busy program stood at some ticks. */
struct places {
	int32_t tid;
	int count;
	struct tally_tracee_regs regs[PLACES_MAX];
};

/* Leads it from one tick to the next. Its clock is that of the PMU, or that of steps. */
static int visit(struct places *p, uint32_t ticks, bool pmu, const uint64_t *at, int count,
		 uint64_t margin)
{
	char *argv[] = { getenv("BUSY"), NULL };
	struct driven d;
	int r = drive_start(&d, argv);

	p->count = 0;
	p->tid = r < 0 ? 0 : tally_tracee_tid(d.tracee);
	if (r == 0)
		r = pmu ? tally_clock_open_pmu(&d.clock, d.tracee, ticks, NULL, &d.err)
			: tally_clock_open_step(&d.clock, d.tracee, ticks, &d.err);
	if (r == 0)
		r = drive_time(&d, margin, 0);
	while (r == 0 && p->count < count) {
		r = drive_to(&d, (struct tally_timer_request){ .kind = TALLY_TIMER_EXACTLY,
							       .flags = TALLY_TIMER_ABSOLUTE,
							       .ticks = at[p->count] });
		if (r < 0 || tally_timer_outcome(d.timer)->kind != TALLY_OUTCOME_REACHED) {
			printf("# not %" PRIu64 ": %s, at %" PRIu64 "\n", at[p->count],
			       tally_outcome_name(tally_timer_outcome(d.timer)->kind),
			       tally_timer_outcome(d.timer)->clock.ticks);
			break;
		}
		p->regs[p->count++] = d.regs;
	}
	drive_end(&d);
	return r;
}

/* Process numbers are others in each run, of the process itself and of its children. */
static bool has_number(uint64_t x, int32_t tid_x, uint64_t y, int32_t tid_y)
{
	return x - (uint64_t)tid_x < 64 && y - (uint64_t)tid_y < 64;
}

/* So is the parity of such a number, in the flags, and in r11, where a system call leaves them. */
static bool has_parity(const char *name, uint64_t x, uint64_t y)
{
	return (!strcmp(name, "r11") || !strcmp(name, "eflags")) && (x ^ y) == 0x4;
}

static bool same_place(const struct places *a, const struct places *b, int i)
{
	const struct tally_tracee_regs *x = &a->regs[i], *y = &b->regs[i];

	for (uint32_t w = 0; w < x->count; w++) {
		const char *name = tally_tracee_regs_name(x->machine, w);
		if (x->word[w] == y->word[w] || has_parity(name, x->word[w], y->word[w]) ||
		    has_number(x->word[w], a->tid, y->word[w], b->tid))
			continue;
		printf("# place %d: %s is %#" PRIx64 ", by steps %#" PRIx64 "\n", i, name,
		       x->word[w], y->word[w]);
		return false;
	}
	return true;
}

/* Signals, calls, a fork, a thread and an exec on the way: the clock that counts makes no difference. */
static void by_steps_it_stops_at_the_same_places(void)
{
	static struct places counted, stepped;
	const struct kind *kind = loop_branches()[0] && strcmp(loop_branches(), "r21:u")
					  ? &conditional
					  : &branches;
	static uint64_t at[PLACES_MAX];
	int places = slow() ? PLACES_MAX : PLACES;
	uint64_t next = 0;

	NEED_PMU();
	if (kind->event && !counts_the_same(kind->event))
		tap_skip("what it counts is not the same each time on this machine");
	for (int i = 0; i < places; i++)
		at[i] = next += 1 + random_below(60);
	struct driven d;
	int error;
	uint64_t margin = start(&d, kind, &error) ? margin_for(learn_skid(&d).most) : 0;
	snprintf(why, sizeof(why), "%s", d.err.text);
	drive_end(&d);
	if (error < 0)
		tap_skip(why);
	check_int(visit(&counted, kind->ticks, true, at, places, margin), 0);
	check_int(visit(&stepped, kind->ticks, false, at, places, 0), 0);
	check_int(counted.count, places);
	check_int(stepped.count, places);
	for (int i = 0; i < counted.count && i < stepped.count; i++)
		if (!check(same_place(&counted, &stepped, i)))
			break;
}

int main(void)
{
	probe_pmu();
	tap_run(conditional_branches_are_reached);
	tap_run(branches_are_reached);
	tap_run(instructions_are_reached);
	tap_run(cycles_are_reached);
	tap_run(instructions_are_reached_by_interrupts_of_cycles);
	tap_run(by_steps_it_stops_at_the_same_places);
	return tap_end();
}
