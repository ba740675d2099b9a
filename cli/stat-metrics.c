/* SPDX-License-Identifier: MIT */
/*
 * `tally stat -M`: metrics by their name, by a group's name or as NAME=FORMULA; the events that they need
 * are counted too. --metrics alone prints those that what was counted suffices for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json.h"
#include "stat.h"
#include "term.h"

/* While the list is read. */
struct reading {
	struct stat_metrics *metrics;
	struct tally_metric_opts opts;
};

static int add(struct stat_metrics *list, struct tally_metric *metric)
{
	void *more = realloc(list->at, (list->count + 1) * sizeof(*list->at));

	if (!more || !metric) {
		tally_metric_free(metric);
		complain("stat", "no memory for the metrics");
		return EXIT_FAILED;
	}
	list->at = more;
	list->at[list->count++] = metric;
	return EXIT_DONE;
}

/* What each() shows is not ours to keep: it is found once more. */
static int add_found(const struct tally_metric *metric, void *arg)
{
	struct reading *reading = arg;
	struct tally_metric *own = NULL;

	if (tally_metric_find(&own, tally_metric_name(metric), &reading->opts, NULL) < 0)
		return 0;
	return add(reading->metrics, own);
}

static int add_formula(struct reading *reading, char *item, char *formula)
{
	struct tally_metric *metric = NULL;
	struct tally_error err = { 0 };

	*formula++ = '\0';
	if (tally_metric_parse(&metric, item, formula, &reading->opts, &err) == 0)
		return add(reading->metrics, metric);
	complain("stat", "-M: %s", err.text);
	return EXIT_USAGE;
}

/* A name of the library's, or of a group of them. */
static int add_name(struct reading *reading, const char *name)
{
	struct tally_metric *metric = NULL;
	struct tally_error err = { 0 };
	uint32_t before = reading->metrics->count;

	if (tally_metric_find(&metric, name, &reading->opts, &err) == 0)
		return add(reading->metrics, metric);
	int r = tally_metric_each(name, &reading->opts, add_found, reading, NULL);
	if (r < 0 || reading->metrics->count == before) {
		complain("stat", "-M: %s", err.text);
		return err.cause == TALLY_CAUSE_UNKNOWN ? EXIT_USAGE : EXIT_FAILED;
	}
	return r;
}

/* The next item of a list whose commas in brackets do not separate; NULL: there is none. */
static char *next_item(char **list)
{
	char *item = *list, *at = item;
	int depth = 0;

	if (!item)
		return NULL;
	for (; *at && (depth || *at != ','); at++)
		depth += (*at == '(') - (*at == ')' && depth);
	*list = *at ? at + 1 : NULL;
	*at = '\0';
	return item;
}

int stat_metrics_read(struct stat_metrics *out, const char *list, bool on_cpus, bool whole_cores)
{
	struct reading reading = {
		.metrics = out,
		.opts = { .size = sizeof(reading.opts),
			  .flags = (on_cpus ? TALLY_METRIC_ON_CPUS : 0) |
				   (on_cpus && whole_cores ? TALLY_METRIC_WHOLE_CORES : 0),
			  .events = &out->names },
	};
	char *copy = strdup(list), *rest = copy;
	int r = copy ? EXIT_DONE : EXIT_FAILED;

	out->names.size = sizeof(out->names);
	out->all = !*list;
	for (char *item; r == EXIT_DONE && *list && (item = next_item(&rest));) {
		char *formula = strchr(item, '=');
		/* "\=" belongs to the name of an event. */
		if (formula && formula > item && formula[-1] != '\\')
			r = add_formula(&reading, item, formula);
		else
			r = add_name(&reading, item);
	}
	free(copy);
	return r;
}

void stat_metrics_free(struct stat_metrics *metrics)
{
	for (uint32_t i = 0; i < metrics->count; i++)
		tally_metric_free(metrics->at[i]);
	free(metrics->at);
	*metrics = (struct stat_metrics){ 0 };
}

/* Whether a word of the list, or of the part of it that is written already, is this event. */
static bool is_listed(const char *text, const char *event)
{
	size_t length = strlen(event);

	for (const char *at = text; (at = strstr(at, event)); at++)
		if ((at == text || strchr(",{", at[-1])) &&
		    (!at[length] || strchr(",}", at[length])))
			return true;
	return false;
}

/*
 * The events of a metric stand in a group where they must be counted at the same time: Intel's
 * top-down events, which slots leads.
 */
static void append_events(char *text, const struct tally_metric *metric)
{
	uint32_t count = tally_metric_events(metric);
	bool group = count > 1 && !strcmp(tally_metric_event(metric, 0), "slots");

	if (group && is_listed(text, "slots"))
		group = false;
	for (uint32_t i = 0; i < count; i++) {
		const char *event = tally_metric_event(metric, i);
		if (!group && is_listed(text, event))
			continue;
		strcat(text, *text ? "," : "");
		strcat(text, group && !i ? "{" : "");
		strcat(text, event);
	}
	strcat(text, group ? "}" : "");
}

