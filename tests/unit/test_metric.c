/* SPDX-License-Identifier: MIT */
/*
 * The language of metrics. What formulas are worth is arithmetic, and where perf's grammar decides
 * (strength of operators, escapes, what an unknown branch costs) it is that of tools/perf/util/expr.y
 * and tools/perf/tests/expr.c.
 */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#include <tally/metric.h>

#include "tap.h"

/* No machine: what a formula means here must not depend on where it is tested. */
static const struct tally_events_opts nowhere = { .size = sizeof(nowhere), .root = "/nonexistent" };
static const struct tally_metric_opts opts = { .size = sizeof(opts), .events = &nowhere };

static struct tally_metric *parse(const char *formula)
{
	struct tally_metric *m = NULL;
	struct tally_error err;

	if (tally_metric_parse(&m, "test", formula, &opts, &err) < 0) {
		printf("# %s: %s\n", formula, err.text);
		return NULL;
	}
	return m;
}

static struct tally_result result(const char *label, uint64_t value)
{
	return (struct tally_result){
		.label = label,
		.unit = "",
		.scale = 1,
		.count = { .value = value, .raw = value },
	};
}

/* With FOO counted as 1, BAR as 2, cycles as 100, page-faults as 7, task-clock as 3. */
static double value_of(const char *formula)
{
	const struct tally_result results[] = {
		result("FOO", 1),         result("BAR", 2),        result("cycles", 100),
		result("page-faults", 7), result("task-clock", 3),
	};
	const struct tally_metric_context ctx = {
		.size = sizeof(ctx),
		.duration = 2.5,
		.user_time = 1.5,
		.system_time = 0.25,
	};
	struct tally_metric_value value = { .value = -999 };
	struct tally_metric *m = parse(formula);
	struct tally_error err;

	if (m && tally_metric_compute(m, results, sizeof(results) / sizeof(*results), &ctx, &value,
				      &err) < 0)
		printf("# %s: %s\n", formula, err.text);
	tally_metric_free(m);
	return value.value;
}

static void is(const char *formula, double want, int line)
{
	double got = value_of(formula);

	if (!tap_check_(got == want, __FILE__, line, formula))
		printf("# it is %.17g, not %.17g\n", got, want);
}
#define IS(formula, want) is(formula, want, __LINE__)

static void computes_as_perf(void)
{
	IS("1+1", 2);
	IS("FOO+BAR", 3);
	IS("(BAR/2)%2", 1);
	IS("1 - -4", 5);
	IS("(FOO-1)*2 + (BAR/2)%2 - -4", 5);
	IS("1-1 | 1", 1);
	IS("1-1 & 1", 0);
	IS("min(1,2) + 1", 2);
	IS("max(1,2) + 1", 3);
	IS("1+1 if 3*4 else 0", 2);
	IS("100 if 1 else 200 if 1 else 300", 100);
	IS("100 if 0 else 200 if 1 else 300", 200);
	IS("100 if 1 else 200 if 0 else 300", 100);
	IS("100 if 0 else 200 if 0 else 300", 300);
	IS("1.1 + 2.1", 1.1 + 2.1);
	IS(".1 + 2.", .1 + 2.);
	IS("d_ratio(1, 2)", 0.5);
	IS("d_ratio(2.5, 0)", 0);
	IS("1.1 < 2.2", 1);
	IS("2.2 > 1.1", 1);
	IS("1.1 < 1.1", 0);
	IS("2.2 > 2.2", 0);
	IS("2.2 < 1.1", 0);
	IS("1.1e10 < 1.1e100", 1);
	IS("1.1e2 > 1.1e-2", 1);
}

