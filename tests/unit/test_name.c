/* SPDX-License-Identifier: MIT */
/*
 * name: texts as perf-list(1) describes them, with the kernel's numbers (<linux/perf_event.h>).
 * tests/cli/test_event_names.py compares with perf itself.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <tally/event.h>

#include "event/nearest.h"
#include "event/table.h"
#include "fakeroot.h"
#include "tap.h"

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define U          TALLY_ATTR_EXCLUDE_USER
#define K          TALLY_ATTR_EXCLUDE_KERNEL
#define HV         TALLY_ATTR_EXCLUDE_HV
#define HOST       TALLY_ATTR_EXCLUDE_HOST
#define GUEST      TALLY_ATTR_EXCLUDE_GUEST
#define IDLE       TALLY_ATTR_EXCLUDE_IDLE
#define PRECISE(n) ((uint64_t)(n) << 15)
#define CACHE(c, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##c | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static struct fakeroot root;

static int parse(struct tally_events **events, const char *text, struct tally_error *err)
{
	*events = NULL;
	*err = (struct tally_error){ 0 };
	return tally_events_parse(events, text, TALLY_OPTS(events, .root = root.path), err);
}

static void one(const char *text, uint32_t type, uint64_t config, uint64_t flags)
{
	struct tally_events *events;
	struct tally_error err;

	if (parse(&events, text, &err) < 0) {
		check_str(err.text, text);
		return;
	}
	const struct tally_event *e = tally_events_at(events, 0);
	const struct tally_attr *attr = tally_event_attr(e);
	check_int(tally_events_count(events), 1);
	check_str(tally_event_name(e), text);
	check_u64(attr->type, type);
	check_u64(attr->config, config);
	if (attr->flags != flags)
		printf("# the flags of %s:\n", text);
	check_u64(attr->flags, flags);
	check_u64(attr->sample_period, 0);
	check_int(tally_event_leader(e), 0);
	check_int(tally_event_group_size(e), 1);
	tally_events_free(events);
}

static void hardware_names(void)
{
	static const struct {
		const char *name;
		uint64_t config;
	} names[] = {
		{ "cpu-cycles", PERF_COUNT_HW_CPU_CYCLES },
		{ "cycles", PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", PERF_COUNT_HW_INSTRUCTIONS },
		{ "cache-references", PERF_COUNT_HW_CACHE_REFERENCES },
		{ "cache-misses", PERF_COUNT_HW_CACHE_MISSES },
		{ "branch-instructions", PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "branch-misses", PERF_COUNT_HW_BRANCH_MISSES },
		{ "bus-cycles", PERF_COUNT_HW_BUS_CYCLES },
		{ "stalled-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
		{ "idle-cycles-frontend", PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
		{ "stalled-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ "idle-cycles-backend", PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ "ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES },
	};

	for (size_t i = 0; i < COUNT(names); i++)
		one(names[i].name, PERF_TYPE_HARDWARE, names[i].config, GUEST);
}

static void software_names(void)
{
	static const struct {
		const char *name;
		uint64_t config;
	} names[] = {
		{ "cpu-clock", PERF_COUNT_SW_CPU_CLOCK },
		{ "task-clock", PERF_COUNT_SW_TASK_CLOCK },
		{ "page-faults", PERF_COUNT_SW_PAGE_FAULTS },
		{ "faults", PERF_COUNT_SW_PAGE_FAULTS },
		{ "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cs", PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS },
		{ "migrations", PERF_COUNT_SW_CPU_MIGRATIONS },
		{ "minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN },
		{ "major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ },
		{ "alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS },
		{ "emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS },
		{ "dummy", PERF_COUNT_SW_DUMMY },
		{ "bpf-output", PERF_COUNT_SW_BPF_OUTPUT },
		{ "cgroup-switches", PERF_COUNT_SW_CGROUP_SWITCHES },
	};

	for (size_t i = 0; i < COUNT(names); i++)
		one(names[i].name, PERF_TYPE_SOFTWARE, names[i].config, GUEST);
}

static void cache_names(void)
{
	static const struct {
		const char *name;
		uint64_t config;
	} names[] = {
		{ "L1-dcache-loads", CACHE(L1D, READ, ACCESS) },
		{ "L1-dcache-load-misses", CACHE(L1D, READ, MISS) },
		{ "L1-dcache-stores", CACHE(L1D, WRITE, ACCESS) },
		{ "L1-dcache-store-misses", CACHE(L1D, WRITE, MISS) },
		{ "L1-dcache-prefetches", CACHE(L1D, PREFETCH, ACCESS) },
		{ "L1-dcache-prefetch-misses", CACHE(L1D, PREFETCH, MISS) },
		{ "l1d", CACHE(L1D, READ, ACCESS) },
		{ "l1-d-write-miss", CACHE(L1D, WRITE, MISS) },
		{ "L1-data-misses-stores", CACHE(L1D, WRITE, MISS) },
		{ "L1-icache-load-misses", CACHE(L1I, READ, MISS) },
		{ "L1-icache-prefetches", CACHE(L1I, PREFETCH, ACCESS) },
		{ "LLC-loads", CACHE(LL, READ, ACCESS) },
		{ "LLC-misses", CACHE(LL, READ, MISS) },
		{ "L2-prefetch-misses", CACHE(LL, PREFETCH, MISS) },
		{ "dTLB-store-misses", CACHE(DTLB, WRITE, MISS) },
		{ "d-tlb-speculative-read", CACHE(DTLB, PREFETCH, ACCESS) },
		{ "Data-TLB-speculative-load-miss", CACHE(DTLB, PREFETCH, MISS) },
		{ "iTLB-load-misses", CACHE(ITLB, READ, MISS) },
		{ "branch-loads", CACHE(BPU, READ, ACCESS) },
		{ "branch-load-misses", CACHE(BPU, READ, MISS) },
		{ "bpc-Reference", CACHE(BPU, READ, ACCESS) },
		{ "node", CACHE(NODE, READ, ACCESS) },
		{ "node-store-misses", CACHE(NODE, WRITE, MISS) },
	};

	for (size_t i = 0; i < COUNT(names); i++)
		one(names[i].name, PERF_TYPE_HW_CACHE, names[i].config, GUEST);
}

static void raw_names(void)
{
	one("r1a8", PERF_TYPE_RAW, 0x1a8, GUEST);
	one("rFFFFffffFFFFffff", PERF_TYPE_RAW, UINT64_MAX, GUEST);
	one("r0x3c:u", PERF_TYPE_RAW, 0x3c, GUEST | K | HV);
	one("r0", PERF_TYPE_RAW, 0, GUEST);
}

static void modifiers_exclude_the_others(void)
{
	one("cycles:u", 0, 0, K | HV | GUEST);
	one("cycles:k", 0, 0, U | HV | GUEST);
	one("cycles:h", 0, 0, U | K | GUEST);
	one("cycles:uk", 0, 0, HV | GUEST);
	one("cycles:ukh", 0, 0, GUEST);
	one("cycles:H", 0, 0, GUEST);
	one("cycles:G", 0, 0, HOST);
	one("cycles:GH", 0, 0, 0);
	one("cycles:uG", 0, 0, K | HV | HOST);
	one("cycles:I", 0, 0, IDLE | GUEST);
	one("cycles:p", 0, 0, PRECISE(1) | GUEST);
	one("cycles:pp", 0, 0, PRECISE(2) | GUEST);
	one("cycles:ppp", 0, 0, PRECISE(3) | GUEST);
	one("cycles:pup", 0, 0, PRECISE(2) | GUEST | K | HV);
	one("cycles:P", 0, 0, PRECISE(3) | GUEST);
	one("cycles:D", 0, 0, TALLY_ATTR_PINNED | GUEST);
	one("cycles:e", 0, 0, TALLY_ATTR_EXCLUSIVE | GUEST);
	one("cycles:eDu", 0, 0, TALLY_ATTR_EXCLUSIVE | TALLY_ATTR_PINNED | K | HV | GUEST);
	one("cycles:W", 0, 0, GUEST);
	one("page-faults:u", 1, 2, K | HV | GUEST);
	one("dummy:HG", 1, 9, 0);
	one("LLC-misses:k", 3, 0x10002, U | HV | GUEST);
}

static void read_group_is_no_attr(void)
{
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "cs:S,{cs,faults}:S,cs", &err), 0);
	require(events);
	check(tally_event_reads_group(tally_events_at(events, 0)));
	check(tally_event_reads_group(tally_events_at(events, 1)));
	check(!tally_event_reads_group(tally_events_at(events, 3)));
	check_u64(tally_event_attr(tally_events_at(events, 0))->flags, GUEST);
	tally_events_free(events);
}

/* perf splits a weak group as a whole: any member may say that it is one. */
static void weak_groups(void)
{
	static const bool want[] = { true, true, true, true, false, false, true };
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "{cs,faults}:W,{cs,faults:W},{cs,faults},cs:W", &err), 0);
	require(events);
	for (uint32_t i = 0; i < COUNT(want); i++)
		check(tally_event_is_weak(tally_events_at(events, i)) == want[i]);
	check_str(tally_event_name(tally_events_at(events, 0)), "cs");
	tally_events_free(events);
}

