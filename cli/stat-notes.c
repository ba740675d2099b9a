/* SPDX-License-Identifier: MIT */
/* `tally stat`: why something was not counted, and what was given up for the rest. */
#include <errno.h>
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

/* The first cell in a state; false when there is none. */
static bool first_in(const struct stat_result *result, uint32_t state, struct stat_at *at)
{
	for (*at = (struct stat_at){ 0 }; stat_next(result, at);)
		if (!result->rows[at->row].error.code && at->cell->sum.state == state)
			return true;
	return false;
}

static void print_never_ran(FILE *to, const char *name)
{
	struct tally_system machine = { 0 };

	tally_system_read(&machine, sizeof(machine), NULL, NULL);
	fprintf(to,
		"\n <not counted>: '%s' was never scheduled on the PMU: what was measured was too "
		"short, or more events than it has counters were in one group%s\n",
		name,
		machine.nmi_watchdog == 1
			? "; kernel.nmi_watchdog=1 takes one of them (sysctl kernel.nmi_watchdog=0 "
			  "frees it)"
			: "");
}

static void print_uncounted(FILE *to, const struct stat_result *result)
{
	struct stat_at at;

	if (first_in(result, TALLY_COUNT_NEVER_RAN, &at))
		print_never_ran(to, tally_event_name(result->rows[at.row].event));
	if (first_in(result, TALLY_COUNT_ERROR, &at))
		fprintf(to, "\n <not counted>: '%s' could not be read: %s\n",
			tally_event_name(result->rows[at.row].event),
			at.cell->sum.error == -EBUSY
				? "it is pinned, and other events held the counters that it needs"
				: strerror(-at.cell->sum.error));
	if (result->disabled)
		fputs("\n <not counted>: counting never began, because the delay was longer\n", to);
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
	print_inexact(to, result);
	if (verbose)
		print_details(to, result);
	print_compromises(to, result, verbose);
}
