/* SPDX-License-Identifier: MIT */
/*
 * Events of several parts, opened on a made-up machine: CPUs 0-3, of which 0 and 1 are cores of one kind
 * and 2 and 3 of another; 0 and 2 are of package 0, 1 and 3 of package 1.
 */
#include <stdlib.h>

#include <tally/counter.h>
#include <tally/group.h>

#include "event/event.h"
#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

#define BIG    4u /* types of PMUs */
#define LITTLE 10u
#define BOX    20u

static struct tally_error err;
static struct fakeroot root;

/* Appends an event; parts are given to it afterwards. */
static struct tally_event *add_event(struct tally_events *events, const char *name, uint64_t config)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_HARDWARE, config);
	return events_append(events, name, strlen(name), &attr);
}

static void add_part(struct tally_event *event, const char *pmu, uint32_t type, const int32_t *cpus,
		     uint32_t count, bool per_cpu)
{
	struct event_part *part = vec_push(&event->parts);

	part->type = type;
	part->config = event->attr.config + 100;
	snprintf(part->pmu, sizeof(part->pmu), "%s", pmu);
	part->cpus = malloc(count * sizeof(*cpus));
	memcpy(part->cpus, cpus, count * sizeof(*cpus));
	part->cpu_count = count;
	part->per_cpu = per_cpu;
}

static const int32_t big[] = { 0, 1 }, little[] = { 2, 3 }, each_package[] = { 0, 1 };

static void make_hybrid(struct tally_event *event)
{
	add_part(event, "cpu_core", BIG, big, 2, false);
	add_part(event, "cpu_atom", LITTLE, little, 2, false);
}

static void make_boxes(struct tally_event *event)
{
	add_part(event, "uncore_imc_0", BOX, each_package, 2, true);
	add_part(event, "uncore_imc_1", BOX + 1, each_package, 2, true);
}

/* All events of the list as one group. */
static void group_all(struct tally_events *events)
{
	vec_each (&events->list, e) {
		e->leader = 0;
		e->group_size = (uint32_t)events->list.count;
	}
}

static struct tally_counter *open_counter(struct tally_events *events,
					  const struct tally_target *target)
{
	struct tally_counter *counter = NULL;

	fake_reset();
	tally_counter_open(&counter, tally_events_at(events, 0), target,
			   TALLY_OPTS(counter, .root = root.path), &err);
	return counter;
}

static struct tally_group *open_group(struct tally_events *events,
				      const struct tally_target *target)
{
	struct tally_group *group = NULL;

	fake_reset();
	group_all(events);
	tally_group_open(&group, events, 0, target, TALLY_OPTS(counter, .root = root.path), &err);
	return group;
}

static void give(int n, uint64_t value, uint64_t enabled, uint64_t running)
{
	fake_nth(n)->value = value;
	fake_nth(n)->enabled = enabled;
	fake_nth(n)->running = running;
}

static void check_opened(int n, uint32_t type, int32_t pid, int32_t cpu)
{
	check_u64(fake_nth(n)->attr.type, type);
	check_int(fake_nth(n)->pid, pid);
	check_int(fake_nth(n)->cpu, cpu);
}

static void two_halves_of_a_thread_are_exact(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = calloc(1, sizeof(*events));
	const struct tally_place *places;
	struct tally_count count;

	make_hybrid(add_event(events, "cycles", 1));
	struct tally_counter *counter = open_counter(events, &self);
	require(counter != NULL);
	require(tally_counter_places(counter, &places) == 2);
	check_opened(0, BIG, 0, -1);
	check_opened(1, LITTLE, 0, -1);
	check_u64(fake_nth(0)->attr.config, 101);
	check_int(places[0].part, 0);
	check_int(places[1].part, 1);
	/* 30 % of the time on one kind of core, 70 % on the other. */
	give(0, 600, 100, 30);
	give(1, 400, 100, 70);
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	check_u64(count.value, 1000);
	check_u64(count.enabled_ns, 100);
	check_u64(count.running_ns, 100);
	/* For a tenth of it another event had the counter. */
	give(1, 360, 100, 60);
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_SCALED);
	check_u64(count.raw, 960);
	check_u64(count.value, 960 * 100 / 90);
	/* A place alone is one part. */
	check_int(tally_counter_read_place(counter, 0, &count), 0);
	check_u64(count.raw, 600);
	check_u64(count.enabled_ns, 100);
	check_int(tally_counter_read_place(counter, 2, &count), -EINVAL);
	/* What was granted is the first part's. */
	check_u64(tally_event_granted(tally_events_at(events, 0))->type, BIG);
	tally_counter_close(counter);
	tally_events_free(events);
	check_int(fake.open, 0);
}

