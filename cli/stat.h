/* SPDX-License-Identifier: MIT */
/* What the parts of `tally stat` share: options, the events that are counted, and their results. */
#ifndef CLI_STAT_H
#define CLI_STAT_H

#include <stdio.h>
#include <tally/tally.h>

#include "args.h"
#include "targets.h"

/* Mean and spread of a figure over repeated runs, updated one by one (Welford). */
struct moments {
	uint64_t n;
	double mean, m2;
};

void moments_add(struct moments *m, double value);
/* The standard error of the mean as a percentage of it, as perf stat -r shows; 0 for one run. */
double moments_percent(const struct moments *m);

/* One event over all runs. */
struct stat_row {
	struct tally_event *event;
	struct tally_error error; /* why it could not be opened; code 0: it could */
	struct tally_count now;   /* of the run that is being read */
	struct tally_count sum;   /* of all runs; the worst state wins */
	struct moments value;     /* of the runs' values */
};

struct stat_result {
	struct stat_row *rows;
	uint32_t count;
	uint64_t runs;
	struct moments wall, user, sys; /* seconds; the latter two of a command */
};

struct stat_options {
	struct texts events;
	struct target_args target;
	const char *output; /* NULL: stderr, "-": stdout */
	uint64_t repeat;    /* 0: for ever */
	double duration;    /* seconds, 0: no limit */
	bool json, no_inherit, null_run, big_num, verbose;
};

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
/* Reads all into the rows' `now`. */
int stat_read(struct stat_counters *counters, struct stat_result *result);
void stat_close(struct stat_counters *counters);

/* Adds what the rows read now to their sums. */
void stat_take_run(struct stat_result *result);

/* stat-rates.c: what a count means beside the others, "1.23  insn per cycle"; "" when nothing. */
void stat_rate(char *out, size_t size, const struct stat_result *result, uint32_t row);

/* stat-print.c */
void stat_print_table(FILE *to, const struct stat_result *result, const struct stat_options *opts,
		      char *const *argv);
void stat_print_json(FILE *to, const struct stat_result *result);

#endif