char *stat_metrics_events(const struct stat_metrics *metrics, char *text)
{
	size_t size = strlen(text) + 1;

	for (uint32_t m = 0; m < metrics->count; m++)
		for (uint32_t i = 0; i < tally_metric_events(metrics->at[m]); i++)
			size += strlen(tally_metric_event(metrics->at[m], i)) + 4;
	char *more = realloc(text, size);
	if (!more) {
		free(text);
		return NULL;
	}
	for (uint32_t m = 0; m < metrics->count; m++)
		append_events(more, metrics->at[m]);
	return more;
}

/* Where and how metrics are being printed. */
struct printing {
	FILE *to;
	const struct stat_result *result;
	const struct stat_options *options;
	const struct stat_key *key;
	const struct stat_counts *counts;
	bool reasons; /* of those that cannot be computed */
};

static void print_table(const struct printing *p, const struct tally_metric *metric,
			const struct tally_metric_value *v, const char *why)
{
	const struct stat_at at = { .key = p->key, .cell = p->key->cells };
	const char *words = tally_metric_words(metric), *unit = tally_metric_unit(metric);
	bool telling = *words && strcmp(words, unit) != 0;

	stat_print_prefix(p->to, p->result, &at);
	if (why) {
		fprintf(p->to, "%18s      %s\n", "<not counted>", why);
		return;
	}
	fprintf(p->to, "%18.*f %-4s %s%s%s%s\n", fabs(v->value) < 10 ? 4 : 2, v->value, unit,
		tally_metric_name(metric), telling ? "  # " : "", telling ? words : "",
		v->state == TALLY_COUNT_SCALED ? "  (scaled)" : "");
}

/* Behind perf's columns for a metric without an event; the name stands in its unit. */
static void print_csv(const struct printing *p, const struct tally_metric *metric,
		      const struct tally_metric_value *v, const char *why)
{
	const char *sep = p->options->separator, *unit = tally_metric_unit(metric);
	unsigned empty = 5 + (p->result->cgroup_count > 0) + (p->result->runs > 1);
	const struct stat_at at = { .key = p->key, .cell = p->key->cells };

	stat_csv_prefix(p->to, p->result, &at, sep);
	while (empty--)
		fputs(sep, p->to);
	if (!why)
		fprintf(p->to, "%.6g", v->value);
	fprintf(p->to, "%s%s%s%s\n", sep, unit, *unit ? "  " : "", tally_metric_name(metric));
}

static void print_json(const struct printing *p, const struct tally_metric *metric,
		       const struct tally_metric_value *v, const char *why)
{
	const struct stat_at at = { .key = p->key, .cell = p->key->cells };

	putc('{', p->to);
	stat_json_key(p->to, p->result, &at);
	fputs("\"metric_name\":", p->to);
	json_text(p->to, tally_metric_name(metric));
	if (why)
		fputs(",\"metric\":null", p->to);
	else
		fprintf(p->to, ",\"metric\":%.9g", v->value);
	fputs(",\"metric_unit\":", p->to);
	json_text(p->to, tally_metric_unit(metric));
	fputs(",\"formula\":", p->to);
	json_text(p->to, tally_metric_formula(metric));
	if (!why) {
		fprintf(p->to, ",\"state\":\"%s\"", tally_count_state_name(v->state));
	} else {
		fputs(",\"why\":", p->to);
		json_text(p->to, why);
	}
	fputs("}\n", p->to);
}

static int print_metric(const struct tally_metric *metric, void *arg)
{
	const struct printing *p = arg;
	struct tally_metric_value v = { 0 };
	struct tally_error err = { 0 };
	int r = tally_metric_compute(metric, p->counts->at, p->counts->count, &p->counts->ctx, &v,
				     &err);
	const char *why = r < 0 ? err.text : NULL;

	if (why && !p->reasons)
		return 0;
	if (p->options->json)
		print_json(p, metric, &v, why);
	else if (p->options->separator)
		print_csv(p, metric, &v, why);
	else
		print_table(p, metric, &v, why);
	return 0;
}

static bool is_counted(const struct stat_result *result, const struct stat_key *key)
{
	bool any = !result->count;

	for (uint32_t i = 0; i < result->count; i++)
		any |= key->cells[i].places || result->rows[i].error.code;
	return any && !result->disabled;
}

void stat_metrics_print(FILE *to, const struct stat_metrics *metrics,
			const struct stat_result *result, const struct stat_options *options)
{
	struct stat_counts counts;
	struct printing p = { to, result, options, NULL, &counts, !metrics->all };
	const struct tally_metric_opts all = {
		.size = sizeof(all),
		.flags = options->target.all || options->target.cpus ? TALLY_METRIC_ON_CPUS : 0,
		.events = &metrics->names,
	};

	if (!options->json && !options->separator && !options->interval_ms)
		putc('\n', to);
	for (uint32_t k = 0; k < result->key_count; k++) {
		p.key = &result->keys[k];
		if (!is_counted(result, p.key))
			continue;
		if (stat_counts_take(&counts, result, p.key, NULL)) {
			for (uint32_t i = 0; i < metrics->count; i++)
				print_metric(metrics->at[i], &p);
			if (metrics->all)
				tally_metric_each(NULL, &all, print_metric, &p, NULL);
		}
		stat_counts_free(&counts);
	}
}
