/* SPDX-License-Identifier: MIT */
/*
 * terms: what perf-list(1) says of pmu/terms/, for machines made up from their kernels' sysfs. The
 * words are those of the processors' manuals, worked out by hand from the bits of format/.
 */
#include <errno.h>
#include <stdlib.h>

#include <tally/event.h>

#include "event/terms.h"
#include "fakepmu.h"
#include "tap.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GUEST    TALLY_ATTR_EXCLUDE_GUEST

static struct fakeroot root;
static struct tally_error err;

static struct tally_events *parse(const char *text)
{
	struct tally_events *events = NULL;

	err = (struct tally_error){ 0 };
	if (tally_events_parse(&events, text, TALLY_OPTS(events, .root = root.path), &err) < 0)
		return NULL;
	return events;
}

struct want {
	const char *text;
	uint32_t type;
	uint64_t config, config1, config2;
};

static void check_all(const struct fakefile *machine, const struct want *want, size_t count)
{
	require(fakepmu_make(&root, machine));
	for (size_t i = 0; i < count; i++) {
		struct tally_events *events = parse(want[i].text);
		if (!events) {
			check_str(err.text, want[i].text);
			continue;
		}
		const struct tally_attr *a = tally_event_attr(tally_events_at(events, 0));
		check_int(tally_events_count(events), 1);
		check_int(a->type, want[i].type);
		check_u64(a->config, want[i].config);
		check_u64(a->config1, want[i].config1);
		check_u64(a->config2, want[i].config2);
		if (a->config != want[i].config)
			printf("# that was %s\n", want[i].text);
		tally_events_free(events);
	}
	fakeroot_remove(&root);
}

/* PPR of AMD family 17h: PERF_CTL has EventSelect[7:0] in bits 7:0, [11:8] in bits 35:32. */
static void amd_splits_its_event(void)
{
	static const struct want want[] = {
		{ "cpu/event=0x76/", 4, 0x76, 0, 0 },
		{ "cpu/event=0x1c7,umask=0x3/", 4, 0x1000003c7, 0, 0 },
		{ "cpu/umask=0x3,event=0x1c7/", 4, 0x1000003c7, 0, 0 },
		{ "cpu/event=0xfff/", 4, 0xf000000ff, 0, 0 },
		{ "cpu/event=455,umask=3/", 4, 0x1000003c7, 0, 0 },
		{ "cpu/event=0x76,edge,inv,cmask=1/", 4, 0x1840076, 0, 0 },
		{ "cpu/event=0x76,edge=0,inv=1/", 4, 0x800076, 0, 0 },
		{ "cpu/event=1,event=2/", 4, 2, 0, 0 },
		{ "cpu/config=0xf000000ff/", 4, 0xf000000ff, 0, 0 },
		{ "cpu/config=0xffff,umask=0/", 4, 0xff, 0, 0 },
		{ "cpu/umask=0,config=0xffff/", 4, 0xff, 0, 0 },
		{ "cpu/r1000003c7/", 4, 0x1000003c7, 0, 0 },
		{ "cpu/r0x3c/", 4, 0x3c, 0, 0 },
		{ "cpu/cpu-cycles/", 4, 0x76, 0, 0 },
		{ "cpu/cache-misses,cmask=2/", 4, 0x2000964, 0, 0 },
		{ "cpu/config1=7,config2=0x8/", 4, 0, 7, 8 },
		{ "cpu//", 4, 0, 0, 0 },
		{ "ibs_op/cnt_ctl/", 9, 0x80000, 0, 0 },
		{ "ibs_op//", 9, 0, 0, 0 },
	};

	check_all(fake_amd, want, COUNT(want));
}

