/* SPDX-License-Identifier: MIT */
/*
 * Samples as text, one after another in order of time, as perf script prints them.
 *
 *	tally_script_file("perf.data", TALLY_OPTS(script, .comm = "python3"), stdout, NULL, &err);
 *
 * Default fields and columns are those of perf 6.1, so that what reads perf's text reads this.
 */
#ifndef TALLY_SCRIPT_H
#define TALLY_SCRIPT_H

#include <stdio.h>
#include <tally/api.h>
#include <tally/error.h>
#include <tally/unwinder.h>

TALLY_BEGIN_DECLS

enum tally_script_flags {
	TALLY_SCRIPT_JSON = 1u << 0, /* an object a line instead of text */
	/* Every record as tally_record_print() shows it, in the file's order, nothing looked up. */
	TALLY_SCRIPT_DUMP = 1u << 1,
	TALLY_SCRIPT_NS = 1u << 2,       /* times with nine decimals instead of six */
	TALLY_SCRIPT_NO_CHAIN = 1u << 3, /* where a sample was taken, not who called it */
	/* Other records that are shown among the samples. */
	TALLY_SCRIPT_MMAPS = 1u << 4,
	TALLY_SCRIPT_TASKS = 1u << 5, /* COMM, FORK, EXIT */
	TALLY_SCRIPT_SWITCHES = 1u << 6,
	TALLY_SCRIPT_LOST = 1u << 7,
	TALLY_SCRIPT_NAMESPACES = 1u << 8,
	TALLY_SCRIPT_CGROUPS = 1u << 9,
	TALLY_SCRIPT_BPF = 1u << 10, /* KSYMBOL, BPF_EVENT */
	/* Print payloads of tracepoints as name=value even where libtraceevent is installed. */
	TALLY_SCRIPT_OWN_PAYLOADS = 1u << 11,
	TALLY_SCRIPT_FULL_SOURCE = 1u << 12, /* srcline with the whole path of the file */
};

/* Lists are comma-separated, one of which must be equal; NULL: all. Texts are borrowed for the call. */
struct tally_script_opts {
	uint32_t size, flags; /* enum tally_script_flags */
	/* As perf script's -F, each of them applied after the other: "comm,ip,sym", "+addr,-period",
	 * "sw:time,event". NULL: perf's defaults. */
	const char *const *fields;
	uint32_t field_count;
	uint32_t max_stack; /* frames of a callchain; 0: all */
	/* Samples with from <= time <= to, both being ns of the recording's clock; to 0: no end. */
	uint64_t from, to;
	uint32_t relative;         /* not 0: `from` and `to` count from the earliest sample */
	uint32_t symbolizer_flags; /* enum tally_symbolizer_flags */
	const char *comm, *pid, *tid, *event;
	const char *cpu;                  /* numbers and ranges: "0-3,8" */
	const char *symbol, *dso;         /* of the place where the sample was taken */
	const char *root, *symfs, *cache; /* as in struct tally_symbolizer_opts */
};

struct tally_script_report {
	uint64_t samples;     /* printed */
	uint64_t filtered;    /* left out by a filter */
	uint64_t lost;        /* by LOST and LOST_SAMPLES records */
	uint64_t undecodable; /* records that contradict their layout */
	/* Of the callchains that were printed, where that is known: of those that were unwound, here
	 * or while they were recorded, and those of which a part is missing. */
	struct tally_stacks stacks;
	/* What is wrong with the file without keeping it from being read, and what could not be
	 * printed, as sentences; "": nothing. */
	char health[256];
};

/*
 * Prints a perf.data file. `report` may be NULL; it is filled in on errors too. Records are held
 * until their round is over, those of a file without rounds until its end: memory grows with a round.
 * Errors: those of tally_reader_open() and tally_reader_next(), what stands before a corrupt record has
 * been printed; -EINVAL for a field or list that makes no sense, or a field that the samples do not
 * have; -EOPNOTSUPP for fields of perf that this version does not print; -EIO when `to` does not take
 * it; -ENOMEM. Since: 0.1
 */
TALLY_API int tally_script_file(const char *path, const struct tally_script_opts *opts, FILE *to,
				struct tally_script_report *report, struct tally_error *err);

TALLY_END_DECLS

#endif
