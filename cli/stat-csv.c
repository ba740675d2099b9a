/* SPDX-License-Identifier: MIT */
/*
 * `tally stat -x`: perf's columns, which perf-stat(1) lists under "CSV FORMAT":
 *
 *	[interval,] [CPU, core ... or thread, [CPUs,]] value, unit, event, [cgroup,] [spread,]
 *	running time in ns, percent of the time that it ran, metric value, metric unit
 */
#include <string.h>

#include "stat.h"

void stat_csv_prefix(FILE *to, const struct stat_result *result, const struct stat_at *at,
		     const char *sep)
{
	char name[64];

	if (result->interval > 0)
		fprintf(to, "%16.9f%s", result->interval, sep);
	if (result->by == BY_ALL)
		return;
	stat_put_clean(to, stat_key_name(name, sizeof(name), result, at->key));
	fputs(sep, to);
	if (stat_shows_cpus(result->by))
		fprintf(to, "%u%s", stat_cpus(at), sep);
}

static void print_cell(FILE *to, const struct stat_result *result, const struct stat_at *at,
		       const char *sep)
{
	const struct stat_row *row = &result->rows[at->row];
	const struct stat_cell *cell = at->cell;
	const struct tally_count *sum = &cell->sum;
	uint64_t runs = result->runs ? result->runs : 1;
	double share = sum->enabled_ns ? (double)sum->running_ns / (double)sum->enabled_ns : 1;
	struct stat_rate rate = stat_rate(result, at);
	char number[STAT_FIGURE];

	stat_csv_prefix(to, result, at, sep);
	stat_figure(number, result, at, false);
	fprintf(to, "%s%s%s%s%s%s%s", number, sep, stat_unit(row), sep,
		tally_event_name(row->event), tally_event_granted_modifier(row->event), sep);
	if (result->cgroup_count)
		fprintf(to, "%s%s",
			at->key->cgroup < result->cgroup_count ? result->cgroups[at->key->cgroup]
							       : "",
			sep);
	if (result->runs > 1)
		fprintf(to, "%.2f%%%s", moments_percent(&cell->value), sep);
	/* An event without a metric keeps both columns, empty. */
	const char *value = rate.value;
	while (*value == ' ')
		value++;
	fprintf(to, "%llu%s%.2f%s%s%s%s\n", (unsigned long long)(sum->running_ns / runs), sep,
		100 * share, sep, value, sep, *value ? rate.unit : "");
}

void stat_print_csv(FILE *to, const struct stat_result *result, const char *separator)
{
	for (struct stat_at at = { 0 }; stat_next(result, &at);)
		print_cell(to, result, &at, separator);
}
