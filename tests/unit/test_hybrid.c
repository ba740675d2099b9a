/* SPDX-License-Identifier: MIT */
/*
 * hybrid: `cycles` where cores are of two kinds. <linux/perf_event.h>: with PERF_TYPE_HARDWARE and
 * _HW_CACHE "the higher 32 bits of attr.config" are the PMU's type.
 */
#include <linux/perf_event.h>

#include <tally/event.h>

#include "fakepmu.h"
#include "tap.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct fakeroot root;
static struct tally_error err;

static struct tally_events *parse(const char *text)
{
	struct tally_events *events = NULL;

	if (tally_events_parse(&events, text, TALLY_OPTS(events, .root = root.path), &err) < 0)
		return NULL;
	return events;
}

struct want_part {
	const char *pmu;
	uint32_t type;
	uint64_t config;
	int32_t first_cpu;
	uint32_t cpus;
};

struct want {
	const char *text;
	uint32_t count;
	struct want_part parts[2];
};

static void check_parts(const struct want *want)
{
	struct tally_events *events = parse(want->text);
	struct tally_event_part part;

	if (!events) {
		check_str(err.text, want->text);
		return;
	}
	struct tally_event *e = tally_events_at(events, 0);
	if (tally_event_parts(e) != want->count)
		printf("# %s\n", want->text);
	check_int(tally_event_parts(e), want->count);
	check_str(tally_event_name(e), want->text);
	check_int(tally_event_attr(e)->type, want->parts[0].type);
	check_u64(tally_event_attr(e)->config, want->parts[0].config);
	for (uint32_t i = 0; i < want->count; i++) {
		if (!check(tally_event_part(e, i, &part)))
			continue;
		check_str(part.pmu, want->parts[i].pmu);
		check_int(part.attr.type, want->parts[i].type);
		check_u64(part.attr.config, want->parts[i].config);
		check_u64(part.attr.flags, tally_event_attr(e)->flags);
		check_int(part.cpu_count, want->parts[i].cpus);
		check(!part.per_cpu);
		if (part.cpu_count)
			check_int(part.cpus[0], want->parts[i].first_cpu);
	}
	tally_events_free(events);
}

#define ATOM (10ull << PERF_PMU_TYPE_SHIFT)
#define CORE (4ull << PERF_PMU_TYPE_SHIFT)

static void performance_and_efficient_cores(void)
{
	static const struct want want[] = {
		{ "cycles:u",
		  2,
		  { { "cpu_atom", 0, ATOM, 16, 8 }, { "cpu_core", 0, CORE, 0, 16 } } },
		{ "instructions",
		  2,
		  { { "cpu_atom", 0, ATOM | 1, 16, 8 }, { "cpu_core", 0, CORE | 1, 0, 16 } } },
		{ "LLC-load-misses",
		  2,
		  { { "cpu_atom", 3, ATOM | 0x10002, 16, 8 },
		    { "cpu_core", 3, CORE | 0x10002, 0, 16 } } },
		{ "r3c", 2, { { "cpu_atom", 10, 0x3c, 16, 8 }, { "cpu_core", 4, 0x3c, 0, 16 } } },
		{ "cpu_core/cycles/", 1, { { "cpu_core", 0, CORE, 0, 16 } } },
		{ "cpu_atom/instructions/k", 1, { { "cpu_atom", 0, ATOM | 1, 16, 8 } } },
		{ "cpu_atom/LLC-loads/", 1, { { "cpu_atom", 3, ATOM | 2, 16, 8 } } },
		{ "cpu_core/r1cd/", 1, { { "cpu_core", 4, 0x1cd, 0, 16 } } },
		/* Of both, with other bits; of one alone. */
		{ "topdown-bad-spec",
		  2,
		  { { "cpu_atom", 10, 0x73, 16, 8 }, { "cpu_core", 4, 0x8100, 0, 16 } } },
		{ "slots", 1, { { "cpu_core", 4, 0x400, 0, 16 } } },
		{ "cpu_*/mem-loads/",
		  2,
		  { { "cpu_atom", 10, 0x5d0, 16, 8 }, { "cpu_core", 4, 0x1cd, 0, 16 } } },
		{ "page-faults", 1, { { "", 1, 2, 0, 0 } } },
	};

	require(fakepmu_make(&root, fake_hybrid));
	for (size_t i = 0; i < COUNT(want); i++)
		check_parts(&want[i]);
	check(!parse("cpu/cycles/"));
	check_has(err.text, "cpu_atom, cpu_core");
	fakeroot_remove(&root);
}

static void big_and_little(void)
{
	static const struct want want[] = {
		{ "cycles",
		  2,
		  { { "armv8_cortex_a53", 0, 8ull << 32, 0, 4 },
		    { "armv8_cortex_a72", 0, 9ull << 32, 4, 2 } } },
		{ "r11",
		  2,
		  { { "armv8_cortex_a53", 8, 0x11, 0, 4 },
		    { "armv8_cortex_a72", 9, 0x11, 4, 2 } } },
		{ "cpu_cycles",
		  2,
		  { { "armv8_cortex_a53", 8, 0x11, 0, 4 },
		    { "armv8_cortex_a72", 9, 0x11, 4, 2 } } },
	};

	require(fakepmu_make(&root, fake_biglittle));
	for (size_t i = 0; i < COUNT(want); i++)
		check_parts(&want[i]);
	fakeroot_remove(&root);
}

/* The bits are the kernel's own, and old kernels know no others. */
static void one_kind_of_core_is_asked_plainly(void)
{
	static const struct want want[] = {
		{ "cycles", 1, { { "", 0, 0, 0, 0 } } },
		{ "LLC-loads", 1, { { "", 3, 2, 0, 0 } } },
		{ "r3c", 1, { { "", 4, 0x3c, 0, 0 } } },
	};

	require(fakepmu_make(&root, fake_server));
	for (size_t i = 0; i < COUNT(want); i++)
		check_parts(&want[i]);
	fakeroot_remove(&root);
	require(fakeroot_make(&root));
	for (size_t i = 0; i < COUNT(want); i++)
		check_parts(&want[i]);
	fakeroot_remove(&root);
}

/* Left unsaid, the kernel might take the kind that is offline, which would count nothing. */
static void a_kind_that_is_offline_has_no_part(void)
{
	static const struct want want = { "cycles", 1, { { "cpu_core", 0, CORE, 0, 16 } } };

	require(fakepmu_make(&root, fake_hybrid));
	require(fakeroot_file(&root, DEVICES "cpu_atom/cpus", "\n"));
	check_parts(&want);
	require(fakeroot_file(&root, DEVICES "cpu_atom/cpus", "x\n"));
	check(!parse("cycles"));
	check_int(err.cause, TALLY_CAUSE_IO);
	check_has(err.text, "cpu_atom");
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(performance_and_efficient_cores);
	tap_run(big_and_little);
	tap_run(one_kind_of_core_is_asked_plainly);
	tap_run(a_kind_that_is_offline_has_no_part);
	return tap_end();
}
