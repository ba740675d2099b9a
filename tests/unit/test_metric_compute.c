/* SPDX-License-Identifier: MIT */
/* From results to a metric's value, or to the reason why there is none. */
#include <errno.h>
#include <stdlib.h>

#include <tally/attr.h>
#include <tally/metric.h>

#include "event/event.h"
#include "tap.h"

static const struct tally_events_opts nowhere = { .size = sizeof(nowhere), .root = "/nonexistent" };
static const struct tally_metric_opts opts = { .size = sizeof(opts), .events = &nowhere };

static struct tally_result counted(const char *label, uint64_t value)
{
	return (struct tally_result){
		.label = label,
		.unit = "",
		.scale = 1,
		.count = { .value = value, .raw = value, .enabled_ns = 10, .running_ns = 10 },
	};
}

static struct tally_result in_state(const char *label, uint64_t value, uint32_t state,
				    int32_t error)
{
	struct tally_result r = counted(label, value);

	r.count.state = state;
	r.count.error = error;
	return r;
}

static struct {
	struct tally_metric_value value;
	struct tally_error err;
	int code;
} got;

#define COUNT(results)            (sizeof(results) / sizeof(*(results)))
#define COMPUTE(formula, results) compute(formula, results, COUNT(results), NULL)

static void compute(const char *formula, const struct tally_result *results, size_t count,
		    const struct tally_metric_context *ctx)
{
	struct tally_metric *m = NULL;

	memset(&got, 0, sizeof(got));
	got.value.value = -999;
	got.code = tally_metric_parse(&m, "test", formula, &opts, &got.err);
	if (got.code == 0)
		got.code = tally_metric_compute(m, results, (uint32_t)count, ctx, &got.value,
						&got.err);
	tally_metric_free(m);
}

/* There is no value: nothing was written, and the error says all of it. */
static void check_no_value(uint32_t cause, const char *text)
{
	check_int(got.code, -ENODATA);
	check_int(got.err.code, -ENODATA);
	check_int(got.err.cause, cause);
	check_str(got.err.text, text);
	check(got.value.value == -999);
}

static void check_value(double value)
{
	if (!check(got.code == 0 && got.value.value == value))
		printf("# %.17g instead of %.17g: %s\n", got.value.value, value, got.err.text);
}

static void takes_worst_state(void)
{
	struct tally_result results[] = {
		counted("instructions", 30),
		in_state("cycles", 10, TALLY_COUNT_SCALED, 0),
		counted("branches", 4),
	};

	COMPUTE("instructions / cycles", results);
	check_value(3);
	check_int(got.value.state, TALLY_COUNT_SCALED);
	check_int(got.value.flags, 0);
	/* What was not used does not count. */
	COMPUTE("instructions / branches", results);
	check_value(7.5);
	check_int(got.value.state, TALLY_COUNT_EXACT);
	COMPUTE("instructions if 2 > branches else branches + 0 * 1", results);
	check_value(4);
	check_int(got.value.state, TALLY_COUNT_EXACT);
	COMPUTE("5 if cycles > 3 else instructions", results);
	check_value(5);
	check_int(got.value.state, TALLY_COUNT_SCALED);
}

static void keeps_flags(void)
{
	struct tally_result results[] = { counted("cycles", 10), counted("instructions", 20) };

	results[0].count.flags = TALLY_COUNT_START_INEXACT;
	results[1].count.flags = TALLY_COUNT_BELOW_OVERHEAD;
	COMPUTE("cycles * 2", results);
	check_int(got.value.flags, TALLY_COUNT_START_INEXACT);
	COMPUTE("max(instructions, cycles)", results);
	check_int(got.value.flags, TALLY_COUNT_START_INEXACT | TALLY_COUNT_BELOW_OVERHEAD);
}

