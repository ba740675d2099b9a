/* SPDX-License-Identifier: MIT */
/*
 * The built-in metrics: their meaning from what perf stat prints next to its counts (perf-stat(1),
 * tools/perf/util/stat-shadow.c), top-down from the vendors' definitions.
 */
#include <errno.h>

#include <tally/metric.h>

#include "count/metric.h"
#include "fakeroot.h"
#include "tap.h"

#define PMUS     "/sys/bus/event_source/devices"
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct tally_events_opts nowhere = { .size = sizeof(nowhere), .root = "/nonexistent" };
static const struct tally_metric_opts plain = { .size = sizeof(plain), .events = &nowhere };

static struct tally_result counted(const char *label, uint64_t value)
{
	return (struct tally_result){
		.label = label,
		.unit = "",
		.scale = 1,
		.count = { .value = value, .raw = value },
	};
}

/* 2 s, in which tasks ran for 4 s. */
static const struct tally_metric_context two_seconds = {
	.size = sizeof(two_seconds),
	.duration = 2,
};

static const struct {
	const char *name, *first, *second; /* second may be NULL */
	uint64_t a, b;
	double value;
	const char *words, *beside;
} ratios[] = {
	{ "IPC", "instructions", "cycles", 30, 10, 3, "insn per cycle", "instructions" },
	{ "insn_per_cycle", "instructions", "cycles", 30, 10, 3, "insn per cycle", "instructions" },
	{ "CPI", "cycles", "instructions", 30, 10, 3, "cycles per insn", NULL },
	{ "branch_miss_rate", "branch-misses", "branches", 1, 50, 2, "of all branches",
	  "branch-misses" },
	{ "cache_miss_rate", "cache-misses", "cache-references", 1, 4, 25, "of all cache refs",
	  "cache-misses" },
	{ "frontend_cycles_idle", "stalled-cycles-frontend", "cycles", 1, 4, 25,
	  "frontend cycles idle", "stalled-cycles-frontend" },
	{ "backend_cycles_idle", "stalled-cycles-backend", "cycles", 1, 4, 25,
	  "backend cycles idle", "stalled-cycles-backend" },
	{ "l1d_miss_rate", "L1-dcache-load-misses", "L1-dcache-loads", 1, 4, 25,
	  "of all L1-dcache accesses", "L1-dcache-load-misses" },
	{ "l1i_miss_rate", "L1-icache-load-misses", "L1-icache-loads", 1, 4, 25,
	  "of all L1-icache accesses", "L1-icache-load-misses" },
	{ "llc_miss_rate", "LLC-load-misses", "LLC-loads", 1, 4, 25, "of all LL-cache accesses",
	  "LLC-load-misses" },
	{ "dtlb_miss_rate", "dTLB-load-misses", "dTLB-loads", 1, 4, 25,
	  "of all dTLB cache accesses", "dTLB-load-misses" },
	{ "itlb_miss_rate", "iTLB-load-misses", "iTLB-loads", 1, 4, 25,
	  "of all iTLB cache accesses", "iTLB-load-misses" },
	{ "branch_mpki", "branch-misses", "instructions", 3, 2000, 1.5,
	  "branch misses per 1000 insn", NULL },
	{ "cache_mpki", "cache-misses", "instructions", 3, 2000, 1.5, "cache misses per 1000 insn",
	  NULL },
	{ "faults_per_kinsn", "page-faults", "instructions", 3, 2000, 1.5,
	  "page faults per 1000 insn", NULL },
	{ "GHz", "cycles", "task-clock", 12000000000, 4000000000, 3, "GHz", "cycles" },
	{ "CPUs_utilized", "task-clock", NULL, 4000000000, 0, 2, "CPUs utilized", "task-clock" },
	{ "cs_per_second", "context-switches", "task-clock", 10, 4000000000, 2.5, "/sec",
	  "context-switches" },
	{ "migrations_per_second", "cpu-migrations", "task-clock", 10, 4000000000, 2.5, "/sec",
	  "cpu-migrations" },
	{ "page_faults_per_second", "page-faults", "task-clock", 10, 4000000000, 2.5, "/sec",
	  "page-faults" },
};

