/* SPDX-License-Identifier: MIT */
/* Loading recordings for the commands that show them. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "profiles.h"
#include "term.h"

#define DEFAULT_INPUT   "perf.data"
#define NS_PER_SECOND   1000000000u
#define FRACTION_DIGITS 9

/* A time as perf prints it: seconds, with up to nine decimals that count. */
static bool read_seconds(const char *text, size_t len, uint64_t *out)
{
	uint64_t whole = 0, fraction = 0, unit = NS_PER_SECOND;
	size_t i = 0;

	for (; i < len && isdigit((unsigned char)text[i]); i++) {
		if (whole > UINT64_MAX / NS_PER_SECOND / 10 - 1)
			return false;
		whole = whole * 10 + (uint64_t)(text[i] - '0');
	}
	bool any = i > 0;
	if (i < len && text[i] == '.') {
		for (i++; i < len && isdigit((unsigned char)text[i]); i++) {
			unit /= 10;
			fraction += unit * (uint64_t)(text[i] - '0');
			any = true;
		}
	}
	*out = whole * NS_PER_SECOND + fraction;
	return any && i == len;
}

/* "FROM,TO", either of which may be missing; with + in front both count from the first sample. */
static bool read_times(const char *text, struct span_of_time *out)
{
	const char *comma = strchr(text, ',');
	const char *ends[2] = { text, comma ? comma + 1 : "" };
	size_t lens[2] = { comma ? (size_t)(comma - text) : strlen(text), strlen(ends[1]) };
	uint64_t times[2] = { 0, 0 };
	int given = 0, relative = 0;

	for (int i = 0; i < 2; i++) {
		bool plus = lens[i] && *ends[i] == '+';
		if (!lens[i])
			continue;
		given++;
		relative += plus;
		if (!read_seconds(ends[i] + plus, lens[i] - plus, &times[i]))
			return false;
	}
	*out = (struct span_of_time){ times[0], times[1], relative > 0 };
	return given && (!relative || relative == given) && (!out->to || out->from < out->to);
}

bool times_parse(const char *text, struct span_of_time *out, const char *command)
{
	if (read_times(text, out))
		return true;
	complain(command, "--time: '%s' is no span of time", text);
	hint("give seconds as FROM,TO: 12.5,13 of the recording's clock, or +1,+2 from the "
	     "first sample on");
	return false;
}

static void keep_trouble(const struct tally_module_info *module, void *arg)
{
	struct loaded *l = arg;
	struct trouble *grown = realloc(l->troubles, (l->trouble_count + 1) * sizeof(*l->troubles));

	if (!grown)
		return;
	l->troubles = grown;
	struct trouble *t = &l->troubles[l->trouble_count];
	*t = (struct trouble){ strdup(module->path), strdup(module->trouble), module->lookups };
	if (t->path && t->why) {
		l->trouble_count++;
	} else {
		free(t->path);
		free(t->why);
	}
}

static int compare_troubles(const void *left, const void *right)
{
	const struct trouble *a = left, *b = right;

	if (a->lookups != b->lookups)
		return a->lookups > b->lookups ? -1 : 1;
	return strcmp(a->path, b->path);
}

int profiles_load(struct loaded *out, struct filters *filters, const char *command)
{
	struct tally_error err;
	struct tally_load_opts opts = {
		.size = sizeof(opts), .symfs = filters->symfs, .trouble = keep_trouble, .arg = out
	};
	char health[256];

	*out = (struct loaded){ 0 };
	filters->query.size = sizeof(filters->query);
	if (filters->time) {
		struct span_of_time span;
		if (!times_parse(filters->time, &span, command))
			return EXIT_USAGE;
		opts.from = span.from;
		opts.to = span.to;
		opts.relative = span.relative;
	}
	int r = tally_profile_new(&out->profile, &err);
	if (r == 0)
		r = tally_profile_load_file(out->profile,
					    filters->input ? filters->input : DEFAULT_INPUT, &opts,
					    &out->health, health, sizeof(health), &err);
	else
		health[0] = '\0';
	if (r < 0) {
		complain(command, "%s", err.text);
		if (r == -ENOENT && !filters->input)
			hint("'tally record -g -- CMD' makes one, -i names another");
		out->failed = true;
	}
	if (health[0])
		complain(command, "%s", health);
	if (out->trouble_count)
		qsort(out->troubles, out->trouble_count, sizeof(*out->troubles), compare_troubles);
	if (r < 0 && out->health.samples)
		hint("shown are the samples that stand before the damage");
	return r < 0 && !out->health.samples ? EXIT_FAILED : EXIT_DONE;
}

void profiles_free(struct loaded *loaded)
{
	tally_profile_free(loaded->profile);
	for (size_t i = 0; i < loaded->trouble_count; i++) {
		free(loaded->troubles[i].path);
		free(loaded->troubles[i].why);
	}
	free(loaded->troubles);
}