/* exclusive, as pinned, is the leader's: the kernel refuses it on a sibling (attr.exclusive). */
static void an_exclusive_group(void)
{
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "{cs,faults}:e", &err), 0);
	require(events);
	check_u64(tally_event_attr(tally_events_at(events, 0))->flags,
		  GUEST | TALLY_ATTR_EXCLUSIVE);
	check_u64(tally_event_attr(tally_events_at(events, 1))->flags, GUEST);
	tally_events_free(events);
}

static void lists_and_groups(void)
{
	static const struct {
		const char *name;
		uint32_t leader, size;
	} want[] = {
		{ "cycles", 0, 1 }, { "cs", 1, 1 }, { "faults", 2, 3 }, { "cs:k", 2, 3 },
		{ "dummy", 2, 3 },  { "r1", 5, 1 }, { "cs", 6, 1 },     { "cycles", 7, 1 },
	};
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, " cycles\tcs ,{ faults,cs:k dummy } r1,\n{cs},cycles\n", &err), 0);
	require(events);
	check_int(tally_events_count(events), COUNT(want));
	for (uint32_t i = 0; i < COUNT(want); i++) {
		const struct tally_event *e = tally_events_at(events, i);
		check_str(tally_event_name(e), want[i].name);
		check_int(tally_event_index(e), i);
		check_int(tally_event_leader(e), want[i].leader);
		check_int(tally_event_group_size(e), want[i].size);
	}
	check(!tally_events_at(events, COUNT(want)));
	tally_events_free(events);
}

