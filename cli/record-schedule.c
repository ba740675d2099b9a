/* SPDX-License-Identifier: MIT */
/* `tally record -D`: when events are on, in milliseconds since the command started. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"

#define MAX_MS 1000000000u /* some 11 days */

/* A number of milliseconds, not below the one before; `*text` moves behind it. */
static bool take_time(struct schedule *s, const char **text)
{
	char *end;

	if (s->count == MAX_TOGGLES || !isdigit((unsigned char)**text))
		return false;
	errno = 0;
	unsigned long ms = strtoul(*text, &end, 10);
	if (errno || ms > MAX_MS || (s->count && ms <= s->at_ms[s->count - 1]))
		return false;
	s->at_ms[s->count++] = ms;
	*text = end;
	return true;
}

bool schedule_parse(struct schedule *s, const char *text)
{
	*s = (struct schedule){ .starts_off = text };
	if (!text || !strcmp(text, "-1"))
		return true;
	if (!take_time(s, &text))
		return false;
	if (!*text) {
		/* No delay at all is as if nothing were said. */
		*s = s->at_ms[0] ? *s : (struct schedule){ 0 };
		return true;
	}
	while (*text++ == '-' && take_time(s, &text)) {
		if (!*text)
			return true;
		if (*text++ != ',' || !take_time(s, &text))
			return false;
	}
	return false;
}

bool schedule_due(struct schedule *s, uint64_t now_ms, bool *on)
{
	if (s->next == s->count || now_ms < s->at_ms[s->next])
		return false;
	*on = s->next++ % 2 == 0;
	return true;
}

int schedule_wait(const struct schedule *s, uint64_t now_ms, int most)
{
	if (s->next == s->count)
		return most;
	uint64_t left = s->at_ms[s->next] > now_ms ? s->at_ms[s->next] - now_ms : 0;
	return left < (uint64_t)most ? (int)left : most;
}
