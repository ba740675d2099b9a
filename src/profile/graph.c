/* SPDX-License-Identifier: MIT */
/*
 * Call graphs are not stored: a branch is a set of tree nodes with the weight that each lends it,
 * and the next level is the set of their children (or parents) by function. What is below the limit
 * is never expanded, so a graph costs what it shows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "profile/graph.h"
#include "profile/names.h"

#define MAX_DEPTH 127 /* levels, as perf report's --max-stack */
#define MARGIN    12  /* columns left of a graph, as in perf report */

/*
 * From callers down a node lends to the graph of a line what was sampled in the line's functions
 * below it (`lent`: such a path leads from the outermost caller to the line), or all the rest.
 */
struct member {
	uint32_t name; /* the node's */
	int32_t node;
	uint64_t weight;
	bool lent;
};

struct members {
	struct member *at;
	size_t count, room;
};

/* Members of one name, side by side in the list. */
struct branch {
	const struct graph *graph;
	const struct member *members;
	size_t count;
	uint64_t weight;
};

struct branches {
	struct branch *at;
	size_t count, room;
};

static int add_member(const struct graph *g, struct members *list, int32_t node, uint64_t weight,
		      bool lent)
{
	struct member *m = weight ? vec_push(list) : NULL;

	if (!m)
		return weight ? -ENOMEM : 0;
	*m = (struct member){ tree_name(g->tree, node), node, weight, lent };
	return 0;
}

/* What the members of a branch are called by, or what they call. */
static int expand(const struct graph *g, const struct branch *from, struct members *to)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++) {
		const struct member *m = &from->members[i];
		const struct tree_node *n = tree_at(g->tree, m->node);
		if (g->callee) {
			if (tree_at(g->tree, n->parent)->depth > 1)
				r = add_member(g, to, n->parent, m->weight, false);
			continue;
		}
		for (int32_t c = n->first; c >= 0 && r == 0; c = tree_at(g->tree, c)->next) {
			uint64_t lent = g->part[c], rest = tree_at(g->tree, c)->total - lent;
			r = add_member(g, to, c, m->lent ? lent : rest, m->lent);
		}
	}
	return r;
}

static int compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static const char *branch_label(const struct branch *b, char room[TREE_LABEL_ROOM])
{
	return tree_label(b->graph->tree, b->members->node, room);
}

static int compare_branches(const void *left, const void *right)
{
	const struct branch *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	char room[2][TREE_LABEL_ROOM];
	int c = strcmp(branch_label(a, room[0]), branch_label(b, room[1]));
	return c ? c : a->members < b->members ? -1 : a->members > b->members;
}

static double percent(const struct graph *g, uint64_t weight)
{
	return g->q->total ? 100.0 * (double)weight / (double)g->q->total : 0;
}

/* Members by function; branches that are worth showing, the heaviest first. */
static int split(const struct graph *g, struct members *list, struct branches *out)
{
	if (list->count)
		qsort(list->at, list->count, sizeof(*list->at), compare_members);
	for (size_t i = 0; i < list->count;) {
		struct branch b = { .graph = g, .members = &list->at[i] };
		uint32_t name = list->at[i].name;
		for (; i < list->count && list->at[i].name == name; i++) {
			b.count++;
			b.weight += list->at[i].weight;
		}
		if (percent(g, b.weight) < g->limit)
			continue;
		struct branch *slot = vec_push(out);
		if (!slot)
			return -ENOMEM;
		*slot = b;
	}
	if (out->count)
		qsort(out->at, out->count, sizeof(*out->at), compare_branches);
	return 0;
}

static void print_label(const struct branch *b)
{
	char room[TREE_LABEL_ROOM];

	name_text(b->graph->to, branch_label(b, room), 0);
	putc('\n', b->graph->to);
}

static void print_margin(const struct graph *g, const struct buf *margin)
{
	fwrite(margin->at, 1, margin->len, g->to);
}

static int show_below(struct graph *g, const struct branch *branch, struct buf *margin, int depth);

/* Branches side by side, each with its share. */
static int show_branches(struct graph *g, const struct branches *list, struct buf *margin,
			 int depth)
{
	size_t margin_len = margin->len;
	int r = 0;

	for (size_t i = 0; i < list->count && r == 0; i++) {
		bool last = i + 1 == list->count;
		print_margin(g, margin);
		fputs("|\n", g->to);
		print_margin(g, margin);
		fprintf(g->to, "%s--%.2f%%--", last ? " " : "|", percent(g, list->at[i].weight));
		print_label(&list->at[i]);
		buf_str(margin, last ? "           " : "|          ");
		if (margin->failed)
			return -ENOMEM;
		r = show_below(g, &list->at[i], margin, depth + 1);
		margin->len = margin_len;
	}
	return r;
}