static void group_modifiers_add_to_the_members(void)
{
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "{cycles:u,instructions,faults:p}:kpD", &err), 0);
	require(events);
	const struct tally_event *e = tally_events_at(events, 0);
	check_str(tally_event_name(e), "cycles:ukp");
	check_u64(tally_event_attr(e)->flags, HV | GUEST | PRECISE(1) | TALLY_ATTR_PINNED);
	e = tally_events_at(events, 1);
	check_str(tally_event_name(e), "instructions:kp");
	check_u64(tally_event_attr(e)->flags, U | HV | GUEST | PRECISE(1));
	e = tally_events_at(events, 2);
	check_str(tally_event_name(e), "faults:pkp");
	check_u64(tally_event_attr(e)->flags, U | HV | GUEST | PRECISE(2));
	tally_events_free(events);

	/* What perf 6.1 makes of it. */
	check_int(parse(&events, "{page-faults:u,faults:p}:G", &err), 0);
	require(events);
	check_u64(tally_event_attr(tally_events_at(events, 0))->flags, K | HV | HOST);
	check_u64(tally_event_attr(tally_events_at(events, 1))->flags, PRECISE(1) | HOST);
	tally_events_free(events);
}

static void units(void)
{
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "cpu-clock,task-clock:u,faults,cycles", &err), 0);
	require(events);
	check_str(tally_event_unit(tally_events_at(events, 0)), "ns");
	check_str(tally_event_unit(tally_events_at(events, 1)), "ns");
	check_str(tally_event_unit(tally_events_at(events, 2)), "");
	check_str(tally_event_unit(tally_events_at(events, 3)), "");
	check(tally_event_scale(tally_events_at(events, 0)) == 1.0);
	tally_events_free(events);
}

