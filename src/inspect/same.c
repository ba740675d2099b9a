/* SPDX-License-Identifier: MIT */
/*
 * A comparison from its options to its report. Where memory or vector registers have come to differ in
 * many ticks, the runs are made again, and these ticks looked at one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "inspect/same.h"

#define RUNS      2
#define EVERY     10000
#define NS_PER_MS 1000000u

static int read_opts(struct tally_same *same, const struct tally_same_opts *opts,
		     struct tally_error *err)
{
	struct tally_same_opts *o = &same->opts;
	int r = opts_read(o, sizeof(*o), 0, opts, err);

	if (r < 0)
		return r;
	o->runs = o->runs ? o->runs : RUNS;
	o->every = o->every ? o->every : EVERY;
	if (o->runs < 2 || o->runs > TALLY_SAME_RUNS_MAX)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "%u runs cannot be compared: it takes from 2 to %d", o->runs,
				 TALLY_SAME_RUNS_MAX);
	if (o->every > TALLY_SAME_EVERY_MAX)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "memory is to be looked at every %d ticks or more often",
				 TALLY_SAME_EVERY_MAX);
	if (o->leave >> TALLY_SAME_CONDITIONS)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "there is no condition %#x to be let go", o->leave);
	return 0;
}

static int start_all(struct tally_same *same, struct tally_error *err)
{
	for (uint32_t i = 0; i < same->opts.runs; i++) {
		struct same_run *run = calloc(1, sizeof(*run));
		if (!run)
			return error_nomem(err, "a run");
		run->same = same;
		run->index = i;
		run->status = -1;
		same->runs[same->count++] = run;
		int r = same_start(same, run, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void stop_all(struct tally_same *same)
{
	while (same->count > 0)
		same_stop(same, same->runs[--same->count]);
	if (same->cpu >= 0 && CPU_COUNT(&same->cpus))
		sched_setaffinity(0, sizeof(same->cpus), &same->cpus);
	vec_done(&same->log.steps);
	vec_done(&same->log.words);
	vec_done(&same->log.inputs);
	buf_done(&same->log.data);
}

/* `before`: another go of that, with a closer look at where it parted. */
static int go(struct tally_same **out, char *const argv[], const struct tally_same_opts *opts,
	      const struct tally_same *before, struct tally_error *err)
{
	struct tally_same *same = calloc(1, sizeof(*same));

	if (!same)
		return error_nomem(err, "a comparison");
	same->argv = argv;
	same->namespace = same->cpu = -1;
	same->report.status = -1;
	int r = read_opts(same, opts, err);
	if (r == 0)
		r = same_prepare(same, err);
	if (r < 0)
		goto fail;
	same->report.runs = same->opts.runs;
	if (same->opts.max_ms)
		same->end_ns = clock_ns(CLOCK_MONOTONIC) + same->opts.max_ms * NS_PER_MS;
	same->next_progress_ns = clock_ns(CLOCK_MONOTONIC) + PROGRESS_NS;
	if (before) {
		same->before = before;
		same->end_ns = before->end_ns;
		same->focus = (struct same_focus){
			.from = before->report.from,
			.to = before->report.place.tick,
			.address = before->report.address,
		};
	}
	r = start_all(same, err);
	if (r == 0)
		r = same_compare(same, err);
	if (r < 0)
		goto fail;
	stop_all(same);
	*out = same;
	return 0;
fail:
	tally_same_free(same);
	return r;
}

static bool is_vague(const struct tally_same *same)
{
	const struct tally_same_report *r = &same->report;

	return r->outcome == TALLY_SAME_PARTED && r->from < r->place.tick &&
	       (r->parting == TALLY_SAME_BY_MEMORY || r->parting == TALLY_SAME_BY_VECTORS);
}

/* Whether the second go tells more of the same difference. */
static bool is_closer(const struct tally_same *same, const struct tally_same *before)
{
	const struct tally_same_report *r = &same->report;

	return r->outcome == TALLY_SAME_PARTED && !is_vague(same) &&
	       r->place.tick >= before->report.from && r->place.tick <= before->report.place.tick;
}

int tally_same_run(struct tally_same **out, char *const argv[], const struct tally_same_opts *opts,
		   struct tally_error *err)
{
	struct tally_same *same, *again;
	int r = go(&same, argv, opts, NULL, err);

	if (r < 0)
		return r;
	/* Without its input, or by writing twice, it cannot be had again. */
	bool may = same_fixes(same, TALLY_SAME_IO) && !same->tape.full;
	if (is_vague(same) && may && go(&again, argv, opts, same, NULL) == 0) {
		struct tally_same *better = is_closer(again, same) ? again : same;
		again->before = NULL;
		tally_same_free(better == same ? again : same);
		same = better;
	}
	*out = same;
	return 0;
}

const struct tally_same_report *tally_same_report(const struct tally_same *same)
{
	return &same->report;
}

void tally_same_free(struct tally_same *same)
{
	if (!same)
		return;
	stop_all(same);
	if (same->namespace >= 0)
		close(same->namespace);
	tally_symbolizer_free(same->symbolizer);
	tally_maps_free(same->maps);
	free(same->differing_detail);
	vec_done(&same->tape.inputs);
	buf_done(&same->tape.data);
	vec_done(&same->values);
	vec_each (&same->texts, text)
		free(*text);
	vec_done(&same->texts);
	free(same);
}
