/* SPDX-License-Identifier: MIT */
/* The call graph below a line of the text report. */
#ifndef PROFILE_GRAPH_H
#define PROFILE_GRAPH_H

#include <stdio.h>

#include "profile/lines.h"

struct graph {
	const struct query *q;
	const struct tree *tree;
	const struct lines *lines;
	FILE *to;
	bool children;  /* all samples that have the line's function; else those taken in it */
	bool callee;    /* from the function up to its callers; else from callers down */
	double limit;   /* percent of all: lighter branches are left out */
	uint64_t *part; /* scratch, by node, all 0 */
};

/* -ENOMEM. */
int graph_open(struct graph *g);
int graph_print(struct graph *g, const struct line *line);
void graph_done(struct graph *g);

#endif
