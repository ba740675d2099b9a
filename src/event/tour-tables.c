/* SPDX-License-Identifier: MIT */
/*
 * Vendors' events on the tour of all events. There are thousands, which the kernel would all be asked
 * to open: they are not tried, but for whether their PMU is here.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "event/pmu.h"
#include "event/tables.h"
#include "event/terms.h"
#include "event/tour.h"

struct tour_tables {
	const struct tour *t;
	char pmu[64]; /* the last one that was looked for; rows of one PMU follow each other */
	bool present;
	struct tally_error why;
};

static void look_for(struct tour_tables *w, const struct table_event *event)
{
	const struct naming n = { .text = "", .root = w->t->opts.root, .err = &w->why };
	const char *name = event->core ? NULL : event->pmu;
	pmus list = { 0 };

	if (!strcmp(w->pmu, event->pmu))
		return;
	snprintf(w->pmu, sizeof(w->pmu), "%s", event->pmu);
	w->present = pmus_find(&list, n.root, name) == 0 && list.count;
	pmus_done(&list);
	if (!w->present)
		terms_refuse_pmu(&n, n.text, name);
}

static int visit(const struct table_event *event, void *arg)
{
	static const char column[] = "events, column 1: ";
	struct tour_tables *w = arg;

	if (w->t->glob && fnmatch(w->t->glob, event->name, FNM_CASEFOLD) != 0)
		return 0;
	look_for(w, event);
	const char *why = event->why[0] ? event->why : w->present ? NULL : w->why.text;
	if (why == w->why.text && !strncmp(why, column, sizeof(column) - 1))
		why += sizeof(column) - 1;
	const struct tally_event_info info = {
		.name = event->name,
		.description = event->brief[0] ? event->brief : NULL,
		.kind = TALLY_EVENT_VENDOR,
		.openable = !why,
		.pmu = event->pmu,
		.unit = event->unit,
		.why = why,
	};
	return w->t->fn(&info, w->t->arg);
}

int tour_tables(const struct tour *t)
{
	struct tour_tables w = { .t = t };

	return tables_each(&t->opts, NULL, 0, visit, &w, t->err);
}
