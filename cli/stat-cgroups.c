/* SPDX-License-Identifier: MIT */
/*
 * `tally stat`: -G, which gives the n-th event the n-th cgroup (or all the only one), as perf does, and
 * --for-each-cgroup, which counts each event in each.
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "stat.h"
#include "term.h"

/* Splits at commas into the result's list; an empty name is none. */
static int split(struct stat_result *result, const char *list)
{
	size_t length = strlen(list);
	uint32_t count = 1;

	for (size_t i = 0; i < length; i++)
		count += list[i] == ',';
	/* The names behind their list, in one piece. */
	const char **names = malloc(count * sizeof(*names) + length + 1);
	if (!names)
		return EXIT_FAILED;
	char *at = strcpy((char *)(names + count), list);
	for (uint32_t i = 0; i < count; i++)
		names[i] = strsep(&at, ",");
	result->cgroups = names;
	result->cgroup_count = count;
	return EXIT_DONE;
}

/* The members of a group are counted in the cgroup of their leader. */
static bool groups_agree(const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++) {
		uint32_t leader = tally_event_leader(result->rows[i].event);
		if (result->rows[i].cgroup != result->rows[leader].cgroup)
			return false;
	}
	return true;
}

/* The first of the same name: rates are made of all that is counted in one cgroup. */
static uint32_t first_like(const struct stat_result *result, uint32_t cgroup)
{
	uint32_t first = 0;

	while (strcmp(result->cgroups[first], result->cgroups[cgroup]) != 0)
		first++;
	return first;
}

static int assign(struct stat_result *result)
{
	uint32_t given = result->cgroup_count;

	if (given != 1 && given != result->count) {
		complain("stat", "-G: there are %u cgroups for %u events", given, result->count);
		hint("give one for all, or one for each; --for-each-cgroup counts each in each");
		return EXIT_USAGE;
	}
	for (uint32_t i = 0; i < result->count; i++)
		result->rows[i].cgroup = given == 1 ? 0 : first_like(result, i);
	if (groups_agree(result))
		return EXIT_DONE;
	complain("stat", "-G: events of a group cannot be counted in different cgroups");
	return EXIT_USAGE;
}

int stat_set_cgroups(const struct stat_options *options, struct stat_result *result)
{
	const char *list = options->cgroups ? options->cgroups : options->each_cgroup;
	int r = list ? split(result, list) : EXIT_DONE;

	if (r == EXIT_FAILED)
		complain("stat", "no memory for the cgroups");
	for (uint32_t i = 0; r == EXIT_DONE && options->each_cgroup && i < result->cgroup_count;
	     i++) {
		if (*result->cgroups[i])
			continue;
		complain("stat", "--for-each-cgroup: a name is empty in '%s'", list);
		r = EXIT_USAGE;
	}
	return r == EXIT_DONE && options->cgroups ? assign(result) : r;
}

bool stat_counts_in(const struct stat_row *row, uint32_t cgroup)
{
	return row->cgroup == NO_CGROUP || row->cgroup == cgroup;
}
