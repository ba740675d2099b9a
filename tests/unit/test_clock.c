/* SPDX-License-Identifier: MIT */
/* Clocks over a backend that shows what the test says. */
#include <errno.h>
#include <math.h>
#include <signal.h>

#include "exact/clock.h"
#include "tap.h"

static struct {
	struct tally_clock_about about;
	struct tally_clock_value shows;
	int about_code, read_code;
	uint64_t period;
	unsigned armed, disarmed, stepped, freed;
} back;

static int back_about(void *self, struct tally_clock_about *out)
{
	if (back.about_code == 0)
		*out = back.about;
	return back.about_code;
}

static int back_read(void *self, struct tally_clock_value *out)
{
	*out = back.shows;
	return back.read_code;
}

static int back_arm(void *self, uint64_t period)
{
	back.period = period;
	back.armed++;
	return 0;
}

static int back_disarm(void *self)
{
	back.disarmed++;
	return 0;
}

static bool back_owns(void *self, const struct tally_stop *stop)
{
	return stop->fd == 5;
}

static int back_stepped(void *self, const struct tally_stop *stop)
{
	back.stepped++;
	back.shows.ticks += stop->retired.conditional;
	return 0;
}

static void back_free(void *self)
{
	back.freed++;
}

static const struct tally_clock_ops ops = {
	.size = sizeof(ops),
	.about = back_about,
	.read = back_read,
	.arm = back_arm,
	.disarm = back_disarm,
	.owns = back_owns,
	.stepped = back_stepped,
	.free = back_free,
};

static const struct tally_clock_about sound = {
	.ticks = TALLY_TICKS_CONDITIONAL,
	.can = TALLY_CLOCK_COUNTS_FREE | TALLY_CLOCK_INTERRUPTS,
	.min_period = 32,
	.max_period = 1000,
	.rate = 6e8,
	.backend = "test",
};

static struct tally_clock *clock_of(const struct tally_clock_about *about)
{
	struct tally_clock *clock = NULL;
	struct tally_error err = { 0 };

	memset(&back, 0, sizeof(back));
	back.about = *about;
	if (tally_clock_new(&clock, &ops, NULL, &err) < 0)
		printf("# %s\n", err.text);
	return clock;
}

static void check_reads(struct tally_clock *clock, uint64_t ticks, const char *where)
{
	struct tally_clock_value now;

	tally_clock_read(clock, &now);
	if (now.validity || now.ticks != ticks)
		printf("# %s\n", where);
	check_int(now.validity, TALLY_CLOCK_VALID);
	check_u64(now.ticks, ticks);
}

static void check_invalid(struct tally_clock *clock, uint32_t validity, int error)
{
	struct tally_clock_value now;

	tally_clock_read(clock, &now);
	check_int(now.validity, validity);
	check_int(now.error, error);
	check_u64(now.ticks, 0);
}

/* What is done to a clock, and what it shows then. */
struct doing {
	enum {
		RUNS,
		SET,
		PAUSE,
		RESUME,
		ADJUST
	} what;
	int64_t by;
	uint64_t shows;
};

static void do_all(const struct doing *d, size_t count)
{
	struct tally_clock *clock = clock_of(&sound);
	char where[32];

	require(clock);
	for (size_t i = 0; i < count; i++) {
		int r = 0;
		if (d[i].what == RUNS)
			back.shows.ticks += (uint64_t)d[i].by;
		else if (d[i].what == SET)
			r = tally_clock_set(clock, (uint64_t)d[i].by);
		else if (d[i].what == PAUSE)
			r = tally_clock_pause(clock);
		else if (d[i].what == RESUME)
			r = tally_clock_resume(clock);
		else
			r = tally_clock_adjust(clock, d[i].by);
		check_int(r, 0);
		snprintf(where, sizeof(where), "step %zu", i);
		check_reads(clock, d[i].shows, where);
	}
	tally_clock_free(clock);
	check_int(back.freed, 1);
}

