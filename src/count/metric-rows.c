/* SPDX-License-Identifier: MIT */
/*
 * Metrics of vendors' tables, held for as long as formulas are parsed, and what a name in a formula
 * refers to. Reading a folder of tables takes some ten milliseconds, so that waits for a name which
 * is neither a generic event nor a built-in metric.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "count/metric.h"
#include "event/tables.h"

static int add_row(const struct table_metric *metric, void *arg)
{
	struct metric_where *where = arg;
	struct metric_row *row = vec_push(&where->rows);
	const char *unit;

	if (!row)
		return -ENOMEM;
	row->place = where->rows.count;
	row->scale = tables_scale(metric->unit, &unit);
	row->name = strdup(metric->name);
	row->formula = strdup(metric->formula);
	row->unit = strdup(unit);
	row->groups = strdup(metric->groups);
	row->description = strdup(metric->brief);
	return row->name && row->formula && row->unit && row->groups && row->description ? 0
											 : -ENOMEM;
}

/* Of rows with one name, as each kind of core has them, the first in the tables goes first. */
static int compare_rows(const void *a, const void *b)
{
	const struct metric_row *x = a, *y = b;
	int r = strcasecmp(x->name, y->name);

	return r ? r : (x->place > y->place) - (x->place < y->place);
}

int metric_rows(struct metric_where *where, struct tally_error *err)
{
	if (where->read || !where->events)
		return 0;
	int r = tables_each_metric(where->events, add_row, where, err);
	if (r < 0)
		return r == -ENOMEM ? error_nomem(err, "metrics") : r;
	if (where->rows.count)
		qsort(where->rows.at, where->rows.count, sizeof(*where->rows.at), compare_rows);
	where->read = true;
	return 0;
}

/* The first row of that name. */
static const struct metric_row *find_row(const struct metric_where *where, const char *name)
{
	size_t low = 0, high = where->rows.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcasecmp(where->rows.at[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < where->rows.count && !strcasecmp(where->rows.at[low].name, name)
		       ? &where->rows.at[low]
		       : NULL;
}

int metric_row(const struct metric_row **out, const char *name, struct metric_where *where,
	       struct tally_error *err)
{
	int r = metric_rows(where, err);

	if (r == 0)
		*out = find_row(where, name);
	return r < 0 ? r : *out != NULL;
}

int metric_lookup(const char **formula, enum metric_scope *scope, const char *name,
		  struct metric_where *where, struct tally_error *err)
{
	bool any;
	const struct metric_row *row = NULL;
	int r = 0;

	if (*scope == SCOPE_TABLE)
		r = metric_row(&row, name, where, err);
	const struct metric_builtin *b = r == 0 ? metric_builtin_find(name, where, &any) : NULL;
	if (r == 0 && !b && *scope == SCOPE_USER)
		r = metric_row(&row, name, where, err);
	if (r < 0 || (!b && !row))
		return r;
	*scope = row ? SCOPE_TABLE : SCOPE_BUILTIN;
	*formula = row ? row->formula : b->formula;
	return 1;
}

void metric_where_done(struct metric_where *where)
{
	vec_each (&where->rows, row) {
		free(row->name);
		free(row->formula);
		free(row->unit);
		free(row->groups);
		free(row->description);
	}
	vec_done(&where->rows);
}
