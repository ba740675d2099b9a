/* SPDX-License-Identifier: MIT */
/* The tour of all events that have a name, by kinds: see tally_event_each(). */
#ifndef EVENT_TOUR_H
#define EVENT_TOUR_H

#include <tally/event.h>

#include "event/event.h"

struct tour {
	const char *glob; /* NULL: all */
	struct tally_events_opts opts;
	int (*fn)(const struct tally_event_info *info, void *arg);
	void *arg;
	struct tally_error *err;
};

/* Visits the events of a kind. 0, what fn answered when that is not 0, or -errno explained. */
typedef int tour_kind(const struct tour *t);

/* Whether events of this name are asked for. NULL: no. */
bool tour_wants(const struct tour *t, const char *name);

/*
 * Opens the first part of an event for this thread, or where it counts CPUs on the first of them,
 * and closes it again. User mode alone is good enough. The reason is in `why` when it fails.
 */
bool tour_opens(const struct tour *t, struct tally_event *event, struct tally_error *why);

/* An error's text without what tour_opens() tried. */
const char *tour_reason(const struct tally_error *why, const char *name);

/* The events of events/ of each PMU; boxes of an uncore PMU count as one. */
tour_kind tour_pmus;
/* Those of opts.tables. */
tour_kind tour_tables;

#endif