/* Everything below a branch. As long as all of it goes one way there is nothing to compare. */
static int show_below(struct graph *g, const struct branch *branch, struct buf *margin, int depth)
{
	struct members members = { 0 };
	struct branches list = { 0 };
	int r = 0;

	if (depth < MAX_DEPTH)
		r = expand(g, branch, &members);
	if (r == 0)
		r = split(g, &members, &list);
	if (r == 0 && list.count == 1 && list.at[0].weight == branch->weight) {
		print_margin(g, margin);
		print_label(&list.at[0]);
		r = show_below(g, &list.at[0], margin, depth + 1);
	} else if (r == 0) {
		r = show_branches(g, &list, margin, depth);
	}
	vec_done(&members);
	vec_done(&list);
	return r;
}

/* Tells all callers what was sampled in the line's nodes below them. */
static void lend(struct graph *g, const struct line *line, bool back)
{
	for (int32_t i = line->first; i >= 0; i = g->lines->next[i]) {
		uint64_t weight = tree_at(g->tree, i)->self;
		for (int32_t at = i; at >= 0; at = tree_at(g->tree, at)->parent)
			g->part[at] = back ? 0 : g->part[at] + weight;
	}
}

/*
 * From callers down, as perf: samples in the function show how it was reached, from the outermost
 * caller; samples below it show what it called, from its outermost call on.
 */
static int start_down(struct graph *g, const struct line *line, struct members *list)
{
	int32_t head = line->first;

	while (tree_at(g->tree, head)->depth > 1)
		head = tree_at(g->tree, head)->parent;
	const struct member m = { .node = head, .lent = true };
	int r = expand(g, &(struct branch){ .members = &m, .count = 1 }, list);
	for (int32_t i = line->first; g->children && i >= 0 && r == 0; i = g->lines->next[i])
		if (g->lines->above[i] < 0)
			r = add_member(g, list, i, tree_at(g->tree, i)->total - g->part[i], false);
	return r;
}

/* Up from the innermost call: what lies below another call of the function belongs to that one. */
static int start_up(struct graph *g, const struct line *line, struct members *list)
{
	int r = 0;

	for (int32_t i = line->first; g->children && i >= 0; i = g->lines->next[i])
		if (g->lines->above[i] >= 0)
			g->part[g->lines->above[i]] += tree_at(g->tree, i)->total;
	for (int32_t i = line->first; i >= 0 && r == 0; i = g->lines->next[i]) {
		const struct tree_node *n = tree_at(g->tree, i);
		r = add_member(g, list, i, g->children ? n->total - g->part[i] : n->self, false);
		g->part[i] = 0;
	}
	return r;
}

/* A graph of the function alone would repeat the line. */
static bool is_alone(const struct graph *g, const struct branches *list)
{
	struct members members = { 0 };
	struct branches below = { 0 };
	bool alone = list->count == 1 && expand(g, &list->at[0], &members) == 0 &&
		     split(g, &members, &below) == 0 && !below.count;

	vec_done(&members);
	vec_done(&below);
	return alone;
}

static int show(struct graph *g, const struct branches *list, uint64_t weight)
{
	struct buf margin = { 0 };
	int r = 0;

	buf_printf(&margin, "%*s", MARGIN, "");
	if (margin.failed)
		return -ENOMEM;
	if (list->count == 1 && list->at[0].weight == weight) {
		fprintf(g->to, "%*s|\n%*s---", MARGIN, "", MARGIN, "");
		print_label(&list->at[0]);
		buf_str(&margin, "   ");
		r = show_below(g, &list->at[0], &margin, 1);
	} else {
		r = show_branches(g, list, &margin, 0);
	}
	putc('\n', g->to);
	buf_done(&margin);
	return r;
}

int graph_open(struct graph *g)
{
	g->part = calloc(g->tree->nodes.count, sizeof(*g->part));
	return g->part ? 0 : -ENOMEM;
}

int graph_print(struct graph *g, const struct line *line)
{
	struct members members = { 0 };
	struct branches list = { 0 };
	int r;

	if (!g->callee)
		lend(g, line, false);
	r = (g->callee ? start_up : start_down)(g, line, &members);
	if (r == 0)
		r = split(g, &members, &list);
	if (r == 0 && list.count && !is_alone(g, &list))
		r = show(g, &list, g->children ? line->children : line->self);
	if (!g->callee)
		lend(g, line, true);
	vec_done(&members);
	vec_done(&list);
	return r;
}

void graph_done(struct graph *g)
{
	free(g->part);
}
