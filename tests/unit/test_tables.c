/* SPDX-License-Identifier: MIT */
/*
 * tables: rows in the shape of tools/perf/pmu-events, and the terms that perf is built with for
 * them (what `perf list --details` prints in brackets).
 */
#include <errno.h>
#include <unistd.h>

#include "event/tables-row.h"
#include "event/tables.h"
#include "fakeroot.h"
#include "tap.h"

static struct fakeroot root;
static char folder[128];
static struct tally_error err;

static const char skylake[] =
	"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 94\nstepping\t: 3\n";

#define MAPFILE                                        \
	"Family-model,Version,Filename,EventType\n"    \
	"# a comment\n"                                \
	"GenuineIntel-6-(4F|56),v1,broadwell,core\r\n" \
	"GenuineIntel-6-(4E|5E),v58,skylake,core\n"    \
	"GenuineIntel-6-5E,v59,later,core\n"           \
	"GenuineIntel-6-97,v1,../alderlake,core\n"     \
	"0x00000000410fd0c0,v1,arm/neoverse-n1,core\n"

static struct tally_events_opts opts_of(const char *below)
{
	snprintf(folder, sizeof(folder), "%s%s", root.path, below);
	return (struct tally_events_opts){ .size = sizeof(struct tally_events_opts),
					   .root = root.path,
					   .tables = folder };
}

/* "name pmu terms" lines, with the reason in place of terms. */
static int spell(const struct table_event *e, void *arg)
{
	buf_printf(arg, "%s %s %s\n", e->name, e->pmu, *e->terms ? e->terms : e->why);
	return 0;
}

/* The lines of all rows of a file in a model's folder; a negative errno as text. */
static const char *lines_of(const char *json)
{
	static struct buf out;

	buf_reset(&out);
	if (!fakeroot_make(&root) || !fakeroot_file(&root, "/m/a.json", json))
		return "no root";
	struct tally_events_opts opts = opts_of("/m");
	int r = tables_each(&opts, NULL, 0, spell, &out, &err);
	if (r < 0)
		buf_printf(&out, "%d", r);
	fakeroot_remove(&root);
	static char copy[4096];
	snprintf(copy, sizeof(copy), "%s", buf_text(&out));
	buf_done(&out);
	return copy;
}

