/* SPDX-License-Identifier: MIT */
/*
 * From a name of a vendor's table to an event. Its terms are applied to the PMUs of this machine, as
 * if they stood between slashes, so that the kernel's format/ decides where bits go.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "event/pmu.h"
#include "event/tables-resolve.h"
#include "event/tables.h"
#include "event/terms.h"

/* What the rows of a name became so far. */
struct named {
	const struct naming *n;
	const char *text; /* the word */
	struct found *out;
	const char *core; /* the PMU of the cores whose tables these are; NULL: of all */
	bool again;       /* the tables were read for another kind of core already */
	char first[64];   /* the PMU of the first row that counts somewhere */
	char absent[64];  /* a PMU of a row that this machine does not have */
	bool refused;     /* the error is of a row and has its column */
};

static struct tally_events_opts opts_of(const struct naming *n)
{
	return (struct tally_events_opts){ .size = sizeof(struct tally_events_opts),
					   .root = n->root,
					   .tables = n->tables };
}

/*
 * The period is what the vendor would sample at. It is left out: an event that is counted must not
 * interrupt, and what samples has a rate of its own.
 */
static void add_without_period(struct buf *out, const char *terms)
{
	const char *period = strstr(terms, ",period=");

	buf_add(out, terms, period ? (size_t)(period - terms) : strlen(terms));
	if (period)
		buf_str(out, period + 1 + strcspn(period + 1, ","));
}

/* Kinds of cores have events of one name that mean one thing. */
static bool is_core(const char *pmu)
{
	return !strcmp(pmu, "cpu") || !strncmp(pmu, "cpu_", 4);
}

/* 1: there are PMUs of this name; 0; -errno explained. */
static int is_present(const struct named *w, const char *pmu)
{
	pmus list = { 0 };
	int r = pmus_find(&list, w->n->root, pmu);
	bool some = list.count > 0;

	pmus_done(&list);
	return r == -ENOMEM ? error_nomem(w->n->err, "the PMUs") : r < 0 || some;
}

/* Moves the parts of `from` behind those of `to`: a PMU that has the event already is no other one. */
static bool take_parts(struct found_event *to, struct found_event *from)
{
	vec_each (&from->parts, part)
		vec_each (&to->parts, old)
			if (!strcmp(part->pmu, old->pmu))
				return true;
	if (!vec_reserve(&to->parts, from->parts.count))
		return false;
	vec_each (&from->parts, part)
		to->parts.at[to->parts.count++] = *part;
	from->parts.count = 0;
	return true;
}

static int apply(struct named *w, const struct table_event *event, struct found_event *e)
{
	struct buf terms = { 0 };

	add_without_period(&terms, event->terms);
	int r = buf_text(&terms) ? terms_apply(w->n, event->core ? w->core : event->pmu, terms.at,
					       terms.len, w->text, e)
				 : error_nomem(w->n->err, "an event");
	buf_done(&terms);
	if (r < 0)
		return r;
	e->per_package |= event->per_package;
	if (event->unit[0] || event->scale != 1.0) {
		e->scale = event->scale;
		snprintf(e->unit, sizeof(e->unit), "%s", event->unit);
	}
	return 0;
}

/* The first row makes the event, those of other kinds of cores add their parts. */
static int add_row(struct named *w, const struct table_event *event)
{
	if (!w->out->events.count) {
		struct found_event *e = found_add(w->out, 0, 0);
		snprintf(w->first, sizeof(w->first), "%s", event->pmu);
		return e ? apply(w, event, e) : error_nomem(w->n->err, "events");
	}
	struct found more = { 0 };
	struct found_event *e = found_add(&more, 0, 0);
	int r = e ? apply(w, event, e) : error_nomem(w->n->err, "events");
	if (r == 0 && !take_parts(w->out->events.at, e))
		r = error_nomem(w->n->err, "an event's parts");
	found_done(&more);
	return r;
}

static int add(struct named *w, const struct table_event *event)
{
	if (w->again && !event->core)
		return 0;
	if (event->why[0])
		return resolve_fail(w->n, w->text, TALLY_CAUSE_UNSUPPORTED,
				    "the table's %s cannot be counted: %s", event->name,
				    event->why);
	int r = is_present(w, event->core ? w->core : event->pmu);
	if (r < 0)
		return r;
	if (r == 0) {
		snprintf(w->absent, sizeof(w->absent), "%s", event->pmu);
		return 0;
	}
	if (w->first[0] && strcmp(w->first, event->pmu) != 0 &&
	    (!is_core(w->first) || !is_core(event->pmu)))
		return resolve_fail(
			w->n, w->text, TALLY_CAUSE_UNKNOWN,
			"the tables have %s for the PMUs %s and %s: name the PMU and its "
			"terms, as %s/%s/",
			event->name, w->first, event->pmu, event->pmu, event->terms);
	return add_row(w, event);
}

static int visit(const struct table_event *event, void *arg)
{
	struct named *w = arg;
	int r = add(w, event);

	w->refused = r < 0;
	return r;
}

/* The length of the name: what stands behind a colon must be modifiers. 0: it is not such a name. */
static size_t name_length(const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len);
	size_t name = colon ? (size_t)(colon - text) : len;

	for (size_t i = name + 1; i < len; i++)
		if (!strchr(RESOLVE_MODIFIERS, text[i]))
			return 0;
	return memchr(text, '/', len) ? 0 : name;
}

static int look_up(struct named *w, size_t len, int32_t cpu)
{
	const struct tally_events_opts opts = opts_of(w->n);
	int r = tables_each_of(&opts, cpu, w->text, len, visit, w, w->n->err);

	if (r < 0 && !w->refused)
		error_prefix(w->n->err, "events, column %td", w->text - w->n->text + 1);
	return r;
}

/*
 * The cores of a big.LITTLE machine are of different models, each with tables of its own. An event of
 * one model alone counts on its cores.
 */
static int look_up_cores(struct named *w, size_t len, pmus *cores)
{
	int last = 0;

	vec_each (cores, core) {
		w->core = core->name;
		w->again = core > cores->at;
		int r = look_up(w, len, core->cpu_count ? core->cpus[0] : -1);
		if (r < 0 && r != -ENOENT)
			return r;
		last = r < 0 ? r : last;
	}
	return w->out->events.count ? 0 : last;
}

int resolve_tables(const struct naming *n, const char *text, size_t len, struct found *out)
{
	struct named w = { .n = n, .text = text, .out = out };
	size_t name = name_length(text, len);
	pmus cores = { 0 };

	if (!n->tables || !name)
		return 0;
	int r = pmus_find(&cores, n->root, NULL);
	if (r == -ENOMEM)
		r = error_nomem(n->err, "the PMUs");
	else if (r == 0 && cores.count > 1)
		r = look_up_cores(&w, name, &cores);
	else
		r = look_up(&w, name, -1);
	pmus_done(&cores);
	if (r < 0)
		return r;
	if (!out->events.count && w.absent[0])
		return terms_refuse_pmu(n, text, w.absent);
	out->taken = name;
	return out->events.count > 0;
}

static int offer(const struct table_event *event, void *arg)
{
	nearest_offer(arg, event->name);
	return 0;
}

int tables_offer(const struct naming *n, struct nearest *near)
{
	const struct tally_events_opts opts = opts_of(n);

	return tables_each(&opts, NULL, 0, offer, near, NULL);
}
