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

#include "count/parts.h"

/* Bytes of a ring: the most that is taken unasked, and where shrinking ends. */
#define PLAN_RING_LARGEST  (8ull << 20)
#define PLAN_RINGS_LARGEST (256ull << 20) /* all together, however many CPUs there are */
#define PLAN_RING_AT_RATE  (512ull << 10) /* the least for events that sample at a rate */
#define PLAN_RING_SMALLEST (64ull << 10)

/* Room for the phrases of a few events. */
#define PLAN_COMPROMISE 320

/*
 * What is opened at a place: a part of an event. Most events have one part, and streams then are the
 * events. The parts of a group lie in layers (count/parts.h), of which each is a group of the kernel.
 */
struct plan_stream {
	uint32_t event, leader; /* leader: a stream's index */
	uint32_t group, layer;
	bool told;              /* it has been opened somewhere */
	struct tally_attr attr; /* event_open_at() gives up in it */
};

struct plan {
	struct tally_sampler_opts opts;
	struct tally_system system;
	bool inherit;       /* follow new threads and children */
	bool per_cpu;       /* a ring a CPU; else all is written to one */
	bool on_exec;       /* enabled by the exec of a command */
	uint64_t side_band; /* attr flags of the first stream at a place; an old kernel has fewer */
	uint32_t count, groups_count, streams_count;
	struct tally_event **events;
	struct parts *groups;
	struct plan_stream *streams;
	uint32_t *first;                  /* by event: its first stream */
	char compromise[PLAN_COMPROMISE]; /* what was clamped; "": nothing */
};

/*
 * Checks the options and writes the attrs. Errors: -EINVAL, -E2BIG, -ENOMEM, those of parts_init().
 * Call plan_done() in any case.
 */
int plan_init(struct plan *plan, const struct tally_events *events,
	      const struct tally_target *target, const struct tally_sampler_opts *opts,
	      struct tally_error *err);

/*
 * Which streams are opened at which places of a list: `*here` is malloc'ed, [place * streams_count +
 * stream]. Errors: those of parts_spread().
 */
int plan_spread(const struct plan *plan, const struct tally_place *list, uint32_t count,
		bool **here, struct tally_error *err);

/*
 * Lowers the rate of an event to what is allowed and wise; true when it had to. Called once more
 * when event_open_at() had to take another event, since cycles may have become cpu-clock.
 */
bool plan_clamp(const struct plan *plan, struct tally_attr *attr);

/*
 * Whether software counts it, hit by hit. With PERIOD in its samples the kernel then makes each hit one,
 * whatever the period.
 */
bool plan_is_by_hits(const struct tally_event *event, const struct tally_attr *attr);

/* Says in plan->compromise what was lowered, when all is open. */
void plan_describe(struct plan *plan);

/* How large each of `rings` rings shall be. */
uint64_t plan_ring_bytes(const struct plan *plan, uint32_t rings);

/* Sets the watermark of all attrs for rings of that size. */
void plan_watermark(struct plan *plan, uint64_t ring_bytes);

void plan_done(struct plan *plan);

#endif