static void terms_as_perf_has_them(void)
{
	static const struct {
		const char *row, *line;
	} rows[] = {
		/* skylake/cache.json */
		{ "\"EventName\":\"MEM_LOAD_RETIRED.L3_MISS\",\"EventCode\":\"0xD1\",\"PEBS\":\"1\","
		  "\"SampleAfterValue\":\"100007\",\"UMask\":\"0x20\",\"Data_LA\":\"1\"",
		  "MEM_LOAD_RETIRED.L3_MISS cpu event=0xd1,period=100007,umask=0x20" },
		/* numbers below 10 are the same in decimal */
		{ "\"EventName\":\"A\",\"EventCode\":\"0x3\",\"UMask\":\"0x02\"",
		  "A cpu event=3,umask=2" },
		{ "\"EventName\":\"CYCLE_ACTIVITY.STALLS_TOTAL\",\"CounterMask\":\"4\","
		  "\"EventCode\":\"0xA3\",\"UMask\":\"0x4\"",
		  "CYCLE_ACTIVITY.STALLS_TOTAL cpu event=0xa3,cmask=4,umask=4" },
		{ "\"EventName\":\"C\",\"CounterMask\":\"16\",\"EventCode\":\"0xA3\",\"Invert\":\"1\","
		  "\"EdgeDetect\":\"1\",\"AnyThread\":\"1\",\"UMask\":\"0x1\"",
		  "C cpu event=0xa3,any=1,cmask=16,edge=1,inv=1,umask=1" },
		{ "\"EventName\":\"Z\",\"EventCode\":\"0x14\",\"CounterMask\":\"0\",\"Invert\":\"0\","
		  "\"UMask\":\"0x00\",\"MSRIndex\":\"0\",\"Errata\":\"null\"",
		  "Z cpu event=0x14" },
		/* of several codes or registers the first */
		{ "\"EventName\":\"OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM\",\"EventCode\":\"0xB7,0xBB\","
		  "\"MSRIndex\":\"0x1a6,0x1a7\",\"MSRValue\":\"0x10003C0002\",\"UMask\":\"0x1\"",
		  "OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM cpu "
		  "event=0xb7,umask=1,offcore_rsp=0x10003C0002" },
		{ "\"EventName\":\"L\",\"EventCode\":\"0xcd\",\"MSRIndex\":\"0x3F6\","
		  "\"MSRValue\":\"0x80\",\"UMask\":\"0x1\"",
		  "L cpu event=0xcd,umask=1,ldlat=0x80" },
		{ "\"EventName\":\"F\",\"EventCode\":\"0xC6\",\"MSRIndex\":\"0x3F7\","
		  "\"MSRValue\":\"0x11\",\"UMask\":\"0x1\"",
		  "F cpu event=0xc6,umask=1,frontend=0x11" },
		/* fixed counters, by the general code */
		{ "\"EventName\":\"INST_RETIRED.ANY\",\"EventCode\":\"0x00\",\"UMask\":\"0x1\"",
		  "INST_RETIRED.ANY cpu event=0xc0,period=2000003" },
		{ "\"EventName\":\"CPU_CLK_UNHALTED.THREAD\",\"UMask\":\"0x2\"",
		  "CPU_CLK_UNHALTED.THREAD cpu event=0x3c,period=2000003" },
		{ "\"EventName\":\"CPU_CLK_UNHALTED.REF_TSC\",\"EventCode\":\"0x00\","
		  "\"UMask\":\"0x3\"",
		  "CPU_CLK_UNHALTED.REF_TSC cpu event=0,umask=3" },
		/* other PMUs */
		{ "\"EventName\":\"UNC_CHA_CLOCKTICKS\",\"Unit\":\"CHA\",\"PerPkg\":\"1\"",
		  "UNC_CHA_CLOCKTICKS uncore_cha event=0" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x4\",\"UMask\":\"0x3\",\"Unit\":\"iMC\"",
		  "U uncore_imc event=4,umask=3" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x34\",\"ExtSel\":\"1\",\"Unit\":\"CBO\","
		  "\"Filter\":\"filter_opc=0x182\"",
		  "U uncore_cbox event=0x134,filter_opc=0x182" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x1\",\"Unit\":\"QPI LL\"",
		  "U uncore_qpi event=1" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x1\",\"Unit\":\"UPI LL\"",
		  "U uncore_upi event=1" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x80\",\"Unit\":\"iMPH-U\"",
		  "U uncore_arb event=0x80" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x1\",\"PortMask\":\"0x01\","
		  "\"FCMask\":\"0x07\",\"UMask\":\"0x4\",\"Unit\":\"IIO\"",
		  "U uncore_iio event=1,ch_mask=1,fc_mask=7,umask=4" },
		{ "\"EventName\":\"l3_lookup_state.all\",\"EventCode\":\"0x04\",\"UMask\":\"0xff\","
		  "\"Unit\":\"L3PMC\",\"EnAllCores\":\"0x1\",\"EnAllSlices\":\"0x1\","
		  "\"SliceId\":\"0x3\",\"ThreadMask\":\"0x3\"",
		  "l3_lookup_state.all amd_l3 "
		  "event=4,umask=0xff,enallcores=1,enallslices=1,sliceid=3,threadmask=3" },
		{ "\"EventName\":\"U\",\"EventCode\":\"0x0a\",\"RdWrMask\":\"0x1\",\"Unit\":\"UMCPMC\"",
		  "U amd_umc event=0xa,rdwrmask=1" },
		{ "\"EventName\":\"A\",\"EventCode\":\"0xc0\",\"Unit\":\"cpu_atom\"",
		  "A cpu_atom event=0xc0" },
		{ "\"EventName\":\"H\",\"ConfigCode\":\"0x10\",\"Unit\":\"hisi_sccl,l3c\"",
		  "H hisi_sccl,l3c config=0x10" },
		{ "\"EventName\":\"N\",\"EventidCode\":\"0x1\",\"NodeType\":\"0x5\","
		  "\"Unit\":\"arm_cmn\"",
		  "N arm_cmn eventid=1,type=5" },
		/* JSON's own numbers and truths */
		{ "\"EventName\":\"J\",\"EventCode\":60,\"EdgeDetect\":true,\"Invert\":false,"
		  "\"UMask\":null",
		  "J cpu event=0x3c,edge=1" },
		/* of a key that is there twice the last one holds; unknown ones are passed over */
		{ "\"X\":[{\"EventName\":\"Y\"}],\"EventName\":\"K\",\"EventCode\":\"1\","
		  "\"EventCode\":\"2\",\"Z\":{\"EventCode\":\"3\"}",
		  "K cpu event=2" },
	};
	char json[1024], line[1024];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(json, sizeof(json), "[{%s}]", rows[i].row);
		snprintf(line, sizeof(line), "%s\n", rows[i].line);
		check_str(lines_of(json), line);
	}
}

