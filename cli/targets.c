/* SPDX-License-Identifier: MIT */
/* Targets from options. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "targets.h"
#include "term.h"

/* A number up to `limit` at *text, which is moved behind it. */
static bool take_number(const char **text, long limit, int32_t *out)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	long v = strtol(*text, &end, 10);
	if (errno || v > limit)
		return false;
	*text = end;
	*out = (int32_t)v;
	return true;
}

static bool add_ids(struct targets *targets, const char *text, uint32_t scope)
{
	int32_t id;

	do {
		if (targets->count == MAX_TARGETS || !take_number(&text, INT32_MAX, &id) || !id)
			return false;
		targets->at[targets->count++] = (struct tally_target){ .scope = scope, .id = id };
	} while (*text++ == ',');
	return !text[-1];
}

bool cpus_parse(const char *text, int32_t *cpus, uint32_t *count)
{
	*count = 0;
	do {
		int32_t first, last;
		if (!take_number(&text, MAX_CPUS - 1, &first))
			return false;
		last = first;
		if (*text == '-' && (text++, !take_number(&text, MAX_CPUS - 1, &last)))
			return false;
		for (int32_t cpu = first; cpu <= last; cpu++) {
			if (*count == MAX_CPUS)
				return false;
			cpus[(*count)++] = cpu;
		}
		if (last < first)
			return false;
	} while (*text++ == ',');
	return !text[-1];
}

static bool add_cpus(struct targets *targets, const char *text)
{
	struct tally_target *target = &targets->at[targets->count++];

	target->scope = TALLY_SCOPE_CPUS;
	target->cpus = targets->cpus;
	return cpus_parse(text, targets->cpus, &target->cpu_count);
}

bool targets_parse(struct targets *targets, const struct target_args *args, const char *command)
{
	bool cpus = args->all || args->cpus;

	*targets = (struct targets){ 0 };
	if (!!args->pids + !!args->tids + cpus > 1) {
		complain(command, "-p, -t and -a or -C cannot be combined");
		hint("a process (-p), a thread (-t) and whole CPUs (-a, -C) are different scopes");
		return false;
	}
	if (args->pids && !add_ids(targets, args->pids, TALLY_SCOPE_PROCESS)) {
		complain(command, "-p: '%s' is no process id, nor up to %d separated by commas",
			 args->pids, MAX_TARGETS);
		return false;
	}
	if (args->tids && !add_ids(targets, args->tids, TALLY_SCOPE_THREAD)) {
		complain(command, "-t: '%s' is no thread id, nor up to %d separated by commas",
			 args->tids, MAX_TARGETS);
		return false;
	}
	if (args->cpus && !add_cpus(targets, args->cpus)) {
		complain(command, "-C: '%s' is no list of CPUs, as 0-3,8", args->cpus);
		return false;
	}
	if (cpus && !args->cpus)
		targets->at[targets->count++].scope = TALLY_SCOPE_CPUS;
	return true;
}
