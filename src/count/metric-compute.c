/* SPDX-License-Identifier: MIT */
/*
 * Metrics: from results to a value. First each event finds its result; where several modes were
 * counted, those are taken that most events have. Then one pass computes every node; one that
 * cannot be computed carries the reason on to whatever needs it, so that the branch of an "if" that
 * is not taken does no harm.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/metric.h"

/* Nodes, events and results that are held on the stack. */
#define SMALL 64

/* Each has an int64_t that is equal to it. */
#define MAX_WHOLE 9007199254740992.0 /* 2^53 */

struct bound {
	uint32_t result; /* index + 1 of the result, 0: none */
	uint32_t other;  /* index + 1 of one in other modes */
};

struct computed {
	double value;
	uint32_t state, flags;
	uint32_t reason; /* enum metric_reason */
	uint32_t node;   /* that has the reason */
};

struct run {
	const struct tally_metric *metric;
	const struct tally_result *results;
	uint32_t count;
	struct tally_metric_context ctx;
	struct metric_key *keys; /* of the results' labels */
	struct bound *bound;     /* of the events */
};

static bool is_whole(double v)
{
	return v >= -MAX_WHOLE && v <= MAX_WHOLE && v == (double)(int64_t)v;
}

/*
 * What fmod(3) answers, without libm: exact, because twice, half and the difference of near numbers
 * are. Both are finite, `b` is not 0.
 */
static double remainder_of(double a, double b)
{
	double rest = a < 0 ? -a : a, divisor = b < 0 ? -b : b, step = divisor;

	while (step <= rest / 2)
		step *= 2;
	for (; step >= divisor; step /= 2)
		if (rest >= step)
			rest -= step;
	return a < 0 ? -rest : rest;
}

static enum metric_reason apply_whole(enum metric_op op, double a, double b, double *out)
{
	if (!is_whole(a) || !is_whole(b))
		return REASON_FRACTION;
	int64_t x = (int64_t)a, y = (int64_t)b;
	*out = (double)(op == OP_AND ? (x & y) : op == OP_XOR ? (x ^ y) : (x | y));
	return REASON_NONE;
}

enum metric_reason metric_apply(enum metric_op op, double a, double b, double *out)
{
	double v = 0;

	if ((op == OP_DIV || op == OP_MOD) && b == 0)
		return REASON_ZERO;
	switch (op) {
	case OP_ADD:
		v = a + b;
		break;
	case OP_SUB:
		v = a - b;
		break;
	case OP_MUL:
		v = a * b;
		break;
	case OP_DIV:
		v = a / b;
		break;
	case OP_RATIO:
		v = b == 0 ? 0 : a / b;
		break;
	case OP_MOD:
		v = remainder_of(a, b);
		break;
	case OP_LESS:
		v = a < b;
		break;
	case OP_MORE:
		v = a > b;
		break;
	case OP_MIN:
		v = a < b ? a : b;
		break;
	case OP_MAX:
		v = a > b ? a : b;
		break;
	default:
		return apply_whole(op, a, b, out);
	}
	/* Of finite operands only an overflow is infinite; inf - inf is NaN. */
	if (v - v != 0)
		return REASON_RANGE;
	*out = v;
	return REASON_NONE;
}

/*
 * Which of the sets of modes most events were counted in. Of equal ones all modes, which is what a
 * plain name means, then that which the formula's first event was counted in first.
 */
static uint8_t choose_modes(const struct run *run)
{
	uint32_t events[METRIC_MODES] = { 0 };
	uint8_t first[METRIC_MODES], kinds = 0, best = 0;

	for (uint32_t e = 0; e < run->metric->events.count; e++) {
		const struct metric_key *want = &run->metric->events.at[e].key;
		uint64_t seen = 0;
		if (want->modeless || want->names_modes)
			continue;
		for (uint32_t i = 0; i < run->count; i++) {
			uint8_t modes = run->keys[i].modes;
			if (seen & 1ull << modes || !metric_key_same(want, &run->keys[i]))
				continue;
			seen |= 1ull << modes;
			if (!events[modes]++)
				first[kinds++] = modes;
		}
	}
	for (uint8_t i = 1; i < kinds; i++)
		if (events[first[i]] > events[first[best]] ||
		    (events[first[i]] == events[first[best]] && first[i] == METRIC_ALL_MODES))
			best = i;
	return kinds ? first[best] : 0;
}

