/* SPDX-License-Identifier: MIT */
/* `tally stat`: why something was not counted, and what was given up for the rest. */
#include <string.h>

#include "stat.h"

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

/* Whether an earlier row was not counted for the same reason. */
static bool explained_before(const struct stat_result *result, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (!strcmp(result->rows[k].why.text, result->rows[i].why.text))
			return true;
	return false;
}

static void print_uncounted(FILE *to, const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count && !result->disabled; i++)
		if (result->rows[i].why.code && !explained_before(result, i))
			fprintf(to, "\n <not counted>: %s\n", result->rows[i].why.text);
	if (result->disabled)
		fputs("\n <not counted>: counting never began, because the delay was longer\n", to);
}

static void print_split(FILE *to, const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_row *row = &result->rows[i];
		if (row->pieces > 1 && tally_event_leader(row->event) == i)
			fprintf(to,
				"\n the group of '%s' has more events than the PMU can count at once: "
				"it was counted as %u groups, by turns\n",
				tally_event_name(row->event), row->pieces);
	}
}

static void print_inexact(FILE *to, const struct stat_result *result)
{
	for (struct stat_at at = { 0 }; stat_next(result, &at);) {
		if (!(at.cell->sum.flags & TALLY_COUNT_START_INEXACT))
			continue;
		fputs("\n counting began while threads were starting: those may be counted twice, or not "
		      "from their start\n",
		      to);
		return;
	}
}

const char *stat_compromise(const struct stat_row *row, bool all)
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
		const char *phrase = stat_compromise(&result->rows[i], all);
		uint32_t first = 0;

		while (phrase && first < i) {
			const char *earlier = stat_compromise(&result->rows[first], all);
			if (earlier && !strcmp(earlier, phrase))
				break;
			first++;
		}
		if (!phrase || first < i)
			continue;
		for (uint32_t k = i; k < result->count; k++) {
			const char *other = stat_compromise(&result->rows[k], all);
			if (other && !strcmp(other, phrase))
				fprintf(to, "%s%s", k == i ? "\n " : ", ",
					tally_event_name(result->rows[k].event));
		}
		fprintf(to, ": %s\n", phrase);
	}
}

static void print_details(FILE *to, const struct stat_result *result)
{
	char name[64];

	putc('\n', to);
	for (struct stat_at at = { 0 }; stat_next(result, &at);) {
		const struct tally_count *sum = &at.cell->sum;
		stat_key_name(name, sizeof(name), result, at.key);
		fprintf(to, " %s%s", name, *name ? " " : "");
		fprintf(to, "%s: raw %llu, enabled %llu ns, running %llu ns, lost %llu, %s\n",
			tally_event_name(result->rows[at.row].event), (unsigned long long)sum->raw,
			(unsigned long long)sum->enabled_ns, (unsigned long long)sum->running_ns,
			(unsigned long long)sum->lost, tally_count_state_name(sum->state));
	}
}

void stat_print_notes(FILE *to, const struct stat_result *result, bool verbose)
{
	print_missing(to, result);
	print_uncounted(to, result);
	print_split(to, result);
	print_inexact(to, result);
	if (verbose)
		print_details(to, result);
	print_compromises(to, result, verbose);
}