static void threads_add_up_and_parts_do_not(void)
{
	struct tally_target process = { .scope = TALLY_SCOPE_PROCESS, .id = 100 };
	struct tally_events *events = calloc(1, sizeof(*events));
	struct tally_count count;

	make_hybrid(add_event(events, "cycles", 1));
	struct tally_counter *counter = open_counter(events, &process);
	require(counter != NULL);
	require(tally_counter_places(counter, NULL) == 4);
	check_opened(0, BIG, 100, -1);
	check_opened(1, LITTLE, 100, -1);
	check_opened(2, BIG, 101, -1);
	check_opened(3, LITTLE, 101, -1);
	give(0, 1, 100, 100);
	give(1, 2, 90, 0); /* enabled later than its sibling */
	give(2, 4, 40, 10);
	give(3, 8, 50, 40);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 15);
	check_u64(count.enabled_ns, 150);
	check_u64(count.running_ns, 150);
	check_int(count.state, TALLY_COUNT_EXACT);
	tally_counter_close(counter);
	tally_events_free(events);
}

static void on_cpus_each_part_is_where_it_counts(void)
{
	static const int32_t some[] = { 3, 0 };
	struct tally_target system = { .scope = TALLY_SCOPE_SYSTEM },
			    two = { .scope = TALLY_SCOPE_CPUS, .cpus = some, .cpu_count = 2 };
	struct tally_events *events = calloc(1, sizeof(*events));
	struct tally_count count;

	make_hybrid(add_event(events, "cycles", 1));
	struct tally_counter *counter = open_counter(events, &system);
	require(counter != NULL);
	require(fake.opened == 4);
	check_opened(0, BIG, -1, 0);
	check_opened(1, BIG, -1, 1);
	check_opened(2, LITTLE, -1, 2);
	check_opened(3, LITTLE, -1, 3);
	for (int i = 0; i < 4; i++)
		give(i, 5, 100, 100);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 20);
	check_u64(count.enabled_ns, 400);
	tally_counter_close(counter);
	counter = open_counter(events, &two);
	require(counter != NULL);
	require(fake.opened == 2);
	check_opened(0, LITTLE, -1, 3);
	check_opened(1, BIG, -1, 0);
	tally_counter_close(counter);
	tally_events_free(events);
}

static void boxes_are_opened_on_their_cpus_and_never_follow_a_task(void)
{
	static const int32_t other[] = { 2, 3 };
	struct tally_target system = { .scope = TALLY_SCOPE_SYSTEM },
			    self = { .scope = TALLY_SCOPE_SELF },
			    elsewhere = { .scope = TALLY_SCOPE_CPUS,
					  .cpus = other,
					  .cpu_count = 2 };
	struct tally_events *events = calloc(1, sizeof(*events));

	make_boxes(add_event(events, "uncore_imc/cas_count_read/", 4));
	struct tally_counter *counter = open_counter(events, &system);
	require(counter != NULL);
	require(fake.opened == 4);
	check_opened(0, BOX, -1, 0);
	check_opened(1, BOX + 1, -1, 0);
	check_opened(2, BOX, -1, 1);
	check_opened(3, BOX + 1, -1, 1);
	tally_counter_close(counter);
	check(open_counter(events, &self) == NULL);
	check_int(err.code, -EINVAL);
	check_has(err.text, "uncore_imc/cas_count_read/");
	check_has(err.text, "whole packages");
	check_has(err.text, "-a");
	check(open_counter(events, &elsewhere) == NULL);
	check_int(err.code, -ENODEV);
	check_has(err.text, "CPU 0");
	check_int(fake.open, 0);
	tally_events_free(events);
}

static void what_counts_packages_is_opened_once_for_each(void)
{
	struct tally_target system = { .scope = TALLY_SCOPE_SYSTEM };
	struct tally_events *events = calloc(1, sizeof(*events));
	struct tally_event *event = add_event(events, "cpu/llc-occupancy/", 1);

	event->per_package = true;
	struct tally_counter *counter = open_counter(events, &system);
	require(counter != NULL);
	require(fake.opened == 2);
	check_opened(0, TALLY_TYPE_HARDWARE, -1, 0);
	check_opened(1, TALLY_TYPE_HARDWARE, -1, 1);
	tally_counter_close(counter);
	tally_events_free(events);
}

