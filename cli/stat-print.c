/* SPDX-License-Identifier: MIT */
/* `tally stat`: results as perf stat's table, and as JSON lines. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "stat.h"

/* Longest printed figure: 20 digits, 6 commas, decimals. */
#define FIGURE 48

/* Fixed decimals, with a comma before each third digit when wanted, whatever the locale. */
static void figure(char *out, size_t size, double value, int decimals, bool big_num)
{
	char plain[FIGURE];
	size_t o = 0;

	snprintf(plain, sizeof(plain), "%.*f", decimals, value);
	size_t whole = strcspn(plain, ".");
	for (size_t i = 0; plain[i] && o + 2 < size; i++) {
		if (big_num && i > 0 && i < whole && (whole - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = plain[i];
	}
	out[o] = '\0';
}

/* Text from outside, which must not steer a terminal. */
static void put_clean(FILE *to, const char *text)
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
		put_clean(to, opts->target.cpus);
	} else if (opts->target.all) {
		fputs("'system wide", to);
	} else if (opts->target.pids || opts->target.tids) {
		fputs(opts->target.pids ? "process id '" : "thread id '", to);
		put_clean(to, opts->target.pids ? opts->target.pids : opts->target.tids);
	} else {
		putc('\'', to);
		for (; *argv; argv++) {
			put_clean(to, *argv);
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

static void row_figure(char *out, size_t size, const struct stat_row *row, bool big_num)
{
	if (row->error.code)
		snprintf(out, size, "<not supported>");
	else if (row->sum.state > TALLY_COUNT_SCALED)
		snprintf(out, size, "<not counted>");
	else if (is_time(row))
		figure(out, size, row->value.mean * 1e-6, 2, big_num);
	else
		figure(out, size, row->value.mean, tally_event_scale(row->event) == 1.0 ? 0 : 2,
		       big_num);
}

/* The column stays clean: no blanks at the ends of lines. */
static void print_row(FILE *to, const struct stat_result *result, uint32_t i,
		      const struct stat_options *opts)
{
	const struct stat_row *row = &result->rows[i];
	const struct tally_count *sum = &row->sum;
	char number[FIGURE], rate[80], spread[32] = "", share[32] = "";
	const char *unit = is_time(row) ? "msec" : tally_event_unit(row->event);

	row_figure(number, sizeof(number), row, opts->big_num);
	stat_rate(rate, sizeof(rate), result, i);
	if (result->runs > 1 && sum->state <= TALLY_COUNT_SCALED)
		snprintf(spread, sizeof(spread), "( +- %5.2f%% )", moments_percent(&row->value));
	if (sum->state == TALLY_COUNT_SCALED)
		snprintf(share, sizeof(share), "(%.1f%%)",
			 100 * (double)sum->running_ns / (double)sum->enabled_ns);
	fprintf(to, "%18s %-4s ", number, unit);
	bool more = *rate || *spread || *share;
	fprintf(to, more ? "%-32s" : "%s", tally_event_name(row->event));
	if (*rate)
		fprintf(to, *spread || *share ? " # %-36s" : " # %s", rate);
	else if (more)
		fprintf(to, "%39s", "");
	fprintf(to, "%s%s%s%s\n", *spread ? "  " : "", spread, *share ? "  " : "", share);
}

/* Whether an earlier row failed for the same reason. */
static bool said_before(const struct stat_result *result, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (result->rows[k].error.code == result->rows[i].error.code &&
		    result->rows[k].error.cause == result->rows[i].error.cause)
			return true;
	return false;
}

/* One line for each reason, in the words of the first event that has it. */
static void print_missing(FILE *to, const struct stat_result *result)
{
	bool any = false;

	for (uint32_t i = 0; i < result->count; i++) {
		if (!result->rows[i].error.code || said_before(result, i))
			continue;
		fprintf(to, "%s <not supported>: %s\n", any ? "" : "\n",
			result->rows[i].error.text);
		any = true;
	}
}

/* The first row in a state, NULL when there is none. */
static const struct stat_row *first_in(const struct stat_result *result, uint32_t state)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (!result->rows[i].error.code && result->rows[i].sum.state == state)
			return &result->rows[i];
	return NULL;
}

static void print_uncounted(FILE *to, const struct stat_result *result)
{
	const struct stat_row *never = first_in(result, TALLY_COUNT_NEVER_RAN);
	const struct stat_row *broken = first_in(result, TALLY_COUNT_ERROR);
	struct tally_system machine = { 0 };

	if (never) {
		tally_system_read(&machine, sizeof(machine), NULL, NULL);
		fprintf(to,
			"\n <not counted>: '%s' was never scheduled on the PMU: what was measured was too short, "
			"or more events than it has counters were in one group%s\n",
			tally_event_name(never->event),
			machine.nmi_watchdog == 1
				? "; kernel.nmi_watchdog=1 takes one of them (sysctl kernel.nmi_watchdog=0 frees it)"
				: "");
	}
	if (broken)
		fprintf(to, "\n <not counted>: '%s' could not be read: %s\n",
			tally_event_name(broken->event),
			broken->sum.error == -EBUSY
				? "it is pinned, and other events held the counters that it needs"
				: strerror(-broken->sum.error));
}

/* What was given up for a row to be counted, NULL when that changed nothing that it shows. */
static const char *compromise_of(const struct stat_row *row, bool all)
{
	const struct tally_attr *asked = tally_event_attr(row->event);
	const struct tally_attr *granted = tally_event_granted(row->event);

	if (row->error.code || !granted)
		return NULL;
	if (all || tally_event_inherit_refused(row->event) ||
	    (granted->flags ^ asked->flags) & TALLY_ATTR_EXCLUDE_KERNEL ||
	    granted->type != asked->type || granted->config != asked->config)
		return tally_event_compromise(row->event);
	return NULL;
}

/* "a, b: what was given up", one line for all rows that it is true of. */
static void print_compromises(FILE *to, const struct stat_result *result, bool all)
{
	for (uint32_t i = 0; i < result->count; i++) {
		const char *phrase = compromise_of(&result->rows[i], all);
		uint32_t first = 0;

		while (phrase && first < i) {
			const char *earlier = compromise_of(&result->rows[first], all);
			if (earlier && !strcmp(earlier, phrase))
				break;
			first++;
		}
		if (!phrase || first < i)
			continue;
		for (uint32_t k = i; k < result->count; k++) {
			const char *other = compromise_of(&result->rows[k], all);
			if (other && !strcmp(other, phrase))
				fprintf(to, "%s%s", k == i ? "\n " : ", ",
					tally_event_name(result->rows[k].event));
		}
		fprintf(to, ": %s\n", phrase);
	}
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

static void print_details(FILE *to, const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_row *row = &result->rows[i];
		fprintf(to, " %s: raw %llu, enabled %llu ns, running %llu ns, lost %llu, %s\n",
			tally_event_name(row->event), (unsigned long long)row->sum.raw,
			(unsigned long long)row->sum.enabled_ns,
			(unsigned long long)row->sum.running_ns, (unsigned long long)row->sum.lost,
			tally_count_state_name(row->sum.state));
	}
}

void stat_print_table(FILE *to, const struct stat_result *result, const struct stat_options *opts,
		      char *const *argv)
{
	print_title(to, result, opts, argv);
	for (uint32_t i = 0; i < result->count; i++)
		print_row(to, result, i, opts);
	print_times(to, result);
	print_missing(to, result);
	print_uncounted(to, result);
	if (opts->verbose) {
		putc('\n', to);
		print_details(to, result);
	}
	print_compromises(to, result, opts->verbose);
	putc('\n', to);
}

static void json_value(FILE *to, const struct stat_row *row)
{
	double mean = row->value.mean;

	if (row->sum.state > TALLY_COUNT_SCALED || !isfinite(mean))
		fputs("null", to);
	else if (row->value.n == 1 && tally_event_scale(row->event) == 1.0)
		fprintf(to, "%llu", (unsigned long long)row->sum.value);
	else
		fprintf(to, "%.6f", mean);
}

static unsigned long long per_run(uint64_t sum, uint64_t runs)
{
	return sum / (runs ? runs : 1);
}

void stat_print_json(FILE *to, const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_row *row = &result->rows[i];
		const struct tally_count *sum = &row->sum;
		fputs("{\"event\":", to);
		json_text(to, tally_event_name(row->event));
		fputs(",\"value\":", to);
		json_value(to, row);
		fputs(",\"unit\":", to);
		json_text(to, tally_event_unit(row->event));
		fprintf(to, ",\"state\":\"%s\",\"raw\":%llu,\"enabled_ns\":%llu",
			tally_count_state_name(sum->state), per_run(sum->raw, result->runs),
			per_run(sum->enabled_ns, result->runs));
		fprintf(to, ",\"running_ns\":%llu,\"lost\":%llu",
			per_run(sum->running_ns, result->runs), per_run(sum->lost, result->runs));
		if (result->runs > 1)
			fprintf(to, ",\"runs\":%llu,\"spread_percent\":%.4f",
				(unsigned long long)result->runs, moments_percent(&row->value));
		if (row->error.code) {
			fputs(",\"why\":", to);
			json_text(to, row->error.text);
		}
		fputs("}\n", to);
	}
}