static void errors_say_where_and_why(void)
{
	static const struct {
		const char *text;
		int column;
		uint32_t cause;
		const char *part;
	} wrong[] = {
		{ "", 1, TALLY_CAUSE_SYNTAX, "no event" },
		{ "  \t", 4, TALLY_CAUSE_SYNTAX, "no event" },
		{ "cs,", 4, TALLY_CAUSE_SYNTAX, "missing" },
		{ ",cs", 1, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cs,,cs", 4, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cs , , cs", 6, TALLY_CAUSE_SYNTAX, "missing" },
		{ "{cs,faults", 1, TALLY_CAUSE_SYNTAX, "not closed" },
		{ "cs,{", 5, TALLY_CAUSE_SYNTAX, "missing" },
		{ "{}", 2, TALLY_CAUSE_SYNTAX, "missing" },
		{ "{cs,}", 5, TALLY_CAUSE_SYNTAX, "missing" },
		{ "cs}", 3, TALLY_CAUSE_SYNTAX, "closes nothing" },
		{ "{cs,{faults}}", 5, TALLY_CAUSE_SYNTAX, "another group" },
		{ "{cs}faults", 5, TALLY_CAUSE_SYNTAX, "comma" },
		{ "cs{faults}", 3, TALLY_CAUSE_SYNTAX, "comma" },
		{ "cs:", 4, TALLY_CAUSE_SYNTAX, "modifier is missing" },
		{ "{cs}:", 6, TALLY_CAUSE_SYNTAX, "modifier is missing" },
		{ "cs :u", 4, TALLY_CAUSE_SYNTAX, "name is missing" },
		{ "cs:uku", 6, TALLY_CAUSE_SYNTAX, "twice" },
		{ "cs:ux", 5, TALLY_CAUSE_SYNTAX, "no modifier 'x'" },
		{ "cs:u:k", 5, TALLY_CAUSE_SYNTAX, "no modifier ':'" },
		{ "cs:pppp", 7, TALLY_CAUSE_SYNTAX, "ppp" },
		{ "{cs:pp}:pp", 9, TALLY_CAUSE_SYNTAX, "more than three p" },
		{ "{cs,faults:D}", 12, TALLY_CAUSE_SYNTAX, "pinned" },
		{ "{cs,faults:e}", 12, TALLY_CAUSE_SYNTAX, "exclusive" },
		{ "cs:ub", 5, TALLY_CAUSE_UNSUPPORTED, "BPF" },
		{ "cs:WW", 5, TALLY_CAUSE_SYNTAX, "twice" },
		{ "cs,duration_time", 4, TALLY_CAUSE_UNSUPPORTED, "elapsed time" },
		{ "user_time:u", 1, TALLY_CAUSE_UNSUPPORTED, "elapsed time" },
		{ "system_time", 1, TALLY_CAUSE_UNSUPPORTED, "elapsed time" },
		{ "cs,cycels", 4, TALLY_CAUSE_UNKNOWN, "'cycels', the nearest is 'cycles'" },
		{ "cs,cycels:u", 4, TALLY_CAUSE_UNKNOWN, "'cycels', the nearest is 'cycles'" },
		{ "CYCLES", 1, TALLY_CAUSE_UNKNOWN, "nearest is 'cycles'" },
		{ "page-fault", 1, TALLY_CAUSE_UNKNOWN, "nearest is 'page-faults'" },
		{ "LLC-load-missses", 1, TALLY_CAUSE_UNKNOWN, "nearest is 'LLC-load-misses'" },
		{ "ctx-switches", 1, TALLY_CAUSE_UNKNOWN, "nearest is 'context-switches'" },
		{ "quux-of-nothing", 1, TALLY_CAUSE_UNKNOWN, "'tally list'" },
		{ "L1-icache-stores", 1, TALLY_CAUSE_UNSUPPORTED, "not written" },
		{ "iTLB-prefetches", 1, TALLY_CAUSE_UNSUPPORTED, "looked up" },
		{ "iTLB-stores", 1, TALLY_CAUSE_UNSUPPORTED, "looked up" },
		{ "branch-stores", 1, TALLY_CAUSE_UNSUPPORTED, "looked up" },
		{ "LLC-loads-stores", 1, TALLY_CAUSE_UNKNOWN, "no event" },
		{ "LLC-", 1, TALLY_CAUSE_UNKNOWN, "no event" },
		{ "r", 1, TALLY_CAUSE_UNKNOWN, "no event" },
		{ "r12345678901234567", 1, TALLY_CAUSE_UNSUPPORTED, "64 bits" },
		{ "cs,cpu/event=1,umask=2/", 4, TALLY_CAUSE_NO_PMU, "no PMU 'cpu'" },
		{ "cs,cpu/event=1,umask=2", 7, TALLY_CAUSE_SYNTAX, "not closed" },
		{ "/event=1/", 1, TALLY_CAUSE_SYNTAX, "PMU is missing" },
	};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct tally_events *events;
		struct tally_error err;
		char column[32];
		check_int(parse(&events, wrong[i].text, &err), -EINVAL);
		check(!events);
		snprintf(column, sizeof(column), "column %d:", wrong[i].column);
		check_has(err.text, column);
		check_has(err.text, wrong[i].part);
		check_str(tally_cause_name(err.cause), tally_cause_name(wrong[i].cause));
	}
}