static void binds_as_perf(void)
{
	IS("2 + 3 * 4", 14);
	IS("2 * 3 + 4", 10);
	IS("10 - 3 - 2", 5);
	IS("100 / 10 / 5", 2);
	IS("7 % 4 * 2", 6);
	IS("1 + 1 < 3", 1);
	/* Comparisons bind before & ^ |, unlike in C. */
	IS("4 & 4 > 3", 0);
	IS("2 ^ 3 & 1", 3);
	IS("1 | 2 ^ 2", 1);
	IS("1 < 2 < 3", 1);
	IS("-2 * 3", -6);
	IS("--2", 2);
	IS("- - -2", -2);
	IS("2 - 3 if 0 else 4", 4);
	IS("(1 if FOO else 2) + 10", 11);
	IS("max(1 if 0 else 5, 2)", 5);
}

static void takes_remainders(void)
{
	IS("7 % 3", 1);
	IS("-7 % 3", -1);
	IS("7 % -3", 1);
	IS("7.5 % 2", 1.5);
	IS("1e15 % 7", (double)(1000000000000000 % 7));
	IS("1e300 % 3 < 3", 1);
	IS("6 % 6", 0);
	IS("5 % 6", 5);
	IS("18014398509481984 % 10", (double)(18014398509481984 % 10));
}

static void reads_numbers(void)
{
	IS("0x3c", 60);
	IS("0XfF", 255);
	IS("1e9", 1e9);
	IS("1e-9", 1e-9);
	IS("1e+3", 1000);
	IS("1E3", 1000);
	IS("0.5e1", 5);
	IS("007", 7);
	IS("5-cycles", -95);
	IS("5-4", 1);
	IS("0xffffffffffffffff", 18446744073709551615.0);
}

static void heeds_no_locale(void)
{
	static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
	bool found = false;

	for (size_t i = 0; i < sizeof(commas) / sizeof(*commas) && !found; i++)
		found = setlocale(LC_NUMERIC, commas[i]) != NULL;
	if (!found)
		tap_skip("no locale that writes 1,5 is installed");
	IS("1.5 * 2", 3);
	setlocale(LC_NUMERIC, "C");
}

static void knows_times(void)
{
	IS("duration_time", 2.5);
	IS("interval_sec", 2.5);
	IS("user_time", 1.5);
	IS("system_time * 4", 1);
}

/* The rule: the longest generic event or metric, else a minus. */
static void tells_minus_from_names(void)
{
	IS("page-faults", 7);
	IS("page-faults-page-faults", 0);
	IS("page-faults-FOO", 6);
	IS("cycles-page-faults", 93);
	IS("cycles-page-faults-cycles", -7);
	IS("FOO-BAR", -1);
	IS("BAR-1", 1);
	IS("BAR -1", 1);
	IS("cpu-cycles - 1", 99);
	IS("cpu\\-cycles-1", 99);
	IS("task-clock / 3", 1);
	IS("page-faults:u-1 if 0 else 8", 8);
}

