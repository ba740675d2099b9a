/* SPDX-License-Identifier: MIT */
/* Filters and sort keys: evaluated once for each thread and function, never for a row. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/proc.h"
#include "profile/query.h"

#define DEFAULT_SORT "comm,dso,symbol"

static const char *const key_names[QUERY_KEYS] = {
	[QUERY_COMM] = "comm", [QUERY_DSO] = "dso", [QUERY_SYMBOL] = "symbol",
	[QUERY_PID] = "pid",   [QUERY_TID] = "tid", [QUERY_SRCLINE] = "srcline",
};

/* A missing list has everything. */
static bool in_list(const char *list, const char *text)
{
	return !list || list_holds(list, text);
}

static bool number_in_list(const char *list, int32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return in_list(list, text);
}

/* Numbers are compared as texts, so each must be one in its plain form. */
static int check_numbers(const char *what, const char *list, struct tally_error *err)
{
	const char *piece, *at = list;

	while (at && *at) {
		char text[16] = "";
		int64_t number;
		size_t len = list_next(&at, &piece);
		memcpy(text, piece, len < sizeof(text) ? len : sizeof(text) - 1);
		if (len >= sizeof(text) || !parse_i64(text, &number) || number < -1 ||
		    number > INT32_MAX || (text[0] == '0' && text[1]))
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "the %s filter '%s' is no list of numbers: '%.*s' is none",
					 what, list, (int)len, piece);
	}
	return 0;
}

static int read_sort(struct query *q, const char *sort, struct tally_error *err)
{
	const char *piece, *at = sort;

	while (*at) {
		int key = 0;
		size_t len = list_next(&at, &piece);
		while (key < QUERY_KEYS && !list_item_is(piece, len, key_names[key]) &&
		       !(key == QUERY_SYMBOL && list_item_is(piece, len, "sym")))
			key++;
		if (key == QUERY_KEYS)
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "cannot sort by '%.*s': the keys are comm, dso, symbol, "
					 "pid, tid and srcline",
					 (int)len, piece);
		if (q->sorts_by[key])
			continue;
		q->sorts_by[key] = true;
		q->sort[q->sorts++] = (enum query_key)key;
	}
	if (!q->sorts)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the list of sort keys is empty");
	return 0;
}

/* The first event that has samples, else the first. */
static int32_t first_event(const struct tally_profile *p)
{
	int32_t first = INT32_MAX;

	for (uint32_t i = 0; i < p->rows.count; i++)
		if (row_at(p, i)->event < first)
			first = row_at(p, i)->event;
	return first == INT32_MAX ? 0 : first;
}

/* By its whole name, else by that without modifiers. */
static int find_event(struct query *q, const char *name, struct tally_error *err)
{
	const struct tally_profile *p = q->profile;
	int32_t meant = -1;

	q->event = first_event(p);
	if (!name)
		return 0;
	for (int32_t i = (int32_t)p->events.count; i-- > 0;) {
		const char *own = tally_profile_event_name(p, (uint32_t)i);
		if (!strcmp(own, name)) {
			q->event = i;
			return 0;
		}
		if (word_means_event(name, strlen(name), own))
			meant = i;
	}
	if (meant >= 0) {
		q->event = meant;
		return 0;
	}
	return error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN,
			 "there is no event '%s' in the profile; its first is '%s'", name,
			 p->events.count ? tally_profile_event_name(p, 0) : "none");
}

static int mark_threads(struct query *q, const struct tally_query_opts *o)
{
	const struct tally_profile *p = q->profile;

	q->threads = calloc(p->threads.count + 1, 1);
	if (!q->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->threads.count; i++) {
		const struct thread *t = thread_at(p, i);
		q->threads[i] = in_list(o->comm, text_of(p, t->comm)) &&
				(!o->pid || number_in_list(o->pid, t->pid)) &&
				(!o->tid || number_in_list(o->tid, t->tid));
	}
	return 0;
}

static int mark_leaves(struct query *q, const struct tally_query_opts *o)
{
	const struct tally_profile *p = q->profile;

	q->leaves = calloc(p->functions.count + 1, 1);
	if (!q->leaves)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->functions.count; i++) {
		const struct function *f = function_at(p, i);
		const struct module *m = module_at(p, (uint32_t)f->module);
		/* An inlined function is asked for by its name, as the same one elsewhere. */
		uint32_t name = f->name == NO_NAME ? f->label : f->name;
		q->leaves[i] = in_list(o->symbol, text_of(p, name)) &&
			       (in_list(o->dso, text_of(p, m->name)) ||
				in_list(o->dso, text_of(p, m->path)));
	}
	return 0;
}

bool query_keeps(const struct query *q, const struct row *row)
{
	return row->event == q->event && q->threads[row->thread] &&
	       q->leaves[stack_function(q->profile, (uint32_t)row->stack)];
}

static int sum_up(struct query *q, struct tally_error *err)
{
	const struct tally_profile *p = q->profile;

	for (uint32_t i = 0; i < p->rows.count; i++) {
		const struct row *row = row_at(p, i);
		if (row->event != q->event)
			continue;
		/* All sums of outputs are parts of these two. */
		if (__builtin_add_overflow(q->samples, row->samples, &q->samples) ||
		    __builtin_add_overflow(q->total, query_weight(q, row), &q->total))
			return error_set(err, -EOVERFLOW, TALLY_CAUSE_CORRUPT,
					 "the periods of '%s' sum up to more than 64 bits hold: "
					 "weigh by samples",
					 tally_profile_event_name(p, (uint32_t)q->event));
		if (!query_keeps(q, row))
			continue;
		q->kept_samples += row->samples;
		q->kept += query_weight(q, row);
	}
	if (q->kept)
		return 0;
	if (q->kept_samples)
		return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT,
				 "the periods of these %" PRIu64
				 " samples are all 0: weigh by samples",
				 q->kept_samples);
	if (!q->samples)
		return error_set(err, -ENODATA, TALLY_CAUSE_NONE, "the profile has no samples%s%s",
				 p->events.count ? " of " : "",
				 p->events.count ? tally_profile_event_name(p, (uint32_t)q->event)
						 : "");
	return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT,
			 "none of the %" PRIu64 " samples passes the filters", q->samples);
}

int query_open(struct query *q, const struct tally_profile *profile,
	       const struct tally_query_opts *opts, struct tally_error *err)
{
	struct tally_query_opts o;
	int r = opts_read(&o, sizeof(o), TALLY_QUERY_BY_SAMPLES, opts, err);

	*q = (struct query){ .profile = profile };
	if (r < 0)
		return r;
	q->by_samples = o.flags & TALLY_QUERY_BY_SAMPLES;
	q->percent_limit = o.percent_limit;
	if ((r = read_sort(q, o.sort ? o.sort : DEFAULT_SORT, err)) < 0 ||
	    (r = check_numbers("pid", o.pid, err)) < 0 ||
	    (r = check_numbers("tid", o.tid, err)) < 0 || (r = find_event(q, o.event, err)) < 0)
		return r;
	if ((r = mark_threads(q, &o)) < 0 || (r = mark_leaves(q, &o)) < 0)
		error_nomem(err, "a query");
	else
		r = sum_up(q, err);
	if (r < 0)
		query_done(q);
	return r;
}

void query_done(struct query *q)
{
	free(q->threads);
	free(q->leaves);
	q->threads = q->leaves = NULL;
}
