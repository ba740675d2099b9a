/* SPDX-License-Identifier: MIT */
/* Reading --time. */
#include <ctype.h>
#include <string.h>

#include "span.h"
#include "term.h"

#define NS_PER_SECOND 1000000000u

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
static bool read_times(const char *text, struct span *opts)
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
	opts->from = times[0];
	opts->to = times[1];
	opts->relative = relative > 0;
	return given && (!relative || relative == given) && (!opts->to || opts->from < opts->to);
}

bool span_read(struct span *out, const char *text, const char *command)
{
	*out = (struct span){ 0 };
	if (!text || read_times(text, out))
		return true;
	complain(command, "--time: '%s' is no span of time", text);
	hint("give seconds as FROM,TO: 12.5,13 of the recording's clock, or +1,+2 from the "
	     "first sample on");
	return false;
}