static void adds_up(void)
{
	static const struct doing set[] = { { RUNS, 7, 7 },    { SET, 100, 100 },
					    { RUNS, 5, 105 },  { SET, 0, 0 },
					    { RUNS, 1, 1 },    { SET, 1, 1 },
					    { RUNS, 0, 1 },    { ADJUST, 4, 5 },
					    { ADJUST, -5, 0 }, { RUNS, 1000, 1000 } };
	static const struct doing pauses[] = { { RUNS, 3, 3 },  { PAUSE, 0, 3 },  { RUNS, 10, 3 },
					       { PAUSE, 0, 3 }, { RUNS, 10, 3 },  { RESUME, 0, 3 },
					       { RUNS, 10, 3 }, { RESUME, 0, 3 }, { RUNS, 2, 5 },
					       { PAUSE, 0, 5 }, { RESUME, 0, 5 } };
	static const struct doing both[] = { { RUNS, 3, 3 },   { PAUSE, 0, 3 },   { RUNS, 10, 3 },
					     { ADJUST, 2, 5 }, { RUNS, 10, 5 },   { RESUME, 0, 5 },
					     { RUNS, 1, 6 },   { PAUSE, 0, 6 },   { SET, 50, 50 },
					     { RUNS, 9, 50 },  { RESUME, 0, 50 }, { RUNS, 1, 51 } };

	do_all(set, sizeof(set) / sizeof(set[0]));
	do_all(pauses, sizeof(pauses) / sizeof(pauses[0]));
	do_all(both, sizeof(both) / sizeof(both[0]));
}

static void keeps_to_64_bits(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	check_int(tally_clock_adjust(clock, -1), -ERANGE);
	check_int(tally_clock_set(clock, UINT64_MAX - 1), 0);
	check_int(tally_clock_adjust(clock, 2), -ERANGE);
	check_int(tally_clock_adjust(clock, 1), 0);
	check_reads(clock, UINT64_MAX, "the last");
	back.shows.ticks = 1;
	check_invalid(clock, TALLY_CLOCK_FAILED, -EOVERFLOW);
	/* The backend's own count may be as large. */
	back.shows.ticks = UINT64_MAX;
	check_int(tally_clock_set(clock, 0), 0);
	check_reads(clock, 0, "behind the backend's last");
	tally_clock_free(clock);
}

static void says_what_does_not_hold(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	for (uint32_t v = TALLY_CLOCK_NOT_COUNTING; v <= TALLY_CLOCK_BACKWARD; v++) {
		back.shows = (struct tally_clock_value){ .ticks = 3, .validity = v, .error = -5 };
		check_invalid(clock, v, 0);
		check_int(tally_clock_pause(clock), -EIO);
		check_int(tally_clock_set(clock, 0), -EIO);
		check_int(tally_clock_adjust(clock, 1), -EIO);
	}
	back.shows = (struct tally_clock_value){ .ticks = 3 };
	back.read_code = -ESRCH;
	check_invalid(clock, TALLY_CLOCK_FAILED, -ESRCH);
	check_int(tally_clock_set(clock, 0), -ESRCH);
	back.read_code = 0;
	check_reads(clock, 3, "a reading that failed is no reason for later ones");
	back.shows = (struct tally_clock_value){ .validity = TALLY_CLOCK_FAILED, .error = -ENXIO };
	check_invalid(clock, TALLY_CLOCK_FAILED, -ENXIO);
	tally_clock_free(clock);
}

static void backward_stays(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	back.shows.ticks = 100;
	check_reads(clock, 100, "before");
	back.shows.ticks = 99;
	check_invalid(clock, TALLY_CLOCK_BACKWARD, 0);
	back.shows.ticks = 200;
	check_invalid(clock, TALLY_CLOCK_BACKWARD, 0);
	check_int(tally_clock_set(clock, 10), 0);
	back.shows.ticks = 201;
	check_reads(clock, 11, "set again");
	tally_clock_free(clock);
}

static void pauses_are_paired(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	check_int(tally_clock_resume(clock), -EINVAL);
	check_int(tally_clock_pause(clock), 0);
	check_int(tally_clock_arm(clock, 100), -EBUSY);
	check_int(tally_clock_resume(clock), 0);
	check_int(tally_clock_resume(clock), -EINVAL);
	check_int(tally_clock_arm(clock, 100), 0);
	tally_clock_free(clock);
}

