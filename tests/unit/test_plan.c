/* SPDX-License-Identifier: MIT */
/*
 * Where the parts of events are opened: on a machine with two kinds of cores, CPUs 0 and 1 of PMU 4, CPUs
 * 2 and 3 of PMU 10. <linux/perf_event.h>: the upper half of a hardware event's config names the PMU.
 */
#include "fakesampler.h"

static void make_hybrid(void)
{
	fake_reset();
	make_root(ROOT);
	fake.has_pmu = true;
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_core/type", "4\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_core/cpus", "0-1\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_core/format/event", "config:0-7\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_atom/type", "10\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_atom/cpus", "2-3\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/cpu_atom/format/event", "config:0-7\n");
}

static bool tracks(const struct fake_event *e)
{
	return e->attr.flags & TALLY_ATTR_MMAP2;
}

static void look_at_cpus(struct tally_sampler *s)
{
	const uint64_t *ids;

	check_int(fake.opened, 8);
	check_int(tally_sampler_rings(s), 4);
	for (int cpu = 0; cpu < 4; cpu++) {
		const struct fake_event *e = &fake.events[2 * cpu];
		check_int(e[0].cpu, cpu);
		check_int(e[1].cpu, cpu);
		check_u64(e[0].attr.config >> 32, cpu < 2 ? 4 : 10);
		check_int(e[1].attr.type, TALLY_TYPE_SOFTWARE);
		check(tracks(&e[0]) && !tracks(&e[1]));
		check_int(e[1].output, FIRST_FD + 2 * cpu);
	}
	check_int(tally_sampler_ids(s, 0, &ids), 4);
	for (int cpu = 0; cpu < 4; cpu++)
		check_u64(ids[cpu], (uint64_t)(FIRST_FD + 2 * cpu) * 10);
	check(tally_sampler_attr(s, 0)->flags & TALLY_ATTR_MMAP2);
	check_int(tally_sampler_enable(s), 0);
	for (int i = 0; i < 8; i++)
		check(fake.events[i].enabled);
}

static void each_part_is_opened_where_it_counts(void)
{
	make_hybrid();
	with("cycles,page-faults", &all_cpus, (struct tally_sampler_opts){ 0 }, look_at_cpus);
}

static void look_at_thread(struct tally_sampler *s)
{
	struct tally_count count;

	/* It may run on both kinds of cores: all write to one ring. */
	check_int(fake.opened, 3);
	check_int(tally_sampler_rings(s), 1);
	/* In the order of the PMUs' names. */
	check_u64(fake.events[0].attr.config >> 32, 10);
	check_u64(fake.events[1].attr.config >> 32, 4);
	check(tracks(&fake.events[0]) && !tracks(&fake.events[1]) && !tracks(&fake.events[2]));
	check_int(fake.events[1].output, FIRST_FD);
	check_int(fake.events[2].output, FIRST_FD);
	/* They take turns: 300 of 1000 ns on one kind, 700 on the other. */
	fake.events[0].enabled_ns = fake.events[1].enabled_ns = 1000;
	fake.events[0].running_ns = 300;
	fake.events[1].running_ns = 700;
	check_int(tally_sampler_read(s, 0, &count), 0);
	check_u64(count.raw, 200);
	check_u64(count.enabled_ns, 1000);
	check_int(count.state, TALLY_COUNT_EXACT);
}

static void a_thread_has_all_parts(void)
{
	make_hybrid();
	with("cycles,page-faults", &self, (struct tally_sampler_opts){ 0 }, look_at_thread);
}

static void look_at_one_kind(struct tally_sampler *s)
{
	/* Where the first event does not count the second one tells what names addresses. */
	check_int(fake.opened, 6);
	check_int(tally_sampler_rings(s), 4);
	for (int i = 0; i < 6; i++)
		check_int(tracks(&fake.events[i]), i % 2 == 0 || i >= 4);
	check_int(fake.events[4].cpu, 2);
	check(fake.events[4].mapped && fake.events[5].mapped);
	/* By its id a record of the second event is known everywhere. */
	const uint64_t *ids;
	check_int(tally_sampler_ids(s, 1, &ids), 4);
	check_u64(ids[3], (uint64_t)(FIRST_FD + 5) * 10);
}

static void an_event_of_one_kind_of_core(void)
{
	make_hybrid();
	with("cpu_core/event=0x3c/,page-faults", &all_cpus, (struct tally_sampler_opts){ 0 },
	     look_at_one_kind);
}

static void look_at_places(struct tally_sampler *s)
{
	/* CPUs 2 and 3 have nothing to open. */
	check_int(fake.opened, 2);
	check_int(tally_sampler_rings(s), 2);
	check_int(tally_sampler_ring_cpu(s, 1), 1);
	check_int(tally_sampler_ring_cpu(s, 2), -1);
}

static void places_without_events_have_no_ring(void)
{
	make_hybrid();
	with("cpu_core/event=0x3c/", &all_cpus, (struct tally_sampler_opts){ 0 }, look_at_places);
}

static void look_at_group(struct tally_sampler *s)
{
	(void)s;
	check_int(fake.opened, 8);
	for (int cpu = 0; cpu < 4; cpu++) {
		const struct fake_event *e = &fake.events[2 * cpu];
		check_int(e[1].group_fd, FIRST_FD + 2 * cpu);
		check_u64(e[1].attr.config, (cpu < 2 ? 4ull : 10ull) << 32 | 1);
	}
}

static void groups_stand_together_on_each_kind(void)
{
	make_hybrid();
	with("{cycles,instructions}", &all_cpus, (struct tally_sampler_opts){ 0 }, look_at_group);
}

static void what_counts_nowhere_is_an_error(void)
{
	const int32_t cpus[] = { 2, 3 };
	const struct tally_target atoms = { .scope = TALLY_SCOPE_CPUS,
					    .cpus = cpus,
					    .cpu_count = 2 };
	struct tally_sampler *s = NULL;
	struct tally_error err = { 0 };

	make_hybrid();
	struct tally_events *events = events_of("page-faults,cpu_core/event=0x3c/");
	check_int(tally_sampler_open(&s, events, &atoms, TALLY_OPTS(sampler, .root = root.path),
				     &err),
		  -ENODEV);
	check_has(err.text, "cpu_core/event=0x3c/");
	nothing_leaked();
	tally_events_free(events);
	fakeroot_remove(&root);
}

/* What an event's own attr asks for is not taken from it. */
static void an_attr_of_ones_own_keeps_its_ids(void)
{
	struct tally_events *events;

	fake_reset();
	make_root(ROOT);
	struct tally_attr attr;
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.sample_type = TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_ID;
	require(tally_events_new(&events, NULL, &attr, NULL, NULL) == 0);
	struct tally_sampler *s = open_with(events, &self, &(struct tally_sampler_opts){ 0 });
	check(s && tally_sampler_layout(s, 0)->sample_type & TALLY_SAMPLE_STREAM_ID);
	tally_sampler_close(s);
	tally_events_free(events);
	nothing_leaked();
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(each_part_is_opened_where_it_counts);
	tap_run(a_thread_has_all_parts);
	tap_run(an_event_of_one_kind_of_core);
	tap_run(places_without_events_have_no_ring);
	tap_run(groups_stand_together_on_each_kind);
	tap_run(what_counts_nowhere_is_an_error);
	tap_run(an_attr_of_ones_own_keeps_its_ids);
	return tap_end();
}
