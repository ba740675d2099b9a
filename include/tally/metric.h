/* SPDX-License-Identifier: MIT */
/*
 * tally_metric: a formula over counts, "instructions / cycles".
 *
 *	tally_metric_parse(&m, "IPC", "instructions / cycles", NULL, &err);
 *	for (i = 0; i < tally_metric_events(m); i++)
 *		count tally_metric_event(m, i) ...
 *	if (tally_metric_compute(m, results, count, NULL, &value, &err) == 0)
 *		printf("%.2f\n", value.value);
 *
 * A value comes with the worst state of the counts that it was made of; one that cannot be computed
 * says why: an event that is missing, that never ran, a division by zero, counts of different modes.
 *
 * Formulas are written in the language of perf's metric tables (MetricExpr):
 *
 *	formula  = sum [ "if" sum "else" formula ]
 *	sum      = value, with - (unary), then * / %, + -, < >, &, ^, | in this order of strength
 *	value    = number | "(" formula ")" | literal | name
 *	         | "min" "(" formula "," formula ")", also max, d_ratio (a / b, or 0 when b is 0)
 *	         | "source_count" "(" name ")"       of how many PMUs the event's count is the sum
 *	         | "has_event" "(" name ")"          1 when there is a name for it here, else 0
 *	         | "strcmp_cpuid_str" "(" id ")"     1 on a CPU that is identified so, else 0
 *	number   = 12, 1.5, .5, 1e9, 1e-9, 0x3c
 *	literal  = #smt_on #num_cpus #num_cpus_online #num_cores #num_dies #num_packages #core_wide
 *	           #target_cpu #slots #system_tsc_freq #has_pmem
 *
 * Comparisons are 1 or 0; & ^ | take whole numbers; % is the remainder, with the sign of its left
 * side. What stands in the branch that an "if" does not take need not be computable.
 *
 * A name is made of letters, digits and _ . : @ with "@" for "/" and "\-" "\," "\=" for "-" "," "=":
 * cpu@event\=0x3c\,umask\=1@ is the event cpu/event=0x3c,umask=1/. A "-" without "\" belongs to a
 * name when, with it, the longest name comes out that is a generic event (L1-dcache-load-misses,
 * with modifiers or without) or a metric; else it is a minus: in "page-faults-major-faults" it is
 * one, once. A word that could be a number is one.
 *
 * A name stands for, in this order: a time (duration_time, user_time, system_time, interval_sec, in
 * seconds), a generic event, another metric by its formula, not scaled, any other event. Metrics are
 * looked up among the built-in ones, then in tables; from a formula of a table in tables first.
 * Counts enter as they are counted, before their scale; clocks therefore in nanoseconds.
 *
 * Which count is an event's: that of the result with its label. Other names of a generic event
 * (branches, branch-instructions), and upper and lower case, count as equal. An event that the
 * formula names without modes (u k h H G I) goes with results of any, but all such events of a
 * formula must have been counted in the same: in those that most of them were, rather in all than in
 * some. Clocks, events that happen in the kernel only and those of PMUs other than the CPU's have no
 * modes and go with all. An event that is named with modes ("cycles:k / cycles") takes a result of
 * just these; u, k and h together are all. A formula that asks for task-clock or cpu-clock takes the
 * other where only that was counted.
 */
#ifndef TALLY_METRIC_H
#define TALLY_METRIC_H

#include <tally/api.h>
#include <tally/count.h>
#include <tally/error.h>
#include <tally/event.h>

TALLY_BEGIN_DECLS

struct tally_metric;

enum tally_metric_flags {
	/* CPUs are counted rather than tasks: #target_cpu is 1. */
	TALLY_METRIC_ON_CPUS = 1u << 0,
	/* With ON_CPUS: all threads of each core are among them: #core_wide is 1. */
	TALLY_METRIC_WHOLE_CORES = 1u << 1,
};

/* Texts are borrowed for the call; they are copied. */
struct tally_metric_opts {
	uint32_t size, flags;    /* enum tally_metric_flags */
	double scale;            /* what the formula's value is multiplied with; 0: 1 */
	const char *unit;        /* of the scaled value, "%"; NULL: "" */
	const char *description; /* one line; NULL: "" */
	const char *groups;      /* names of groups, separated by ';'; NULL: "" */
	/* Where names and the facts behind literals are looked up (root, tables). Borrowed for the
	 * call. */
	const struct tally_events_opts *events;
};

/*
 * Parses a formula. Literals, has_event and strcmp_cpuid_str are settled now, so that no event is
 * asked for that only another machine needs. Names of events are not looked up beyond what the rule
 * for "-" needs. `name` is what error texts call it. All texts are copied; `*out` is yours to free.
 * Errors: -EINVAL with the column and what was expected there (TALLY_CAUSE_SYNTAX, _UNKNOWN for a
 * literal, _UNSUPPORTED, _ARGUMENT), also metrics that need each other in a circle, and for what
 * is too long or too deeply nested (_LIMIT); -ENODATA when a literal cannot be found out here;
 * -E2BIG; -ENOMEM; -ENOENT, -EACCES and others when the tables cannot be read. Since: 0.1
 */