static void arms_within_limits(void)
{
	struct tally_clock *clock = clock_of(&sound);
	static const struct {
		uint64_t period;
		int code;
	} tries[] = { { 0, -ERANGE }, { 31, -ERANGE },   { 32, 0 },
		      { 1000, 0 },    { 1001, -ERANGE }, { UINT64_MAX, -ERANGE } };

	require(clock);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		check_int(tally_clock_arm(clock, tries[i].period), tries[i].code);
		if (tries[i].code == 0)
			check_u64(back.period, tries[i].period);
	}
	check_int(back.armed, 2);
	check_int(tally_clock_disarm(clock), 0);
	check_int(back.disarmed, 1);
	tally_clock_free(clock);

	struct tally_clock_about quiet = sound;
	quiet.can = TALLY_CLOCK_COUNTS_FREE;
	clock = clock_of(&quiet);
	require(clock);
	check_int(tally_clock_arm(clock, 100), -EOPNOTSUPP);
	check_int(tally_clock_disarm(clock), -EOPNOTSUPP);
	check(!tally_clock_owns(clock, &(struct tally_stop){ .kind = TALLY_STOP_SIGNAL, .fd = 5 }));
	tally_clock_free(clock);
}

static void owns_signals_alone(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	for (uint32_t kind = TALLY_STOP_NONE; kind <= TALLY_STOP_GONE; kind++)
		check_int(tally_clock_owns(clock, &(struct tally_stop){ .kind = kind, .fd = 5 }),
			  kind == TALLY_STOP_SIGNAL);
	check(!tally_clock_owns(clock, &(struct tally_stop){ .kind = TALLY_STOP_SIGNAL, .fd = 6 }));
	tally_clock_free(clock);
}

static void tells_what_was_retired(void)
{
	struct tally_clock *clock = clock_of(&sound);
	struct tally_stop step = { .kind = TALLY_STOP_STEP };

	require(clock);
	check_int(tally_clock_stepped(clock, &step), 0);
	check_int(back.stepped, 0); /* the entry of a handler */
	step.retired = (struct tally_retired){ .instructions = 1, .branches = 1, .conditional = 1 };
	check_int(tally_clock_stepped(clock, &step), 0);
	check_int(back.stepped, 1);
	check_reads(clock, 1, "stepped");
	step = (struct tally_stop){ .kind = TALLY_STOP_STEP, .insn = TALLY_INSN_UNKNOWN };
	check_int(tally_clock_stepped(clock, &step), 0);
	check_int(back.stepped, 2);
	tally_clock_free(clock);
}

static void epochs_follow_moves(void)
{
	struct tally_clock *clock = clock_of(&sound);

	require(clock);
	uint32_t epoch = clock_epoch(clock);
	back.shows.ticks = 50;
	check_reads(clock, 50, "ran");
	check(clock_epoch(clock) == epoch);
	tally_clock_set(clock, 3);
	check(clock_epoch(clock) != epoch);
	epoch = clock_epoch(clock);
	tally_clock_adjust(clock, 3);
	check(clock_epoch(clock) != epoch);
	epoch = clock_epoch(clock);
	tally_clock_pause(clock);
	tally_clock_resume(clock);
	check(clock_epoch(clock) != epoch);
	tally_clock_free(clock);
}