/* SDM volume 3: IA32_PERFEVTSELx; MSR_PEBS_LD_LAT_THRESHOLD and MSR_OFFCORE_RSP are config1. */
static void intel_terms(void)
{
	static const struct want want[] = {
		{ "cpu/event=0x3c,umask=0x00,any=1/", 4, 0x20003c, 0, 0 },
		{ "cpu/mem-loads/", 4, 0x1cd, 3, 0 },
		{ "cpu/mem-loads,ldlat=32/", 4, 0x1cd, 32, 0 },
		{ "cpu/ldlat=32,mem-loads/", 4, 0x1cd, 32, 0 },
		{ "cpu/mem-loads=1/", 4, 0x1cd, 3, 0 },
		{ "cpu/MEM-LOADS/", 4, 0x1cd, 3, 0 },
		{ "mem-loads", 4, 0x1cd, 3, 0 },
		{ "cpu/event=0xb7,umask=1,offcore_rsp=0x3f80408fff/", 4, 0x1b7, 0x3f80408fff, 0 },
		{ "cpu/event=0xb7,offcore_rsp=0xffffffffffffffff/", 4, 0xb7, UINT64_MAX, 0 },
		{ "cpu/ event=0x3c , umask=1 /", 4, 0x13c, 0, 0 },
		{ "power/energy-pkg/", 11, 2, 0, 0 },
		{ "energy-pkg", 11, 2, 0, 0 },
		{ "uncore_cha/event=0x36,umask=0xc80ffe01/", 50, 0xc80ffe00000136, 0, 0 },
		{ "uncore_cha_1/event=0x36,umask=0xc80ffe01/", 51, 0xc80ffe00000136, 0, 0 },
		{ "msr/tsc/", 10, 0, 0, 0 },
		{ "msr/event=0xffffffffffffffff/", 10, UINT64_MAX, 0, 0 },
		{ "software/config=2/", 1, 2, 0, 0 },
		{ "software/page-faults/", 1, 2, 0, 0 },
		{ "software/cs/", 1, 3, 0, 0 },
		/* One kind of core: the kernel's own number does. */
		{ "cpu/branch-misses/", 0, 5, 0, 0 },
		{ "cpu/cycles/", 0, 0, 0, 0 },
		{ "cpu/LLC-load-misses/", 3, 0x10002, 0, 0 },
		{ "cpu/instructions/", 4, 0xc0, 0, 0 },
	};

	check_all(fake_server, want, COUNT(want));
}

static void arm_and_odd_terms(void)
{
	static const struct want arm[] = {
		{ "armv8_cortex_a53/event=0x11,long/", 8, 0x11, 1, 0 },
		{ "armv8_cortex_a72/cpu_cycles/", 9, 0x11, 0, 0 },
		{ "arm_spe_0/min_latency=4095/", 12, 0, 0, 4095 },
		{ "arm_spe/min_latency=1/", 12, 0, 0, 1 },
	};
	static const struct want odd[] = {
		{ "hv_24x7/CPM_CCYC,core=5/", 7, 0x7800050002, 0, 0 },
		{ "hv_24x7/core=5,CPM_CCYC/", 7, 0x7800050002, 0, 0 },
		{ "hv_24x7/CPM_CCYC,core=5,lpar=9/", 7, 0x7800050002, 9, 0 },
		{ "odd/level/", 99, 1ull << 63, 0, 0 },
		{ "odd/nothing/", 99, 0, 0, 0 },
	};

	check_all(fake_biglittle, arm, COUNT(arm));
	check_all(fake_odd, odd, COUNT(odd));
}

static void the_newest_words(void)
{
	require(fakepmu_make(&root, fake_odd));
	struct tally_events *events = parse("odd/newest=7,config3=0x8,high/");
	if (check(events != NULL)) {
		const struct tally_attr *a = tally_event_attr(tally_events_at(events, 0));
		check_u64(a->config, 1ull << 63);
		check_u64(a->config3, 8);
		check_u64(a->config4, 7);
		tally_events_free(events);
	}
	fakeroot_remove(&root);
}

/* Of a list with one event: its only part. */
static bool only_part(struct tally_event_part *part, struct tally_events *events)
{
	return check(events != NULL) && check(tally_event_parts(tally_events_at(events, 0)) == 1) &&
	       tally_event_part(tally_events_at(events, 0), 0, part);
}