static void says_what_is_missing(void)
{
	struct tally_result results[] = {
		counted("instructions", 30),
		in_state("cycles", 0, TALLY_COUNT_NEVER_RAN, 0),
		in_state("branches", 0, TALLY_COUNT_ERROR, -ENOENT),
		in_state("cache-misses", 0, TALLY_COUNT_ERROR, -EBUSY),
		in_state("cache-references", 0, TALLY_COUNT_ERROR, -EACCES),
	};

	COMPUTE("instructions / ref-cycles", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test': 'ref-cycles' was not counted");
	COMPUTE("instructions / cycles", results);
	check_no_value(
		TALLY_CAUSE_LIMIT,
		"metric 'test': 'cycles' was never scheduled on the PMU: what was measured was "
		"too short, or too many events were counted at once");
	COMPUTE("instructions / branches", results);
	check_no_value(TALLY_CAUSE_UNSUPPORTED, "metric 'test': 'branches' could not be counted: "
						"this machine does not have it");
	COMPUTE("cache-misses / 2", results);
	check_no_value(TALLY_CAUSE_UNSUPPORTED,
		       "metric 'test': 'cache-misses' could not be counted: "
		       "other events hold the counters that it needs");
	COMPUTE("cache-references / 2", results);
	check_no_value(TALLY_CAUSE_UNSUPPORTED,
		       "metric 'test': 'cache-references' could not be counted: Permission denied");
	/* In a formula that was referred to, that one is named too. */
	COMPUTE("2 * IPC", results);
	check_has(got.err.text, "metric 'test', 'IPC': 'cycles' was never scheduled");
}

static void divides_by_no_zero(void)
{
	const struct tally_result results[] = { counted("FOO", 5), counted("NONE", 0) };

	COMPUTE("FOO / NONE", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test', column 5: a division by zero");
	COMPUTE("FOO/0", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test', column 4: a division by zero");
	COMPUTE("1 + FOO % NONE", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test', column 9: a division by zero");
	COMPUTE("d_ratio(FOO, NONE)", results);
	check_value(0);
	/* The branch that is not taken may. */
	COMPUTE("FOO / NONE if NONE else 3", results);
	check_value(3);
	COMPUTE("3 if 1 > NONE else MISSING", results);
	check_value(3);
	COMPUTE("FOO / NONE if 1 > NONE else 3", results);
	check_int(got.code, -ENODATA);
}

static void holds_values_apart_from_nonsense(void)
{
	const struct tally_result results[] = { counted("FOO", 3), counted("BAR", 2) };

	COMPUTE("FOO / BAR & 1", results);
	check_no_value(TALLY_CAUSE_ARGUMENT,
		       "metric 'test', column 11: & ^ | need whole numbers of "
		       "less than 2^53");
	COMPUTE("1e300 * FOO | 1", results);
	check_int(got.code, -ENODATA);
	COMPUTE("1e300 * FOO * 1e300", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test', column 13: the value is too large");
	COMPUTE("FOO ^ BAR | 4", results);
	check_value(5);
	COMPUTE("-FOO & 7", results);
	check_value(5);
}

static void needs_a_duration(void)
{
	const struct tally_result results[] = { counted("FOO", 3) };
	struct tally_metric_context ctx = { .size = sizeof(ctx) };

	COMPUTE("FOO / duration_time", results);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test': how long it took is not known");
	compute("FOO / user_time", results, 1, &ctx);
	check_int(got.code, -ENODATA);
	ctx.duration = 2;
	compute("FOO / duration_time", results, 1, &ctx);
	check_value(1.5);
	/* No CPU time at all is a fact too. */
	compute("user_time", results, 1, &ctx);
	check_value(0);
	ctx.size = 0;
	compute("FOO", results, 1, &ctx);
	check_int(got.code, -EINVAL);
	ctx = (struct tally_metric_context){ .size = sizeof(ctx), .flags = 1 };
	compute("FOO", results, 1, &ctx);
	check_int(got.code, -EINVAL);
}

static void knows_other_names(void)
{
	const struct tally_result results[] = {
		counted("branch-instructions", 8),
		counted("cpu-cycles", 4),
		counted("l1d-loads", 2),
		counted("faults", 1),
		counted("mem_load_retired.l3_miss", 6),
		counted("cpu/event=0x3c/", 5),
	};

	COMPUTE("branches / cycles", results);
	check_value(2);
	COMPUTE("L1-dcache-loads / page-faults", results);
	check_value(2);
	COMPUTE("MEM_LOAD_RETIRED.L3_MISS", results);
	check_value(6);
	COMPUTE("cpu@event\\=0x3c@", results);
	check_value(5);
	COMPUTE("cpu@event\\=0x3d@", results);
	check_int(got.code, -ENODATA);
	COMPUTE("L1-dcache-load-misses", results);
	check_int(got.code, -ENODATA);
}

static void takes_one_set_of_modes(void)
{
	const struct tally_result user[] = { counted("cycles:u", 10),
					     counted("instructions:u", 30) };
	const struct tally_result mixed[] = { counted("cycles:u", 10),
					      counted("instructions", 30) };
	const struct tally_result both[] = {
		counted("cycles", 100),
		counted("cycles:u", 10),
		counted("instructions:u", 30),
	};
	const struct tally_result all[] = {
		counted("cycles:k", 1000),    counted("cycles:u", 10),       counted("cycles", 100),
		counted("instructions", 200), counted("instructions:u", 30),
	};

	COMPUTE("instructions / cycles", user);
	check_value(3);
	COMPUTE("instructions / cycles", mixed);
	check_no_value(TALLY_CAUSE_ARGUMENT, "metric 'test': 'instructions' and 'cycles:u' were "
					     "counted in different modes: count both in the same");
	COMPUTE("instructions / cycles", both);
	check_value(3);
	/* Two sets of modes would do: all modes go first, as a plain name means them. */
	COMPUTE("instructions / cycles", all);
	check_value(2);
}

static void knows_equal_modes(void)
{
	const struct tally_result results[] = {
		counted("cycles:ukh", 10),         counted("instructions", 30),
		counted("branches:ppp", 5),        counted("cache-misses:H", 6),
		counted("cache-references:uk", 7), counted("cpu/event=1/", 8),
		counted("cpu/event=2/u", 9),       counted("cpu/event=3/ukhH", 11),
	};

	COMPUTE("instructions / cycles", results);
	check_value(3);
	COMPUTE("instructions / branches", results);
	check_value(6);
	COMPUTE("instructions / cache-misses", results);
	check_value(5);
	COMPUTE("instructions / cache-references", results); /* without the hypervisor */
	check_int(got.code, -ENODATA);
	COMPUTE("instructions - cpu@event\\=1@", results);
	check_value(22);
	COMPUTE("instructions - cpu@event\\=2@", results);
	check_int(got.code, -ENODATA);
	COMPUTE("instructions - cpu@event\\=3@", results);
	check_value(19);
}

static void lets_formulas_choose_modes(void)
{
	const struct tally_result results[] = {
		counted("cycles:u", 10),
		counted("cycles", 40),
		counted("instructions:u", 30),
	};

	COMPUTE("cycles:u / cycles", results);
	check_value(0.25);
	COMPUTE("instructions:u / cycles", results);
	check_value(0.75); /* the plain one is rather that of all modes */
	COMPUTE("cycles:k", results);
	check_no_value(TALLY_CAUSE_ARGUMENT,
		       "metric 'test': 'cycles:k' was not counted, only 'cycles:u' was");
	COMPUTE("cycles:ukh", results);
	check_value(40);
}

/* Clocks, what happens in the kernel only, tracepoints, PMUs outside of the cores. */
static void some_events_have_no_modes(void)
{
	const struct tally_result results[] = {
		counted("cycles:u", 12),
		counted("task-clock:u", 4),
		counted("context-switches", 3),
		counted("sched:sched_switch", 6),
		counted("uncore_imc_0/cas_count_read/", 2),
		counted("page-faults", 1),
	};

	COMPUTE("cycles / task-clock", results);
	check_value(3);
	COMPUTE("cycles / context-switches", results);
	check_value(4);
	COMPUTE("cycles / sched:sched_switch", results);
	check_value(2);
	COMPUTE("cycles / uncore_imc_0@cas_count_read@", results);
	check_value(6);
	COMPUTE("cycles / page-faults", results); /* those of user mode are others than all */
	check_int(got.code, -ENODATA);
}

static void takes_either_clock(void)
{
	const struct tally_result one[] = { counted("cpu-clock", 5) };
	const struct tally_result two[] = { counted("cpu-clock", 5), counted("task-clock", 7) };

	COMPUTE("task-clock", one);
	check_value(5);
	COMPUTE("task-clock", two);
	check_value(7);
	COMPUTE("cpu-clock", two);
	check_value(5);
}

static void takes_first_of_two(void)
{
	const struct tally_result results[] = { counted("cycles", 5), counted("cycles", 7) };

	COMPUTE("cycles", results);
	check_value(5);
}

/* Counts enter before their scale. */
static void heeds_no_scale(void)
{
	struct tally_result results[] = { counted("power/energy-pkg/", 1000) };

	results[0].scale = 2.3283064365386962890625e-10;
	results[0].unit = "Joules";
	COMPUTE("power@energy\\-pkg@", results);
	check_value(1000);
}

static void counts_sources(void)
{
	const struct tally_result results[] = { counted("cycles", 5),
						counted("UNC_CLOCKTICKS", 48) };
	const uint32_t sources[] = { 1, 24 };
	const struct tally_metric_context ctx = { .size = sizeof(ctx), .sources = sources };

	compute("UNC_CLOCKTICKS / source_count(UNC_CLOCKTICKS)", results, 2, &ctx);
	check_value(2);
	compute("source_count(UNC_CLOCKTICKS)", results, 2, NULL);
	check_value(1);
	compute("source_count(UNC_OTHER)", results, 2, NULL);
	check_int(got.code, -ENODATA);
}

/* More nodes than are computed on the stack. */
static void computes_long_formulas(void)
{
	char text[4096], *end = text;
	const struct tally_result results[] = { counted("e7", 2), counted("e499", 3) };

	COMPUTE("e7 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + e499", results);
	check_value(60);
	for (int i = 0; i < 200; i++)
		end += sprintf(end, "e7 * %d +", i);
	strcpy(end, "e499");
	COMPUTE(text, results);
	check_value(2 * 199 * 200 / 2 + 3);
}

/* The value's scale may carry it out of range as well. */
static void scales_within_range(void)
{
	const struct tally_metric_opts o = { .size = sizeof(o),
					     .scale = 1e308,
					     .events = &nowhere };
	struct tally_metric_value value;
	struct tally_error err;
	struct tally_metric *m;

	require(tally_metric_parse(&m, "test", "100", &o, NULL) == 0);
	check_int(tally_metric_compute(m, NULL, 0, NULL, &value, &err), -ENODATA);
	check_has(err.text, "too large");
	tally_metric_free(m);
}

/* An event as its opening leaves it, with these modes granted. */
static void grant(struct tally_event *e, uint64_t add_flags)
{
	e->granted = e->attr;
	e->granted.flags |= add_flags;
	e->opened = true;
}

static void labels_tell_what_was_granted(void)
{
	static const struct {
		const char *text;
		uint64_t more;
		const char *label;
	} rows[] = {
		{ "cycles", 0, "cycles" },
		{ "cycles", TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV, "cycles:u" },
		{ "cycles:ppp", TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV, "cycles:u" },
		{ "cycles:uk", TALLY_ATTR_EXCLUDE_KERNEL, "cycles:u" },
		{ "cycles:u", 0, "cycles:u" },
		{ "cycles:G", TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV, "cycles:uG" },
		{ "cycles", TALLY_ATTR_PINNED, "cycles" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct tally_events *events;
		char label[64];
		require(tally_events_parse(&events, rows[i].text, &nowhere, NULL) == 0);
		struct tally_event *e = tally_events_at(events, 0);
		check_int(tally_metric_label(label, sizeof(label), e), strlen(rows[i].text));
		check_str(label, rows[i].text);
		grant(e, rows[i].more);
		check_int(tally_metric_label(label, sizeof(label), e), strlen(rows[i].label));
		check_str(label, rows[i].label);
		check_int(tally_metric_label(label, strlen(rows[i].label), e), -ENAMETOOLONG);
		tally_events_free(events);
	}
}

static void labels_tell_another_event(void)
{
	struct tally_events *events;
	char label[64];

	require(tally_events_parse(&events, "cycles", &nowhere, NULL) == 0);
	struct tally_event *e = tally_events_at(events, 0);
	grant(e, 0);
	e->granted.type = TALLY_TYPE_SOFTWARE;
	e->granted.config = TALLY_SW_CPU_CLOCK;
	check_int(tally_metric_label(label, sizeof(label), e), 9);
	check_str(label, "cpu-clock");
	tally_events_free(events);
}

int main(void)
{
	tap_run(takes_worst_state);
	tap_run(keeps_flags);
	tap_run(says_what_is_missing);
	tap_run(divides_by_no_zero);
	tap_run(holds_values_apart_from_nonsense);
	tap_run(needs_a_duration);
	tap_run(knows_other_names);
	tap_run(takes_one_set_of_modes);
	tap_run(knows_equal_modes);
	tap_run(lets_formulas_choose_modes);
	tap_run(some_events_have_no_modes);
	tap_run(takes_either_clock);
	tap_run(takes_first_of_two);
	tap_run(heeds_no_scale);
	tap_run(counts_sources);
	tap_run(computes_long_formulas);
	tap_run(scales_within_range);
	tap_run(labels_tell_what_was_granted);
	tap_run(labels_tell_another_event);
	return tap_end();
}
