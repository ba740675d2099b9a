/* SPDX-License-Identifier: MIT */
/* May this user watch what happens in the kernel? For live programs whose tests all do. */
#ifndef TESTS_KERNEL_MODE_H
#define TESTS_KERNEL_MODE_H

#include <stdbool.h>
#include <stdio.h>

#include <tally/tally.h>

/* By effect: an event that counts there is opened. Other failures are for the tests to tell. */
static inline bool kernel_mode_allowed(void)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter *counter = NULL;
	struct tally_events *events = NULL;
	struct tally_error err = { 0 };
	int r = tally_events_parse(&events, "page-faults:k", NULL, &err);

	if (r == 0)
		r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);
	tally_counter_close(counter);
	tally_events_free(events);
	return r == 0 || (err.cause != TALLY_CAUSE_PARANOID && err.cause != TALLY_CAUSE_PERMISSION);
}

/* Instead of any test: the plan of none, and why. The status of the program. */
static inline int kernel_mode_skip(void)
{
	puts("1..0 # SKIP kernel.perf_event_paranoid lets this user watch user mode alone");
	return 0;
}

#endif
