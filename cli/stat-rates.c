/* SPDX-License-Identifier: MIT */
/*
 * `tally stat`: what a count means beside the others, as the library's metrics have it: the first of
 * those for its event that can be computed. The last of them is how often it happened a second.
 */
#include <stdlib.h>
#include <string.h>

#include "stat.h"

/* What is printed next to a cell, and the counts that it may be made of. */
struct search {
	const struct stat_counts *counts;
	const char *unit; /* of the cell's event */
	struct stat_rate found;
};

/* Metrics that are printed beside an event are made of it and of generic events. */
static bool is_generic(const struct stat_row *row)
{
	uint32_t type = tally_event_attr(row->event)->type;

	return type == TALLY_TYPE_HARDWARE || type == TALLY_TYPE_SOFTWARE ||
	       type == TALLY_TYPE_HW_CACHE;
}

static bool is_clock(const struct stat_row *row)
{
	return !strcmp(tally_event_unit(row->event), "ns");
}

/* A clock stands for itself: of two a metric would take the one that it prefers for both. */
static bool may_stand_beside(const struct stat_row *row, const struct stat_row *beside)
{
	return row == beside || (is_generic(row) && !(is_clock(row) && is_clock(beside)));
}

/* A count of one run of so many. */
static struct tally_count mean_of(const struct tally_count *sum, uint64_t runs)
{
	struct tally_count mean = *sum;

	mean.raw = (sum->raw + runs / 2) / runs;
	mean.value = (sum->value + runs / 2) / runs;
	mean.enabled_ns = (sum->enabled_ns + runs / 2) / runs;
	mean.running_ns = (sum->running_ns + runs / 2) / runs;
	return mean;
}

static void add(struct stat_counts *counts, const struct stat_row *row,
		const struct stat_cell *cell, uint64_t runs)
{
	char *label = counts->labels[counts->count];
	bool fits = tally_metric_label(label, STAT_LABEL, row->event) >= 0;

	counts->at[counts->count++] = (struct tally_result){
		.label = fits ? label : tally_event_name(row->event),
		.unit = tally_event_unit(row->event),
		.scale = tally_event_scale(row->event),
		.count = mean_of(&cell->sum, runs),
	};
}

bool stat_counts_take(struct stat_counts *counts, const struct stat_result *result,
		      const struct stat_key *key, const struct stat_row *beside)
{
	/*
	 * What is printed beside a count is a ratio: sums of all runs stand in the same relations as
	 * means, and are whole. A formula of one's own may be any, and is asked for one run.
	 */
	uint64_t runs = beside || !result->runs ? 1 : result->runs;
	double times = beside ? (double)result->wall.n : 1;

	*counts = (struct stat_counts){
		.at = calloc(result->count + 1, sizeof(*counts->at)),
		.labels = calloc(result->count + 1, sizeof(*counts->labels)),
		.ctx = { .size = sizeof(counts->ctx),
			 .duration = result->wall.mean * times,
			 .user_time = result->user.mean * times,
			 .system_time = result->sys.mean * times },
	};
	if (!counts->at || !counts->labels)
		return false;
	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_row *row = &result->rows[i];
		const struct stat_cell *cell = &key->cells[i];
		bool wanted = !beside || may_stand_beside(row, beside);
		if (wanted && (cell->places || row->error.code))
			add(counts, row, cell, runs);
	}
	return true;
}

void stat_counts_free(struct stat_counts *counts)
{
	free(counts->at);
	free(counts->labels);
	*counts = (struct stat_counts){ 0 };
}

static struct stat_rate per_second(double per_second)
{
	static const char *const units[] = { "/sec", "K/sec", "M/sec", "G/sec" };
	struct stat_rate rate = { .number = per_second, .mark = "" };
	unsigned unit = 0;

	for (; per_second >= 1000 && unit < 3; unit++)
		per_second /= 1000;
	snprintf(rate.value, sizeof(rate.value), "%8.3f", per_second);
	snprintf(rate.unit, sizeof(rate.unit), "%s", units[unit]);
	snprintf(rate.number_unit, sizeof(rate.number_unit), "%s", units[0]);
	return rate;
}

struct stat_rate stat_rate_of(const struct tally_metric *metric, double value)
{
	const char *unit = tally_metric_unit(metric), *words = tally_metric_words(metric);
	bool percent = !strcmp(unit, "%"), plain = !*unit;
	struct stat_rate rate = { .mark = percent ? "%" : plain ? " " : "", .number = value };

	if (!strcmp(unit, "/sec"))
		return per_second(value);
	snprintf(rate.value, sizeof(rate.value), percent || plain ? "%7.2f" : "%8.3f", value);
	snprintf(rate.unit, sizeof(rate.unit), "%s", words);
	snprintf(rate.number_unit, sizeof(rate.number_unit), "%s", words);
	return rate;
}

/* 1: it is found, or nothing is to be; 0: another may be. */
static int try_metric(const struct tally_metric *metric, void *arg)
{
	struct search *search = arg;
	const struct stat_counts *counts = search->counts;
	struct tally_metric_value v;

	if (tally_metric_compute(metric, counts->at, counts->count, &counts->ctx, &v, NULL) < 0)
		return 0;
	/* What has a unit of its own is not a number of times. */
	if (!*search->unit || strcmp(tally_metric_unit(metric), "/sec") != 0)
		search->found = stat_rate_of(metric, v.value);
	return 1;
}

struct stat_rate stat_rate(const struct stat_result *result, const struct stat_at *at)
{
	const struct stat_row *row = &result->rows[at->row];
	struct stat_counts counts = { 0 };
	struct search search = { .counts = &counts, .unit = tally_event_unit(row->event) };
	bool has_value = at->cell->places && at->cell->sum.state <= TALLY_COUNT_SCALED &&
			 at->cell->value.n && !result->disabled;

	if (has_value && stat_counts_take(&counts, result, at->key, row))
		tally_metric_each_beside(tally_event_name(row->event), NULL, try_metric, &search,
					 NULL);
	stat_counts_free(&counts);
	return search.found;
}
