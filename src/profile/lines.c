/* SPDX-License-Identifier: MIT */
/* Sorting tree nodes into lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "profile/lines.h"

/* What dso and symbol tell apart; 0 where they are no sort keys. */
struct cell {
	uint32_t path, label, mode, source;
	uint32_t address[2]; /* of what has no symbol, as words */
};

static int find_cell(struct lines *lines, const struct query *q, const struct tree *tree,
		     int32_t node)
{
	const struct function *f = tree_function(tree, node);
	const struct location *address = tree_address(tree, node);
	struct cell cell = { 0 };

	if (q->sorts_by[QUERY_DSO])
		cell.path = module_at(q->profile, (uint32_t)f->module)->path;
	if (q->sorts_by[QUERY_SRCLINE])
		cell.source = tree_source(tree, node);
	/* What has no line is told apart by its name. */
	if (q->sorts_by[QUERY_SYMBOL] || (q->sorts_by[QUERY_SRCLINE] && !cell.source)) {
		cell.label = f->label;
		cell.mode = f->mode;
	}
	if (q->sorts_by[QUERY_SYMBOL] && address)
		memcpy(cell.address, &address->address, sizeof(cell.address));
	return pool_add(&lines->cells, &cell);
}

static struct line *line_at(const struct lines *lines, int at)
{
	return (struct line *)lines->all.at + at;
}

/* Puts a node into its line; answers the line. */
static int add_node(struct lines *lines, const struct query *q, const struct tree *tree,
		    int32_t node, uint32_t head)
{
	const struct tree_node *n = tree_at(tree, node);
	int cell = find_cell(lines, q, tree, node);
	struct line line = { .head = head,
			     .cell = (uint32_t)cell,
			     .first = -1,
			     .innermost = -1,
			     .depth = n->depth };
	int at = cell < 0 ? cell : pool_add(&lines->all, &line);

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

static int add_nodes(struct lines *lines, const struct query *q, const struct tree *tree)
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
			r = line = add_node(lines, q, tree, at,
					    tree_at(tree, path.at[1].node)->name);
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
	size_t nodes = tree->nodes.count;
	int r = -ENOMEM;

	*lines = (struct lines){
		.cells = POOL(struct cell, address),
		.all = POOL(struct line, cell),
		.next = calloc(nodes, sizeof(*lines->next)),
		.above = calloc(nodes, sizeof(*lines->above)),
	};
	if (lines->next && lines->above)
		r = add_nodes(lines, q, tree);
	if (r < 0)
		lines_done(lines);
	return r;
}

void lines_done(struct lines *lines)
{
	pool_done(&lines->cells);
	pool_done(&lines->all);
	free(lines->next);
	free(lines->above);
}
