/* SPDX-License-Identifier: MIT */
/* From a recording to a profile: the options that report and flame share, and what to say about the
 * quality of the data. */
#ifndef CLI_PROFILES_H
#define CLI_PROFILES_H

#include <stdbool.h>
#include <tally/profiling.h>

#include "args.h"

struct filters {
	const char *input, *time, *symfs;
	bool debuginfod;
	bool inlined;                  /* --inline */
	struct tally_query_opts query; /* its size is set by profiles_load */
};

/* Rows of a command's table. The letters are those of perf report. */
#define FILTER_ARGS(f)                                                                               \
	{ 'i', "input", "FILE", "the recording (default: perf.data)", ARG_TEXT, &(f)->input },       \
		{ 'c', "comm", "NAMES", "only threads of these names", ARG_TEXT, &(f)->query.comm }, \
		{ 'd',      "dso",          "NAMES", "only samples in these programs and libraries", \
		  ARG_TEXT, &(f)->query.dso },                                                       \
		{ 'S',      "symbol",          "NAMES", "only samples in these functions",           \
		  ARG_TEXT, &(f)->query.symbol },                                                    \
		{ 0, "pid", "PIDS", "only these processes", ARG_TEXT, &(f)->query.pid },             \
		{ 0, "tid", "TIDS", "only these threads", ARG_TEXT, &(f)->query.tid },               \
		{ 0,         "time",                                                                 \
		  "FROM,TO", "only this time, in seconds; +1.5 counts from the first sample",        \
		  ARG_TEXT,  &(f)->time },                                                           \
		{ 0,        "symfs",    "FOLDER", "look for programs and libraries below it first",  \
		  ARG_TEXT, &(f)->symfs },                                                           \
		{ 0,        "inline",                                                                \
		  NULL,     "also functions that the compiler inlined, as frames of their own",      \
		  ARG_FLAG, &(f)->inlined },                                                         \
	{                                                                                            \
		0, "debuginfod", NULL, "ask the servers in $DEBUGINFOD_URLS for missing symbols",    \
			ARG_FLAG, &(f)->debuginfod                                                   \
	}

/* A module without symbols, or without unwind tables. */
struct trouble {
	char *path, *why;
	uint64_t lookups; /* addresses, or stacks */
};

struct loaded {
	struct tally_profile *profile;
	struct tally_load_health health;
	struct trouble *troubles;
	size_t trouble_count;
	/* Modules in which stacks ended, and how many. */
	struct trouble *broken;
	size_t broken_count;
	bool failed; /* the file is damaged; what stands before the damage is loaded */
};

/*
 * Loads what the filters ask for. What is wrong is said for `command`. Answers EXIT_DONE, also for
 * a damaged file of which something could be loaded, or the exit status; profiles_free in any case.
 */
int profiles_load(struct loaded *out, struct filters *filters, const char *command);
void profiles_free(struct loaded *loaded);

/* How long a copy of the stack has to be for the longest that was cut; 0: unknown, or no sample holds it. */
uint64_t profiles_stack_bytes(uint64_t wanted);

/* The most that a sample's 16-bit size leaves for a copy of the stack, in whole words. */
#define LARGEST_STACK 65528

/* Why a longer copy may not help. */
#define BEYOND \
	"a signal handler on a stack of its own (sigaltstack) interrupted another stack; fp may see it"

/* Of stacks that are not whole, why, and what would have made them so; of broken ones they "could not
 * be unwound", say. */
void profiles_say_stacks(const struct tally_stacks *stacks, const char *command,
			 const char *broken);

#endif
