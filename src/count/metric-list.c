/* SPDX-License-Identifier: MIT */
/*
 * Metrics by name: the built-in ones, those of vendors' tables, and the rate that any event has.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "count/metric.h"
#include "event/nearest.h"

/* What is called for each metric. */
struct visitor {
	int (*fn)(const struct tally_metric *metric, void *arg);
	void *arg;
	const struct tally_metric_opts *opts; /* the caller's, checked */
	struct metric_where *where;
	struct tally_error *err;
};

static int make_builtin(struct tally_metric **out, const struct metric_builtin *b,
			const struct tally_metric_opts *opts, struct metric_where *where,
			struct tally_error *err)
{
	struct tally_metric_opts o = *opts;
	struct tally_metric *m;

	o.scale = b->scale;
	o.unit = b->unit;
	o.description = b->description;
	o.groups = b->groups;
	int r = metric_new(&m, b->name, b->formula, SCOPE_BUILTIN, &o, where, err);
	if (r < 0)
		return r;
	m->words = b->words ? strdup(b->words) : NULL;
	m->beside = b->beside ? strdup(b->beside) : NULL;
	if ((b->words && !m->words) || (b->beside && !m->beside)) {
		tally_metric_free(m);
		return error_nomem(err, "a metric");
	}
	*out = m;
	return 0;
}

static int make_row(struct tally_metric **out, const struct metric_row *row,
		    const struct tally_metric_opts *opts, struct metric_where *where,
		    struct tally_error *err)
{
	struct tally_metric_opts o = *opts;

	o.scale = row->scale;
	o.unit = row->unit;
	o.description = row->description;
	o.groups = row->groups;
	return metric_new(out, row->name, row->formula, SCOPE_TABLE, &o, where, err);
}

static int visit(const struct visitor *v, struct tally_metric *m)
{
	int r = v->fn(m, v->arg);

	tally_metric_free(m);
	return r;
}

static int visit_builtin(const struct visitor *v, const struct metric_builtin *b)
{
	struct tally_metric *m = NULL;
	int r = make_builtin(&m, b, v->opts, v->where, v->err);

	return r < 0 ? r : visit(v, m);
}

static bool matches(const char *glob, const char *name)
{
	return name && (!glob || fnmatch(glob, name, 0) == 0);
}

/* Whether one of the groups in "a;b;c" does. */
static bool group_matches(const char *glob, const char *groups)
{
	char group[128];

	while (groups && *groups) {
		size_t len = strcspn(groups, ";");
		snprintf(group, sizeof(group), "%.*s", (int)len, groups);
		if (len && matches(glob, group))
			return true;
		groups += len + (groups[len] == ';');
	}
	return false;
}

/* Of a table's formulas, those that need what cannot be found out here are left out. */
static int visit_rows(const struct visitor *v, const char *glob)
{
	int r = metric_rows(v->where, v->err);

	for (size_t i = 0; r == 0 && i < v->where->rows.count; i++) {
		const struct metric_row *row = &v->where->rows.at[i];
		struct tally_metric *m;
		if (!matches(glob, row->name) && !group_matches(glob, row->groups))
			continue;
		r = make_row(&m, row, v->opts, v->where, v->err);
		if (r == 0)
			r = visit(v, m);
		else if (r != -ENOMEM)
			r = 0;
	}
	return r;
}

int tally_metric_each(const char *glob, const struct tally_metric_opts *opts,
		      int (*fn)(const struct tally_metric *metric, void *arg), void *arg,
		      struct tally_error *err)
{
	struct tally_metric_opts o;
	struct metric_where where;
	const struct visitor v = { fn, arg, &o, &where, err };
	const struct metric_builtin *b;
	int r = metric_where(&where, &o, opts, err);

	for (size_t i = 0; r == 0 && (b = metric_builtin_at(i)); i++)
		if ((matches(glob, b->name) || matches(glob, b->alias) ||
		     group_matches(glob, b->groups)) &&
		    metric_is_met(b->need, &where))
			r = visit_builtin(&v, b);
	if (r == 0)
		r = visit_rows(&v, glob);
	metric_where_done(&where);
	return r;
}