/* The others of the file stay usable, and the reason is told to whoever asks for this one. */
static void rows_that_have_no_terms(void)
{
	static const struct {
		const char *row, *why;
	} rows[] = {
		{ "\"EventCode\":\"zero\"", "EventCode 'zero' is not a number" },
		{ "\"EventCode\":\"0x1ffffffffffffffff\"", "not a number of 64 bits" },
		{ "\"UMask\":\"\\u0031\"", "UMask" },
		{ "\"UMask\":\"-1\"", "UMask '-1'" },
		{ "\"MSRIndex\":\"0x1ac\",\"MSRValue\":\"1\"", "needs MSR 0x1ac" },
		{ "\"MSRIndex\":\"0x1a6\",\"MSRValue\":\"1/,x/\"", "MSRValue" },
		{ "\"Filter\":\"a=1/u,cpu/b\"", "Filter is not a list" },
		{ "\"ArchStdEvent\":\"SW_INCR\"", "standard event SW_INCR" },
	};
	char json[512];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(json, sizeof(json), "[{\"EventName\":\"X\",%s},{\"EventName\":\"B\"}]",
			 rows[i].row);
		const char *lines = lines_of(json);
		check_has(lines, rows[i].why);
		check_has(lines, "B cpu event=0\n");
		check(!strstr(lines, "X cpu event"));
	}
}

/* As intel/perfmon publishes them, before they are converted for perf. */
static void intels_own_files(void)
{
	check_str(lines_of("{\"Header\":{\"Version\":\"59\",\"x\":[{\"EventName\":\"no\"}]},"
			   "\"Events\":[{\"EventName\":\"A\",\"EventCode\":\"0x1\"},"
			   "{\"EventName\":\"B\",\"EventCode\":\"0x2\"}],\"Legend\":[[1]]}"),
		  "A cpu event=1\nB cpu event=2\n");
	/* metricgroups.json and counter.json of perf */
	check_str(lines_of("{\"Backend\":\"Grouping from Top-down\"}"), "");
	check_str(lines_of("[{\"Unit\":\"core\",\"CountersNumFixed\":\"4\"}]"), "");
	check_str(lines_of("[]"), "");
	check_str(lines_of("7"), "");
}

static void what_is_broken_is_said_with_its_place(void)
{
	check_str(lines_of("[\n{\"EventName\":\"A\"},\n{\"EventName\" \"B\"}\n]"),
		  "A cpu event=0\n-22");
	check_int(err.cause, TALLY_CAUSE_CORRUPT);
	check_has(err.text, "/m/a.json, line 3, column 14: ':' is missing");
	check_str(lines_of(""), "-22");
	check_has(err.text, "line 1, column 1: the text ends too early");
	check_str(lines_of("[{\"EventName\":\"A\"}"), "A cpu event=0\n-22");
}

