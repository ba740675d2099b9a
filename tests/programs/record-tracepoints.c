/* SPDX-License-Identifier: MIT */
/*
 * Records tracepoints with their payloads while it makes system calls, for other readers to judge.
 *
 *	record-tracepoints PATH CALLS
 *
 * Ends with 77 where tracefs is not to be had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/profiling.h>

#include "tracefs.h"

#define EVENTS \
	"syscalls:sys_enter_getpriority,syscalls:sys_exit_getpriority,sched:sched_stat_runtime"
#define SKIPPED 77

static struct tally_error err;

static void must(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "record-tracepoints: %s\n", err.text);
	exit(1);
}

int main(int argc, char **argv)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_recorder *recorder;
	struct tally_events *events;

	if (argc < 3)
		return 2;
	if (!tracefs_ready())
		return SKIPPED;
	must(tally_events_parse(&events, EVENTS, NULL, &err));
	must(tally_recorder_open(&recorder, events, &self,
				 TALLY_OPTS(recorder, .path = argv[1], .period = 1,
					    .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
							   TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
							   TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_RAW |
							   TALLY_SAMPLE_IDENTIFIER),
				 &err));
	must(tally_recorder_start(recorder, &err));
	for (long i = strtol(argv[2], NULL, 10); i > 0; i--)
		syscall(SYS_getpriority, 0, (int)i);
	must(tally_recorder_finish(recorder, NULL, &err));
	tally_recorder_close(recorder);
	tally_events_free(events);
	return 0;
}
