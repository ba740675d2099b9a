/* SPDX-License-Identifier: MIT */
/* What the parts of `tally stat` share: options, the events that are counted, and their results. */
#ifndef CLI_STAT_H
#define CLI_STAT_H

#include <stdio.h>
#include <tally/tally.h>

#include "args.h"
#include "targets.h"
#include "words.h"

/* Mean and spread of a figure over repeated runs, updated one by one (Welford). */
struct moments {
	uint64_t n;
	double mean, m2;
	double last; /* the figure added last */
};

void moments_add(struct moments *m, double value);
/* The standard error of the mean as a percentage of it, as perf stat -r shows; 0 for one run. */
double moments_percent(const struct moments *m);

/* How counts are summed up: all together, or for each of these. */
enum stat_by {
	BY_ALL,
	BY_CPU,
	BY_CORE,
	BY_DIE,
	BY_SOCKET,
	BY_NODE,
	BY_THREAD,
};

/* One event. */
struct stat_row {
	struct tally_event *event;
	struct tally_error error; /* why it could not be opened; code 0: it could */
	struct tally_error why;   /* why it was not counted at the end; code 0: it was */
	uint32_t pieces;          /* of its group, which the kernel refused as a whole; else 1 */
	uint32_t cgroup;          /* NO_CGROUP: counted in all that are given */
};

/* One event under one key. */
struct stat_cell {
	uint32_t places;           /* how many are summed; 0: it is not counted there */
	struct tally_count now;    /* of the run that is being read */
	struct tally_count before; /* what `now` was at the last interval */
	struct tally_count sum;    /* of all runs, or of this interval; the worst state wins */
	struct moments value;      /* of the runs' values */
};

#define NO_CGROUP UINT32_MAX

/* What a count is for beside its event. What does not apply is -1, or NO_CGROUP. */
struct stat_key {
	int32_t cpu, core, die, socket, node, tid;
	char comm[17];
	uint32_t cgroup;         /* an index of the result's cgroups */
	uint32_t cpus;           /* that were asked for; a row may be counted on fewer */
	struct stat_cell *cells; /* one a row */
};

struct stat_result {
	struct stat_row *rows;
	uint32_t count;
	struct stat_key *keys;
	uint32_t key_count;
	enum stat_by by;
	const char **cgroups; /* one that is empty stands for none */
	uint32_t cgroup_count;
	uint64_t runs;
	double interval;                     /* when it ended, seconds; 0: no intervals */
	bool disabled;                       /* counting never began */
	struct moments wall, user, sys, rss; /* seconds, bytes; the latter three of a command */
	double *walls;                       /* of each run, where --table wants them */
};

struct stat_options {
	struct texts events, filters;
	struct target_args target;
	const char *cgroups, *each_cgroup;
	const char *output; /* NULL: stderr, "-": stdout */
	uint64_t log_fd;    /* UINT64_MAX: none */
	uint64_t repeat;    /* 0: for ever */
	double duration;    /* seconds, 0: no limit */
	uint64_t timeout_ms, interval_ms, interval_count;
	int64_t delay_ms;
	const char *separator; /* of CSV; NULL: a table */
	const char *pre, *post, *baseline, *metrics, *tables;
	unsigned detail;
	enum stat_by by;
	bool no_aggr, per_core, per_die, per_socket, per_node, per_thread;
	bool json, no_stop, no_inherit, null_run, big_num, verbose, append, quiet, table;
};

/* stat-options.c: *argv becomes what is left, NULL when there is an exit status instead. */
int stat_options_parse(struct stat_options *options, int argc, char **argv, char *const **left);
/* What no single option shows to be wrong. false: said. */
bool stat_options_check(struct stat_options *options, const struct targets *targets, bool command);
/* All -e as one list, or the default, with the events of -d; malloc'ed, NULL: no memory. */
char *stat_event_text(const struct stat_options *options, bool on_cpus);
/* Gives --filter's filters to their events. */
int stat_set_filters(const struct stat_options *options, struct tally_events *events);

/* stat-cgroups.c: what to exit with; the list is freed with result->cgroups. */
int stat_set_cgroups(const struct stat_options *options, struct stat_result *result);
/* Whether an event is counted in this cgroup; NO_CGROUP: outside of all. */
bool stat_counts_in(const struct stat_row *row, uint32_t cgroup);

/* stat-keys.c */
/* The key of a CPU or of a thread, found or added; NULL: no memory. */
struct stat_key *stat_key_of(struct stat_result *result, const struct tally_place *place,
			     uint32_t cgroup);
void stat_keys_free(struct stat_result *result);
/* The n-th cell to be printed, in perf's order: keys outside, for threads and CPUs events outside. */
struct stat_at {
	uint32_t n; /* 0 before the first */
	uint32_t row;
	const struct stat_key *key;
	const struct stat_cell *cell;
};
bool stat_next(const struct stat_result *result, struct stat_at *at);
/* perf's words for a key, "S0-D0-C1", "CPU3", "bash-1234"; "" where all is summed. */
const char *stat_key_name(char *out, size_t size, const struct stat_result *result,
			  const struct stat_key *key);
/* Whether perf shows how many CPUs a key sums. */
bool stat_shows_cpus(enum stat_by by);
uint32_t stat_cpus(const struct stat_at *at);

/* stat-count.c: the events opened on all targets. */
struct stat_counters;

