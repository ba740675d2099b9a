/* SPDX-License-Identifier: MIT */
/* The tour of all events that have a name, kind by kind. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "event/open.h"
#include "event/table.h"
#include "event/tour.h"
#include "event/tracepoint.h"

bool tour_wants(const struct tour *t, const char *name)
{
	return name && (!t->glob || fnmatch(t->glob, name, 0) == 0);
}

static int try(const struct tour *t, struct tally_event *event, int32_t tid, int32_t cpu,
	       struct tally_error *why)
{
	struct tally_event_part part;

	tally_event_part(event, 0, &part);
	part.attr.flags |= TALLY_ATTR_DISABLED;
	int fd = event_open(event, &part.attr, tid, cpu, -1, t->opts.root, why);
	if (fd >= 0)
		sys()->close(fd);
	return fd;
}

bool tour_opens(const struct tour *t, struct tally_event *event, struct tally_error *why)
{
	struct tally_event_part part;

	event->fallback = TALLY_FALLBACK_USER_ONLY;
	tally_event_part(event, 0, &part);
	if (part.per_cpu)
		return try(t, event, -1, part.cpu_count ? part.cpus[0] : 0, why) >= 0;
	int r = try(t, event, 0, -1, why);
	/* Some PMUs without a cpumask count CPUs all the same, and refuse a thread. */
	if (r == -EINVAL && event->attr.type > TALLY_TYPE_BREAKPOINT)
		r = try(t, event, -1, 0, why);
	return r >= 0;
}

const char *tour_reason(const struct tally_error *why, const char *name)
{
	char before[TALLY_ERROR_TEXT];
	int n = snprintf(before, sizeof(before), "cannot open %.64s: ", name);

	return strncmp(why->text, before, (size_t)n) ? why->text : why->text + n;
}

static int tour_generic(const struct tour *t)
{
	struct table_entry entry;
	struct tally_error why;
	char name[sizeof(entry.texts)];
	int r = 0;

	for (size_t i = 0; r == 0 && table_at(i, &entry); i++) {
		if (!tour_wants(t, entry.name) && !tour_wants(t, entry.alias))
			continue;
		snprintf(name, sizeof(name), "%s", entry.name);
		struct tally_event e = { .name = name };
		tally_attr_init(&e.attr, entry.type, entry.config);
		e.attr.flags = TALLY_ATTR_EXCLUDE_GUEST;
		bool opens = tour_opens(t, &e, &why);
		const struct tally_event_info info = {
			.name = entry.name,
			.alias = entry.alias,
			.description = entry.description,
			.kind = entry.kind,
			.openable = opens,
			.pmu = "",
			.unit = tally_event_unit(&e),
			.why = opens ? NULL : tour_reason(&why, name),
		};
		r = t->fn(&info, t->arg);
	}
	return r;
}

static int visit_tracepoint(const char *name, void *arg)
{
	const struct tour *t = arg;
	const struct tally_event_info info = {
		.name = name,
		.kind = TALLY_EVENT_TRACEPOINT,
		.openable = 1,
		.pmu = "",
		.unit = "",
	};

	return tour_wants(t, name) ? t->fn(&info, t->arg) : 0;
}

static int tour_tracepoints(const struct tour *t)
{
	struct tour copy = *t;
	int r = tracepoint_each(t->opts.root, visit_tracepoint, &copy);

	return r == -ENOMEM ? error_nomem(t->err, "the names of tracepoints") : r;
}

static tour_kind *const kinds[] = {
	tour_generic,
	tour_pmus,
	tour_tables,
	tour_tracepoints,
};

int tally_event_each(const char *glob, const struct tally_events_opts *opts,
		     int (*fn)(const struct tally_event_info *info, void *arg), void *arg,
		     struct tally_error *err)
{
	struct tour t = { .glob = glob, .fn = fn, .arg = arg, .err = err };
	int r = events_opts_read(&t.opts, opts, err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(kinds); i++)
		r = kinds[i](&t);
	return r;
}
