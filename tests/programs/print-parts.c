/* SPDX-License-Identifier: MIT */
/* Prints the parts of the event in each argument, a line an argument, for test_event_pmus.py. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/tally.h>

static void print_parts(const struct tally_event *event)
{
	struct tally_event_part part;

	for (uint32_t i = 0; tally_event_part(event, i, &part); i++)
		printf("%" PRIu32 ":%#" PRIx64 ":%#" PRIx64 ":%#" PRIx64 " ", part.attr.type,
		       part.attr.config, part.attr.config1, part.attr.config2);
	putchar('\n');
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct tally_events *events;
		struct tally_error err;
		if (tally_events_parse(&events, argv[i], NULL, &err) < 0) {
			printf("refused %s\n", err.text);
			continue;
		}
		print_parts(tally_events_at(events, 0));
		tally_events_free(events);
	}
	return 0;
}
