/* SPDX-License-Identifier: MIT */
/* What an event and a list of them are made of, for this room alone. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdlib.h>
#include <tally/event.h>

#include "base/vec.h"

/* What earlier openings of an event gave up; see open.c. */
struct given_up {
	bool user_only, clock, guests, alone;
	uint8_t precise;      /* the precise_ip that was granted, + 1; 0: as asked */
	uint32_t newer;       /* bits by rows of open.c's table */
	int32_t paranoid;     /* kernel.perf_event_paranoid when user_only was set */
	int32_t clock_reason; /* the errno for which cycles were given up */
};

/* Whether new threads and children can inherit an event. */
enum follows {
	FOLLOWS_UNKNOWN,
	FOLLOWS_NEVER,
	FOLLOWS_WHERE_ASKED,
};

/*
 * Where an event is several of the kernel's: `cycles` of each kind of core, a box of each memory
 * controller. Their counts are added up.
 */
struct event_part {
	uint32_t type;
	uint64_t config, config1, config2, config3, config4;
	char pmu[64];  /* its name below /sys/bus/event_source/devices, "" where none was named */
	int32_t *cpus; /* where it counts, ascending; NULL: on all CPUs */
	uint32_t cpu_count;
	bool per_cpu; /* it counts CPUs or packages and cannot follow a task: opened on `cpus` */
};

typedef VEC(struct event_part) event_parts;

/* How often it is to be sampled by what its name says; counters do not heed it. */
struct event_rate {
	uint64_t period, freq; /* one of them, or both 0 */
	bool by_default;       /* a vendor's table recommends it: what the sampler is told holds */
};

struct tally_event {
	char *name;
	struct tally_attr attr, granted;
	event_parts parts; /* empty: the attr is all there is */
	char *filter;      /* NULL: none */
	char *text;        /* what a pointer in the attr points to, NULL: nothing */
	double scale;      /* 0: 1.0 */
	char unit[32];     /* "": by the attr */
	bool per_package, snapshot;
	struct event_rate rate;
	uint32_t index, leader, group_size;
	uint32_t fallback; /* enum tally_fallback */
	bool reads_group, weak, opened;
	uint8_t follows;        /* enum follows: can new threads and children inherit it? */
	bool guests_by_default; /* neither H nor G was given: guests are left out where it can be */
	struct given_up given;
	char compromise[240];
};

struct tally_events {
	VEC(struct tally_event) list;
};

/*
 * Appends an event that is alone; `name` of `len` bytes is copied. NULL: no memory. The pointer
 * holds until the next append.
 */
struct tally_event *events_append(struct tally_events *events, const char *name, size_t len,
				  const struct tally_attr *attr);

/* Frees what a list of parts holds, and the list. */
#define event_parts_done(parts)            \
	do {                               \
		vec_each ((parts), part_)  \
			free(part_->cpus); \
		vec_done(parts);           \
	} while (0)

/* Copies and checks the options; fallback 0 becomes the default. Errors: -EINVAL, -E2BIG. */
int events_opts_read(struct tally_events_opts *out, const struct tally_events_opts *opts,
		     struct tally_error *err);

/*
 * Whether it happens in the kernel alone: with the kernel excluded it would count nothing, and that
 * would look like a true 0.
 */
bool event_only_in_kernel(const struct tally_attr *attr);

/*
 * Whether it happens at a place rather than in amounts: a tracepoint, a breakpoint, a probe by its
 * name. Each hit is then a sample, unless a rate is asked for.
 */
bool event_is_hit(const struct tally_event *event);

#endif
