/* SPDX-License-Identifier: MIT */
/* What `tally record` says: what was given up, how far it is, what it came to. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiles.h"
#include "record.h"
#include "term.h"

void record_say_compromises(const struct tally_recorder *recorder,
			    const struct tally_events *events)
{
	const char *clamped = tally_recorder_compromise(recorder);

	for (uint32_t i = 0; i < tally_events_count(events); i++) {
		const char *what = tally_event_compromise(tally_events_at(events, i));
		if (what)
			complain("record", "%s", what);
	}
	if (clamped)
		complain("record", "%s", clamped);
	if (!tally_recorder_start_exact(recorder))
		complain("record",
			 "the process ran while events were attached to it: a thread that "
			 "started in that moment may be missing or sampled twice");
}

static void print_bytes(uint64_t bytes)
{
	if (bytes < 10240)
		fprintf(stderr, "%" PRIu64 " B", bytes);
	else if (bytes < 10 * 1048576)
		fprintf(stderr, "%.1f KiB", (double)bytes / 1024);
	else
		fprintf(stderr, "%.1f MiB", (double)bytes / 1048576);
}

void record_say_progress(const struct tally_recording *now, double seconds)
{
	fprintf(stderr, "\r%6.1f s  %" PRIu64 " samples  ", seconds, now->samples);
	print_bytes(now->bytes);
	if (now->lost)
		fprintf(stderr, "  %" PRIu64 " lost", now->lost);
	fputs("\033[K", stderr);
}

/* What a clock cannot see: software clocks fire in an interrupt, so never where those are off. */
static const char *clock_note(const struct tally_events *events)
{
	static const char *const notes[] = {
		[TALLY_SW_CPU_CLOCK] =
			"; by cpu-clock, which cannot see code that runs with interrupts off",
		[TALLY_SW_TASK_CLOCK] =
			"; by task-clock, which cannot see code that runs with interrupts off",
	};

	for (uint32_t i = 0; i < tally_events_count(events); i++) {
		const struct tally_attr *attr = tally_event_granted(tally_events_at(events, i));
		if (attr && attr->type == TALLY_TYPE_SOFTWARE &&
		    attr->config <= TALLY_SW_TASK_CLOCK)
			return notes[attr->config];
	}
	return "";
}

void record_say_result(const struct tally_recording *rec, const struct tally_events *events,
		       const char *path, bool verbose)
{
	double cpu_ns = (double)rec->duration_ns * (double)sysconf(_SC_NPROCESSORS_ONLN);

	fprintf(stderr, "tally record: %" PRIu64 " samples, ", rec->samples);
	print_bytes(rec->bytes);
	fprintf(stderr, " in %s, %" PRIu64 " lost%s", !strcmp(path, "-") ? "the stream" : path,
		rec->lost, clock_note(events));
	if (rec->throttled)
		fprintf(stderr, "; throttled %" PRIu64 " times by the kernel", rec->throttled);
	if (rec->steal_ns && cpu_ns > 0)
		fprintf(stderr, "; the hypervisor stole %.1f %% of the CPU time",
			100 * (double)rec->steal_ns / cpu_ns);
	if (rec->cgroup_throttled_ns && rec->duration_ns)
		fprintf(stderr, "; the cgroup's quota held it for %.1f %% of the time",
			100 * (double)rec->cgroup_throttled_ns / (double)rec->duration_ns);
	fputc('\n', stderr);
	profiles_say_stacks(&rec->stacks, "record", "could not be unwound and keep their copy");
	if (verbose)
		fprintf(stderr,
			"tally record: %" PRIu64 " records, %" PRIu64
			" rounds, %.1f ms of own CPU time\n",
			rec->records, rec->rounds, (double)rec->cpu_ns / 1e6);
}
