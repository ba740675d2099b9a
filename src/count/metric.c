/* SPDX-License-Identifier: MIT */
/* Metrics: the object, from a formula or an own one to what is printed of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "count/metric.h"
#include "event/event.h"

#define FLAGS (TALLY_METRIC_ON_CPUS | TALLY_METRIC_WHOLE_CORES)

int metric_where(struct metric_where *where, struct tally_metric_opts *copy,
		 const struct tally_metric_opts *opts, struct tally_error *err)
{
	struct tally_events_opts events;

	*where = (struct metric_where){ 0 };
	int r = opts_read(copy, sizeof(*copy), FLAGS, opts, err);
	if (r == 0)
		r = events_opts_read(&events, copy->events, err);
	if (r < 0)
		return r;
	if (copy->scale - copy->scale != 0)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a metric's scale must be finite");
	where->flags = copy->flags;
	where->root = events.root;
	where->events = copy->events;
	return 0;
}

/* A copy of a text that may be NULL. false: no memory. */
static bool copy_text(char **out, const char *text)
{
	*out = strdup(text ? text : "");
	return *out;
}

int metric_new(struct tally_metric **out, const char *name, const char *formula,
	       enum metric_scope scope, const struct tally_metric_opts *opts,
	       struct metric_where *where, struct tally_error *err)
{
	struct tally_metric *m = calloc(1, sizeof(*m));
	int r;

	if (!m || !copy_text(&m->unit, opts->unit) ||
	    !copy_text(&m->description, opts->description) ||
	    !copy_text(&m->groups, opts->groups)) {
		r = error_nomem(err, "a metric");
		goto fail;
	}
	m->scale = opts->scale != 0 ? opts->scale : 1;
	r = metric_parse(m, name, formula, scope, where, err);
	if (r < 0)
		goto fail;
	*out = m;
	return 0;
fail:
	tally_metric_free(m);
	return r;
}

int tally_metric_parse(struct tally_metric **out, const char *name, const char *formula,
		       const struct tally_metric_opts *opts, struct tally_error *err)
{
	struct tally_metric_opts o;
	struct metric_where where;

	int r = metric_where(&where, &o, opts, err);
	if (r == 0 && (!name || !formula))
		r = error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			      "a metric needs a name and a formula");
	if (r == 0)
		r = metric_new(out, name, formula, SCOPE_USER, &o, &where, err);
	metric_where_done(&where);
	return r;
}

void tally_metric_free(struct tally_metric *metric)
{
	if (!metric)
		return;
	vec_each (&metric->sources, s) {
		free(s->name);
		free(s->text);
	}
	vec_each (&metric->events, e)
		free(e->name);
	vec_done(&metric->sources);
	vec_done(&metric->events);
	vec_done(&metric->nodes);
	free(metric->unit);
	free(metric->description);
	free(metric->groups);
	free(metric->words);
	free(metric->beside);
	free(metric);
}

const char *tally_metric_name(const struct tally_metric *metric)
{
	return metric->sources.at[0].name;
}

const char *tally_metric_formula(const struct tally_metric *metric)
{
	return metric->sources.at[0].text;
}

const char *tally_metric_unit(const struct tally_metric *metric)
{
	return metric->unit;
}

const char *tally_metric_description(const struct tally_metric *metric)
{
	return metric->description;
}

const char *tally_metric_groups(const struct tally_metric *metric)
{
	return metric->groups;
}

const char *tally_metric_words(const struct tally_metric *metric)
{
	return metric->words ? metric->words : metric->unit;
}

const char *tally_metric_beside(const struct tally_metric *metric)
{
	return metric->beside;
}

uint32_t tally_metric_events(const struct tally_metric *metric)
{
	return (uint32_t)metric->events.count;
}

const char *tally_metric_event(const struct tally_metric *metric, uint32_t i)
{
	return i < metric->events.count ? metric->events.at[i].name : NULL;
}
