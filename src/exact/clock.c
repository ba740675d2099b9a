/* SPDX-License-Identifier: MIT */
/* The arithmetic of clocks, on top of a backend that only counts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "exact/clock.h"

#define NS_PER_SECOND 1e9
#define MOST_RATE     1e15 /* more than any CPU retires in a second */

/* Wide enough for any difference of two 64-bit counts. */
__extension__ typedef __int128 i128;

struct tally_clock {
	struct tally_clock_ops ops;
	void *self;
	struct tally_clock_about about;
	i128 shift;         /* ticks are the backend's plus this */
	uint64_t last;      /* the backend's, at the last reading */
	uint64_t frozen;    /* what it shows while it is paused */
	uint32_t paused;    /* how deep */
	uint32_t epoch;     /* see clock_epoch() */
	bool went_backward; /* until it is set */
};

static const char *const tick_names[] = {
	[TALLY_TICKS_CONDITIONAL] = "conditional branches",
	[TALLY_TICKS_TAKEN] = "taken branches",
	[TALLY_TICKS_BRANCHES] = "branches",
	[TALLY_TICKS_INSTRUCTIONS] = "instructions",
	[TALLY_TICKS_OTHER] = "events of its own",
};

static const char *const validity_names[] = {
	[TALLY_CLOCK_VALID] = "valid",
	[TALLY_CLOCK_NOT_COUNTING] = "the counter was not on the hardware all the time",
	[TALLY_CLOCK_REVOKED] = "the kernel took the counter away",
	[TALLY_CLOCK_GONE] = "the thread has ended",
	[TALLY_CLOCK_BACKWARD] = "it went backward, or moved when it could not",
	[TALLY_CLOCK_FAILED] = "it could not be read",
};

const char *tally_ticks_name(uint32_t ticks)
{
	return ticks && ticks < ARRAY_SIZE(tick_names) ? tick_names[ticks] : "?";
}

const char *tally_clock_validity_name(uint32_t validity)
{
	return validity < ARRAY_SIZE(validity_names) ? validity_names[validity] : "?";
}

uint32_t clock_epoch(const struct tally_clock *clock)
{
	return clock->epoch;
}

uint64_t clock_ticks_retired(uint32_t ticks, const struct tally_retired *retired)
{
	switch (ticks) {
	case TALLY_TICKS_CONDITIONAL:
		return retired->conditional;
	case TALLY_TICKS_TAKEN:
		return retired->taken;
	case TALLY_TICKS_BRANCHES:
		return retired->branches;
	default:
		return retired->instructions;
	}
}

/* What a backend cannot say of itself: NULL when it is sound. */
static const char *about_fault(const struct tally_clock_about *about)
{
	if (!about->ticks || about->ticks >= ARRAY_SIZE(tick_names))
		return "its semantics is unknown";
	if ((about->can & TALLY_CLOCK_INTERRUPTS) && !(about->can & TALLY_CLOCK_COUNTS_FREE))
		return "it interrupts without counting while the thread runs";
	if (about->max_period && about->max_period < about->min_period)
		return "its longest period is below its shortest";
	if (!(about->rate >= 0 && about->rate <= MOST_RATE))
		return "its rate is no number of ticks a second";
	if (!memchr(about->backend, '\0', sizeof(about->backend)) || !about->backend[0])
		return "its backend has no name";
	if (!memchr(about->identity, '\0', sizeof(about->identity)))
		return "its identity has no end";
	return NULL;
}

static int check_ops(const struct tally_clock_ops *ops, struct tally_error *err)
{
	if (!ops->about || !ops->read)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a clock's backend needs the operations about and read");
	return 0;
}

static int ask_about(struct tally_clock *clock, struct tally_error *err)
{
	struct tally_clock_about *about = &clock->about;
	const struct tally_clock_ops *ops = &clock->ops;

	int r = ops->about(clock->self, about);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_UNSUPPORTED,
				 "a clock's backend could not tell what it is: %s", strerror(-r));
	about->min_period = about->min_period ? about->min_period : 1;
	const char *fault = about_fault(about);
	if (!fault && (about->can & TALLY_CLOCK_INTERRUPTS) &&
	    (!ops->arm || !ops->disarm || !ops->owns))
		fault = "it interrupts, but has not all of arm, disarm and owns";
	if (fault)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "what a clock's backend tells of itself cannot be: %s", fault);
	return 0;
}

int tally_clock_new(struct tally_clock **out, const struct tally_clock_ops *ops, void *self,
		    struct tally_error *err)
{
	struct tally_clock_ops known;

	int r = opts_read(&known, sizeof(known), 0, ops, err);
	if (r == 0)
		r = check_ops(&known, err);
	if (r < 0)
		return r;
	struct tally_clock *clock = calloc(1, sizeof(*clock));
	if (!clock)
		return error_nomem(err, "a clock");
	clock->ops = known;
	clock->self = self;
	r = ask_about(clock, err);
	if (r < 0) {
		free(clock);
		return r;
	}
	*out = clock;
	return 0;
}

void tally_clock_free(struct tally_clock *clock)
{
	if (!clock)
		return;
	if (clock->ops.free)
		clock->ops.free(clock->self);
	free(clock);
}

const struct tally_clock_about *tally_clock_about(const struct tally_clock *clock)
{
	return &clock->about;
}

