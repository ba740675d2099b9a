/* SPDX-License-Identifier: MIT */
/* never-ran: each way in which a count can be missing has its own words. */
#include <stdlib.h>

#include <tally/group.h>

#include "event/event.h"
#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

#define MS 1000000u

static struct tally_events *events; /* {cycles,instructions,faults}, cycles, faults */
static struct tally_error err;
static struct fakeroot root;

static struct tally_counter *open_one(uint32_t event, uint32_t scope)
{
	int32_t cpu = 1;
	struct tally_target target = { .scope = scope, .cpus = &cpu, .cpu_count = 1 };
	struct tally_counter_opts opts = { sizeof(opts), 0, root.path, 0 };
	struct tally_counter *counter = NULL;
	int r = tally_counter_open(&counter, tally_events_at(events, event), &target, &opts, &err);

	return r < 0 ? NULL : counter;
}

static struct tally_count reading(uint64_t enabled, uint64_t running, int error)
{
	struct tally_count count = { .enabled_ns = enabled, .running_ns = running, .error = error };

	tally_count_settle(&count);
	return count;
}

/* What a lone event's reading is explained with. */
static void check_explained(uint32_t event, uint32_t scope, struct tally_count count, int code,
			    const char *words)
{
	fake_reset();
	struct tally_counter *counter = open_one(event, scope);

	require(counter != NULL);
	memset(&err, 0, sizeof(err));
	check_int(tally_counter_explain(counter, &count, &err), code);
	check_int(err.code, code);
	if (words)
		check_has(err.text, words);
	check_int(tally_counter_explain(counter, &count, NULL), code);
	tally_counter_close(counter);
}

static void what_ran_needs_no_words(void)
{
	check_explained(3, TALLY_SCOPE_SELF, reading(10 * MS, 10 * MS, 0), 0, NULL);
	check_explained(3, TALLY_SCOPE_SELF, reading(10 * MS, 1 * MS, 0), 0, NULL);
	check_explained(3, TALLY_SCOPE_SELF, reading(0, 0, 0), 0, NULL);
}

static void lone_events_have_their_causes(void)
{
	struct tally_count never = reading(10 * MS, 0, 0);

	check_explained(3, TALLY_SCOPE_SELF, never, -EBUSY, "others hold the counters");
	check_int(err.cause, TALLY_CAUSE_BUSY);
	check_has(err.text, "cycles");
	check_has(err.text, "kernel.nmi_watchdog=1");
	check_explained(3, TALLY_SCOPE_SELF, reading(700000, 0, 0), -EAGAIN, "700 us");
	/* Software lacks no counter, however short it was. */
	check_explained(4, TALLY_SCOPE_SELF, never, -ENODATA, "did not run");
	check_explained(4, TALLY_SCOPE_CPUS, never, -ENODATA, "CPU 1");
	check_explained(4, TALLY_SCOPE_CPUS, reading(700000, 0, 0), -ENODATA, "CPU 1");
	check_explained(3, TALLY_SCOPE_SELF, reading(0, 0, -EBUSY), -EBUSY, "pinned");
	check_explained(3, TALLY_SCOPE_SELF, reading(0, 0, -EIO), -EIO, "left the group");
	check_explained(3, TALLY_SCOPE_SELF, reading(0, 0, -EPERM), -EPERM, strerror(EPERM));
}

/* A PMU of the cores names its CPUs also where it has all that there are, as on arm64. */
static void other_cpus_are_to_blame_only_where_there_are_some(void)
{
	struct event_part *part = vec_push(&tally_events_at(events, 3)->parts);

	part->type = 8;
	snprintf(part->pmu, sizeof(part->pmu), "armv8_pmuv3_0");
	part->cpus = calloc(3, sizeof(*part->cpus));
	for (int32_t i = 0; i < 3; i++)
		part->cpus[i] = i;
	part->cpu_count = 3;
	check_explained(3, TALLY_SCOPE_SELF, reading(10 * MS, 0, 0), -EBUSY, "others hold");
	part->cpu_count = 2;
	check_explained(3, TALLY_SCOPE_SELF, reading(10 * MS, 0, 0), -ENODATA, "2 CPUs of its PMU");
	free(part->cpus);
	tally_events_at(events, 3)->parts.count = 0;
}

static void a_group_is_too_large_by_its_hardware_members(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter_opts opts = { sizeof(opts), 0, root.path, 0 };
	struct tally_count counts[3] = { reading(MS, MS, 0), reading(10 * MS, 0, 0),
					 reading(10 * MS, 0, 0) };
	struct tally_group *group;

	fake_reset();
	require(tally_group_open(&group, events, 0, &self, &opts, &err) == 0);
	check_int(tally_group_explain(group, counts, &err), -ENOSPC);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "instructions");
	check_has(err.text, "2 hardware events");
	check_has(err.text, "tally_group_split");
	check_int(tally_counter_explain(tally_group_member(group, 1), &counts[1], &err), -ENOSPC);
	/* Split it is not too large any more. */
	check_int(tally_group_split(group, 1, &err), 0);
	check_int(tally_group_explain(group, counts, &err), -EBUSY);
	counts[1] = reading(MS, MS, 0);
	check_int(tally_group_explain(group, counts, &err), -ENODATA);
	counts[2] = counts[1];
	check_int(tally_group_explain(group, counts, &err), 0);
	tally_group_close(group);
}

static void the_watchdog_is_named_only_where_it_runs(void)
{
	check(fakeroot_file(&root, "/proc/sys/kernel/nmi_watchdog", "0\n"));
	check_explained(3, TALLY_SCOPE_SELF, reading(10 * MS, 0, 0), -EBUSY, "others hold");
	check(strstr(err.text, "watchdog") == NULL);
	check(fakeroot_file(&root, "/proc/sys/kernel/nmi_watchdog", "1\n"));
}

int main(void)
{
	fake_reset();
	if (!fakeroot_make(&root) ||
	    !fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-2\n") ||
	    !fakeroot_file(&root, "/proc/sys/kernel/nmi_watchdog", "1\n") ||
	    tally_events_parse(&events, "{cycles,instructions,faults},cycles,faults", NULL, &err) <
		    0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(what_ran_needs_no_words);
	tap_run(lone_events_have_their_causes);
	tap_run(other_cpus_are_to_blame_only_where_there_are_some);
	tap_run(a_group_is_too_large_by_its_hardware_members);
	tap_run(the_watchdog_is_named_only_where_it_runs);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
