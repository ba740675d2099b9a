/* SPDX-License-Identifier: MIT */
/* Lists of events and their filters, from options. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event-lists.h"
#include "term.h"

char *event_lists_join(const struct texts *lists, unsigned count)
{
	size_t size = 1;

	for (unsigned i = 0; i < count; i++)
		size += strlen(lists->at[i]) + 1;
	char *text = malloc(size), *end = text;
	if (!text)
		return NULL;
	*end = '\0';
	for (unsigned i = 0; i < count; i++) {
		end = stpcpy(end, i ? "," : "");
		end = stpcpy(end, lists->at[i]);
	}
	return text;
}

/* Which event of the whole list the first `count` lists end with; -1: they are no list. */
static int64_t last_event(const struct texts *lists, unsigned count,
			  const struct tally_events_opts *opts)
{
	struct tally_events *events = NULL;
	char *text = event_lists_join(lists, count);
	int64_t last = -1;

	if (text && tally_events_parse(&events, text, opts, NULL) == 0)
		last = (int64_t)tally_events_count(events) - 1;
	tally_events_free(events);
	free(text);
	return last;
}

static int set_filter(struct tally_event *event, const char *filter, const char *command)
{
	if (tally_event_attr(event)->type != TALLY_TYPE_TRACEPOINT) {
		complain(command, "--filter: '%s' is no tracepoint, and only those have fields",
			 tally_event_name(event));
		return EXIT_USAGE;
	}
	if (tally_event_set_filter(event, filter) == 0)
		return EXIT_DONE;
	complain(command, "no memory for a filter");
	return EXIT_FAILED;
}

int event_lists_filter(const struct texts *lists, const struct texts *filters,
		       const struct tally_events_opts *opts, struct tally_events *events,
		       const char *command)
{
	int r = EXIT_DONE;

	for (unsigned i = 0; i < filters->count && r == EXIT_DONE; i++) {
		unsigned before = filters->after[i];
		int64_t at = before ? last_event(lists, before, opts) : -1;
		if (at < 0) {
			complain(command,
				 "--filter stands behind the -e of the event that it is for");
			return EXIT_USAGE;
		}
		r = set_filter(tally_events_at(events, (uint32_t)at), filters->at[i], command);
	}
	return r;
}