static void divides_as_perf(void)
{
	for (size_t i = 0; i < COUNT(ratios); i++) {
		const struct tally_result results[] = {
			counted(ratios[i].first, ratios[i].a),
			counted(ratios[i].second ? ratios[i].second : "dummy", ratios[i].b),
		};
		struct tally_metric_value value = { 0 };
		struct tally_metric *m = NULL;
		struct tally_error err = { 0 };

		check_int(tally_metric_find(&m, ratios[i].name, &plain, &err), 0);
		require(m);
		check_int(tally_metric_compute(m, results, 2, &two_seconds, &value, &err), 0);
		if (!check(value.value == ratios[i].value))
			printf("# %s is %g, not %g: %s\n", ratios[i].name, value.value,
			       ratios[i].value, err.text);
		check_int(tally_metric_events(m), ratios[i].second ? 2 : 1);
		check_str(tally_metric_words(m), ratios[i].words);
		check_str(tally_metric_beside(m), ratios[i].beside);
		check(*tally_metric_description(m));
		tally_metric_free(m);
	}
}

static int parse_events(const struct tally_metric *metric, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < tally_metric_events(metric); i++) {
		struct tally_events *events;
		struct tally_error err;
		if (!check(tally_events_parse(&events, tally_metric_event(metric, i), &nowhere,
					      &err) == 0)) {
			printf("# %s: %s\n", tally_metric_name(metric), err.text);
			continue;
		}
		tally_events_free(events);
	}
	return 0;
}

static void needs_events_that_exist(void)
{
	check_int(tally_metric_each(NULL, &plain, parse_events, NULL, NULL), 0);
}

static void takes_the_worse_end(void)
{
	const struct tally_result results[] = {
		counted("stalled-cycles-frontend", 30),
		counted("stalled-cycles-backend", 60),
		counted("instructions", 20),
	};
	struct tally_metric_value value = { 0 };
	struct tally_metric *m;

	require(tally_metric_find(&m, "stalled_cycles_per_instruction", &plain, NULL) == 0);
	check_int(tally_metric_compute(m, results, 3, NULL, &value, NULL), 0);
	check(value.value == 3);
	tally_metric_free(m);
}

/* Cycles of user mode over all the time would look like a slow CPU. */
static void tells_no_frequency_of_one_mode(void)
{
	const struct tally_result results[] = { counted("cycles:u", 3), counted("task-clock", 1) };
	struct tally_metric_value value;
	struct tally_metric *m;
	struct tally_error err;

	require(tally_metric_find(&m, "cycles_frequency", &plain, NULL) == 0);
	check_int(tally_metric_compute(m, results, 2, NULL, &value, &err), -ENODATA);
	check_has(err.text, "only 'cycles:u' was");
	tally_metric_free(m);
}

/* Where CPUs are counted task-clock stands still. */
static void takes_the_clock_of_the_target(void)
{
	struct tally_metric_opts o = plain;
	struct tally_metric *m;

	require(tally_metric_find(&m, "cs_per_second", &o, NULL) == 0);
	check_str(tally_metric_event(m, 1), "task-clock");
	tally_metric_free(m);
	o.flags = TALLY_METRIC_ON_CPUS;
	require(tally_metric_find(&m, "cs_per_second", &o, NULL) == 0);
	check_str(tally_metric_event(m, 1), "cpu-clock");
	tally_metric_free(m);
}