static int describe(const struct table_event *e, void *arg)
{
	buf_printf(arg, "%s|%s|%s|%s|%g|%s|%u%u%u%u\n", e->topic, e->brief, e->details, e->errata,
		   e->scale, e->unit, e->precise, e->core, e->per_package, e->deprecated);
	return 0;
}

static void what_else_a_row_tells(void)
{
	struct buf out = { 0 };

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/m/uncore-memory.json",
		      "[{\"EventName\":\"A\",\"BriefDescription\":\"Says \\\"so\\\". \","
		      "\"PublicDescription\":\"Long.\",\"Errata\":\"SKL057\",\"PEBS\":\"2\","
		      "\"ScaleUnit\":\"64Bytes\",\"Deprecated\":\"1\"},"
		      "{\"EventName\":\"B\",\"Unit\":\"iMC\",\"PerPkg\":\"1\","
		      "\"ScaleUnit\":\"6.103515625e-5MiB\"}]");
	fakeroot_file(&root, "/m/readme.txt", "not JSON");
	struct tally_events_opts opts = opts_of("/m");
	check_int(tables_each(&opts, NULL, 0, describe, &out, &err), 0);
	check_str(buf_text(&out), "uncore-memory|Says \"so\"|Long|SKL057|64|Bytes|2101\n"
				  "uncore-memory||||6.10352e-05|MiB|0010\n");
	buf_done(&out);
	fakeroot_remove(&root);
}

static void scales(void)
{
	static const struct {
		const char *text;
		double scale;
		const char *unit;
	} rows[] = {
		{ "64Bytes", 64, "Bytes" },
		{ "100%", 100, "%" },
		{ "1per_sec", 1, "per_sec" },
		{ "6.103515625e-5MiB", 6.103515625e-5, "MiB" },
		{ "3.0517578125E-05MB", 3.0517578125E-05, "MB" },
		{ "2.3283064365386962890625e-10Joules", 2.3283064365386962890625e-10, "Joules" },
		{ "1e3Hz", 1e3, "Hz" },
		{ "1e+3", 1e3, "" },
		{ "1eggs", 1, "eggs" },
		{ "8EB", 8, "EB" },
		{ "0.001ms", 0.001, "ms" },
		{ "1.5", 1.5, "" },
		{ "ns", 1, "ns" },
		{ ".x", 1, ".x" },
		{ "", 1, "" },
		{ "1e99999", 1e300, NULL },
		{ "1e-99999", 1e-300, NULL },
	};
	const char *unit;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double scale = tables_scale(rows[i].text, &unit);
		if (!rows[i].unit) {
			/* Beyond all sense: near the end of a double's range, and it comes back. */
			check(rows[i].scale > 1 ? scale > 1e280 : scale < 1e-280);
			continue;
		}
		double off = scale / rows[i].scale - 1;
		check(off < 1e-15 && off > -1e-15);
		check_str(unit, rows[i].unit);
	}
}

static void setup_arch(void)
{
	if (!fakeroot_make(&root))
		perror("mkdtemp");
	fakeroot_file(&root, "/proc/cpuinfo", skylake);
	fakeroot_file(&root, "/t/mapfile.csv", MAPFILE);
	fakeroot_file(
		&root, "/t/skylake/cache.json",
		"[{\"EventName\":\"L2_RQSTS.MISS\",\"EventCode\":\"0x24\",\"UMask\":\"0x3f\"}]");
	fakeroot_file(&root, "/t/skylake/uncore.json",
		      "[{\"EventName\":\"L2_RQSTS.MISS\",\"EventCode\":\"1\",\"Unit\":\"CBO\"},"
		      "{\"MetricName\":\"IPC\",\"MetricExpr\":\"a / b\"}]");
	fakeroot_file(&root, "/t/later/cache.json", "[{\"EventName\":\"LATER\"}]");
	fakeroot_file(&root, "/t/broadwell/cache.json", "[{\"EventName\":\"BDW\"}]");
	fakeroot_file(
		&root, "/t/arm/neoverse-n1/all.json",
		"[{\"ArchStdEvent\":\"SW_INCR\"},"
		"{\"ArchStdEvent\":\"L1D_CACHE\",\"EventName\":\"l1d\",\"EventCode\":\"0x99\","
		"\"BriefDescription\":\"Own words\"},"
		"{\"ArchStdEvent\":\"backend_bound\"},"
		"{\"EventName\":\"IMP\",\"EventCode\":\"0x0100\"}]");
	fakeroot_file(&root, "/t/common.json",
		      "[{\"EventName\":\"SW_INCR\",\"EventCode\":\"0x00\","
		      "\"BriefDescription\":\"Instruction executed\",\"UMask\":\"0x7\"},"
		      "{\"EventName\":\"L1D_CACHE\",\"EventCode\":\"0x04\","
		      "\"BriefDescription\":\"Level 1 data cache access\","
		      "\"PublicDescription\":\"Level 1\",\"Unit\":\"no\"},"
		      "{\"MetricName\":\"backend_bound\",\"MetricExpr\":\"STALL / 4\","
		      "\"ScaleUnit\":\"100%\",\"MetricGroup\":\"TopdownL1\"}]");
}

