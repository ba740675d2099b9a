/* SPDX-License-Identifier: MIT */
/*
 * `tally stat --baseline`: two commands by turns, so that what changes on the machine meanwhile
 * meets both alike; then for each event whether they differ, and by how much.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "compare.h"
#include "json.h"
#include "stat.h"
#include "term.h"

/* What is measured of each command beside the events. */
static const struct measure {
	const char *name, *unit;        /* as JSON has them */
	const char *shown, *shown_unit; /* as the table has them */
	double scale, shown_scale;      /* of what is kept: seconds, bytes */
} measures[] = {
	{ "wall", "ns", "time elapsed", "msec", 1e9, 1e3 },
	{ "user", "ns", "time in user mode", "msec", 1e9, 1e3 },
	{ "sys", "ns", "time in the kernel", "msec", 1e9, 1e3 },
	{ "max-rss", "bytes", "memory at most", "KiB", 1, 1.0 / 1024 },
};
#define MEASURES (sizeof(measures) / sizeof(*measures))

enum {
	BASELINE,
	COMMAND,
	SIDES
};

/* A row's figures of all runs of both. */
struct series {
	double *of[SIDES];
	uint32_t missing; /* runs in which it was not counted */
	uint32_t scaled;  /* runs in which its count stands for part of the time */
};

struct pairs {
	const struct stat_options *options;
	struct stat_result *result;
	struct series *series; /* the events, and the measures behind them */
	uint64_t count;        /* pairs that are whole */
	uint64_t failed[SIDES];
	int status[SIDES]; /* of the last failure */
	struct words words;
};

static const char *const sides[SIDES] = { "baseline", "command" };

static uint32_t rows_of(const struct pairs *p)
{
	return p->result->count + (uint32_t)MEASURES;
}

static int allocate(struct pairs *p)
{
	p->series = calloc(rows_of(p), sizeof(*p->series));
	for (uint32_t i = 0; p->series && i < rows_of(p); i++)
		for (int side = 0; side < SIDES; side++) {
			double *values = calloc(p->options->repeat, sizeof(*values));
			p->series[i].of[side] = values;
			if (!values)
				return -ENOMEM;
		}
	return p->series ? 0 : -ENOMEM;
}

static void done(struct pairs *p)
{
	for (uint32_t i = 0; p->series && i < rows_of(p); i++)
		for (int side = 0; side < SIDES; side++)
			free(p->series[i].of[side]);
	free(p->series);
	words_free(&p->words);
}

/* Keeps what the run that just ended was counted to be. */
static void keep(struct pairs *p, int side)
{
	struct stat_result *result = p->result;
	const double figures[MEASURES] = { result->wall.last, result->user.last, result->sys.last,
					   result->rss.last };

	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_cell *cell = &result->keys[0].cells[i];
		struct series *s = &p->series[i];
		s->missing += result->rows[i].error.code || !cell->value.n;
		s->scaled += cell->sum.state == TALLY_COUNT_SCALED;
		s->of[side][p->count] = cell->value.mean;
	}
	for (size_t i = 0; i < MEASURES; i++)
		p->series[result->count + i].of[side][p->count] = figures[i];
}

static int run_pairs(struct pairs *p, char *const *argv, struct stat_runner *runner)
{
	char *const *const commands[SIDES] = { p->words.argv, argv };
	bool warm = false; /* the first pair fills the caches, and is not kept */

	while (p->count < p->options->repeat) {
		for (int side = 0; side < SIDES; side++) {
			stat_forget(p->result);
			int r = runner->run(runner->arg, commands[side]);
			if (r < 0 || r == STAT_STOPPED)
				return r;
			if (r > 0) {
				p->failed[side] += warm;
				p->status[side] = r;
			}
			keep(p, side);
		}
		p->count += warm;
		warm = true;
	}
	return 0;
}

/* What the table multiplies a row's figures with. */
static double shown_scale(const struct measure *m, const struct stat_row *row)
{
	if (m)
		return m->shown_scale;
	return strcmp(tally_event_unit(row->event), "ns") ? 1 : 1e-6;
}

/* "+8.10%"; without a baseline to be a share of, the figure itself. */
static void put_share(char *out, size_t size, const struct comparison *c, double figure,
		      double scale)
{
	if (c->median_a != 0)
		snprintf(out, size, "%+.2f%%", 100 * figure / c->median_a);
	else
		snprintf(out, size, "%+.2f", figure * scale);
}

static void print_verdict(FILE *to, const struct comparison *c, double scale)
{
	char shift[STAT_FIGURE], low[STAT_FIGURE], high[STAT_FIGURE];

	put_share(shift, sizeof(shift), c, c->shift, scale);
	put_share(low, sizeof(low), c, c->low, scale);
	put_share(high, sizeof(high), c, c->high, scale);
	if (c->verdict == COMPARE_SAME) {
		fprintf(to, "no difference seen (%s to %s)", low, high);
		return;
	}
	fprintf(to, "%+.2f", c->shift * scale);
	if (c->median_a != 0)
		fprintf(to, " = %s", shift);
	if (c->verdict == COMPARE_UNKNOWN)
		fprintf(to, ", too few runs to be sure: 4 pairs at least");
	else
		fprintf(to, " (%s to %s)", low, high);
}

