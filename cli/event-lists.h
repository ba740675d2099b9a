/* SPDX-License-Identifier: MIT */
/* -e, which may be given several times, and --filter, which belongs to the -e before it. */
#ifndef CLI_EVENT_LISTS_H
#define CLI_EVENT_LISTS_H

#include <tally/tally.h>

#include "args.h"

/* The first `count` lists as one, to be freed; NULL: no memory. */
char *event_lists_join(const struct texts *lists, unsigned count);

/*
 * Gives the last event of the -e before each --filter that filter. `opts` are those that the lists
 * were parsed with. An exit status, not EXIT_DONE after an error was said for `command`.
 */
int event_lists_filter(const struct texts *lists, const struct texts *filters,
		       const struct tally_events_opts *opts, struct tally_events *events,
		       const char *command);

#endif
