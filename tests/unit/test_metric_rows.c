/* SPDX-License-Identifier: MIT */
/*
 * Metrics of vendors' tables, in perf's JSON as tools/perf/pmu-events/README describes it, and what
 * names in their formulas refer to.
 */
#include <errno.h>

#include <tally/metric.h>

#include "fakeroot.h"
#include "tap.h"

/* Formulas in the manner of Intel's, that refer to each other, and one of each kind of trouble. */
static const char metrics[] =
	"[\n"
	"{\"MetricName\": \"tma_info_thread_slots\", \"MetricExpr\": \"4 * CPU_CLK_UNHALTED.THREAD\"},\n"
	"{\"MetricName\": \"tma_frontend_bound\", \"ScaleUnit\": \"100%\", \"BriefDescription\": \"Frontend\",\n"
	" \"MetricExpr\": \"IDQ_UOPS_NOT_DELIVERED.CORE / tma_info_thread_slots\",\n"
	" \"MetricGroup\": \"PGO;TmaL1;TopdownL1\"},\n"
	"{\"MetricName\": \"tma_rest\", \"ScaleUnit\": \"100%\", \"MetricGroup\": \"TmaL1\",\n"
	" \"MetricExpr\": \"1 - tma_frontend_bound - d_ratio(UOPS\\\\-X, tma_info_thread_slots)\"},\n"
	"{\"MetricName\": \"IPC\", \"MetricExpr\": \"INST_RETIRED.ANY / CPU_CLK_UNHALTED.THREAD\"},\n"
	"{\"MetricName\": \"CoreIPC\", \"MetricExpr\": \"ipc * 2\", \"ScaleUnit\": \"1per_core\"},\n"
	"{\"MetricName\": \"circle_a\", \"MetricExpr\": \"circle_b + 1\"},\n"
	"{\"MetricName\": \"circle_b\", \"MetricExpr\": \"Circle_A + 1\"},\n"
	"{\"MetricName\": \"powerful\", \"MetricExpr\": \"hv_24x7@PM\\\\,chip\\\\=?@\"},\n"
	"{\"MetricName\": \"armful\", \"MetricExpr\": \"STALL / #slots\"},\n"
	"{\"EventName\": \"INST_RETIRED.ANY\", \"EventCode\": \"0xC0\"},\n"
	"{\"MetricName\": \"twice\", \"MetricExpr\": \"1\"},\n"
	"{\"MetricName\": \"TWICE\", \"MetricExpr\": \"2\"}\n"
	"]\n";

static struct fakeroot root;
static char tables[128];
static struct tally_events_opts events;
static struct tally_metric_opts opts;
static struct tally_error err;

static bool setup(void)
{
	memset(&err, 0, sizeof(err));
	if (!fakeroot_make(&root) || !fakeroot_file(&root, "/tables/metrics.json", metrics))
		return false;
	snprintf(tables, sizeof(tables), "%s/tables", root.path);
	events = (struct tally_events_opts){
		.size = sizeof(events),
		.root = root.path,
		.tables = tables,
	};
	opts = (struct tally_metric_opts){ .size = sizeof(opts), .events = &events };
	return true;
}

static struct tally_metric *find(const char *name)
{
	struct tally_metric *m = NULL;

	if (tally_metric_find(&m, name, &opts, &err) < 0)
		printf("# %s: %s\n", name, err.text);
	return m;
}

static double value_of(const struct tally_metric *m)
{
	static const struct {
		const char *label;
		uint64_t value;
	} counts[] = {
		{ "CPU_CLK_UNHALTED.THREAD", 100 },
		{ "IDQ_UOPS_NOT_DELIVERED.CORE", 100 },
		{ "UOPS-X", 200 },
		{ "INST_RETIRED.ANY", 300 },
		{ "instructions", 50 },
		{ "cycles", 100 },
	};
	struct tally_result results[6];
	struct tally_metric_value value = { .value = -999 };

	for (int i = 0; i < 6; i++)
		results[i] = (struct tally_result){
			.label = counts[i].label,
			.scale = 1,
			.count = { .value = counts[i].value },
		};
	if (tally_metric_compute(m, results, 6, NULL, &value, &err) < 0)
		printf("# %s\n", err.text);
	return value.value;
}

static void finds_them(void)
{
	require(setup());
	struct tally_metric *m = find("TMA_Frontend_Bound");
	require(m);
	check_str(tally_metric_name(m), "tma_frontend_bound");
	check_str(tally_metric_unit(m), "%");
	check_str(tally_metric_words(m), "%");
	check_str(tally_metric_description(m), "Frontend");
	check_str(tally_metric_groups(m), "PGO;TmaL1;TopdownL1");
	check_int(tally_metric_events(m), 2);
	check(value_of(m) == 25);
	tally_metric_free(m);
	m = find("twice");
	require(m);
	check(value_of(m) == 1); /* the first in the tables */
	tally_metric_free(m);
	fakeroot_remove(&root);
}

