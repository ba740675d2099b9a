/* SPDX-License-Identifier: MIT */
/* `tally stat --json`: an object a line for each event, and for each CPU, core, thread ... of it. */
#include <math.h>

#include "json.h"
#include "stat.h"

static void put_value(FILE *to, const struct stat_result *result, const struct stat_at *at)
{
	const struct stat_cell *cell = at->cell;
	double mean = cell->value.mean;

	if (cell->sum.state > TALLY_COUNT_SCALED || !isfinite(mean) || result->disabled)
		fputs("null", to);
	else if (cell->value.n == 1 && tally_event_scale(result->rows[at->row].event) == 1.0)
		fprintf(to, "%llu", (unsigned long long)cell->sum.value);
	else
		fprintf(to, "%.6f", mean);
}

/* When, and whom it was counted for; each with a comma behind it. */
void stat_json_key(FILE *to, const struct stat_result *result, const struct stat_at *at)
{
	const struct stat_key *key = at->key;
	const struct {
		const char *name;
		int32_t value;
	} ids[] = {
		{ "cpu", key->cpu },   { "socket", key->socket }, { "die", key->die },
		{ "core", key->core }, { "node", key->node },     { "tid", key->tid },
	};

	if (result->interval > 0)
		fprintf(to, "\"interval\":%.9f,", result->interval);
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		if (ids[i].value >= 0)
			fprintf(to, "\"%s\":%d,", ids[i].name, ids[i].value);
	if (stat_shows_cpus(result->by))
		fprintf(to, "\"cpus\":%u,", stat_cpus(at));
	if (key->tid >= 0) {
		fputs("\"thread\":", to);
		json_text(to, key->comm);
		putc(',', to);
	}
	if (key->cgroup < result->cgroup_count) {
		fputs("\"cgroup\":", to);
		json_text(to, result->cgroups[key->cgroup]);
		putc(',', to);
	}
}

void stat_json_compromise(FILE *to, const struct stat_row *row)
{
	const char *compromise = stat_compromise(row, false);

	if (!compromise)
		return;
	fputs(",\"compromise\":", to);
	json_text(to, compromise);
}

static void put_count(FILE *to, const struct stat_result *result, const struct stat_at *at)
{
	const struct tally_count *sum = &at->cell->sum;
	uint64_t runs = result->runs ? result->runs : 1;

	fprintf(to, ",\"state\":\"%s\",\"raw\":%llu,\"enabled_ns\":%llu",
		tally_count_state_name(sum->state), (unsigned long long)(sum->raw / runs),
		(unsigned long long)(sum->enabled_ns / runs));
	fprintf(to, ",\"running_ns\":%llu,\"lost\":%llu",
		(unsigned long long)(sum->running_ns / runs),
		(unsigned long long)(sum->lost / runs));
	if (result->runs > 1)
		fprintf(to, ",\"runs\":%llu,\"spread_percent\":%.4f",
			(unsigned long long)result->runs, moments_percent(&at->cell->value));
}

/* What is told of some events only. */
static void put_extras(FILE *to, const struct stat_result *result, const struct stat_at *at)
{
	const struct stat_row *row = &result->rows[at->row];
	struct stat_rate rate = stat_rate(result, at);

	if (tally_event_group_size(row->event) > 1)
		fprintf(to, ",\"group\":%u", tally_event_leader(row->event));
	if (*rate.value && isfinite(rate.number)) {
		fprintf(to, ",\"metric\":%.6f,\"metric_unit\":", rate.number);
		json_text(to, rate.number_unit);
	}
	if (at->cell->sum.flags & TALLY_COUNT_START_INEXACT)
		fputs(",\"start_inexact\":true", to);
	stat_json_compromise(to, row);
	const struct tally_error *why = row->error.code ? &row->error : &row->why;
	if (why->code && (row->error.code || at->cell->sum.state > TALLY_COUNT_SCALED)) {
		fputs(",\"why\":", to);
		json_text(to, why->text);
	}
}

void stat_print_json(FILE *to, const struct stat_result *result)
{
	for (struct stat_at at = { 0 }; stat_next(result, &at);) {
		const struct tally_event *event = result->rows[at.row].event;
		putc('{', to);
		stat_json_key(to, result, &at);
		fputs("\"event\":", to);
		json_text(to, tally_event_name(event));
		fputs(",\"value\":", to);
		put_value(to, result, &at);
		fputs(",\"unit\":", to);
		json_text(to, tally_event_unit(event));
		put_count(to, result, &at);
		put_extras(to, result, &at);
		fputs("}\n", to);
	}
}
