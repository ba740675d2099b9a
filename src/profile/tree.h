/* SPDX-License-Identifier: MIT */
/*
 * The merged call tree of what a query keeps: below the root a head for each thread, process or
 * command (whichever the output tells apart), below each head its functions, outermost first.
 * Siblings are in the order of their names, so that the same samples give the same tree.
 */
#ifndef PROFILE_TREE_H
#define PROFILE_TREE_H

#include "profile/query.h"

#define TREE_ROOT 0

struct tree_node {
	int32_t parent;      /* -1: the root's */
	uint32_t name;       /* of a head: index in heads; below: function, or see tree_unnamed */
	int32_t first, next; /* child, sibling; -1: none */
	uint32_t depth;      /* root 0, heads 1 */
	uint32_t reserved;
	uint64_t self, total; /* by the query's weight; total: with all below */
	uint64_t self_samples, samples;
};

/* What the heads do not tell apart is 0. */
struct tree_head {
	uint32_t comm; /* text of the profile */
	int32_t pid, tid;
};

/* What addresses without a symbol are. */
enum tree_unnamed {
	TREE_BY_MODULE,  /* one function of their module, which calls itself */
	TREE_GATHERED,   /* the same, but a frame that only calls itself is shown once */
	TREE_BY_ADDRESS, /* told apart: a node's name is the number of functions plus the location */
	TREE_BY_LINE,    /* likewise, and functions by the lines of the source that were executed */
};

struct tree {
	struct pool nodes, heads;
	uint32_t *lines; /* of TREE_BY_LINE, by location: the first one of the same line */
	const struct tally_profile *profile;
	enum tree_unnamed unnamed;
};

/* Heads are told apart by `keys`, an array of QUERY_KEYS, of which comm, pid and tid count.
 * -ENOMEM. */
int tree_build(struct tree *tree, const struct query *q, const bool *keys,
	       enum tree_unnamed unnamed);
void tree_done(struct tree *tree);

static inline struct tree_node *tree_at(const struct tree *tree, int32_t node)
{
	return (struct tree_node *)tree->nodes.at + node;
}

static inline const struct tree_head *tree_head(const struct tree *tree, int32_t node)
{
	return (const struct tree_head *)tree->heads.at + tree_at(tree, node)->name;
}

/* The location of a node that is an address without a symbol, else NULL. */
const struct location *tree_address(const struct tree *tree, int32_t node);
/* "file:line" of a node of TREE_BY_LINE; 0: unknown. */
uint32_t tree_source(const struct tree *tree, int32_t node);
/* What tells a node below a head from others in a call graph: its name, whatever the line. */
uint32_t tree_name(const struct tree *tree, int32_t node);
/* The function of a node below a head. */
const struct function *tree_function(const struct tree *tree, int32_t node);

/* What a node is called: the head's comm, the function's label or the address, which is written
 * into `room`; the root is "all". */
#define TREE_LABEL_ROOM 24
const char *tree_label(const struct tree *tree, int32_t node, char room[TREE_LABEL_ROOM]);

/* The node behind `node` in pre-order, -1 at the end; `skip` leaves out what is below it. */
int32_t tree_next(const struct tree *tree, int32_t node, bool skip);

#endif
