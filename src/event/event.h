/* SPDX-License-Identifier: MIT */
/* What an event and a list of them are made of, for this room alone. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <tally/event.h>

#include "base/vec.h"

/* What earlier openings of an event gave up; see open.c. */
struct given_up {
	bool user_only, clock;
	uint8_t precise;      /* the precise_ip that was granted, + 1; 0: as asked */
	uint32_t newer;       /* bits by rows of open.c's table */
	int32_t paranoid;     /* kernel.perf_event_paranoid when user_only was set */
	int32_t clock_reason; /* the errno for which cycles were given up */
};

struct tally_event {
	char *name;
	struct tally_attr attr, granted;
	uint32_t index, leader, group_size;
	uint32_t fallback; /* enum tally_fallback */
	bool reads_group, opened;
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

/* Copies and checks the options; fallback 0 becomes the default. Errors: -EINVAL, -E2BIG. */
int events_opts_read(struct tally_events_opts *out, const struct tally_events_opts *opts,
		     struct tally_error *err);

/*
 * Whether it happens in the kernel alone: with the kernel excluded it would count nothing, and that
 * would look like a true 0.
 */
bool event_only_in_kernel(const struct tally_attr *attr);

#endif
