/* SPDX-License-Identifier: MIT */
/* Sorting tree nodes into lines. */
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "profile/lines.h"

/* What dso and symbol tell apart; 0 where they are no sort keys. */
struct cell {
	uint32_t path, label, mode;
};

static int fill_cells(struct lines *lines, const struct query *q)
{
	const struct tally_profile *p = q->profile;

	for (uint32_t i = 0; i < p->functions.count; i++) {
		const struct function *f = function_at(p, i);
		struct cell cell = { 0 };
		if (q->sorts_by[QUERY_DSO])
			cell.path = module_at(p, (uint32_t)f->module)->path;
		if (q->sorts_by[QUERY_SYMBOL]) {
			cell.label = f->label;
			cell.mode = f->mode;
		}
		int at = pool_add(&lines->cells, &cell);
		if (at < 0)
			return at;
		lines->cell_of[i] = (uint32_t)at;
	}
	return 0;
}

static struct line *line_at(const struct lines *lines, int at)
{
	return (struct line *)lines->all.at + at;
}

/* Puts a node into its line; answers the line. */
static int add_node(struct lines *lines, const struct tree *tree, int32_t node, uint32_t head)
{
	const struct tree_node *n = tree_at(tree, node);
	struct line line = { .head = head,
			     .cell = lines->cell_of[n->name],
			     .function = n->name,
			     .first = -1,
			     .innermost = -1,
			     .depth = n->depth };
	int at = pool_add(&lines->all, &line);

	if (at < 0)
		return at;
	struct line *l = line_at(lines, at);
	lines->next[node] = l->first;
	lines->above[node] = l->innermost;
	l->first = l->innermost = node;
	if (n->depth < l->depth)
		l->depth = n->depth;
	l->self += n->self;
	l->self_samples += n->self_samples;
	if (lines->above[node] < 0) {
		l->children += n->total;
		l->samples += n->samples;
	}
	return at;
}

/* A node on the path from the root, and its line, -1 for root and heads. */
struct step {
	int32_t node, line;
};

static int add_nodes(struct lines *lines, const struct tree *tree)
{
	VEC(struct step) path = { 0 };
	int r = 0;

	for (int32_t at = TREE_ROOT; at >= 0; at = tree_next(tree, at, false)) {
		const struct tree_node *n = tree_at(tree, at);
		for (; path.count > n->depth; path.count--) {
			struct step *left = &path.at[path.count - 1];
			if (left->line >= 0)
				line_at(lines, left->line)->innermost = lines->above[left->node];
		}
		int line = -1;
		if (n->depth > 1)
			r = line = add_node(lines, tree, at, tree_at(tree, path.at[1].node)->name);
		struct step *step = r < 0 ? NULL : vec_push(&path);
		if (!step) {
			r = -ENOMEM;
			break;
		}
		*step = (struct step){ at, line };
		r = 0;
	}
	vec_done(&path);
	return r;
}

int lines_build(struct lines *lines, const struct query *q, const struct tree *tree)
{
	size_t nodes = tree->nodes.count, functions = q->profile->functions.count;
	int r = -ENOMEM;

	*lines = (struct lines){
		.cells = POOL(struct cell, mode),
		.all = POOL(struct line, cell),
		.cell_of = calloc(functions + 1, sizeof(*lines->cell_of)),
		.next = calloc(nodes, sizeof(*lines->next)),
		.above = calloc(nodes, sizeof(*lines->above)),
	};
	if (lines->cell_of && lines->next && lines->above)
		r = fill_cells(lines, q);
	if (r == 0)
		r = add_nodes(lines, tree);
	if (r < 0)
		lines_done(lines);
	return r;
}

void lines_done(struct lines *lines)
{
	pool_done(&lines->cells);
	pool_done(&lines->all);
	free(lines->cell_of);
	free(lines->next);
	free(lines->above);
}