static void suggests_names(void)
{
	struct tally_metric *m = NULL;
	struct tally_error err;

	check_int(tally_metric_find(&m, "ins_per_cycle", &plain, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_UNKNOWN);
	check_str(err.text, "there is no metric 'ins_per_cycle', the nearest is 'insn_per_cycle'");
	check_int(tally_metric_find(&m, "Xyzzy_of_something_else", &plain, &err), -ENOENT);
	check_str(err.text, "there is no metric 'Xyzzy_of_something_else'");
	check_int(tally_metric_find(&m, "ipc", &plain, &err), 0);
	check_str(tally_metric_name(m), "insn_per_cycle");
	tally_metric_free(m);
}

static int count_one(const struct tally_metric *metric, void *arg)
{
	(void)metric;
	++*(int *)arg;
	return 0;
}

static int stop_at_first(const struct tally_metric *metric, void *arg)
{
	snprintf(arg, 64, "%s", tally_metric_name(metric));
	return 17;
}

static void visits_by_glob(void)
{
	char name[64] = "";
	int all = 0, misses = 0, one = 0, none = 0;

	check_int(tally_metric_each(NULL, &plain, count_one, &all, NULL), 0);
	check_int(all, COUNT(ratios)); /* one of them under two names, and stalled cycles */
	check_int(tally_metric_each("*_miss_rate", &plain, count_one, &misses, NULL), 0);
	check_int(misses, 7);
	check_int(tally_metric_each("IPC", &plain, count_one, &one, NULL), 0);
	check_int(one, 1);
	check_int(tally_metric_each("TopdownL1", &plain, count_one, &none, NULL), 0);
	check_int(none, 0);
	check_int(tally_metric_each("l1?_miss_rate", &plain, stop_at_first, name, NULL), 17);
	check_str(name, "l1d_miss_rate");
	const struct tally_metric_opts bad = { .size = 0 };
	check_int(tally_metric_each(NULL, &bad, count_one, &none, NULL), -EINVAL);
}

struct seen {
	char names[4][64];
	int count;
};

static int collect(const struct tally_metric *metric, void *arg)
{
	struct seen *seen = arg;

	if (seen->count < 4)
		snprintf(seen->names[seen->count], 64, "%s", tally_metric_name(metric));
	seen->count++;
	return 0;
}

static void knows_what_to_print_beside(void)
{
	static const struct {
		const char *event;
		const char *names[2];
	} rows[] = {
		{ "instructions", { "insn_per_cycle", "instructions_per_second" } },
		{ "instructions:u", { "insn_per_cycle", "instructions:u_per_second" } },
		{ "cpu-cycles", { "cycles_frequency", "cpu-cycles_per_second" } },
		{ "faults", { "page_faults_per_second" } },
		{ "task-clock", { "CPUs_utilized" } },
		{ "cpu-clock", { "CPUs_utilized" } },
		{ "l1d-read-miss", { "l1d_miss_rate", "l1d-read-miss_per_second" } },
		{ "major-faults", { "major-faults_per_second" } },
		{ "cpu/event=0x3c,umask=1/u", { "cpu/event=0x3c,umask=1/u_per_second" } },
		{ "what is this?", { NULL } },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct seen seen = { 0 };
		int n = rows[i].names[0] ? rows[i].names[1] ? 2 : 1 : 0;
		check_int(tally_metric_each_beside(rows[i].event, &plain, collect, &seen, NULL), 0);
		check_int(seen.count, n);
		for (int k = 0; k < n; k++)
			check_str(seen.names[k], rows[i].names[k]);
	}
}

static int compute_rate(const struct tally_metric *metric, void *arg)
{
	const struct tally_result results[] = {
		counted("cpu/event=0x3c,umask=1/u", 10),
		counted("task-clock", 4000000000),
	};

	check_str(tally_metric_unit(metric), "/sec");
	return tally_metric_compute(metric, results, 2, NULL, arg, NULL);
}

static void rates_any_event(void)
{
	struct tally_metric_value value = { 0 };

	check_int(tally_metric_each_beside("cpu/event=0x3c,umask=1/u", &plain, compute_rate, &value,
					   NULL),
		  0);
	check(value.value == 2.5);
}

/* What top-down level 1 adds up to on a CPU, from counts of which the shares are known. */
static void check_topdown(const char *root, const struct tally_result *results, uint32_t count,
			  const double *shares, int share_count)
{
	static const char *const names[] = { "retiring", "bad_speculation", "frontend_bound",
					     "backend_bound", "smt_contention" };
	const struct tally_events_opts events = { .size = sizeof(events), .root = root };
	const struct tally_metric_opts o = { .size = sizeof(o), .events = &events };
	int listed = 0;

	for (int i = 0; i < share_count; i++) {
		struct tally_metric_value value = { 0 };
		struct tally_metric *m = NULL;
		struct tally_error err = { 0 };

		check_int(tally_metric_find(&m, names[i], &o, &err), 0);
		require(m);
		check_int(tally_metric_compute(m, results, count, NULL, &value, &err), 0);
		double off = value.value - shares[i];
		if (!check(off < 1e-9 && off > -1e-9))
			printf("# %s is %g, not %g: %s\n", names[i], value.value, shares[i],
			       err.text);
		check_str(tally_metric_unit(m), "%");
		check_str(tally_metric_groups(m), "TopdownL1");
		tally_metric_free(m);
	}
	check_int(tally_metric_each("TopdownL1", &o, count_one, &listed, NULL), 0);
	check_int(listed, share_count);
}

static void topdown_of_intel(void)
{
	static const char *const events[] = { "slots", "topdown-retiring", "topdown-bad-spec",
					      "topdown-fe-bound", "topdown-be-bound" };
	const struct tally_result results[] = {
		counted("slots", 1000),           counted("topdown-retiring", 400),
		counted("topdown-bad-spec", 100), counted("topdown-fe-bound", 200),
		counted("topdown-be-bound", 300),
	};
	struct fakeroot root;

	require(fakeroot_make(&root));
	for (size_t i = 0; i < COUNT(events); i++) {
		char path[128];
		snprintf(path, sizeof(path), PMUS "/cpu/events/%s", events[i]);
		require(fakeroot_file(&root, path, "event=0x00\n"));
	}
	check_topdown(root.path, results, 5, (double[]){ 40, 10, 20, 30 }, 4);
	/* The kernel opens topdown-* in a group of slots alone. */
	const struct tally_events_opts e = { .size = sizeof(e), .root = root.path };
	const struct tally_metric_opts o = { .size = sizeof(o), .events = &e };
	struct tally_metric *m;
	require(tally_metric_find(&m, "frontend_bound", &o, NULL) == 0);
	check_str(tally_metric_event(m, 0), "slots");
	check_str(tally_metric_event(m, 1), "topdown-fe-bound");
	tally_metric_free(m);
	fakeroot_remove(&root);
}

static bool make_amd(struct fakeroot *root, int family, int model)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: %d\nmodel\t\t: %d\n"
		 "model name\t: AMD\nstepping\t: 1\n",
		 family, model);
	return fakeroot_make(root) && fakeroot_file(root, "/proc/cpuinfo", text);
}

