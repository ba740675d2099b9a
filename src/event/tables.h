/* SPDX-License-Identifier: MIT */
/*
 * Vendors' tables of events and metrics, in the JSON that perf is built from
 * (tools/perf/pmu-events of the kernel): opts->tables is a folder with mapfile.csv and a folder for
 * each CPU model, or a model's folder itself. Intel's own files, as they publish them, are read too.
 * They are streamed each time: nothing of them is kept.
 */
#ifndef EVENT_TABLES_H
#define EVENT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <tally/event.h>

/* Texts are never NULL, "" where the table has none. */
struct table_event {
	const char *name; /* in the table's spelling; names compare without regard to case */
	const char *pmu;  /* "cpu" for the core's, whatever sysfs calls it; "uncore_cha" ... */
	const char
		*terms; /* perf's term list: "event=0x3c,umask=0x1,period=2000003"; "" with `why` */
	const char *why;   /* why it cannot be put in terms; "" when it can */
	const char *unit;  /* of ScaleUnit, "Bytes" */
	const char *brief; /* a line of description */
	const char *details;
	const char *errata; /* numbers of errata that make it count wrongly */
	const char *topic;  /* the file's name without .json: "cache" */
	double scale;       /* of ScaleUnit; 1.0 without */
	unsigned precise;   /* PEBS: 0 no, 1 can be precise, 2 must be */
	bool core;          /* of the CPU's core PMU: no Unit is given */
	bool per_package, deprecated;
};

struct table_metric {
	const char *name, *formula;
	const char *pmu;  /* as an event's */
	const char *unit; /* ScaleUnit as it stands: "100%", "1per_sec"; tables_scale() splits it */
	const char *groups; /* separated by ';' */
	const char *threshold, *brief, *details;
};

/*
 * Calls `fn` for each event, by file and place, until it answers non-zero, which is then answered;
 * with a name for those that are called so alone, of which there may be several by different PMUs.
 * Its texts live until it returns. 0 without opts->tables. Errors: -ENOENT (no such folder, nothing
 * in it, no row for this CPU), -EINVAL (not such JSON; with file, line and column), -ENOMEM,
 * -errno of reading.
 */
int tables_each(const struct tally_events_opts *opts, const char *name, size_t len,
		int (*fn)(const struct table_event *event, void *arg), void *arg,
		struct tally_error *err);

/* The same with the tables of one CPU, where a big.LITTLE machine has several models. */
int tables_each_of(const struct tally_events_opts *opts, int32_t cpu, const char *name, size_t len,
		   int (*fn)(const struct table_event *event, void *arg), void *arg,
		   struct tally_error *err);

/* As tables_each() for formulas. */
int tables_each_metric(const struct tally_events_opts *opts,
		       int (*fn)(const struct table_metric *metric, void *arg), void *arg,
		       struct tally_error *err);

/* "64Bytes" is 64 and "Bytes", "100%" 100 and "%"; without a number the scale is 1. Any locale. */
double tables_scale(const char *text, const char **unit);

#endif
