/* SPDX-License-Identifier: MIT */
/* Filters and sort keys, asked directly; the outputs ask in the same way. */
#include <errno.h>

#include "profile/query.h"
#include "tap.h"
#include "unit/by-hand.h"

/* Two processes, three threads, two events; weights are powers of two, so that a sum tells which
 * rows are in it. */
static struct tally_profile *example(void)
{
	struct tally_profile *p = new_profile();
	int other = tally_profile_thread(p, 7, 8, "worker"),
	    last = tally_profile_thread(p, 9, 9, "a b");

	tally_profile_event(p, "page-faults", "");
	add_stack(p, 0, 0, "main;parse", 1, 1);
	add_stack(p, 0, 0, "main;read@libc.so.6", 1, 2);
	add_stack(p, 0, other, "main;parse", 1, 4);
	add_stack(p, 0, last, "main;?@libc.so.6", 1, 8);
	add_stack(p, 0, last, "main;do_read@[kernel]", 1, 16);
	add_stack(p, 1, 0, "main;parse", 1, 32);
	return p;
}

/* The weight that a query keeps, or its error. */
static int64_t kept(const struct tally_query_opts *opts)
{
	struct tally_profile *p = example();
	struct tally_error err = { 0 };
	struct query q;
	int64_t r = query_open(&q, p, opts, &err);

	if (r == 0) {
		r = (int64_t)q.kept;
		query_done(&q);
	} else if (!err.text[0]) {
		r = 0; /* an error without a text is none of ours */
	}
	tally_profile_free(p);
	return r;
}

static void each_filter_keeps_what_is_equal(void)
{
	check_int(kept(NULL), 31);
	check_int(kept(TALLY_OPTS(query, .comm = "work")), 3);
	check_int(kept(TALLY_OPTS(query, .comm = "a b")), 24);
	check_int(kept(TALLY_OPTS(query, .pid = "7")), 7);
	check_int(kept(TALLY_OPTS(query, .tid = "8")), 4);
	check_int(kept(TALLY_OPTS(query, .dso = "libc.so.6")), 10);
	check_int(kept(TALLY_OPTS(query, .symbol = "parse")), 5);
	check_int(kept(TALLY_OPTS(query, .symbol = "[libc.so.6]")), 8);
}

static void a_list_keeps_any_of_its_members(void)
{
	check_int(kept(TALLY_OPTS(query, .comm = "worker,work")), 7);
	check_int(kept(TALLY_OPTS(query, .pid = "1,9,7")), 31);
	check_int(kept(TALLY_OPTS(query, .dso = "[kernel],libc.so.6")), 26);
}

static void filters_are_joined_by_and(void)
{
	check_int(kept(TALLY_OPTS(query, .comm = "work", .symbol = "read")), 2);
	check_int(kept(TALLY_OPTS(query, .tid = "8", .symbol = "read")), -ENODATA);
}

static void dso_and_symbol_look_at_the_leaf_as_in_perf_report(void)
{
	check_int(kept(TALLY_OPTS(query, .symbol = "main")), -ENODATA);
	check_int(kept(TALLY_OPTS(query, .dso = "work")), 5);
}

static void a_part_of_a_name_is_no_match(void)
{
	check_int(kept(TALLY_OPTS(query, .comm = "wor")), -ENODATA);
	check_int(kept(TALLY_OPTS(query, .comm = "workers")), -ENODATA);
	check_int(kept(TALLY_OPTS(query, .comm = "")), -ENODATA);
}

static void events_are_told_apart_by_name(void)
{
	check_int(kept(TALLY_OPTS(query, .event = "page-faults")), 32);
	check_int(kept(TALLY_OPTS(query, .event = "cycles")), -ENOENT);
}

/* The event that is chosen among these by a name; -1: none. */
static int chosen(const char *const *names, const char *name)
{
	struct tally_profile *p = NULL;
	struct tally_error err;
	struct query q;
	int event = -1;

	check_int(tally_profile_new(&p, &err), 0);
	int thread = tally_profile_thread(p, 1, 1, "work");
	for (int i = 0; names[i]; i++) {
		check_int(tally_profile_event(p, names[i], ""), i);
		add_stack(p, i, thread, "main", 1, 1);
	}
	if (query_open(&q, p, TALLY_OPTS(query, .event = name), &err) == 0) {
		event = q.event;
		query_done(&q);
	}
	tally_profile_free(p);
	return event;
}