static void print_row(FILE *to, const struct pairs *p, uint32_t i, const struct comparison *c)
{
	bool counted = i < p->result->count;
	const struct measure *m = counted ? NULL : &measures[i - p->result->count];
	const struct stat_row *row = counted ? &p->result->rows[i] : NULL;
	double scale = shown_scale(m, row);
	char a[STAT_FIGURE] = "<not counted>", b[STAT_FIGURE] = "<not counted>";
	bool missing = p->series[i].missing;

	if (row && row->error.code)
		strcpy(a, "<not supported>"), strcpy(b, a);
	if (!missing) {
		stat_number(a, c->mean_a * scale, 2, p->options->big_num);
		stat_number(b, c->mean_b * scale, 2, p->options->big_num);
	}
	fprintf(to, "%18s %18s %-4s ", a, b, m ? m->shown_unit : stat_unit(row));
	fprintf(to, missing ? "%s" : "%-26s ", m ? m->shown : tally_event_name(row->event));
	if (!missing)
		print_verdict(to, c, scale);
	fputs(p->series[i].scaled ? "  (scaled)\n" : "\n", to);
}

static void json_side(FILE *to, const char *name, const double *sorted, uint64_t n, double mean,
		      double scale)
{
	fprintf(to, ",\"%s\":{\"mean\":%.6f,\"median\":%.6f,\"min\":%.6f,\"max\":%.6f}", name,
		mean * scale, (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 * scale, sorted[0] * scale,
		sorted[n - 1] * scale);
}

static void json_row(FILE *to, const struct pairs *p, uint32_t i, const struct comparison *c)
{
	static const char *const verdicts[] = { "unknown", "same", "less", "more" };
	bool counted = i < p->result->count;
	const struct measure *m = counted ? NULL : &measures[i - p->result->count];
	const struct stat_row *row = counted ? &p->result->rows[i] : NULL;
	const struct series *s = &p->series[i];
	double scale = m ? m->scale : 1;

	fputs("{\"event\":", to);
	json_text(to, m ? m->name : tally_event_name(row->event));
	fputs(",\"unit\":", to);
	json_text(to, m ? m->unit : tally_event_unit(row->event));
	fprintf(to, ",\"state\":\"%s\",\"pairs\":%llu",
		s->missing  ? "error"
		: s->scaled ? "scaled"
			    : "exact",
		(unsigned long long)p->count);
	if (!s->missing) {
		json_side(to, sides[BASELINE], s->of[BASELINE], p->count, c->mean_a, scale);
		json_side(to, sides[COMMAND], s->of[COMMAND], p->count, c->mean_b, scale);
		fprintf(to, ",\"difference\":%.6f,\"low\":%.6f,\"high\":%.6f", c->shift * scale,
			c->low * scale, c->high * scale);
		if (c->median_a != 0)
			fprintf(to, ",\"percent\":%.4f", 100 * c->shift / c->median_a);
		fprintf(to, ",\"verdict\":\"%s\"", verdicts[c->verdict]);
	} else if (row && row->error.code) {
		fputs(",\"why\":", to);
		json_text(to, row->error.text);
	}
	if (row)
		stat_json_compromise(to, row);
	fputs("}\n", to);
}

static void print_command(FILE *to, const char *name, char *const *argv)
{
	fprintf(to, " %-9s '", name);
	for (; *argv; argv++) {
		stat_put_clean(to, *argv);
		if (argv[1])
			putc(' ', to);
	}
	fputs("'\n", to);
}

static void print_head(FILE *to, const struct pairs *p, char *const *argv)
{
	putc('\n', to);
	print_command(to, "baseline:", p->words.argv);
	print_command(to, "command:", argv);
	fprintf(to, " %llu pairs of runs, after one to warm up; in brackets 95 %% confidence\n\n",
		(unsigned long long)p->count);
	fprintf(to, "%18s %18s      %-26s command against baseline\n", "baseline", "command", "");
}

static void print_tail(FILE *to, const struct pairs *p)
{
	for (int side = 0; side < SIDES; side++)
		if (p->failed[side])
			fprintf(to,
				"\n the %s exited with %d: %llu of %llu runs failed, and what fails "
				"may do less than it should\n",
				sides[side], p->status[side], (unsigned long long)p->failed[side],
				(unsigned long long)p->count);
	if (p->words.shell)
		fputs("\n the baseline holds signs of the shell: sh runs it, and is counted with it\n",
		      to);
	putc('\n', to);
}

static int print(FILE *to, struct pairs *p, char *const *argv)
{
	bool json = p->options->json;

	if (!json)
		print_head(to, p, argv);
	for (uint32_t i = 0; i < rows_of(p); i++) {
		struct comparison c = { 0 };
		struct series *s = &p->series[i];
		if (compare(&c, s->of[BASELINE], p->count, s->of[COMMAND], p->count) < 0)
			return -ENOMEM;
		if (json)
			json_row(to, p, i, &c);
		else
			print_row(to, p, i, &c);
	}
	if (!json)
		stat_print_notes(to, p->result, p->options->verbose);
	if (!json)
		print_tail(to, p);
	return 0;
}

int stat_baseline(FILE *to, const struct stat_options *options, struct stat_result *result,
		  char *const *argv, struct stat_runner *runner)
{
	struct pairs p = { .options = options, .result = result };
	int r = words_split(&p.words, options->baseline);

	if (r == -EINVAL) {
		complain("stat", "--baseline: '%s' is no command: a quote is open, or it is empty",
			 options->baseline);
		return EXIT_USAGE;
	}
	if (r == 0)
		r = allocate(&p);
	if (r == 0)
		r = run_pairs(&p, argv, runner);
	/* What an interrupt left over are whole pairs. */
	if ((r == 0 || r == STAT_STOPPED) && p.count && !options->quiet)
		r = print(to, &p, argv);
	if (r == -ENOMEM)
		complain("stat", "no memory for the measurements");
	done(&p);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