static void names_events(void)
{
	static const struct {
		const char *formula;
		const char *events[4];
	} rows[] = {
		{ "FOO + BAR + FOO", { "FOO", "BAR" } },
		{ "L1-dcache-load-misses / instructions",
		  { "L1-dcache-load-misses", "instructions" } },
		{ "L1-dcache-load-misses:u / instructions:u",
		  { "L1-dcache-load-misses:u", "instructions:u" } },
		{ "branch-instructions-branch-misses", { "branch-instructions", "branch-misses" } },
		/* A cache's name alone counts its loads; the longest name wins. */
		{ "LLC-loads-LLC-load-misses", { "LLC-loads", "LLC-load-misses" } },
		{ "cpu@event\\=0x3c\\,umask\\=0x1@", { "cpu/event=0x3c,umask=0x1/" } },
		{ "msr@tsc@ / duration_time", { "msr/tsc/" } },
		{ "dash\\-event1 - dash\\-event2", { "dash-event1", "dash-event2" } },
		{ "dash-event1", { "dash", "event1" } },
		{ "MEM_LOAD_RETIRED.L3_MISS + mem_load_retired.l3_miss",
		  { "MEM_LOAD_RETIRED.L3_MISS" } },
		{ "sched:sched_switch / 2", { "sched:sched_switch" } },
		{ "uops_issued.any:ppp", { "uops_issued.any:ppp" } },
		{ "3dnow.ops + 1", { "3dnow.ops" } },
		{ "rc1 - r7aa", { "rc1", "r7aa" } },
		{ "ifetch + elsewhere + minimum", { "ifetch", "elsewhere", "minimum" } },
		{ "source_count(UNC_CHA_CLOCKTICKS)", { "UNC_CHA_CLOCKTICKS" } },
		{ "topdown\\-retiring / slots", { "slots", "topdown-retiring" } },
		{ "a / slots", { "a", "slots" } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_metric *m = parse(rows[i].formula);
		uint32_t n = 0;
		require(m);
		for (; n < 4 && rows[i].events[n]; n++)
			check_str(tally_metric_event(m, n), rows[i].events[n]);
		check_int(tally_metric_events(m), n);
		check_str(tally_metric_event(m, n), NULL);
		tally_metric_free(m);
	}
}

/* What cannot matter is not asked for, as in perf's find-ids tests. */
static void needs_only_what_matters(void)
{
	static const struct {
		const char *formula, *only;
	} rows[] = {
		{ "EVENT1 if 1 else EVENT2", "EVENT1" },
		{ "EVENT1 if 0 else EVENT2", "EVENT2" },
		{ "EVENT1 if #target_cpu else EVENT2", "EVENT2" },
		{ "EVENT1 if #core_wide else EVENT2", "EVENT2" },
		{ "1.0 if EVENT1 > 100.0 else 1.0", NULL },
		{ "0 & EVENT1 > 0", NULL },
		{ "EVENT1 > 0 & 0", NULL },
		{ "1 & EVENT1 > 0", "EVENT1" },
		{ "0 | EVENT1 > 0", "EVENT1" },
		{ "EVENT1 if has_event(cycles) else EVENT2", "EVENT1" },
		{ "EVENT1 if has_event(no_such.event) else EVENT2", "EVENT2" },
		{ "EVENT1 if has_event(cpu-cycles) else EVENT2", "EVENT1" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_metric *m = parse(rows[i].formula);
		require(m);
		check_int(tally_metric_events(m), rows[i].only ? 1 : 0);
		check_str(tally_metric_event(m, 0), rows[i].only);
		tally_metric_free(m);
	}
}

static void says_where_and_what(void)
{
	static const struct {
		const char *formula;
		int code;
		uint32_t cause;
		const char *part;
	} rows[] = {
		{ "", -EINVAL, TALLY_CAUSE_SYNTAX, "column 1: a value is missing at the end" },
		{ "BAR/", -EINVAL, TALLY_CAUSE_SYNTAX, "column 5: a value is missing at the end" },
		{ "1 +", -EINVAL, TALLY_CAUSE_SYNTAX, "column 4: a value is missing" },
		{ "* 2", -EINVAL, TALLY_CAUSE_SYNTAX, "column 1: a value is missing before '*'" },
		{ "(1 + 2", -EINVAL, TALLY_CAUSE_SYNTAX,
		  "column 7: '(' of column 1 is not closed" },
		{ "1 + 2)", -EINVAL, TALLY_CAUSE_SYNTAX, "column 6: this ')' closes nothing" },
		{ "a b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 3: an operator is missing" },
		{ "a if b", -EINVAL, TALLY_CAUSE_SYNTAX,
		  "column 7: 'else' is missing here, for the 'if' of column 3" },
		{ "a if else b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 6: a value is missing" },
		{ "if", -EINVAL, TALLY_CAUSE_SYNTAX, "column 1: a value is missing before 'i'" },
		{ "min(1)", -EINVAL, TALLY_CAUSE_SYNTAX, "column 6: ',' is missing here" },
		{ "min(1,2", -EINVAL, TALLY_CAUSE_SYNTAX, "column 8: ')' is missing here" },
		{ "max + 1", -EINVAL, TALLY_CAUSE_SYNTAX, "column 5: '(' is missing here" },
		{ "a >= b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 3: there is no operator '>='" },
		{ "a && b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 3: there is no operator '&&'" },
		{ "a == b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 3: an operator is missing" },
		{ "#magic", -EINVAL, TALLY_CAUSE_UNKNOWN,
		  "column 1: there is no literal '#magic'" },
		{ "1 + #num_cpus", -ENODATA, TALLY_CAUSE_UNSUPPORTED,
		  "column 5: '#num_cpus' cannot be found out here" },
		{ "#slots", -ENODATA, TALLY_CAUSE_UNSUPPORTED, "caps/slots" },
		{ "strcmp_cpuid_str(GenuineIntel-6-8E)", -ENODATA, TALLY_CAUSE_UNSUPPORTED,
		  "column 1: " },
		{ "has_event()", -EINVAL, TALLY_CAUSE_SYNTAX, "column 11: a name" },
		{ "pm@x\\,chip\\=?@", -EINVAL, TALLY_CAUSE_UNSUPPORTED, "'?'" },
		{ "a\\b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 2: an operator is missing" },
		{ "\\b", -EINVAL, TALLY_CAUSE_SYNTAX, "column 1: behind '\\'" },
		{ "1e999", -EINVAL, TALLY_CAUSE_SYNTAX, "column 1: this number is too large" },
		{ "0x10000000000000000", -EINVAL, TALLY_CAUSE_SYNTAX, "too large" },
		{ "a \x80", -EINVAL, TALLY_CAUSE_SYNTAX, "column 3" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_metric *m = NULL;
		struct tally_error err = { 0 };
		check_int(tally_metric_parse(&m, "test", rows[i].formula, &opts, &err),
			  rows[i].code);
		check(!m);
		check_int(err.code, rows[i].code);
		check_int(err.cause, rows[i].cause);
		check_has(err.text, rows[i].part);
		check_has(err.text, "metric 'test', column ");
	}
}

/* "((((…", with n parentheses. */
static char *nested(size_t n)
{
	char *text = malloc(2 * n + 2);

	if (text) {
		memset(text, '(', n);
		text[n] = '1';
		memset(text + n + 1, ')', n);
		text[2 * n + 1] = '\0';
	}
	return text;
}

static int parse_code(const char *formula, struct tally_error *err)
{
	struct tally_metric *m;
	int r = tally_metric_parse(&m, "test", formula, &opts, err);

	if (r == 0)
		tally_metric_free(m);
	return r;
}

static void limits_depth(void)
{
	struct tally_error err;
	char *deep = nested(100), *deeper = nested(30000);

	require(deep && deeper);
	check_int(parse_code(deep, &err), 0);
	check_int(parse_code(deeper, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "nested more than 128 deep");
	free(deep);
	free(deeper);
}

/* A repeated text, which may be long without being deep. */
static char *repeated(const char *part, size_t times, const char *last)
{
	size_t len = strlen(part);
	char *text = malloc(len * times + strlen(last) + 1);

	for (size_t i = 0; text && i < times; i++)
		memcpy(text + i * len, part, len);
	if (text)
		strcpy(text + len * times, last);
	return text;
}

static void limits_length(void)
{
	struct tally_error err;
	char *sum = repeated("1+", 30000, "1"), *longer = repeated("1+", 33000, "1");
	char *minus = repeated("-", 60000, "1"), *name = repeated("a", 256, "");
	char *dashes = repeated("a-", 30000, "a");

	require(sum && longer && minus && name && dashes);
	IS(sum, 30001);
	IS(minus, 1);
	check_int(parse_code(dashes, &err), 0);
	check_int(parse_code(longer, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_int(parse_code(name, &err), -EINVAL);
	check_has(err.text, "more than 255 bytes");
	check_int(parse_code(name + 1, &err), 0);
	free(sum);
	free(longer);
	free(minus);
	free(name);
	free(dashes);
}

static void limits_events(void)
{
	struct tally_error err;
	char *text = malloc(16 * 1100), *end = text;

	require(text);
	for (int i = 0; i < 1100; i++)
		end += sprintf(end, "e%d+", i);
	strcpy(end, "1");
	check_int(parse_code(text, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "more than 1024 events");
	free(text);
}

static void refers_to_metrics(void)
{
	struct tally_metric *m = parse("IPC * 2");
	const struct tally_result results[] = { result("instructions", 300),
						result("cycles", 100) };
	struct tally_metric_value value = { 0 };

	require(m);
	check_int(tally_metric_events(m), 2);
	check_int(tally_metric_compute(m, results, 2, NULL, &value, NULL), 0);
	check(value.value == 6);
	check_str(tally_metric_formula(m), "IPC * 2");
	tally_metric_free(m);
	/* The formula's own value, not the percentage that is shown. */
	m = parse("branch_miss_rate + insn_per_cycle + IPC");
	require(m);
	const struct tally_result more[] = {
		results[0],
		results[1],
		result("branches", 4),
		result("branch-misses", 1),
	};
	check_int(tally_metric_compute(m, more, 4, NULL, &value, NULL), 0);
	check(value.value == 0.25 + 3 + 3);
	tally_metric_free(m);
}

static void refuses_circles(void)
{
	struct tally_metric *m;
	struct tally_error err;

	check_int(tally_metric_parse(&m, "IPC", "IPC + 1", &opts, &err), -EINVAL);
	check_has(err.text, "metric 'IPC', column 1: the metric 'IPC' would need itself");
}

static void keeps_texts(void)
{
	char name[] = "mine", unit[] = "things", description[] = "all of them", groups[] = "a;b";
	const struct tally_metric_opts o = {
		.size = sizeof(o),
		.scale = 100,
		.unit = unit,
		.description = description,
		.groups = groups,
		.events = &nowhere,
	};
	struct tally_metric_value value;
	struct tally_metric *m;

	require(tally_metric_parse(&m, name, "1 / 4", &o, NULL) == 0);
	memset(name, 'x', 4);
	memset(unit, 'x', 4);
	check_str(tally_metric_name(m), "mine");
	check_str(tally_metric_unit(m), "things");
	check_str(tally_metric_words(m), "things");
	check_str(tally_metric_description(m), "all of them");
	check_str(tally_metric_groups(m), "a;b");
	check_str(tally_metric_beside(m), NULL);
	check_int(tally_metric_compute(m, NULL, 0, NULL, &value, NULL), 0);
	check(value.value == 25);
	check_int(value.state, TALLY_COUNT_EXACT);
	tally_metric_free(m);
	tally_metric_free(NULL);
}

static void checks_options(void)
{
	struct tally_metric *m;
	struct tally_error err;
	struct tally_metric_opts o = { .size = 0 };

	check_int(tally_metric_parse(&m, "a", "1", &o, &err), -EINVAL);
	o = (struct tally_metric_opts){ .size = sizeof(o), .flags = 1u << 31 };
	check_int(tally_metric_parse(&m, "a", "1", &o, &err), -EINVAL);
	o = (struct tally_metric_opts){ .size = sizeof(o), .scale = 1e308 * 10 };
	check_int(tally_metric_parse(&m, "a", "1", &o, &err), -EINVAL);
	check_int(tally_metric_parse(&m, NULL, "1", NULL, &err), -EINVAL);
	check_int(tally_metric_parse(&m, "a", NULL, NULL, &err), -EINVAL);
	const struct tally_events_opts bad = { .size = 0 };
	o = (struct tally_metric_opts){ .size = sizeof(o), .events = &bad };
	check_int(tally_metric_parse(&m, "a", "1", &o, &err), -EINVAL);
}

int main(void)
{
	tap_run(computes_as_perf);
	tap_run(binds_as_perf);
	tap_run(takes_remainders);
	tap_run(reads_numbers);
	tap_run(heeds_no_locale);
	tap_run(knows_times);
	tap_run(tells_minus_from_names);
	tap_run(names_events);
	tap_run(needs_only_what_matters);
	tap_run(says_where_and_what);
	tap_run(limits_depth);
	tap_run(limits_length);
	tap_run(limits_events);
	tap_run(refers_to_metrics);
	tap_run(refuses_circles);
	tap_run(keeps_texts);
	tap_run(checks_options);
	return tap_end();
}