static void the_folder_of_this_cpu(void)
{
	struct buf out = { 0 };

	setup_arch();
	struct tally_events_opts opts = opts_of("/t");
	check_int(tables_each(&opts, NULL, 0, spell, &out, &err), 0);
	check_str(buf_text(&out), "L2_RQSTS.MISS cpu event=0x24,umask=0x3f\n"
				  "L2_RQSTS.MISS uncore_cbox event=1\n");
	buf_done(&out);
	fakeroot_remove(&root);
}

static int spell_whole(const struct table_event *e, void *arg)
{
	buf_printf(arg, "%s %s %s|%s|%s|%s\n", e->name, e->pmu, e->terms, e->topic, e->brief,
		   e->details);
	return 0;
}

/* The events of this name, in `out`. */
static int named(const struct tally_events_opts *opts, const char *name, size_t len,
		 struct buf *out)
{
	buf_reset(out);
	return tables_each(opts, name, len, spell_whole, out, &err);
}

static void events_by_their_name(void)
{
	static const char name[] = "l2_rqsts.Miss:u";
	struct buf out = { 0 };

	setup_arch();
	struct tally_events_opts opts = opts_of("/t");
	check_int(named(&opts, name, 13, &out), 0);
	check_str(buf_text(&out), "L2_RQSTS.MISS cpu event=0x24,umask=0x3f|cache||\n"
				  "L2_RQSTS.MISS uncore_cbox event=1|uncore||\n");
	const struct {
		const char *name;
		size_t len;
	} none[] = { { name, 12 }, { "IPC", 3 } };
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		check_int(named(&opts, none[i].name, none[i].len, &out), 0);
		check_str(buf_text(&out), "");
	}
	opts.tables = NULL;
	check_int(named(&opts, name, 13, &out), 0);
	check_str(buf_text(&out), "");
	buf_done(&out);
	fakeroot_remove(&root);
}

/* arm64: the standard event says what is counted, the row may say how it is called. */
static void standard_events_of_an_architecture(void)
{
	static const char *const places[] = { "/t", "/t/arm/neoverse-n1", "/t/arm/neoverse-n1/" };
	struct buf out = { 0 };

	setup_arch();
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
		      "0x00000000413fd0c1\n");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct tally_events_opts opts = opts_of(places[i]);
		buf_reset(&out);
		check_int(tables_each(&opts, NULL, 0, spell, &out, &err), 0);
		check_str(buf_text(&out), "SW_INCR cpu event=0,umask=7\nl1d cpu event=4\n"
					  "IMP cpu event=0x100\n");
		check_int(named(&opts, "sw_incr", 7, &out), 0);
		check_has(buf_text(&out), "|Instruction executed|");
		check_int(named(&opts, "L1D", 3, &out), 0);
		check_has(buf_text(&out), "l1d cpu event=4|");
		check_has(buf_text(&out), "|Own words|Level 1\n");
	}
	buf_done(&out);
	fakeroot_remove(&root);
}