/* Keeps the result when it is the event's, or is so in other modes. true: none is better. */
static bool bind_to(struct bound *bound, const struct metric_key *want,
		    const struct metric_key *key, uint32_t i, uint8_t modes)
{
	if (metric_key_same(want, key)) {
		if (want->modeless || key->modes == (want->names_modes ? want->modes : modes)) {
			bound->result = i + 1;
			return true;
		}
		if (!bound->other)
			bound->other = i + 1;
	} else if (metric_key_clocks(want, key) && !bound->result) {
		bound->result = i + 1; /* until the clock that is asked for is found */
	}
	return false;
}

static void bind(struct run *run)
{
	for (uint32_t i = 0; i < run->count; i++)
		metric_key(&run->keys[i], run->results[i].label);
	uint8_t modes = choose_modes(run);
	for (uint32_t e = 0; e < run->metric->events.count; e++)
		for (uint32_t i = 0; i < run->count; i++)
			if (bind_to(&run->bound[e], &run->metric->events.at[e].key, &run->keys[i],
				    i, modes))
				break;
}

static enum metric_reason read_event(const struct run *run, uint32_t event, bool sources,
				     struct computed *out)
{
	const struct bound *bound = &run->bound[event];

	if (!bound->result)
		return bound->other ? REASON_MODES : REASON_MISSING;
	uint32_t i = bound->result - 1;
	const struct tally_count *count = &run->results[i].count;
	if (count->state > TALLY_COUNT_SCALED)
		return count->state == TALLY_COUNT_NEVER_RAN ? REASON_NEVER_RAN : REASON_ERROR;
	out->state = sources ? TALLY_COUNT_EXACT : count->state;
	out->flags = sources ? 0 : count->flags;
	if (sources)
		out->value = run->ctx.sources ? run->ctx.sources[i] : 1;
	else
		out->value = (double)count->value;
	return REASON_NONE;
}

static enum metric_reason read_time(const struct run *run, uint32_t which, double *out)
{
	const double times[] = {
		[TIME_DURATION] = run->ctx.duration,
		[TIME_USER] = run->ctx.user_time,
		[TIME_SYSTEM] = run->ctx.system_time,
	};

	if (!(run->ctx.duration > 0))
		return REASON_NO_TIME;
	*out = times[which];
	return REASON_NONE;
}

/* What is known of an operand holds of what is made of it. false: there is no operand. */
static bool take(struct computed *out, const struct computed *operand)
{
	if (operand->reason) {
		*out = *operand;
		return false;
	}
	if (operand->state > out->state)
		out->state = operand->state;
	out->flags |= operand->flags;
	return true;
}

static void choose(struct computed *out, const struct metric_node *n, const struct computed *values)
{
	const struct computed *branch = &values[values[n->c].value != 0 ? n->a : n->b];

	if (take(out, &values[n->c]) && take(out, branch))
		out->value = branch->value;
}

static void compute_node(const struct run *run, struct computed *values, uint32_t i)
{
	const struct metric_node *n = &run->metric->nodes.at[i];
	struct computed *out = &values[i];
	enum metric_reason reason = REASON_NONE;

	*out = (struct computed){ .node = i };
	switch (n->op) {
	case OP_NUMBER:
		out->value = n->number;
		break;
	case OP_EVENT:
	case OP_SOURCES:
		reason = read_event(run, n->a, n->op == OP_SOURCES, out);
		break;
	case OP_TIME:
		reason = read_time(run, n->a, &out->value);
		break;
	case OP_NEGATE:
		if (take(out, &values[n->a]))
			out->value = -values[n->a].value;
		break;
	case OP_IF:
		choose(out, n, values);
		break;
	default:
		if (take(out, &values[n->a]) && take(out, &values[n->b]))
			reason = metric_apply(n->op, values[n->a].value, values[n->b].value,
					      &out->value);
	}
	if (reason) {
		out->reason = reason;
		out->node = i;
	}
}

/* A result that the others are measured by, for saying in which modes they were counted. */
static const char *label_of_others(const struct run *run, uint32_t event)
{
	for (uint32_t e = 0; e < run->metric->events.count; e++)
		if (e != event && run->bound[e].result && !run->metric->events.at[e].key.modeless)
			return run->results[run->bound[e].result - 1].label;
	return NULL;
}

static int explain_modes(const struct run *run, uint32_t event, const char *where,
			 struct tally_error *err)
{
	const char *other = label_of_others(run, event);
	const char *label = run->results[run->bound[event].other - 1].label;

	if (run->metric->events.at[event].key.names_modes || !other)
		return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT,
				 "%s: '%s' was not counted, only '%s' was", where,
				 run->metric->events.at[event].name, label);
	return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT,
			 "%s: '%s' and '%s' were counted in different modes: count both in the "
			 "same",
			 where, other, label);
}