/*
 * Opens the rows' events, in groups as they were written. One that this machine does not have
 * leaves its reason in its row; for other failures all is closed and -errno returned.
 */
int stat_open(struct stat_counters **out, struct stat_result *result, struct tally_events *events,
	      const struct targets *targets, const struct stat_options *options,
	      struct tally_error *err);
int stat_enable(struct stat_counters *counters);
int stat_disable(struct stat_counters *counters);
/* Reads all into the cells' `now`. */
int stat_read(struct stat_counters *counters, struct stat_result *result);
/* Finds out, for what was read last, why rows were not counted and which groups were split. */
void stat_explain(struct stat_counters *counters, struct stat_result *result);
void stat_close(struct stat_counters *counters);

/* Adds what the cells read now to their sums. */
void stat_take_run(struct stat_result *result);
/* Makes the sums what was counted since the last interval, which took `seconds`. */
void stat_take_interval(struct stat_result *result, double seconds);
/* Forgets all runs. */
void stat_forget(struct stat_result *result);

/* stat-rates.c: what a count means beside the others, as 1.23 "insn per cycle". */
struct stat_rate {
	char value[32];   /* formatted; "" when there is none */
	char unit[48];    /* "insn per cycle", "K/sec" */
	const char *mark; /* what aligns the unit: "%" or a blank behind two decimals */
	double number;    /* not scaled by K, M, G */
	char number_unit[48];
};
struct stat_rate stat_rate(const struct stat_result *result, const struct stat_at *at);
struct stat_rate stat_rate_of(const struct tally_metric *metric, double value);

/* A key's counts as metrics take them. */
#define STAT_LABEL 64
struct stat_counts {
	struct tally_result *at;
	char (*labels)[STAT_LABEL];
	uint32_t count;
	struct tally_metric_context ctx;
};
/* Takes those of all events, or of `beside` and the generic ones. false: no memory. */
bool stat_counts_take(struct stat_counts *counts, const struct stat_result *result,
		      const struct stat_key *key, const struct stat_row *beside);
void stat_counts_free(struct stat_counts *counts);

/* stat-metrics.c */
struct stat_metrics {
	struct tally_metric **at;
	uint32_t count;
	struct tally_events_opts names; /* where names are looked up */
	bool all; /* all that can be computed from what was counted, without a reason for the rest */
};
/* Reads the list of -M; "": all. What to exit with. */
int stat_metrics_read(struct stat_metrics *out, const char *list, bool on_cpus, bool whole_cores);
void stat_metrics_free(struct stat_metrics *metrics);
/* Adds the events that they need to a malloc'ed list; NULL: no memory, `text` is freed. */
char *stat_metrics_events(const struct stat_metrics *metrics, char *text);
/* For each key, in the way that the options say. */
void stat_metrics_print(FILE *to, const struct stat_metrics *metrics,
			const struct stat_result *result, const struct stat_options *options);

/* stat-table.c, -csv.c, -json.c. */
/* What stands at the start of a line: when, and whom it is counted for. */
void stat_print_prefix(FILE *to, const struct stat_result *result, const struct stat_at *at);
void stat_csv_prefix(FILE *to, const struct stat_result *result, const struct stat_at *at,
		     const char *sep);
void stat_json_key(FILE *to, const struct stat_result *result, const struct stat_at *at);
/* What was given up for a row, with a comma before it; nothing where nothing was. */
void stat_json_compromise(FILE *to, const struct stat_row *row);
/* Longest printed figure: 20 digits, 6 commas, decimals. */
#define STAT_FIGURE 48
/* Fixed decimals, with a comma before each third digit when wanted, whatever the locale. */
void stat_number(char out[STAT_FIGURE], double value, int decimals, bool big_num);
/* A cell's figure as perf's table and CSV have it. */
void stat_figure(char out[STAT_FIGURE], const struct stat_result *result, const struct stat_at *at,
		 bool big_num);
/* "msec" for clocks. */
const char *stat_unit(const struct stat_row *row);
/* With the metrics of -M, NULL: none. */
void stat_print_table(FILE *to, const struct stat_result *result, const struct stat_options *opts,
		      const struct stat_metrics *metrics, char *const *argv);
/* One interval's lines, `n` counting from 0. */
void stat_print_interval(FILE *to, const struct stat_result *result,
			 const struct stat_options *opts, uint64_t n);
void stat_print_csv(FILE *to, const struct stat_result *result, const char *separator);
void stat_print_json(FILE *to, const struct stat_result *result);
/* Text from outside, which must not steer a terminal. */
void stat_put_clean(FILE *to, const char *text);

/* stat-baseline.c */
#define STAT_STOPPED INT32_MAX
/* Runs a command once, counted into the result. Its status, -1: said, STAT_STOPPED: by a signal. */
struct stat_runner {
	int (*run)(void *arg, char *const *argv);
	void *arg;
};
/* Compares argv with options->baseline; what to exit with, unless the commands say otherwise. */
int stat_baseline(FILE *to, const struct stat_options *options, struct stat_result *result,
		  char *const *argv, struct stat_runner *runner);

/* stat-notes.c: why something was not counted, and what was given up. */
void stat_print_notes(FILE *to, const struct stat_result *result, bool verbose);
/* What was given up for a row to be counted, NULL: nothing that it shows; with `all`: nothing. */
const char *stat_compromise(const struct stat_row *row, bool all);
/* --table: the time of each run. */
void stat_print_walls(FILE *to, const struct stat_result *result);

#endif