static void refer_to_each_other(void)
{
	require(setup());
	struct tally_metric *m = find("tma_rest");
	require(m);
	check_int(tally_metric_events(m), 3);
	check_str(tally_metric_event(m, 0), "IDQ_UOPS_NOT_DELIVERED.CORE");
	check_str(tally_metric_event(m, 1), "CPU_CLK_UNHALTED.THREAD");
	check_str(tally_metric_event(m, 2), "UOPS-X");
	/* 1 - 100/400 - 200/400 */
	check(value_of(m) == 25);
	tally_metric_free(m);
	fakeroot_remove(&root);
}

/* In a table a name means the table's metric, to a user the built-in one. */
static void know_whose_names_they_mean(void)
{
	struct tally_metric *m;

	require(setup());
	require((m = find("CoreIPC")));
	check(value_of(m) == 6);
	check_str(tally_metric_unit(m), "per_core");
	tally_metric_free(m);
	require((m = find("IPC")));
	check(value_of(m) == 0.5);
	tally_metric_free(m);
	require(tally_metric_parse(&m, "mine", "IPC + CoreIPC", &opts, &err) == 0);
	check(value_of(m) == 6.5);
	check_int(tally_metric_events(m), 4);
	tally_metric_free(m);
	fakeroot_remove(&root);
}

static void say_what_is_wrong(void)
{
	struct tally_metric *m = NULL;

	require(setup());
	check_int(tally_metric_find(&m, "circle_a", &opts, &err), -EINVAL);
	check_str(err.text, "metric 'circle_b', column 1: the metric 'Circle_A' would need itself");
	check_int(tally_metric_find(&m, "powerful", &opts, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	check_int(tally_metric_find(&m, "armful", &opts, &err), -ENODATA);
	check_has(err.text, "metric 'armful', column 9: '#slots' cannot be found out here");
	check_int(tally_metric_find(&m, "tma_fronted_bound", &opts, &err), -ENOENT);
	check_str(err.text, "there is no metric 'tma_fronted_bound', the nearest is "
			    "'tma_frontend_bound'");
	fakeroot_remove(&root);
}

static void complain_of_the_folder(void)
{
	struct tally_metric *m = NULL;

	require(setup());
	snprintf(tables, sizeof(tables), "%s/elsewhere", root.path);
	check_int(tally_metric_find(&m, "anything", &opts, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_int(tally_metric_parse(&m, "mine", "anything + 1", &opts, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	/* What needs no table does not look for it. */
	check_int(tally_metric_parse(&m, "mine", "IPC * page-faults", &opts, &err), 0);
	tally_metric_free(m);
	fakeroot_remove(&root);
}

struct seen {
	char names[512];
	int count;
};

static int collect(const struct tally_metric *metric, void *arg)
{
	struct seen *seen = arg;
	size_t len = strlen(seen->names);

	snprintf(seen->names + len, sizeof(seen->names) - len, "%s ", tally_metric_name(metric));
	seen->count++;
	return 0;
}

/* Those that this machine cannot compute are left out. */
static void are_visited_by_name_and_group(void)
{
	struct seen seen = { 0 }, group = { 0 }, all = { 0 };

	require(setup());
	check_int(tally_metric_each("tma_*", &opts, collect, &seen, &err), 0);
	check_str(seen.names, "tma_frontend_bound tma_info_thread_slots tma_rest ");
	check_int(tally_metric_each("TmaL1", &opts, collect, &group, &err), 0);
	check_str(group.names, "tma_frontend_bound tma_rest ");
	check_int(tally_metric_each("*[cf]*l*", &opts, collect, &all, &err), 0);
	check(!strstr(all.names, "circle") && !strstr(all.names, "ful"));
	fakeroot_remove(&root);
}

/* m0 = a, m1 = m0 + m0, ... m40 has 2^40 terms when written out. */
static void share_what_they_refer_to(void)
{
	char text[8192],
		*end = text + sprintf(text, "[{\"MetricName\":\"m0\",\"MetricExpr\":\"a\"}");
	struct tally_metric_value value = { 0 };
	const struct tally_result a = { .label = "a", .scale = 1, .count = { .value = 3 } };

	require(setup());
	for (int i = 1; i <= 40; i++)
		end += sprintf(end, ",{\"MetricName\":\"m%d\",\"MetricExpr\":\"m%d + m%d\"}", i,
			       i - 1, i - 1);
	strcpy(end, "]");
	require(fakeroot_file(&root, "/tables/metrics.json", text));
	struct tally_metric *m = find("m40");
	require(m);
	check_int(tally_metric_events(m), 1);
	check_int(tally_metric_compute(m, &a, 1, NULL, &value, &err), 0);
	check(value.value == 3298534883328.0);
	tally_metric_free(m);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(finds_them);
	tap_run(refer_to_each_other);
	tap_run(know_whose_names_they_mean);
	tap_run(say_what_is_wrong);
	tap_run(complain_of_the_folder);
	tap_run(are_visited_by_name_and_group);
	tap_run(share_what_they_refer_to);
	return tap_end();
}