/* How often any event happened a second of the time that the target ran. */
static int visit_rate(const struct visitor *v, const char *event)
{
	struct buf name = { 0 }, formula = { 0 };
	struct metric_builtin b = { .unit = "/sec", .beside = event };
	int r = 0;

	buf_str(&formula, "1e9 * ");
	/* Some names cannot stand in a formula. */
	if (metric_escape(&formula, event)) {
		buf_str(&formula, " / " METRIC_RAN);
		buf_printf(&name, "%s_per_second", event);
		b.name = buf_text(&name);
		b.formula = buf_text(&formula);
		r = b.name && b.formula ? visit_builtin(v, &b) : error_nomem(v->err, "a metric");
	}
	buf_done(&name);
	buf_done(&formula);
	return r;
}

/* Whether a metric belongs beside the event. */
static bool is_beside(const struct metric_builtin *b, const struct metric_key *event)
{
	struct metric_key key;

	if (!b->beside)
		return false;
	metric_key(&key, b->beside);
	return metric_key_same(event, &key) || metric_key_clocks(event, &key);
}

int tally_metric_each_beside(const char *event, const struct tally_metric_opts *opts,
			     int (*fn)(const struct tally_metric *metric, void *arg), void *arg,
			     struct tally_error *err)
{
	struct tally_metric_opts o;
	struct metric_where where;
	const struct visitor v = { fn, arg, &o, &where, err };
	const struct metric_builtin *b;
	struct metric_key key;
	int r = metric_where(&where, &o, opts, err);

	metric_key(&key, event);
	bool rate = !metric_key_clocks(&key, &key);
	for (size_t i = 0; r == 0 && (b = metric_builtin_at(i)); i++) {
		if (!is_beside(b, &key) || !metric_is_met(b->need, &where))
			continue;
		rate = rate && strcmp(b->unit, "/sec") != 0;
		r = visit_builtin(&v, b);
	}
	if (r == 0 && rate)
		r = visit_rate(&v, event);
	metric_where_done(&where);
	return r;
}

static int refuse(const char *name, const struct metric_where *where, struct tally_error *err)
{
	const struct metric_builtin *b;
	struct nearest near;

	nearest_init(&near, name, strlen(name));
	for (size_t i = 0; (b = metric_builtin_at(i)); i++) {
		nearest_offer(&near, b->name);
		if (b->alias)
			nearest_offer(&near, b->alias);
	}
	for (size_t i = 0; i < where->rows.count; i++)
		nearest_offer(&near, where->rows.at[i].name);
	if (near.name[0])
		return error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN,
				 "there is no metric '%.100s', the nearest is '%s'", name,
				 near.name);
	return error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN, "there is no metric '%.100s'", name);
}

static int find(struct tally_metric **out, const char *name, const struct tally_metric_opts *opts,
		struct metric_where *where, struct tally_error *err)
{
	const struct metric_row *row;
	bool elsewhere;

	const struct metric_builtin *b = metric_builtin_find(name, where, &elsewhere);
	if (b)
		return make_builtin(out, b, opts, where, err);
	int r = metric_row(&row, name, where, err);
	if (r)
		return r < 0 ? r : make_row(out, row, opts, where, err);
	if (!elsewhere)
		return refuse(name, where, err);
	return error_set(err, -ENODATA, TALLY_CAUSE_UNSUPPORTED,
			 "the metric '%s' needs events that this CPU does not have: slots and "
			 "topdown-retiring (Intel, Ice Lake or newer), the dispatch slots of AMD "
			 "Zen 4 or 5, or stall_slot with caps/slots (Arm)",
			 name);
}

int tally_metric_find(struct tally_metric **out, const char *name,
		      const struct tally_metric_opts *opts, struct tally_error *err)
{
	struct tally_metric_opts o;
	struct metric_where where;
	int r = metric_where(&where, &o, opts, err);

	if (r == 0)
		r = find(out, name, &o, &where, err);
	metric_where_done(&where);
	return r;
}