/* Slots are 6 in a cycle (Zen 4), 8 (Zen 5). */
static void topdown_of_zen(void)
{
	static const struct {
		int family, model;
		unsigned width; /* 0: an older or a newer core */
	} cpus[] = {
		{ 0x19, 0x11, 6 }, { 0x19, 0x61, 6 }, { 0x19, 0xa0, 6 },
		{ 0x1a, 0x02, 8 }, { 0x1a, 0x44, 8 }, { 0x19, 0x01, 0 },
		{ 0x19, 0x21, 0 }, { 0x17, 0x31, 0 }, { 0x1a, 0x50, 0 },
	};

	for (size_t i = 0; i < COUNT(cpus); i++) {
		const uint64_t slots = cpus[i].width * 100;
		const struct tally_result results[] = {
			counted("cycles", 100),
			counted("rc1", slots * 40 / 100),
			counted("r7aa", slots * 45 / 100),
			counted("r1000001a0", slots * 20 / 100),
			counted("r100001ea0", slots * 25 / 100),
			counted("r1000060a0", slots * 10 / 100),
		};
		struct fakeroot root;
		require(make_amd(&root, cpus[i].family, cpus[i].model));
		check_topdown(root.path, results, 6, (double[]){ 40, 5, 20, 25, 10 },
			      cpus[i].width ? 5 : 0);
		fakeroot_remove(&root);
	}
}

static void topdown_of_arm(void)
{
	const struct tally_result results[] = {
		counted("cpu_cycles", 100),          counted("stall_slot", 400),
		counted("stall_slot_frontend", 100), counted("stall_slot_backend", 300),
		counted("op_retired", 90),           counted("op_spec", 100),
	};
	struct fakeroot root;

	require(fakeroot_make(&root));
	require(fakeroot_file(&root, PMUS "/armv8_pmuv3_0/events/stall_slot", "event=0x003f\n"));
	check_topdown(root.path, results, 6, NULL, 0);
	require(fakeroot_file(&root, PMUS "/armv8_pmuv3_0/caps/slots", "0x00000008\n"));
	/* Half of 800 slots stalled; of the other half 90 % retired. */
	check_topdown(root.path, results, 6, (double[]){ 45, 5, 12.5, 37.5 }, 4);
	fakeroot_remove(&root);
}

static void says_what_topdown_needs(void)
{
	struct tally_metric *m;
	struct tally_error err;

	check_int(tally_metric_find(&m, "retiring", &plain, &err), -ENODATA);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	check_has(err.text, "'retiring' needs events that this CPU does not have: slots");
}

int main(void)
{
	tap_run(divides_as_perf);
	tap_run(needs_events_that_exist);
	tap_run(takes_the_worse_end);
	tap_run(tells_no_frequency_of_one_mode);
	tap_run(takes_the_clock_of_the_target);
	tap_run(suggests_names);
	tap_run(visits_by_glob);
	tap_run(knows_what_to_print_beside);
	tap_run(rates_any_event);
	tap_run(topdown_of_intel);
	tap_run(topdown_of_zen);
	tap_run(topdown_of_arm);
	tap_run(says_what_topdown_needs);
	return tap_end();
}
