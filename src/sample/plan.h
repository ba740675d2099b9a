/* SPDX-License-Identifier: MIT */
/*
 * What a sampler asks the kernel for: the attr of each event, at a rate that the machine carries,
 * and the size of its rings. Nothing is opened here.
 */
#ifndef SAMPLE_PLAN_H
#define SAMPLE_PLAN_H

#include <tally/event.h>
#include <tally/sampler.h>
#include <tally/system.h>
#include <tally/target.h>

/* Bytes of a ring: the most that is taken unasked, and where shrinking ends. */
#define PLAN_RING_LARGEST  (8ull << 20)
#define PLAN_RINGS_LARGEST (256ull << 20) /* all together, however many CPUs there are */
#define PLAN_RING_AT_RATE  (512ull << 10) /* the least for events that sample at a rate */
#define PLAN_RING_SMALLEST (64ull << 10)

/* Room for the phrases of a few events. */
#define PLAN_COMPROMISE 320

struct plan {
	struct tally_sampler_opts opts;
	struct tally_system system;
	bool inherit; /* follow new threads and children */
	bool per_cpu; /* a ring a CPU; else all is written to one */
	bool on_exec; /* enabled by the exec of a command */
	uint32_t count;
	struct tally_attr *attrs;         /* by event; event_open() gives up in them */
	char compromise[PLAN_COMPROMISE]; /* what was clamped; "": nothing */
};

/* Checks the options and writes the attrs. Errors: -EINVAL, -E2BIG, -ENOMEM. */
int plan_init(struct plan *plan, const struct tally_events *events,
	      const struct tally_target *target, const struct tally_sampler_opts *opts,
	      struct tally_error *err);

/*
 * Lowers the rate of an event to what is allowed and wise; true when it had to. Called once more
 * when event_open() had to take another event, since cycles may have become cpu-clock.
 */
bool plan_clamp(const struct plan *plan, struct tally_attr *attr);

/* Says in plan->compromise what was lowered, when all is open. */
void plan_describe(struct plan *plan, const struct tally_events *events);

/* How large each of `rings` rings shall be. */
uint64_t plan_ring_bytes(const struct plan *plan, uint32_t rings);

/* Sets the watermark of all attrs for rings of that size. */
void plan_watermark(struct plan *plan, uint64_t ring_bytes);

void plan_done(struct plan *plan);

#endif