/* 0.6 ticks a nanosecond, which is a guess for conditional branches: 3 GHz, 2 instructions a cycle. */
static void converts_durations(void)
{
	static const struct {
		double rate;
		uint64_t ns, ticks;
	} rows[] = {
		{ 6e8, 0, 0 },
		{ 6e8, 1, 0 },
		{ 6e8, 2, 1 },
		{ 6e8, 10, 6 },
		{ 6e8, 1000000000, 600000000 },
		{ 6e8, 3500000000, 2100000000 },
		{ 6e8, 86400000000000, 51840000000000 },
		{ 1e8, 10, 1 },
		{ 1e9, 123456789, 123456789 },
		{ 1e12, UINT64_MAX, UINT64_MAX },
		{ 1e9, UINT64_MAX, UINT64_MAX },
		{ 0, 1000000000, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tally_clock_about about = sound;
		about.rate = rows[i].rate;
		struct tally_clock *clock = clock_of(&about);
		require(clock);
		check_u64(tally_clock_ticks_of(clock, rows[i].ns), rows[i].ticks);
		tally_clock_free(clock);
	}
}

static void check_refused(const struct tally_clock_about *about, const char *why)
{
	struct tally_clock *clock = NULL;
	struct tally_error err = { 0 };

	memset(&back, 0, sizeof(back));
	back.about = *about;
	check_int(tally_clock_new(&clock, &ops, NULL, &err), -EINVAL);
	check_int(err.code, -EINVAL);
	check_has(err.text, why);
	check(!clock);
	check_int(back.freed, 0);
}

static void refuses_what_cannot_be(void)
{
	struct tally_clock_about a = sound;

	a.ticks = 0;
	check_refused(&a, "semantics");
	a.ticks = 6;
	check_refused(&a, "semantics");
	a = sound;
	a.can = TALLY_CLOCK_INTERRUPTS;
	check_refused(&a, "without counting");
	a = sound;
	a.max_period = 31;
	check_refused(&a, "longest period");
	a = sound;
	a.rate = -1;
	check_refused(&a, "rate");
	a.rate = (double)NAN;
	check_refused(&a, "rate");
	a.rate = (double)INFINITY;
	check_refused(&a, "rate");
	a = sound;
	memset(a.backend, 0, sizeof(a.backend));
	check_refused(&a, "no name");
	memset(a.backend, 'x', sizeof(a.backend));
	check_refused(&a, "no name");
	a = sound;
	memset(a.identity, 'x', sizeof(a.identity));
	check_refused(&a, "identity");
}

static void refuses_bad_ops(void)
{
	struct tally_clock *clock = NULL;
	struct tally_error err;
	struct tally_clock_ops bad = ops;
	struct {
		struct tally_clock_ops known;
		void *newer;
	} larger = { .known = ops, .newer = &larger };

	memset(&back, 0, sizeof(back));
	back.about = sound;
	check_int(tally_clock_new(&clock, NULL, NULL, &err), -EINVAL);
	bad.size = 0;
	check_int(tally_clock_new(&clock, &bad, NULL, &err), -EINVAL);
	bad = ops;
	bad.flags = 1;
	check_int(tally_clock_new(&clock, &bad, NULL, &err), -EINVAL);
	bad = ops;
	bad.read = NULL;
	check_int(tally_clock_new(&clock, &bad, NULL, &err), -EINVAL);
	bad = ops;
	bad.owns = NULL;
	check_int(tally_clock_new(&clock, &bad, NULL, &err), -EINVAL);
	check_has(err.text, "owns");
	larger.known.size = sizeof(larger);
	check_int(tally_clock_new(&clock, &larger.known, NULL, &err), -E2BIG);
	back.about_code = -ENODEV;
	check_int(tally_clock_new(&clock, &ops, NULL, &err), -ENODEV);
	check(!clock);
	check_int(back.freed, 0);
}

static void compares(void)
{
	struct tally_clock_about then = sound, now = sound;
	struct tally_error err;

	/* Who counts does not matter. */
	snprintf(now.backend, sizeof(now.backend), "step");
	snprintf(now.identity, sizeof(now.identity), "another CPU");
	now.can = 0;
	check_int(tally_clock_compare(&then, &now, &err), 0);
	now.ticks = TALLY_TICKS_TAKEN;
	check_int(tally_clock_compare(&then, &now, &err), -EXDEV);
	check_has(err.text, "conditional branches");
	check_has(err.text, "taken branches");
	now.ticks = then.ticks;
	now.quirks = TALLY_CLOCK_NO_LOOP;
	check_int(tally_clock_compare(&then, &now, &err), -EXDEV);
	check_has(err.text, "quirks");
	then.ticks = now.ticks = TALLY_TICKS_OTHER;
	now.quirks = 0;
	check_int(tally_clock_compare(&then, &now, &err), -EXDEV);
	check_has(err.text, "another CPU");
	check_int(tally_clock_compare(&then, &then, &err), 0);
}

static void has_names(void)
{
	check_str(tally_ticks_name(TALLY_TICKS_CONDITIONAL), "conditional branches");
	check_str(tally_ticks_name(0), "?");
	check_str(tally_ticks_name(99), "?");
	check_str(tally_clock_validity_name(TALLY_CLOCK_VALID), "valid");
	check_str(tally_clock_validity_name(99), "?");
	check_int(TALLY_TICKS_CONDITIONAL, 1);
	check_int(TALLY_TICKS_TAKEN, 2);
	check_int(TALLY_TICKS_BRANCHES, 3);
	check_int(TALLY_TICKS_INSTRUCTIONS, 4);
	check_int(TALLY_TICKS_OTHER, 5);
}

int main(void)
{
	tap_run(adds_up);
	tap_run(keeps_to_64_bits);
	tap_run(says_what_does_not_hold);
	tap_run(backward_stays);
	tap_run(pauses_are_paired);
	tap_run(arms_within_limits);
	tap_run(owns_signals_alone);
	tap_run(tells_what_was_retired);
	tap_run(epochs_follow_moves);
	tap_run(converts_durations);
	tap_run(refuses_what_cannot_be);
	tap_run(refuses_bad_ops);
	tap_run(compares);
	tap_run(has_names);
	return tap_end();
}
