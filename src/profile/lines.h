/* SPDX-License-Identifier: MIT */
/*
 * The lines of a report: the nodes of a call tree by what the query's sort keys tell apart. A line
 * counts a sample once, however often its function stands in the stack.
 */
#ifndef PROFILE_LINES_H
#define PROFILE_LINES_H

#include "profile/tree.h"

struct line {
	uint32_t head;           /* of the tree */
	uint32_t cell;           /* end of the key */
	uint32_t function;       /* one of those that the line stands for */
	int32_t first;           /* its nodes, chained by lines.next */
	int32_t innermost;       /* while building: its deepest node on the path */
	uint32_t depth;          /* of its outermost node */
	uint64_t self, children; /* children: with all that its functions called */
	uint64_t self_samples, samples;
};

struct lines {
	struct pool cells, all;
	/* By node of the tree; -1: none. `above`: the nearest of the same line on the way up. */
	int32_t *next, *above;
};

/* -ENOMEM. */
int lines_build(struct lines *lines, const struct query *q, const struct tree *tree);
void lines_done(struct lines *lines);

#endif