int tally_clock_compare(const struct tally_clock_about *then, const struct tally_clock_about *now,
			struct tally_error *err)
{
	if (then->ticks != now->ticks)
		return error_set(err, -EXDEV, TALLY_CAUSE_ARGUMENT,
				 "the points were found by counting %s, and this clock counts %s: "
				 "take one of the same kind",
				 tally_ticks_name(then->ticks), tally_ticks_name(now->ticks));
	if (then->quirks != now->quirks)
		return error_set(err, -EXDEV, TALLY_CAUSE_ARGUMENT,
				 "the points were found by a clock (%.*s, %.*s) with quirks %#x, "
				 "and this one (%.*s, %.*s) has %#x: they count some instructions "
				 "differently",
				 (int)sizeof(then->backend), then->backend,
				 (int)sizeof(then->identity), then->identity, then->quirks,
				 (int)sizeof(now->backend), now->backend,
				 (int)sizeof(now->identity), now->identity, now->quirks);
	if (then->ticks == TALLY_TICKS_OTHER &&
	    (strncmp(then->identity, now->identity, sizeof(then->identity)) ||
	     strncmp(then->backend, now->backend, sizeof(then->backend))))
		return error_set(err, -EXDEV, TALLY_CAUSE_ARGUMENT,
				 "the points were found by events of '%.*s' (%.*s), and this clock "
				 "counts those of '%.*s' (%.*s)",
				 (int)sizeof(then->identity), then->identity,
				 (int)sizeof(then->backend), then->backend,
				 (int)sizeof(now->identity), now->identity,
				 (int)sizeof(now->backend), now->backend);
	return 0;
}

static struct tally_clock_value invalid(uint32_t validity, int error)
{
	return (struct tally_clock_value){ .validity = validity,
					   .error = validity == TALLY_CLOCK_FAILED ? error : 0 };
}

/* What the backend counts. It may not go backward. */
static struct tally_clock_value read_backend(struct tally_clock *clock)
{
	struct tally_clock_value raw = { 0 };

	int r = clock->ops.read(clock->self, &raw);
	if (r < 0)
		return invalid(TALLY_CLOCK_FAILED, r);
	if (raw.validity)
		return invalid(raw.validity, raw.error < 0 ? raw.error : -EIO);
	if (raw.ticks < clock->last)
		clock->went_backward = true;
	clock->last = raw.ticks;
	return raw;
}

void tally_clock_read(struct tally_clock *clock, struct tally_clock_value *out)
{
	struct tally_clock_value raw = read_backend(clock);

	if (!raw.validity && clock->went_backward)
		raw = invalid(TALLY_CLOCK_BACKWARD, 0);
	*out = raw;
	if (raw.validity)
		return;
	i128 ticks = clock->paused ? clock->frozen : raw.ticks + clock->shift;
	if (ticks < 0 || ticks > UINT64_MAX)
		*out = invalid(TALLY_CLOCK_FAILED, -EOVERFLOW);
	else
		out->ticks = (uint64_t)ticks;
}

static int errno_of(const struct tally_clock_value *value)
{
	return value->error < 0 ? value->error : -EIO;
}

int tally_clock_set(struct tally_clock *clock, uint64_t ticks)
{
	struct tally_clock_value raw = read_backend(clock);

	if (raw.validity)
		return errno_of(&raw);
	clock->went_backward = false;
	clock->shift = (i128)ticks - raw.ticks;
	clock->frozen = ticks;
	clock->epoch++;
	return 0;
}

int tally_clock_pause(struct tally_clock *clock)
{
	struct tally_clock_value now;

	if (!clock->paused) {
		tally_clock_read(clock, &now);
		if (now.validity)
			return errno_of(&now);
		clock->frozen = now.ticks;
	}
	clock->paused++;
	return 0;
}

int tally_clock_resume(struct tally_clock *clock)
{
	if (!clock->paused)
		return -EINVAL;
	if (clock->paused == 1) {
		struct tally_clock_value raw = read_backend(clock);
		if (raw.validity)
			return errno_of(&raw);
		clock->shift = (i128)clock->frozen - raw.ticks;
		clock->epoch++;
	}
	clock->paused--;
	return 0;
}

int tally_clock_adjust(struct tally_clock *clock, int64_t ticks)
{
	struct tally_clock_value now;

	tally_clock_read(clock, &now);
	if (now.validity)
		return errno_of(&now);
	i128 then = (i128)now.ticks + ticks;
	if (then < 0 || then > UINT64_MAX)
		return -ERANGE;
	clock->shift += ticks;
	clock->frozen = (uint64_t)then;
	clock->epoch++;
	return 0;
}

int tally_clock_arm(struct tally_clock *clock, uint64_t period)
{
	const struct tally_clock_about *about = &clock->about;

	if (!(about->can & TALLY_CLOCK_INTERRUPTS))
		return -EOPNOTSUPP;
	if (period < about->min_period || (about->max_period && period > about->max_period))
		return -ERANGE;
	if (clock->paused)
		return -EBUSY;
	return clock->ops.arm(clock->self, period);
}

int tally_clock_disarm(struct tally_clock *clock)
{
	if (!(clock->about.can & TALLY_CLOCK_INTERRUPTS))
		return -EOPNOTSUPP;
	return clock->ops.disarm(clock->self);
}

bool tally_clock_owns(struct tally_clock *clock, const struct tally_stop *stop)
{
	return (clock->about.can & TALLY_CLOCK_INTERRUPTS) && stop->kind == TALLY_STOP_SIGNAL &&
	       clock->ops.owns(clock->self, stop);
}

int tally_clock_stepped(struct tally_clock *clock, const struct tally_stop *stop)
{
	bool something = stop->retired.instructions || (stop->insn & TALLY_INSN_UNKNOWN);

	return something && clock->ops.stepped ? clock->ops.stepped(clock->self, stop) : 0;
}

uint64_t tally_clock_ticks_of(const struct tally_clock *clock, uint64_t ns)
{
	double ticks = (double)ns * clock->about.rate / NS_PER_SECOND;

	return ticks >= 0x1p64 ? UINT64_MAX : (uint64_t)ticks;
}