static void a_pmu_of_packages_counts_on_its_cpus(void)
{
	struct tally_event_part part;

	require(fakepmu_make(&root, fake_server));
	struct tally_events *events = parse("power/energy-ram/");
	if (only_part(&part, events)) {
		const struct tally_event *e = tally_events_at(events, 0);
		check(part.per_cpu);
		check_int(part.cpu_count, 2);
		check_int(part.cpus[1], 28);
		check_str(part.pmu, "power");
		check_str(tally_event_unit(e), "Joules");
		/* 2^-16: Intel SDM, energy unit of the DRAM domain of servers. */
		check(tally_event_scale(e) == 1.0 / 65536);
		check(!tally_event_per_package(e) && !tally_event_snapshot(e));
	}
	tally_events_free(events);
	events = parse("cpu/event=1/");
	if (only_part(&part, events)) {
		check(!part.per_cpu && !part.cpus);
		check_str(part.pmu, "cpu");
		check_str(tally_event_unit(tally_events_at(events, 0)), "");
	}
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void boxes_are_parts_of_one_event(void)
{
	static const char *const names[] = { "uncore_imc/cas_count_read/", "imc/cas_count_read/",
					     "uncore_imc_*/cas_count_read/", "cas_count_read" };
	static const uint32_t types[] = { 20, 22, 30 };

	require(fakepmu_make(&root, fake_server));
	for (size_t i = 0; i < COUNT(names); i++) {
		struct tally_events *events = parse(names[i]);
		if (!events) {
			check_str(err.text, names[i]);
			continue;
		}
		const struct tally_event *e = tally_events_at(events, 0);
		check_str(tally_event_name(e), names[i]);
		check_int(tally_event_parts(e), 3);
		for (uint32_t k = 0; k < 3; k++) {
			struct tally_event_part part;
			if (!check(tally_event_part(e, k, &part)))
				continue;
			check_int(part.attr.type, types[k]);
			check_u64(part.attr.config, 0x304);
			check(part.per_cpu && part.cpu_count == 2);
		}
		check(tally_event_scale(e) == 6.103515625e-5);
		check_str(tally_event_unit(e), "MiB");
		tally_events_free(events);
	}
	fakeroot_remove(&root);
}

/* A pattern takes those PMUs that have it; here imc_0, imc_2, imc_10, cha_0 and cha_1. */
static void a_pattern_means_the_pmus_that_have_it(void)
{
	require(fakepmu_make(&root, fake_server));
	struct tally_events *events = parse("uncore_*/clockticks/");
	if (check(events != NULL))
		check_int(tally_event_parts(tally_events_at(events, 0)), 5);
	tally_events_free(events);
	check(!parse("uncore_*/nothing-like-it/"));
	check_int(err.cause, TALLY_CAUSE_UNKNOWN);
	/* energy-pkg and energy-ram have other scales, but these are two events of one PMU. */
	events = parse("power/energy-pkg/,power/energy-ram/");
	if (check(events != NULL))
		check_int(tally_events_count(events), 2);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void names_and_periods(void)
{
	require(fakepmu_make(&root, fake_server));
	struct tally_events *events = parse("cpu/event=1,name=stalls,period=1000/u,"
					    "cpu/freq=99,event=2/,cpu/event=3,name='a,b'/");
	if (check(events != NULL) && check(tally_events_count(events) == 3)) {
		const struct tally_event *e = tally_events_at(events, 0);
		check_str(tally_event_name(e), "stalls");
		check_u64(tally_event_attr(e)->sample_period, 0); /* counters have none */
		check_u64(e->rate.period, 1000);
		check(!e->rate.freq && !e->rate.by_default);
		check_u64(tally_event_attr(e)->flags,
			  TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | GUEST);
		e = tally_events_at(events, 1);
		check_str(tally_event_name(e), "cpu/freq=99,event=2/");
		check(e->rate.freq == 99 && !e->rate.period);
		check_u64(tally_event_attr(e)->flags, GUEST);
		check_str(tally_event_name(tally_events_at(events, 2)), "a,b");
	}
	tally_events_free(events);
	events = parse("{cpu/event=1,name=stalls/,cpu/event=2/}:u");
	if (check(events != NULL)) {
		check_str(tally_event_name(tally_events_at(events, 0)), "stalls");
		check_str(tally_event_name(tally_events_at(events, 1)), "cpu/event=2/:u");
	}
	tally_events_free(events);
	fakeroot_remove(&root);
}

/* Most PMUs but those of cores refuse every exclude bit: guests are left out only when asked. */
static void guests_are_left_out_where_that_can_be(void)
{
	static const struct {
		const char *text;
		uint64_t flags;
	} want[] = {
		{ "cpu/event=1/", GUEST },
		{ "software/config=2/", GUEST },
		{ "power/energy-pkg/", 0 },
		{ "msr/tsc/", 0 },
		{ "msr/tsc/H", GUEST },
		{ "msr/tsc/:u", TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV },
		{ "energy-pkg", 0 },
		{ "cpu/mem-loads/P", GUEST | TALLY_ATTR_PRECISE_IP },
		{ "cpu/mem-loads/:pp", GUEST | 2ull << TALLY_ATTR_PRECISE_IP_SHIFT },
	};

	require(fakepmu_make(&root, fake_server));
	for (size_t i = 0; i < COUNT(want); i++) {
		struct tally_events *events = parse(want[i].text);
		if (!events) {
			check_str(err.text, want[i].text);
			continue;
		}
		check_str(tally_event_name(tally_events_at(events, 0)), want[i].text);
		check_u64(tally_event_attr(tally_events_at(events, 0))->flags, want[i].flags);
		tally_events_free(events);
	}
	fakeroot_remove(&root);
}

static void in_lists_and_groups(void)
{
	require(fakepmu_make(&root, fake_server));
	struct tally_events *events = parse("{cpu/event=1,umask=2/,cpu/event=3/}:u cs,msr/tsc/");
	if (check(events != NULL) && check(tally_events_count(events) == 4)) {
		const struct tally_event *e = tally_events_at(events, 0);
		check_str(tally_event_name(e), "cpu/event=1,umask=2/:u");
		check_int(tally_event_group_size(e), 2);
		check_u64(tally_event_attr(e)->config, 0x201);
		check(tally_event_attr(e)->flags & TALLY_ATTR_EXCLUDE_KERNEL);
		check_str(tally_event_name(tally_events_at(events, 3)), "msr/tsc/");
	}
	tally_events_free(events);
	fakeroot_remove(&root);
}

struct wrong {
	const char *text;
	int column;
	uint32_t cause;
	const char *part;
};

static void check_wrong(const struct fakefile *machine, const struct wrong *wrong, size_t count)
{
	char column[32];

	require(fakepmu_make(&root, machine));
	for (size_t i = 0; i < count; i++) {
		struct tally_events *events = parse(wrong[i].text);
		if (events) {
			check_str("taken", wrong[i].text);
			tally_events_free(events);
			continue;
		}
		snprintf(column, sizeof(column), "column %d:", wrong[i].column);
		check_has(err.text, column);
		check_has(err.text, wrong[i].part);
		check_int(err.code, -EINVAL);
		check_str(tally_cause_name(err.cause), tally_cause_name(wrong[i].cause));
	}
	fakeroot_remove(&root);
}

static void errors_say_where_and_why(void)
{
	static const struct wrong wrong[] = {
		{ "cs,cpu/event=3c/", 8, TALLY_CAUSE_SYNTAX, "hex begins with 0x" },
		{ "cpu/event=c3/", 5, TALLY_CAUSE_SYNTAX, "hex begins with 0x" },
		{ "cpu/event=-1/", 5, TALLY_CAUSE_SYNTAX, "no number" },
		{ "cpu/event=/", 5, TALLY_CAUSE_SYNTAX, "no number" },
		{ "cpu/event=?/", 5, TALLY_CAUSE_SYNTAX, "give one" },
		{ "cpu/event=1=2/", 5, TALLY_CAUSE_SYNTAX, "no number" },
		{ "cpu/event=0x10000000000000000/", 5, TALLY_CAUSE_SYNTAX, "64 bits" },
		{ "cpu/umask=1,event=0x100/", 13, TALLY_CAUSE_UNSUPPORTED,
		  "event has 8 bits, 0x100 needs 9" },
		{ "cpu/any=2/", 5, TALLY_CAUSE_UNSUPPORTED, "any has 1 bit, 0x2 needs 2" },
		{ "cpu/evnt=1/", 5, TALLY_CAUSE_UNKNOWN, "nearest is 'event'" },
		{ "cpu/mem-load/", 5, TALLY_CAUSE_UNKNOWN, "nearest is 'mem-loads'" },
		{ "cpu/cycels/", 5, TALLY_CAUSE_UNKNOWN, "nearest is 'cycles'" },
		{ "cpu/peroid=3/", 5, TALLY_CAUSE_UNKNOWN, "nearest is 'period'" },
		{ "cpu/quux-of-nothing/", 5, TALLY_CAUSE_UNKNOWN, "has any, cmask, event" },
		{ "cpu/page-faults/", 5, TALLY_CAUSE_UNKNOWN, "no term or event" },
		{ "msr/cycles/", 5, TALLY_CAUSE_UNKNOWN, "no term or event" },
		{ "power/energy-pkg.scale/", 7, TALLY_CAUSE_UNKNOWN, "no term or event" },
		{ "cpu/../", 5, TALLY_CAUSE_UNKNOWN, "no term or event" },
		{ "cpu/event=1,,umask=1/", 13, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cpu/event=1,/", 13, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cpu/=1/", 5, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cpu/event=1", 4, TALLY_CAUSE_SYNTAX, "not closed" },
		{ "/event=1/", 1, TALLY_CAUSE_SYNTAX, "PMU is missing" },
		{ "cpu/event=1/x", 13, TALLY_CAUSE_SYNTAX, "no modifier 'x'" },
		{ "cpu/event=1/:", 14, TALLY_CAUSE_SYNTAX, "modifier is missing" },
		{ "cpu/mem-loads,cpu-cycles/", 15, TALLY_CAUSE_SYNTAX, "two events" },
		{ "cpu/branch-misses,umask=1/", 5, TALLY_CAUSE_UNSUPPORTED, "umask" },
		{ "cpu/event=1,name=/", 13, TALLY_CAUSE_SYNTAX, "name" },
		{ "cpu/event=1,period=0/", 13, TALLY_CAUSE_SYNTAX, "above 0" },
		{ "cpu/event=1,freq/", 13, TALLY_CAUSE_SYNTAX, "above 0" },
		{ "cpu/event=1,percore/", 13, TALLY_CAUSE_UNSUPPORTED, "percore" },
		{ "cpu/r12345678901234567/", 5, TALLY_CAUSE_UNSUPPORTED, "64 bits" },
		{ "cs,mrs/tsc/", 4, TALLY_CAUSE_UNKNOWN, "nearest is 'msr'" },
		{ "uncore_imv/clockticks/", 1, TALLY_CAUSE_UNKNOWN, "nearest is 'uncore_imc'" },
		{ "uncore_upi/clockticks/", 1, TALLY_CAUSE_UNSUPPORTED, "offline" },
		{ "zzzzzzzzz/clockticks/", 1, TALLY_CAUSE_UNKNOWN, "devices" },
		{ "../cpu/event=1/", 1, TALLY_CAUSE_UNKNOWN, "no PMU '..'" },
		{ "cpu_core/cycles/", 1, TALLY_CAUSE_UNKNOWN, "here the cores have cpu" },
		{ "cs,power:u", 4, TALLY_CAUSE_UNKNOWN, "'power' is a PMU" },
		{ "uncore_imc", 1, TALLY_CAUSE_UNKNOWN, "as uncore_imc/.../" },
		{ "cs,energy-pgk", 4, TALLY_CAUSE_UNKNOWN, "nearest is 'energy-pkg'" },
		{ "cs,clockticks", 4, TALLY_CAUSE_UNKNOWN,
		  "of PMU 'uncore_cha' and of PMU 'uncore_imc'" },
	};
	static const struct wrong odd[] = {
		{ "hv_24x7/CPM_CCYC/", 9, TALLY_CAUSE_SYNTAX, "needs core: add core=NUMBER" },
		{ "hv_24x7/CPM_CCYC,core=?/", 18, TALLY_CAUSE_SYNTAX, "give one" },
		{ "hv_24x7/CPM_CCYC,core=0x10000/", 18, TALLY_CAUSE_UNSUPPORTED, "16 bits" },
		{ "cs,CPM_CCYC", 4, TALLY_CAUSE_SYNTAX, "needs core" },
		{ "odd/unknown-term/", 5, TALLY_CAUSE_UNSUPPORTED,
		  "'evnt', which its format/ lacks" },
		{ "odd/no-number/", 5, TALLY_CAUSE_SYNTAX, "no number" },
		{ "odd/too-big/", 5, TALLY_CAUSE_UNSUPPORTED, "1 bit" },
		{ "odd/bad-scale/", 5, TALLY_CAUSE_UNSUPPORTED, "bad-scale" },
		{ "odd/beyond=1/", 5, TALLY_CAUSE_UNSUPPORTED, "format/beyond" },
		{ "odd/nowhere=1/", 5, TALLY_CAUSE_UNSUPPORTED, "format/nowhere" },
		{ "broken/config=1/", 1, TALLY_CAUSE_IO, "devices/broken" },
		{ "offline/config=1/", 1, TALLY_CAUSE_UNSUPPORTED, "offline" },
		{ "cpu/cycles/", 1, TALLY_CAUSE_NO_PMU, "no hardware counters" },
	};

	check_wrong(fake_server, wrong, COUNT(wrong));
	check_wrong(fake_odd, odd, COUNT(odd));
}

/* As the tables of vendors use it: the terms are not in the text that was written. */
static void terms_from_elsewhere(void)
{
	const char *text = "cs,MEM_LOAD.L3_MISS";
	const struct naming n = { .text = text, .root = root.path, .err = &err };
	const char *terms = "event=0xd1,umask=0x20,period=100007";
	struct found found = { 0 };

	require(fakepmu_make(&root, fake_server));
	struct found_event *e = found_add(&found, 0, 0);
	check_int(terms_apply(&n, "cpu", terms, strlen(terms), text + 3, e), 0);
	check_u64(e->attr.config, 0x20d1);
	check(e->rate.period == 100007 && e->rate.by_default);
	check_int(e->parts.count, 1);
	e = found_add(&found, 0, 0);
	terms = "event=0xd1,umsk=0x20";
	check_int(terms_apply(&n, "cpu", terms, strlen(terms), text + 3, e), -EINVAL);
	check_has(err.text, "column 4:");
	check_has(err.text, "umsk");
	e = found_add(&found, 0, 0);
	check_int(terms_apply(&n, "cpu_atom", terms, 10, text + 3, e), -EINVAL);
	check_has(err.text, "column 4:");
	found_done(&found);
	fakeroot_remove(&root);
}

static void terms_of_both_kinds_of_cores(void)
{
	const struct naming n = { .text = "x", .root = root.path, .err = &err };
	struct found found = { 0 };

	require(fakepmu_make(&root, fake_hybrid));
	struct found_event *e = found_add(&found, 0, 0);
	check_int(terms_apply(&n, NULL, "mem-loads", 9, n.text, e), 0);
	require(e->parts.count == 2);
	check_str(e->parts.at[0].pmu, "cpu_atom");
	check_u64(e->parts.at[0].config, 0x5d0);
	check_u64(e->parts.at[1].config, 0x1cd);
	check_int(e->parts.at[1].cpu_count, 16);
	check(!e->parts.at[1].per_cpu && !e->all_modes);
	found_done(&found);
	fakeroot_remove(&root);
}

static void too_many_terms_are_refused_cheaply(void)
{
	size_t len = 1u << 20;
	char *text = malloc(len + 2);

	require(text && fakepmu_make(&root, fake_server));
	for (size_t i = 0; i + 4 <= len; i += 4)
		memcpy(text + i, i ? "any," : "cpu/", 4);
	memcpy(text + len, "/", 2);
	check(!parse(text));
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	memset(text + 4, 'a', len - 4);
	check(!parse(text));
	check_int(err.cause, TALLY_CAUSE_SYNTAX);
	free(text);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(amd_splits_its_event);
	tap_run(intel_terms);
	tap_run(arm_and_odd_terms);
	tap_run(the_newest_words);
	tap_run(a_pmu_of_packages_counts_on_its_cpus);
	tap_run(boxes_are_parts_of_one_event);
	tap_run(a_pattern_means_the_pmus_that_have_it);
	tap_run(names_and_periods);
	tap_run(guests_are_left_out_where_that_can_be);
	tap_run(in_lists_and_groups);
	tap_run(errors_say_where_and_why);
	tap_run(terms_from_elsewhere);
	tap_run(terms_of_both_kinds_of_cores);
	tap_run(too_many_terms_are_refused_cheaply);
	return tap_end();
}