static void hostile_texts_are_refused_cheaply(void)
{
	struct tally_events *events;
	struct tally_error err;
	size_t len = 1u << 20;
	char *text = malloc(len + 1);

	require(text);
	static const char fill[] = "a:{},r/\xff\x01p ";
	for (size_t i = 0; i < sizeof(fill) - 1; i++) {
		memset(text, fill[i], len);
		text[len] = '\0';
		check_int(parse(&events, text, &err), -EINVAL);
		for (const char *c = err.text; *c; c++)
			check((unsigned char)*c >= 0x20);
	}
	for (size_t i = 0; i < len; i += 2)
		memcpy(text + i, "r1", 2);
	for (size_t i = 2; i < len; i += 3)
		text[i] = ',';
	check_int(parse(&events, text, &err), -EINVAL);
	check(err.cause == TALLY_CAUSE_LIMIT || err.cause == TALLY_CAUSE_UNKNOWN);
	memset(text, ',', len);
	for (size_t i = 0; i + 3 < len; i += 3)
		memcpy(text + i, "cs", 2);
	check_int(parse(&events, text, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	free(text);
	check_int(parse(&events, "../../etc:passwd", &err), -EINVAL);
	check_int(tally_events_parse(&events, NULL, NULL, &err), -EINVAL);
	check_int(tally_events_parse(&events, "cycels", NULL, NULL), -EINVAL);
}

static void options_are_checked(void)
{
	struct tally_events *events;
	struct tally_error err;
	struct tally_events_opts opts = { .size = 0 };

	check_int(tally_events_parse(&events, "cs", &opts, &err), -EINVAL);
	opts.size = sizeof(opts);
	opts.fallback = 1u << 31;
	check_int(tally_events_parse(&events, "cs", &opts, &err), -EINVAL);
	opts.fallback = 0;
	opts.flags = 1;
	check_int(tally_events_parse(&events, "cs", &opts, &err), -EINVAL);
}

/* What is listed parses to what it is listed as. */
static void the_table_and_the_parser_agree(void)
{
	struct table_entry e;
	size_t i = 0;
	char last[64] = "", name[64];
	uint32_t last_kind = 0;

	for (; table_at(i, &e); i++) {
		one(e.name, e.type, e.config, GUEST);
		if (e.alias)
			one(e.alias, e.type, e.config, GUEST);
		check(table_name(name, sizeof(name), e.type, e.config));
		check_str(name, e.name);
		check(e.kind > last_kind || (e.kind == last_kind && strcmp(e.name, last) > 0));
		snprintf(last, sizeof(last), "%s", e.name);
		last_kind = e.kind;
		check(e.description && *e.description);
	}
	/* 10 and 12 in the kernel's ABI; loads, stores, prefetches of 7 caches without 5 of them. */
	check_int(i, PERF_COUNT_HW_MAX + PERF_COUNT_SW_MAX + (3 * 7 - 5) * 2);
}

static void nearest_counts_edits(void)
{
	struct nearest n;

	nearest_init(&n, "kitten", 6);
	nearest_offer(&n, "sitting"); /* 3 edits: too far for 6 letters */
	check_str(n.name, "");
	nearest_offer(&n, "mitten");
	check_str(n.name, "mitten");
	check_int(n.distance, 1);
	nearest_offer(&n, "kittens"); /* no nearer */
	check_str(n.name, "mitten");

	nearest_init(&n, "ab", 2);
	nearest_offer(&n, "ba");
	check_int(n.distance, 1); /* a swap is one slip */
	nearest_init(&n, "", 0);
	nearest_offer(&n, "cs");
	check_str(n.name, "cs");
}

static void events_of_an_attr(void)
{
	struct tally_events *events;
	struct tally_error err;
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_HW_CACHE, 0x10002);
	attr.sample_period = 7;
	check_int(tally_events_new(&events, NULL, &attr, NULL, &err), 0);
	check_str(tally_event_name(tally_events_at(events, 0)), "LLC-load-misses");
	check_u64(tally_event_attr(tally_events_at(events, 0))->sample_period, 7);
	check(!tally_event_granted(tally_events_at(events, 0)));
	check(!tally_event_compromise(tally_events_at(events, 0)));
	tally_events_free(events);

	tally_attr_init(&attr, TALLY_TYPE_RAW, 0x1c4);
	check_int(tally_events_new(&events, NULL, &attr, NULL, &err), 0);
	check_str(tally_event_name(tally_events_at(events, 0)), "r1c4");
	tally_events_free(events);

	tally_attr_init(&attr, 42, 5);
	check_int(tally_events_new(&events, "mine", &attr, NULL, &err), 0);
	check_str(tally_event_name(tally_events_at(events, 0)), "mine");
	tally_events_free(events);

	check_int(tally_events_new(&events, "mine", NULL, NULL, &err), -EINVAL);
	attr.size = 63;
	check_int(tally_events_new(&events, "mine", &attr, NULL, &err), -EINVAL);
	attr.size = UINT32_MAX;
	check_int(tally_events_new(&events, "mine", &attr, NULL, &err), -EINVAL);
	tally_events_free(NULL);
}

/* A kernel's struct, older and so shorter than ours, is read no further than it goes. */
static void events_of_a_kernels_attr(void)
{
	struct tally_events *events;
	const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					      .size = PERF_ATTR_SIZE_VER0,
					      .config = PERF_COUNT_SW_PAGE_FAULTS };
	void *theirs = malloc(PERF_ATTR_SIZE_VER0);

	require(theirs);
	memcpy(theirs, &attr, PERF_ATTR_SIZE_VER0);
	check_int(tally_events_new(&events, NULL, theirs, NULL, NULL), 0);
	check_str(tally_event_name(tally_events_at(events, 0)), "page-faults");
	tally_events_free(events);
	free(theirs);
}

