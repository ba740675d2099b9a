/* SPDX-License-Identifier: MIT */
/* `tally stat`: results as perf stat's table, and its lines for each interval. */
#include <stdlib.h>
#include <string.h>

#include "stat.h"

/* perf shows the head of the columns again after so many intervals. */
#define INTERVALS_PER_HEAD 25

/* The bar of the shortest run in --table. */
#define WALL_SIGNS 10

void stat_number(char out[STAT_FIGURE], double value, int decimals, bool big_num)
{
	char plain[STAT_FIGURE];
	size_t o = 0;

	snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	size_t sign = plain[0] == '-', whole = strcspn(plain, ".");
	for (size_t i = 0; plain[i] && o + 2 < STAT_FIGURE; i++) {
		if (big_num && i > sign && i < whole && (whole - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = plain[i];
	}
	out[o] = '\0';
}

void stat_put_clean(FILE *to, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		putc(c < 0x20 || c == 0x7f ? '?' : c, to);
	}
}

static void print_title(FILE *to, const struct stat_result *result, const struct stat_options *opts,
			char *const *argv)
{
	fputs("\n Performance counter stats for ", to);
	if (opts->target.cpus) {
		fprintf(to, "'CPU(s) ");
		stat_put_clean(to, opts->target.cpus);
	} else if (opts->target.all) {
		fputs("'system wide", to);
	} else if (opts->target.pids || opts->target.tids) {
		fputs(opts->target.pids ? "process id '" : "thread id '", to);
		stat_put_clean(to, opts->target.pids ? opts->target.pids : opts->target.tids);
	} else {
		putc('\'', to);
		for (; *argv; argv++) {
			stat_put_clean(to, *argv);
			if (argv[1])
				putc(' ', to);
		}
	}
	putc('\'', to);
	if (result->runs != 1)
		fprintf(to, " (%llu runs)", (unsigned long long)result->runs);
	fputs(":\n\n", to);
}

static bool is_time(const struct stat_row *row)
{
	return !strcmp(tally_event_unit(row->event), "ns");
}

const char *stat_unit(const struct stat_row *row)
{
	return is_time(row) ? "msec" : tally_event_unit(row->event);
}

void stat_figure(char out[STAT_FIGURE], const struct stat_result *result, const struct stat_at *at,
		 bool big_num)
{
	const struct stat_row *row = &result->rows[at->row];
	const struct stat_cell *cell = at->cell;
	int decimals = tally_event_scale(row->event) == 1.0 ? 0 : 2;

	if (row->error.code)
		snprintf(out, STAT_FIGURE, "<not supported>");
	else if (cell->sum.state > TALLY_COUNT_SCALED || result->disabled)
		snprintf(out, STAT_FIGURE, "<not counted>");
	else if (is_time(row))
		stat_number(out, cell->value.mean * 1e-6, 2, big_num);
	else
		stat_number(out, cell->value.mean, decimals, big_num);
}

static bool has_groups(const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (tally_event_group_size(result->rows[i].event) > 1)
			return true;
	return false;
}

/* A brace beside the events that are counted at the same time; nothing where none are. */
static const char *brace(const struct stat_result *result, uint32_t i)
{
	const struct tally_event *event = result->rows[i].event;
	uint32_t size = tally_event_group_size(event), leader = tally_event_leader(event);

	if (!has_groups(result))
		return "";
	if (size < 2)
		return "  ";
	return i == leader ? "{ " : i == leader + size - 1 ? "} " : "| ";
}

void stat_print_prefix(FILE *to, const struct stat_result *result, const struct stat_at *at)
{
	static const int widths[] = {
		[BY_CPU] = 10, [BY_CORE] = 15, [BY_DIE] = 10, [BY_SOCKET] = 6, [BY_NODE] = 6,
	};
	char name[64];

	if (result->interval > 0)
		fprintf(to, "%16.9f ", result->interval);
	if (result->by == BY_ALL)
		return;
	if (result->by == BY_THREAD) {
		fprintf(to, "%*s", (int)(16 - strlen(at->key->comm)), "");
		stat_put_clean(to, at->key->comm);
		fprintf(to, "-%-8d ", at->key->tid);
		return;
	}
	stat_key_name(name, sizeof(name), result, at->key);
	fprintf(to, "%-*s ", widths[result->by], name);
	if (stat_shows_cpus(result->by))
		fprintf(to, "%4u ", stat_cpus(at));
}

/* What stands behind the event's name, each "" when there is nothing to tell. */
struct remarks {
	char rate[96], spread[32], share[32];
	const char *cgroup;
};

static struct remarks remark(const struct stat_result *result, const struct stat_at *at)
{
	const struct tally_count *sum = &at->cell->sum;
	struct stat_rate rate = stat_rate(result, at);
	struct remarks r = { .cgroup = "" };

	if (*rate.value)
		snprintf(r.rate, sizeof(r.rate), "%s%s %s", rate.value, rate.mark, rate.unit);
	if (result->runs > 1 && sum->state <= TALLY_COUNT_SCALED)
		snprintf(r.spread, sizeof(r.spread), "( +- %5.2f%% )",
			 moments_percent(&at->cell->value));
	if (sum->state == TALLY_COUNT_SCALED)
		snprintf(r.share, sizeof(r.share), "(%.1f%%)",
			 100 * (double)sum->running_ns / (double)sum->enabled_ns);
	if (at->key->cgroup < result->cgroup_count)
		r.cgroup = result->cgroups[at->key->cgroup];
	return r;
}

/* The column stays clean: no blanks at the ends of lines. */
static void print_cell(FILE *to, const struct stat_result *result, const struct stat_at *at,
		       bool big_num)
{
	const struct stat_row *row = &result->rows[at->row];
	const struct remarks r = remark(result, at);
	bool tail = *r.spread || *r.share, more = *r.rate || tail;
	const char *mark = brace(result, at->row);
	char number[STAT_FIGURE];

	stat_figure(number, result, at, big_num);
	stat_print_prefix(to, result, at);
	fprintf(to, "%18s %-4s %s", number, stat_unit(row), mark);
	int width = more || *r.cgroup ? 32 - (int)strlen(mark) : 0;
	fprintf(to, "%-*s", width, tally_event_name(row->event));
	if (*r.cgroup) {
		putc(' ', to);
		stat_put_clean(to, r.cgroup);
	}
	if (*r.rate)
		fprintf(to, tail ? " # %-36s" : " # %s", r.rate);
	else if (more)
		fprintf(to, "%39s", "");
	fprintf(to, "%s%s%s%s\n", *r.spread ? "  " : "", r.spread, *r.share ? "  " : "", r.share);
}

static void print_cells(FILE *to, const struct stat_result *result, bool big_num)
{
	for (struct stat_at at = { 0 }; stat_next(result, &at);)
		print_cell(to, result, &at, big_num);
}

static void print_times(FILE *to, const struct stat_result *result)
{
	if (result->runs > 1) {
		fprintf(to, "\n %17.9f +- %.9f seconds time elapsed  ( +- %5.2f%% )\n",
			result->wall.mean, result->wall.mean * moments_percent(&result->wall) / 100,
			moments_percent(&result->wall));
	} else {
		fprintf(to, "\n %17.9f seconds time elapsed\n", result->wall.mean);
	}
	if (result->user.n)
		fprintf(to, "\n %17.9f seconds user\n %17.9f seconds sys\n", result->user.mean,
			result->sys.mean);
}

void stat_print_walls(FILE *to, const struct stat_result *result)
{
	double least = result->walls[0];

	for (uint64_t i = 1; i < result->runs; i++)
		if (result->walls[i] < least)
			least = result->walls[i];
	fputs("\n         # Table of individual measurements:\n", to);
	for (uint64_t i = 0; i < result->runs; i++) {
		double signs = least > 0 ? WALL_SIGNS * result->walls[i] / least : 1;
		fprintf(to, "         %.7f (%+.7f) ", result->walls[i],
			result->walls[i] - result->wall.mean);
		for (int k = 0; k < signs && k < 4 * WALL_SIGNS; k++)
			putc('#', to);
		putc('\n', to);
	}
	fputs("\n         # Final result:", to);
}

void stat_print_table(FILE *to, const struct stat_result *result, const struct stat_options *opts,
		      const struct stat_metrics *metrics, char *const *argv)
{
	print_title(to, result, opts, argv);
	print_cells(to, result, opts->big_num);
	if (metrics)
		stat_metrics_print(to, metrics, result, opts);
	if (opts->table && result->runs > 1)
		stat_print_walls(to, result);
	print_times(to, result);
	stat_print_notes(to, result, opts->verbose);
	putc('\n', to);
}

void stat_print_interval(FILE *to, const struct stat_result *result,
			 const struct stat_options *opts, uint64_t n)
{
	static const char *const columns[] = {
		[BY_ALL] = "",
		[BY_CPU] = "CPU        ",
		[BY_CORE] = "core            cpus ",
		[BY_DIE] = "die        cpus ",
		[BY_SOCKET] = "socket cpus ",
		[BY_NODE] = "node   cpus ",
		[BY_THREAD] = "            comm-pid      ",
	};

	if (n % INTERVALS_PER_HEAD == 0)
		fprintf(to, "#           time %s%18s unit events\n", columns[result->by], "counts");
	print_cells(to, result, opts->big_num);
}
