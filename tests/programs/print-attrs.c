/* SPDX-License-Identifier: MIT */
/* Prints what each argument asks the kernel for, a line an argument, for test_event_names.py. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/tally.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct tally_events *events;
		struct tally_error err;
		int r = tally_events_parse(&events, argv[i], NULL, &err);
		if (r < 0) {
			printf("refused %s\n", err.text);
			continue;
		}
		for (uint32_t k = 0; k < tally_events_count(events); k++) {
			const struct tally_attr *a = tally_event_attr(tally_events_at(events, k));
			printf("%" PRIu32 ":%#" PRIx64 ":%#" PRIx64, a->type, a->config, a->flags);
			printf(":%#" PRIx64 ":%#" PRIx64 ":%" PRIu32 " ", a->config1, a->config2,
			       a->bp_type);
		}
		putchar('\n');
		tally_events_free(events);
	}
	return 0;
}