static void modifiers_may_be_left_out(void)
{
	const char *const names[] = { "cycles:u",           "cpu/cycles/ppp",
				      "sched:sched_switch", "page-faults:u",
				      "page-faults",        "cycles:k",
				      "sched:wake_up:u",    NULL };

	check_int(chosen(names, "cycles"), 0);
	check_int(chosen(names, "cycles:k"), 5);
	check_int(chosen(names, "cpu/cycles/"), 1);
	check_int(chosen(names, "page-faults"), 4); /* its whole name comes first */
	check_int(chosen(names, "sched:sched_switch"), 2);
	check_int(chosen(names, "sched:wake_up"), 6);
	check_int(chosen(names, "sched"), -1);
	check_int(chosen(names, "cycle"), -1);
	check_int(chosen(names, "cycles:"), -1);
	check_int(chosen(names, ""), -1);
	check_int(chosen(names, "cycles,page-faults"), -1);
}

static void the_first_event_with_samples_is_the_default(void)
{
	struct tally_profile *p = new_profile();
	struct query q;

	tally_profile_event(p, "page-faults", "");
	add_stack(p, 1, 0, "main", 1, 32);
	require(query_open(&q, p, NULL, NULL) == 0);
	check_int(q.event, 1);
	query_done(&q);
	tally_profile_free(p);
}

static void samples_can_be_the_weight(void)
{
	check_int(kept(TALLY_OPTS(query, .flags = TALLY_QUERY_BY_SAMPLES)), 5);
}

static void the_total_is_that_of_the_event_whatever_the_filters(void)
{
	struct tally_profile *p = example();
	struct query q;

	require(query_open(&q, p, TALLY_OPTS(query, .comm = "work"), NULL) == 0);
	check_u64(q.total, 31);
	check_u64(q.samples, 5);
	check_u64(q.kept_samples, 2);
	query_done(&q);
	tally_profile_free(p);
}

static void bad_filters_and_keys_are_refused_with_their_text(void)
{
	struct tally_profile *p = example();
	struct tally_error err = { 0 };
	struct query q;

	check_int(query_open(&q, p, TALLY_OPTS(query, .pid = "7,x"), &err), -EINVAL);
	check_has(err.text, "'x'");
	check_int(query_open(&q, p, TALLY_OPTS(query, .tid = "99999999999"), &err), -EINVAL);
	check_int(query_open(&q, p, TALLY_OPTS(query, .tid = "07"), &err), -EINVAL);
	check_int(query_open(&q, p, TALLY_OPTS(query, .tid = ","), &err), -EINVAL);
	check_int(query_open(&q, p, TALLY_OPTS(query, .sort = "comm,color"), &err), -EINVAL);
	check_has(err.text, "'color'");
	check_int(query_open(&q, p, TALLY_OPTS(query, .sort = ""), &err), -EINVAL);
	check_int(query_open(&q, p, &(struct tally_query_opts){ .size = 4 }, &err), -EINVAL);
	tally_profile_free(p);
}

static void sort_keys_keep_their_order(void)
{
	struct tally_profile *p = example();
	struct query q;

	require(query_open(&q, p, TALLY_OPTS(query, .sort = "sym,tid,symbol"), NULL) == 0);
	check_int(q.sorts, 2);
	check_int(q.sort[0], QUERY_SYMBOL);
	check_int(q.sort[1], QUERY_TID);
	check(q.sorts_by[QUERY_TID] && !q.sorts_by[QUERY_COMM]);
	query_done(&q);
	tally_profile_free(p);
}

static void what_cannot_be_weighed_is_said(void)
{
	struct tally_profile *p = new_profile();
	struct tally_error err = { 0 };
	struct query q;

	check_int(query_open(&q, p, NULL, &err), -ENODATA);
	add_stack(p, 0, 0, "main", 1, 0);
	check_int(query_open(&q, p, NULL, &err), -ENODATA);
	check_has(err.text, "periods");
	add_stack(p, 0, 0, "main", 1, UINT64_MAX);
	add_stack(p, 0, 0, "main;parse", 1, 1);
	check_int(query_open(&q, p, NULL, &err), -EOVERFLOW);
	tally_profile_free(p);
}

int main(void)
{
	tap_run(each_filter_keeps_what_is_equal);
	tap_run(a_list_keeps_any_of_its_members);
	tap_run(filters_are_joined_by_and);
	tap_run(dso_and_symbol_look_at_the_leaf_as_in_perf_report);
	tap_run(a_part_of_a_name_is_no_match);
	tap_run(events_are_told_apart_by_name);
	tap_run(modifiers_may_be_left_out);
	tap_run(the_first_event_with_samples_is_the_default);
	tap_run(samples_can_be_the_weight);
	tap_run(the_total_is_that_of_the_event_whatever_the_filters);
	tap_run(bad_filters_and_keys_are_refused_with_their_text);
	tap_run(sort_keys_keep_their_order);
	tap_run(what_cannot_be_weighed_is_said);
	return tap_end();
}
