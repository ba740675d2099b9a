/* SPDX-License-Identifier: MIT */
/* `tally record --switch-output`: when a further file begins, and what the one before is called. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "term.h"

/* Units behind a number: bytes, or nanoseconds. */
static const struct {
	char letter;
	bool time;
	uint64_t factor;
} units[] = {
	{ 'B', false, 1 },
	{ 'K', false, 1ull << 10 },
	{ 'M', false, 1ull << 20 },
	{ 'G', false, 1ull << 30 },
	{ 's', true, 1000000000ull },
	{ 'm', true, 60 * 1000000000ull },
	{ 'h', true, 3600 * 1000000000ull },
	{ 'd', true, 86400 * 1000000000ull },
};

static bool take_threshold(struct rotation *r, const char *text)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	uint64_t number = strtoull(text, &end, 10), all;
	if (!number || !*end || end[1])
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (*end != units[i].letter)
			continue;
		*(units[i].time ? &r->period_ns : &r->bytes) = all = number * units[i].factor;
		return all / units[i].factor == number;
	}
	return false;
}

bool rotation_parse(struct rotation *r, const struct record_options *o)
{
	const char *text = o->switch_output;

	*r = (struct rotation){ .wanted = text, .keep = o->max_files };
	if (!text || !*text || !strcmp(text, "signal") || take_threshold(r, text))
		return true;
	complain("record",
		 "--switch-output: '%s' is neither 'signal' nor a size as 100M nor a time as 30s",
		 text);
	return false;
}

bool rotation_due(const struct rotation *r, uint64_t bytes, uint64_t now_ns)
{
	return (r->bytes && bytes - r->bytes_before >= r->bytes) ||
	       (r->period_ns && now_ns - r->since_ns >= r->period_ns);
}

/* perf's form: the local time down to a hundredth of a second. */
static char *make_name(const char *path)
{
	struct timespec now;
	struct tm parts;
	char stamp[32], *name;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	strftime(stamp, sizeof(stamp), "%Y%m%d%H%M%S", &parts);
	if (asprintf(&name, "%s.%s%02u", path, stamp, (unsigned)(now.tv_nsec / 10000000)) < 0)
		return NULL;
	return name;
}

int rotation_name(struct rotation *r, const char *path, uint64_t bytes, uint64_t now_ns,
		  const char **name)
{
	char **grown = realloc(r->names, (r->count + 1) * sizeof(*grown));
	char *made;

	if (!grown)
		return -1;
	r->names = grown;
	/* Two files within a hundredth of a second would have one name. */
	while ((made = make_name(path)) && access(made, F_OK) == 0) {
		free(made);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	if (!made)
		return -1;
	r->names[r->count++] = made;
	r->bytes_before = bytes;
	r->since_ns = now_ns;
	*name = made;
	return 0;
}

void rotation_trim(struct rotation *r)
{
	while (r->keep && r->count > r->keep) {
		unlink(r->names[0]);
		free(r->names[0]);
		memmove(r->names, r->names + 1, --r->count * sizeof(*r->names));
	}
}

void rotation_free(struct rotation *r)
{
	while (r->count)
		free(r->names[--r->count]);
	free(r->names);
}