TALLY_API int tally_metric_parse(struct tally_metric **out, const char *name, const char *formula,
				 const struct tally_metric_opts *opts, struct tally_error *err);

/* NULL is fine. Since: 0.1 */
TALLY_API void tally_metric_free(struct tally_metric *metric);

/* Since: 0.1, all of these. Texts are borrowed from the metric and never NULL, but for beside. */
TALLY_API const char *tally_metric_name(const struct tally_metric *metric);
TALLY_API const char *tally_metric_formula(const struct tally_metric *metric);
TALLY_API const char *tally_metric_unit(const struct tally_metric *metric);
TALLY_API const char *tally_metric_description(const struct tally_metric *metric);
TALLY_API const char *tally_metric_groups(const struct tally_metric *metric);
/* What to print behind the value, unit included: "insn per cycle". Its unit when it has no words.
 */
TALLY_API const char *tally_metric_words(const struct tally_metric *metric);
/* The event next to which it is printed; NULL when it is not. */
TALLY_API const char *tally_metric_beside(const struct tally_metric *metric);

/*
 * How many events it needs, and their names, each once, in the formula's order. Events that Intel's
 * top-down counters are made of are led by slots, since they must be counted in its group.
 * NULL beyond the end. Since: 0.1
 */
TALLY_API uint32_t tally_metric_events(const struct tally_metric *metric);
TALLY_API const char *tally_metric_event(const struct tally_metric *metric, uint32_t i);

/* What the counts do not tell. Zeroed but for the size: nothing is known. */
struct tally_metric_context {
	uint32_t size, flags; /* flags: 0 */
	double duration;      /* seconds that counting took: duration_time, interval_sec */
	double user_time;     /* CPU seconds of the target; known when duration is */
	double system_time;
	/* Of each result, of how many PMUs it is the sum; NULL: of one each. Borrowed. */
	const uint32_t *sources;
};

struct tally_metric_value {
	double value;   /* scaled, in the metric's unit */
	uint32_t state; /* enum tally_count_state: the worst of the counts that it was made of */
	uint32_t flags; /* enum tally_count_flags that any of them has */
};

/*
 * Computes it from results; see above for which of them it takes. Of two with the same label the
 * first. `ctx` may be NULL. Allocates nothing for up to 64 results, operands and operators, and
 * may be called by several threads at once.
 * Errors: -ENODATA with the reason: an event is not among the results (TALLY_CAUSE_ARGUMENT), could
 * not be opened or read (_UNSUPPORTED), never ran (_LIMIT), modes differ, a division by zero, a
 * fraction where a whole number is needed, no duration (_ARGUMENT); -EINVAL; -E2BIG; -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_metric_compute(const struct tally_metric *metric,
				   const struct tally_result *results, uint32_t count,
				   const struct tally_metric_context *ctx,
				   struct tally_metric_value *out, struct tally_error *err);

/*
 * Makes the label of an event that was opened: its name, with the modes that the kernel granted
 * where they are not those that were asked for ("cycles" becomes "cycles:u" when the kernel may not
 * be counted), and the granted event's name when it is another. Answers its length, or -ENAMETOOLONG
 * when it does not fit. Since: 0.1
 */
TALLY_API int tally_metric_label(char *out, size_t size, const struct tally_event *event);

/*
 * Calls `fn` for each metric of which the name or a group matches `glob` (fnmatch(3); NULL: all),
 * until it returns non-zero, which is then returned: the built-in ones that this machine can have,
 * then those of opts->events->tables that can be parsed here, by name. The metric is freed behind the
 * call. Of `opts` scale and texts are not used.
 * Errors: -EINVAL, -E2BIG, -ENOMEM; for tables those of tally_events_parse. Since: 0.1
 */
TALLY_API int tally_metric_each(const char *glob, const struct tally_metric_opts *opts,
				int (*fn)(const struct tally_metric *metric, void *arg), void *arg,
				struct tally_error *err);

/*
 * As tally_metric_each, for the built-in metrics that are worth printing next to a count of `event`,
 * the most telling first; the last is how often it happened a second of the time that the target
 * ran. Errors: -EINVAL, -E2BIG, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_metric_each_beside(const char *event, const struct tally_metric_opts *opts,
				       int (*fn)(const struct tally_metric *metric, void *arg),
				       void *arg, struct tally_error *err);

/*
 * The metric of that name, whatever its case: a built-in one, or else of opts->events->tables, where
 * of several the first. `*out` is yours to free. Of `opts` scale and texts are not used.
 * Errors: -ENOENT with the nearest name there is (TALLY_CAUSE_UNKNOWN); -ENODATA for one that needs
 * what this CPU has not, with the needs in words (_UNSUPPORTED); those of tally_metric_parse.
 * Since: 0.1
 */
TALLY_API int tally_metric_find(struct tally_metric **out, const char *name,
				const struct tally_metric_opts *opts, struct tally_error *err);

TALLY_END_DECLS

#endif
