/* SPDX-License-Identifier: MIT */
/*
 * The clock of what is stepped. A tracee counts what its steps retire; the clock shows one of these
 * counts, and that it does not hold any more when something was executed without a step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tally/clock.h>

#include "base/error.h"
#include "exact/tracee.h"

/*
 * Steps a second, as measured on a virtual machine with tracer and tracee on one CPU (25 to 40
 * thousand; bare metal has ten times that), and instructions a tick of usual programs.
 */
#define STEPS_A_SECOND 30000.0

static const struct {
	size_t offset; /* in struct tally_retired_total */
	double insns;  /* a tick */
} semantics[] = {
	[TALLY_TICKS_CONDITIONAL] = { offsetof(struct tally_retired_total, conditional), 6 },
	[TALLY_TICKS_TAKEN] = { offsetof(struct tally_retired_total, taken), 8 },
	[TALLY_TICKS_BRANCHES] = { offsetof(struct tally_retired_total, branches), 5 },
	[TALLY_TICKS_INSTRUCTIONS] = { offsetof(struct tally_retired_total, instructions), 1 },
};

struct step_clock {
	const struct tally_tracee *tracee;
	uint32_t ticks;
	uint64_t start, losses;
};

static uint64_t count(const struct step_clock *c)
{
	uint64_t value;

	memcpy(&value, (const char *)&c->tracee->total + semantics[c->ticks].offset, sizeof(value));
	return value;
}

static int about(void *self, struct tally_clock_about *out)
{
	const struct step_clock *c = self;

	out->ticks = c->ticks;
	out->min_period = 1;
	out->rate = STEPS_A_SECOND / semantics[c->ticks].insns;
	memcpy(out->backend, "step", sizeof("step"));
	return 0;
}

static int read_clock(void *self, struct tally_clock_value *out)
{
	const struct step_clock *c = self;

	out->ticks = count(c) - c->start;
	out->validity = c->tracee->losses == c->losses ? TALLY_CLOCK_VALID
						       : TALLY_CLOCK_NOT_COUNTING;
	return 0;
}

int tally_clock_open_step(struct tally_clock **out, struct tally_tracee *tracee, uint32_t ticks,
			  struct tally_error *err)
{
	static const struct tally_clock_ops ops = {
		.size = sizeof(ops),
		.about = about,
		.read = read_clock,
		.free = free,
	};

	if (ticks < TALLY_TICKS_CONDITIONAL || ticks > TALLY_TICKS_INSTRUCTIONS)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a step clock has no ticks of kind %u", ticks);
	struct step_clock *c = malloc(sizeof(*c));
	if (!c)
		return error_nomem(err, "a clock");
	c->tracee = tracee;
	c->ticks = ticks;
	c->start = count(c);
	c->losses = tracee->losses;
	return tally_clock_new(out, &ops, c, err);
}