static void a_plain_event_is_one_part_everywhere(void)
{
	struct tally_event_part part = { .cpu_count = 7 };
	struct tally_events *events;
	struct tally_error err;

	require(parse(&events, "cycles:u", &err) == 0);
	struct tally_event *e = tally_events_at(events, 0);
	check_int(tally_event_parts(e), 1);
	check(!tally_event_part(e, 1, &part));
	check_int(part.cpu_count, 7);
	require(tally_event_part(e, 0, &part));
	check(!memcmp(&part.attr, tally_event_attr(e), sizeof(part.attr)));
	check(!part.cpus && !part.cpu_count && !part.per_cpu);
	check_str(part.pmu, "");
	check(tally_event_scale(e) == 1.0);
	check(!tally_event_per_package(e) && !tally_event_snapshot(e));
	tally_events_free(events);
}

static void a_filter_is_kept_as_a_copy(void)
{
	char text[] = "prev_pid == 1";
	struct tally_events *events;
	struct tally_error err;

	require(parse(&events, "cycles", &err) == 0);
	struct tally_event *e = tally_events_at(events, 0);
	check(!tally_event_filter(e));
	check_int(tally_event_set_filter(e, text), 0);
	text[0] = 'x';
	check_str(tally_event_filter(e), "prev_pid == 1");
	check_int(tally_event_set_filter(e, NULL), 0);
	check(!tally_event_filter(e));
	tally_events_free(events);
}

int main(void)
{
	/* Without a tracefs: what the machine has mounted makes no difference. */
	if (!fakeroot_make(&root))
		return 1;
	tap_run(hardware_names);
	tap_run(software_names);
	tap_run(cache_names);
	tap_run(raw_names);
	tap_run(modifiers_exclude_the_others);
	tap_run(read_group_is_no_attr);
	tap_run(weak_groups);
	tap_run(an_exclusive_group);
	tap_run(lists_and_groups);
	tap_run(group_modifiers_add_to_the_members);
	tap_run(units);
	tap_run(errors_say_where_and_why);
	tap_run(hostile_texts_are_refused_cheaply);
	tap_run(options_are_checked);
	tap_run(the_table_and_the_parser_agree);
	tap_run(nearest_counts_edits);
	tap_run(events_of_an_attr);
	tap_run(events_of_a_kernels_attr);
	tap_run(a_plain_event_is_one_part_everywhere);
	tap_run(a_filter_is_kept_as_a_copy);
	fakeroot_remove(&root);
	return tap_end();
}