static void a_group_makes_one_of_each_pmu(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = calloc(1, sizeof(*events));
	const struct tally_place *places;
	struct tally_count counts[4];

	make_hybrid(add_event(events, "cycles", 0));
	make_hybrid(add_event(events, "instructions", 1));
	add_event(events, "page-faults", 2); /* everywhere */
	add_part(add_event(events, "cpu_atom/topdown/", 3), "cpu_atom", LITTLE, little, 2, false);
	struct tally_group *group = open_group(events, &self);
	require(group != NULL);
	require(tally_group_places(group, &places) == 2);
	require(fake.opened == 7);
	check_opened(0, BIG, 0, -1);
	check_opened(1, BIG, 0, -1);
	check_opened(2, TALLY_TYPE_HARDWARE, 0, -1);
	check_opened(3, LITTLE, 0, -1);
	check_opened(4, LITTLE, 0, -1);
	check_opened(5, TALLY_TYPE_HARDWARE, 0, -1);
	check_opened(6, LITTLE, 0, -1);
	for (int i = 0; i < 7; i++)
		check_int(fake_nth(i)->leader,
			  i == 0 || i == 3 ? -1 : FAKE_FIRST + (i < 3 ? 0 : 3));
	for (int i = 0; i < 7; i++)
		give(i, 1u << i, 100, i < 3 ? 25 : 75);
	check_int(tally_group_read(group, counts, 4), 0);
	check_u64(counts[0].value, 1 + 8);
	check_int(counts[0].state, TALLY_COUNT_EXACT);
	check_u64(counts[1].value, 2 + 16);
	check_u64(counts[2].value, 4 + 32);
	check_int(counts[2].state, TALLY_COUNT_EXACT);
	/* It exists on one kind of core alone, and counted while the thread was there. */
	check_u64(counts[3].raw, 64);
	check_int(counts[3].state, TALLY_COUNT_SCALED);
	/* Where it has no part it reads nothing, of no time. */
	check_int(tally_group_read_place(group, 0, counts, 4), 0);
	check_u64(counts[0].raw, 1);
	check_u64(counts[3].raw, 0);
	check_u64(counts[3].enabled_ns, 0);
	check_int(counts[3].state, TALLY_COUNT_EXACT);
	check_int(tally_group_read_place(group, 2, counts, 4), -EINVAL);
	check_int(tally_group_read_place(group, 0, counts, 3), -ENOSPC);
	/* One that lost its place says so, and what is not there does not. */
	fake_nth(0)->end_of_file = true;
	check_int(tally_group_read_place(group, 0, counts, 4), 0);
	check_int(counts[0].error, -EBUSY);
	check_int(counts[3].error, 0);
	check_int(tally_group_reset(group), 0);
	tally_group_close(group);
	check_int(fake.open, 0);
	tally_events_free(events);
}

/* The kernel's groups are { big }, { little } and, of what counts everywhere, one alone. */
static void pieces_of_a_group_are_read_at_their_own_places(void)
{
	struct tally_target process = { .scope = TALLY_SCOPE_PROCESS, .id = 100 };
	struct tally_events *events = calloc(1, sizeof(*events));
	const struct tally_place *places;
	struct tally_count counts[2], one, all[2];
	uint64_t sums[2] = { 0 };

	make_hybrid(add_event(events, "cycles", 0));
	add_event(events, "page-faults", 2);
	struct tally_group *group = open_group(events, &process);
	require(group != NULL);
	require(tally_group_split(group, 1, &err) == 0);
	/* Threads 100 and 101: cycles at two places each, then page-faults at one each. */
	require(fake.opened == 8 + 6);
	for (int i = 0; i < 6; i++)
		give(8 + i, 1u << i, 100, 100);
	require(tally_group_places(group, &places) == 4);
	for (uint32_t p = 0; p < 4; p++) {
		check_int(tally_group_read_place(group, p, counts, 2), 0);
		check_u64(counts[0].raw, 1u << p);
		check_u64(counts[1].raw, p % 2 ? 0 : places[p].tid == 100 ? 16 : 32);
		sums[0] += counts[0].raw;
		sums[1] += counts[1].raw;
	}
	check_int(tally_group_read_place(group, 4, counts, 2), -EINVAL);
	check_int(tally_group_read(group, all, 2), 0);
	check_u64(sums[0], all[0].raw);
	check_u64(sums[1], all[1].raw);
	/* A member has the places of its piece. */
	struct tally_counter *faults = tally_group_member(group, 1);
	check_int(tally_counter_places(faults, NULL), 2);
	check_int(tally_counter_read_place(faults, 1, &one), 0);
	check_u64(one.raw, 32);
	check_int(tally_counter_read_place(faults, 2, &one), -EINVAL);
	check_int(tally_counter_read_place(tally_group_member(group, 0), 3, &one), 0);
	check_u64(one.raw, 8);
	tally_group_close(group);
	tally_events_free(events);
}