static int spell_metric(const struct table_metric *m, void *arg)
{
	buf_printf(arg, "%s|%s|%s|%s|%s|%s|%s\n", m->name, m->formula, m->pmu, m->unit, m->groups,
		   m->threshold, m->brief);
	return 0;
}

static void metrics(void)
{
	struct buf out = { 0 };

	setup_arch();
	fakeroot_file(
		&root, "/t/skylake/skl-metrics.json",
		"[{\"MetricName\":\"tma_frontend_bound\",\"MetricExpr\":"
		"\"IDQ_UOPS_NOT_DELIVERED.CORE / tma_info_thread_slots\",\"Unit\":\"cpu_core\","
		"\"MetricGroup\":\"PGO;TmaL1\",\"MetricThreshold\":\"tma_frontend_bound > 0.15\","
		"\"ScaleUnit\":\"100%\",\"BriefDescription\":\"Frontend.\"},"
		"{\"MetricName\":\"without a formula\"},{\"EventName\":\"E\"}]");
	struct tally_events_opts opts = opts_of("/t");
	check_int(tables_each_metric(&opts, spell_metric, &out, &err), 0);
	check_str(buf_text(&out),
		  "tma_frontend_bound|IDQ_UOPS_NOT_DELIVERED.CORE / tma_info_thread_slots|cpu_core|"
		  "100%|PGO;TmaL1|tma_frontend_bound > 0.15|Frontend\n"
		  "IPC|a / b|cpu||||\n");
	opts = opts_of("/t/arm/neoverse-n1");
	buf_reset(&out);
	check_int(tables_each_metric(&opts, spell_metric, &out, &err), 0);
	check_str(buf_text(&out), "backend_bound|STALL / 4|cpu|100%|TopdownL1||\n");
	buf_done(&out);
	fakeroot_remove(&root);
}

static int stop(const struct table_event *e, void *arg)
{
	(void)e;
	++*(int *)arg;
	return 42;
}

static void a_visit_that_ends_early(void)
{
	int calls = 0;

	setup_arch();
	struct tally_events_opts opts = opts_of("/t");
	check_int(tables_each(&opts, NULL, 0, stop, &calls, &err), 42);
	check_int(calls, 1);
	fakeroot_remove(&root);
}

static int each_at(const char *below)
{
	struct buf out = { 0 };
	struct tally_events_opts opts = opts_of(below);
	int r = tables_each(&opts, NULL, 0, spell, &out, &err);

	buf_done(&out);
	return r;
}

static void what_is_missing_is_said(void)
{
	char path[160];

	setup_arch();
	check_int(each_at("/none"), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_has(err.text, "/none");
	check_int(each_at("/proc"), -ENOENT);
	check_has(err.text, "neither a mapfile.csv nor tables");
	check_int(each_at("/t/mapfile.csv"), -ENOTDIR);
	fakeroot_file(
		&root, "/proc/cpuinfo",
		"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nstepping\t: 2\n");
	check_int(each_at("/t"), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	check_has(err.text, "no row for this CPU, GenuineIntel-6-CF-2");
	/* A row that would lead out of the folder is none. */
	fakeroot_file(
		&root, "/proc/cpuinfo",
		"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\nstepping\t: 2\n");
	check_int(each_at("/t"), -ENOENT);
	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root.path);
	unlink(path);
	check_int(each_at("/t"), -ENOENT);
	check_has(err.text, "name the folder of its model");
	check_int(each_at("/t/skylake"), 0);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(terms_as_perf_has_them);
	tap_run(rows_that_have_no_terms);
	tap_run(intels_own_files);
	tap_run(what_is_broken_is_said_with_its_place);
	tap_run(what_else_a_row_tells);
	tap_run(scales);
	tap_run(the_folder_of_this_cpu);
	tap_run(events_by_their_name);
	tap_run(standard_events_of_an_architecture);
	tap_run(metrics);
	tap_run(a_visit_that_ends_early);
	tap_run(what_is_missing_is_said);
	return tap_end();
}
