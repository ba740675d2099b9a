/* SPDX-License-Identifier: MIT */
/* What the commands share that run a program to an exact point or count it exactly. */
#ifndef CLI_EXACT_H
#define CLI_EXACT_H

#include <stdio.h>
#include <tally/tally.h>

#include "args.h"

struct exact {
	const char *command; /* "until" */
	/* Options. */
	const char *clock, *output;
	double max_time; /* seconds */
	bool no_pin, json;
	/* What is to be done, for the estimate; UINT64_MAX: that is not known before. */
	uint64_t ticks, instructions;
	FILE *to;
};

#define EXACT_MAX_TIME 300.0

/* Rows of both commands' tables. */
#define EXACT_ARGS(e)                                                                               \
	{ 0, "clock", "KIND", "who counts: auto, pmu or step", ARG_TEXT, &(e)->clock },             \
		{ 0, "no-pin", NULL, "leave the command on all its CPUs", ARG_FLAG, &(e)->no_pin }, \
		{ 0,           "max-time",                                                          \
		  "SECONDS",   "refuse what takes longer, and give up then (default: 300)",         \
		  ARG_SECONDS, &(e)->max_time },                                                    \
		{ 'o',      "output",    "FILE", "results to FILE instead of stderr; -: to stdout", \
		  ARG_TEXT, &(e)->output },                                                         \
	{                                                                                           \
		0, "json", NULL, "results as one JSON object", ARG_FLAG, &(e)->json                 \
	}

/*
 * Runs the command, having said what that will take. `opts`: its request and ticks. EXIT_DONE, or the
 * exit status behind an error that was said.
 */
int exact_run(struct exact *e, struct tally_run_opts *opts, char **argv, struct tally_run **run);

/* Writes the results' end and closes the file. An exit status: `status`, or EXIT_FAILED when said. */
int exact_finish(struct exact *e, int status);

#endif