static void a_member_that_is_not_there_has_no_descriptor(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = calloc(1, sizeof(*events));
	uint64_t id = 9;
	uint32_t program;

	make_hybrid(add_event(events, "cycles", 0));
	add_part(add_event(events, "cpu_atom/topdown/", 3), "cpu_atom", LITTLE, little, 2, false);
	struct tally_group *group = open_group(events, &self);
	require(group != NULL);
	struct tally_counter *member = tally_group_member(group, 1);
	check_int(tally_counter_fd(member, 0), -ENOENT);
	check_int(tally_counter_fd(member, 1), FAKE_FIRST + 2);
	check_int(tally_counter_id(member, 0, &id), -ENOENT);
	check_u64(id, 9);
	check_int(tally_counter_id(member, 1, &id), 0);
	check_u64(id, 7002);
	check_int(tally_counter_set_output(member, 0, FAKE_FIRST), -ENOENT);
	check_int(tally_counter_detach_output(member, 0), -ENOENT);
	check_int(tally_counter_query_bpf(member, 0, &program, 1), -ENOENT);
	tally_group_close(group);
	tally_events_free(events);
}

static void a_software_leader_leads_on_each_pmu(void)
{
	struct tally_target system = { .scope = TALLY_SCOPE_SYSTEM };
	struct tally_events *events = calloc(1, sizeof(*events));

	add_event(events, "page-faults", 2);
	make_hybrid(add_event(events, "cycles", 0));
	struct tally_group *group = open_group(events, &system);
	require(group != NULL);
	require(fake.opened == 8);
	for (int i = 0; i < 8; i++) {
		check_int(fake_nth(i)->cpu, i / 2);
		check_int(fake_nth(i)->leader, i % 2 ? FAKE_FIRST + i - 1 : -1);
	}
	check_u64(fake_nth(1)->attr.type, BIG);
	check_u64(fake_nth(7)->attr.type, LITTLE);
	tally_group_close(group);
	tally_events_free(events);
}

/* Opens the two as a group; the error must say that they cannot be one. */
static void refuse_pair(void (*first)(struct tally_event *), void (*second)(struct tally_event *))
{
	struct tally_target system = { .scope = TALLY_SCOPE_SYSTEM };
	struct tally_events *events = calloc(1, sizeof(*events));

	first(add_event(events, "one", 1));
	second(add_event(events, "other", 2));
	check(open_group(events, &system) == NULL);
	check_int(err.code, -EINVAL);
	check_has(err.text, "one and other cannot be one group");
	check_int(fake.opened, 0);
	tally_events_free(events);
}

static void make_plain(struct tally_event *event)
{
	(void)event;
}

static void make_big(struct tally_event *event)
{
	add_part(event, "cpu_core", BIG, big, 2, false);
}

static void make_little(struct tally_event *event)
{
	add_part(event, "cpu_atom", LITTLE, little, 2, false);
}

static void make_package(struct tally_event *event)
{
	event->per_package = true;
}

static void what_cannot_be_one_group_is_refused(void)
{
	refuse_pair(make_big, make_little);
	refuse_pair(make_big, make_hybrid); /* nobody leads on the other PMU */
	refuse_pair(make_boxes, make_plain);
	refuse_pair(make_plain, make_boxes);
	refuse_pair(make_boxes, make_hybrid);
	refuse_pair(make_plain, make_package);
}

static void a_failure_at_the_second_part_closes_all(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = calloc(1, sizeof(*events));
	struct tally_counter *counter = NULL;

	make_hybrid(add_event(events, "cycles", 1));
	fake_reset();
	fake.fail_open_at = 2;
	fake.fail_open_code = -ENOENT;
	check_int(tally_counter_open(&counter, tally_events_at(events, 0), &self,
				     TALLY_OPTS(counter, .root = root.path), &err),
		  -ENOENT);
	check_int(fake.opened, 1);
	check_int(fake.open, 0);
	tally_events_free(events);
}

int main(void)
{
	bool ok = fakeroot_make(&root) && fakeroot_file(&root, "/proc/100/task/100/stat", "") &&
		  fakeroot_file(&root, "/proc/100/task/101/stat", "") &&
		  fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-3\n");

	for (int cpu = 0; ok && cpu < 4; cpu++) {
		char path[96];
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
		ok = fakeroot_file(&root, path, cpu % 2 ? "1\n" : "0\n");
	}
	if (!ok) {
		printf("Bail out! no made-up machine\n");
		return 1;
	}
	tap_run(two_halves_of_a_thread_are_exact);
	tap_run(threads_add_up_and_parts_do_not);
	tap_run(on_cpus_each_part_is_where_it_counts);
	tap_run(boxes_are_opened_on_their_cpus_and_never_follow_a_task);
	tap_run(what_counts_packages_is_opened_once_for_each);
	tap_run(a_group_makes_one_of_each_pmu);
	tap_run(pieces_of_a_group_are_read_at_their_own_places);
	tap_run(a_member_that_is_not_there_has_no_descriptor);
	tap_run(a_software_leader_leads_on_each_pmu);
	tap_run(what_cannot_be_one_group_is_refused);
	tap_run(a_failure_at_the_second_part_closes_all);
	fakeroot_remove(&root);
	return tap_end();
}
