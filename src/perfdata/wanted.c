/* SPDX-License-Identifier: MIT */
/* Filters of records: by time, process, thread, CPU, name and event. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/proc.h"
#include "perfdata/wanted.h"

static bool number_in_list(const char *list, int64_t number)
{
	const char *piece;

	while (*list) {
		size_t len = list_next(&list, &piece);
		int64_t value = 0;
		for (size_t i = 0; i < len; i++)
			value = value * 10 + (piece[i] - '0');
		if (value == number)
			return true;
	}
	return false;
}

static int check_numbers(const char *what, const char *list, struct tally_error *err)
{
	const char *piece, *at = list;

	do {
		size_t len = list ? list_next(&at, &piece) : 0;
		if (list && (!len || len > 10 || strspn(piece, "0123456789") < len))
			return error_set(err, -EINVAL, TALLY_CAUSE_SYNTAX,
					 "the %s filter '%s' is no list of numbers", what, list);
	} while (list && *at);
	return 0;
}

int wanted_check(const struct tally_rewrite_opts *o, struct tally_error *err)
{
	int r = check_numbers("pid", o->pid, err);

	if (r == 0)
		r = check_numbers("tid", o->tid, err);
	if (r == 0)
		r = check_numbers("cpu", o->cpu, err);
	if (r == 0 && o->to && o->from >= o->to)
		r = error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			      "the span of time ends before it begins");
	return r;
}

bool wanted_event(const struct tally_rewrite_opts *o, const char *name)
{
	return !o->event || list_means_event(o->event, name);
}

bool wanted_filters(const struct tally_rewrite_opts *o)
{
	return o->pid || o->tid || o->cpu || o->comm || o->event || o->from || o->to;
}

/* Without these the samples of later times could not be understood. */
static bool is_state(uint32_t type)
{
	switch (type) {
	case TALLY_RECORD_SAMPLE:
	case TALLY_RECORD_READ:
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		return false;
	default:
		return true;
	}
}

static bool is_loss(uint32_t type)
{
	return type == TALLY_RECORD_LOST || type == TALLY_RECORD_LOST_SAMPLES;
}

static bool in_time(const struct wanted *w, const struct tally_record *rec)
{
	return !(rec->id.has & TALLY_SAMPLE_TIME) ||
	       (rec->id.time >= w->from && (!w->to || rec->id.time < w->to));
}

static bool has_name(struct wanted *w, const struct tally_record *rec)
{
	const char *comm = comms_find(&w->comms, rec->id.tid, rec->id.time);

	return comm && list_holds(w->opts->comm, comm);
}

bool wanted_record(struct wanted *w, const struct tally_record *rec, const char *event)
{
	const struct tally_rewrite_opts *o = w->opts;
	const bool loss = is_loss(rec->type);

	if (is_state(rec->type) && !loss)
		return true;
	if (!in_time(w, rec) ||
	    (o->cpu && (rec->id.has & TALLY_SAMPLE_CPU) && !number_in_list(o->cpu, rec->id.cpu)))
		return false;
	/* What was lost may have been anybody's. */
	if (loss)
		return true;
	return wanted_event(o, event) && (!o->pid || number_in_list(o->pid, rec->id.pid)) &&
	       (!o->tid || number_in_list(o->tid, rec->id.tid)) && (!o->comm || has_name(w, rec));
}