static const char *error_words(int error)
{
	if (error == -EBUSY)
		return "other events hold the counters that it needs";
	if (error == -ENOENT || error == -ENODEV)
		return "this machine does not have it";
	return error < 0 ? strerror(-error) : "it could not be read";
}

static int explain_event(const struct run *run, const struct computed *value, const char *where,
			 struct tally_error *err)
{
	uint32_t event = run->metric->nodes.at[value->node].a;
	const char *name = run->metric->events.at[event].name;
	uint32_t result = run->bound[event].result;

	if (value->reason == REASON_MODES)
		return explain_modes(run, event, where, err);
	if (value->reason == REASON_MISSING)
		return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT, "%s: '%s' was not counted",
				 where, name);
	if (value->reason == REASON_NEVER_RAN)
		return error_set(
			err, -ENODATA, TALLY_CAUSE_LIMIT,
			"%s: '%s' was never scheduled on the PMU: what was measured was too "
			"short, or too many events were counted at once",
			where, name);
	return error_set(err, -ENODATA, TALLY_CAUSE_UNSUPPORTED,
			 "%s: '%s' could not be counted: %s", where, name,
			 error_words(run->results[result - 1].count.error));
}

static int explain(const struct run *run, const struct computed *value, struct tally_error *err)
{
	const struct metric_node *n = &run->metric->nodes.at[value->node];
	const struct metric_source *own = &run->metric->sources.at[0];
	const struct metric_source *source = &run->metric->sources.at[n->source];
	char where[TALLY_ERROR_TEXT / 2];
	static const char *const words[] = {
		[REASON_ZERO] = "a division by zero",
		[REASON_FRACTION] = "& ^ | need whole numbers of less than 2^53",
		[REASON_RANGE] = "the value is too large",
		[REASON_NO_TIME] = "how long it took is not known",
	};

	if (n->source)
		snprintf(where, sizeof(where), "metric '%.100s', '%.100s'", own->name,
			 source->name);
	else
		snprintf(where, sizeof(where), "metric '%.100s'", own->name);
	if (value->reason == REASON_ZERO || value->reason == REASON_FRACTION ||
	    value->reason == REASON_RANGE)
		return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT, "%s, column %u: %s", where,
				 n->column, words[value->reason]);
	if (value->reason == REASON_NO_TIME)
		return error_set(err, -ENODATA, TALLY_CAUSE_ARGUMENT, "%s: %s", where,
				 words[value->reason]);
	return explain_event(run, value, where, err);
}

static int run_nodes(struct run *run, struct computed *values, struct tally_metric_value *out,
		     struct tally_error *err)
{
	const struct tally_metric *m = run->metric;

	bind(run);
	for (uint32_t i = 0; i < m->nodes.count; i++)
		compute_node(run, values, i);
	struct computed *last = &values[m->nodes.count - 1];
	double scaled = last->value * m->scale;
	if (!last->reason && scaled - scaled != 0)
		last->reason = REASON_RANGE;
	if (last->reason)
		return explain(run, last, err);
	*out = (struct tally_metric_value){ scaled, last->state, last->flags };
	return 0;
}

int tally_metric_compute(const struct tally_metric *metric, const struct tally_result *results,
			 uint32_t count, const struct tally_metric_context *ctx,
			 struct tally_metric_value *out, struct tally_error *err)
{
	struct computed few_values[SMALL], *values = few_values;
	struct bound few_bound[SMALL] = { 0 };
	struct metric_key few_keys[SMALL];
	struct run run = {
		.metric = metric,
		.results = results,
		.count = count,
		.bound = few_bound,
		.keys = few_keys,
	};

	int r = opts_read(&run.ctx, sizeof(run.ctx), 0, ctx, err);
	if (r < 0)
		return r;
	/* There are no more events than nodes. */
	if (metric->nodes.count > SMALL) {
		values = calloc(metric->nodes.count, sizeof(*values));
		run.bound = calloc(metric->nodes.count, sizeof(*run.bound));
	}
	if (count > SMALL)
		run.keys = calloc(count, sizeof(*run.keys));
	if (values && run.bound && run.keys)
		r = run_nodes(&run, values, out, err);
	else
		r = error_nomem(err, "the values of a metric");
	if (values != few_values)
		free(values);
	if (run.bound != few_bound)
		free(run.bound);
	if (run.keys != few_keys)
		free(run.keys);
	return r;
}
