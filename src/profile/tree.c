/* SPDX-License-Identifier: MIT */
/*
 * Merging stacks into a tree. A stack's parent is a stack too, so each (head, stack) is placed once
 * and costs one step: its parent's node is known.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/tree.h"

struct builder {
	struct tree *tree;
	const struct query *q;
	const bool *keys;
	struct map64 placed; /* head << 32 | stack: node */
	VEC(int32_t) pending;
};

static int add_node(struct tree *tree, int32_t parent, uint32_t name)
{
	struct tree_node node = { .parent = parent, .name = name, .first = -1, .next = -1 };

	if (parent >= 0)
		node.depth = tree_at(tree, parent)->depth + 1;
	return pool_add(&tree->nodes, &node);
}

static int add_head(struct builder *b, uint32_t thread)
{
	const struct thread *t = thread_at(b->q->profile, thread);
	struct tree_head head = {
		.comm = b->keys[QUERY_COMM] ? t->comm : 0,
		.pid = b->keys[QUERY_PID] ? t->pid : 0,
		.tid = b->keys[QUERY_TID] ? t->tid : 0,
	};
	int at = pool_add(&b->tree->heads, &head);

	return at < 0 ? at : add_node(b->tree, TREE_ROOT, (uint32_t)at);
}

static uint64_t place_key(int head, int32_t stack)
{
	return (uint64_t)head << 32 | (uint32_t)stack;
}

/* What tells a stack's node from its siblings. */
static uint32_t stack_name(const struct builder *b, int32_t stack)
{
	const struct tally_profile *p = b->q->profile;
	uint32_t function = stack_function(p, (uint32_t)stack);
	uint32_t location = (uint32_t)stack_at(p, (uint32_t)stack)->location;
	bool named = function_at(p, function)->name != NO_NAME;

	if (named && b->tree->lines && location_at(p, location)->source)
		return (uint32_t)p->functions.count + b->tree->lines[location];
	if (named || b->tree->unnamed < TREE_BY_ADDRESS)
		return function;
	return (uint32_t)p->functions.count + location;
}

/* A line of a function, as executed in one of its addresses. */
struct line_of {
	int32_t function;
	uint32_t source; /* end of the key */
	uint32_t location;
};

static int find_lines(struct tree *tree, const struct tally_profile *p)
{
	struct pool known = POOL(struct line_of, source);
	int r = 0;

	tree->lines = calloc(p->locations.count + 1, sizeof(*tree->lines));
	if (!tree->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->locations.count && r >= 0; i++) {
		const struct location *l = location_at(p, i);
		struct line_of line = { l->function, l->source, i };
		r = pool_add(&known, &line);
		if (r >= 0)
			tree->lines[i] = ((const struct line_of *)known.at + r)->location;
	}
	pool_done(&known);
	return r < 0 ? r : 0;
}

/* A walk through what is no stack finds nonsense, a hundred deep, and none of it has a name. */
static bool is_repeated(const struct tree *tree, int32_t node, uint32_t name)
{
	const struct tree_node *n = tree_at(tree, node);

	return tree->unnamed == TREE_GATHERED && n->depth > 1 && n->name == name &&
	       function_at(tree->profile, name)->name == NO_NAME;
}

/* The node of a stack below a head: up to the first ancestor that has one, then down again. */
static int place(struct builder *b, int head, int32_t stack)
{
	const struct tally_profile *p = b->q->profile;
	int node = head;

	b->pending.count = 0;
	for (; stack >= 0; stack = stack_at(p, (uint32_t)stack)->parent) {
		uint32_t known = map64_get(&b->placed, place_key(head, stack));
		if (known) {
			node = (int)known;
			break;
		}
		int32_t *slot = vec_push(&b->pending);
		if (!slot)
			return -ENOMEM;
		*slot = stack;
	}
	while (b->pending.count) {
		stack = b->pending.at[--b->pending.count];
		if (!is_repeated(b->tree, node, stack_name(b, stack)))
			node = add_node(b->tree, node, stack_name(b, stack));
		uint32_t *known = node < 0 ? NULL : map64_at(&b->placed, place_key(head, stack));
		if (!known)
			return -ENOMEM;
		*known = (uint32_t)node;
	}
	return node;
}

static int add_rows(struct builder *b)
{
	const struct tally_profile *p = b->q->profile;

	for (uint32_t i = 0; i < p->rows.count; i++) {
		const struct row *row = row_at(p, i);
		if (!query_keeps(b->q, row))
			continue;
		int node = add_head(b, (uint32_t)row->thread);
		if (node >= 0)
			node = place(b, node, row->stack);
		if (node < 0)
			return node;
		struct tree_node *n = tree_at(b->tree, node);
		n->self += query_weight(b->q, row);
		n->total = n->self;
		n->self_samples += row->samples;
		n->samples = n->self_samples;
	}
	return 0;
}

/* Parents stand before their children. */
static void sum_up(struct tree *tree)
{
	for (int32_t i = (int32_t)tree->nodes.count - 1; i > TREE_ROOT; i--) {
		const struct tree_node *n = tree_at(tree, i);
		struct tree_node *parent = tree_at(tree, n->parent);
		parent->total += n->total;
		parent->samples += n->samples;
	}
}

struct ranked {
	uint32_t id;
	const struct tree *tree;
	const struct tally_profile *profile;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_functions(const void *left, const void *right)
{
	const struct ranked *l = left, *r = right;
	const struct tally_profile *p = l->profile;
	const struct function *a = function_at(p, l->id), *b = function_at(p, r->id);
	int c = strcmp(text_of(p, a->label), text_of(p, b->label));

	if (!c)
		c = strcmp(text_of(p, module_at(p, (uint32_t)a->module)->path),
			   text_of(p, module_at(p, (uint32_t)b->module)->path));
	if (!c)
		c = compare_u64(a->mode, b->mode);
	return c ? c : compare_u64(l->id, r->id);
}

static int compare_heads(const void *left, const void *right)
{
	const struct ranked *l = left, *r = right;
	const struct tree_head *heads = l->tree->heads.at;
	const struct tree_head *a = heads + l->id, *b = heads + r->id;
	int c = strcmp(text_of(l->profile, a->comm), text_of(l->profile, b->comm));

	if (!c)
		c = a->pid < b->pid ? -1 : a->pid > b->pid;
	return c ? c : a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* For each of `count` ids its place in the order of their names. */
static uint32_t *rank(const struct tree *tree, const struct tally_profile *p, size_t count,
		      int (*compare)(const void *, const void *))
{
	struct ranked *list = calloc(count + 1, sizeof(*list));
	uint32_t *ranks = calloc(count + 1, sizeof(*ranks));

	if (list && ranks) {
		for (size_t i = 0; i < count; i++)
			list[i] = (struct ranked){ (uint32_t)i, tree, p };
		qsort(list, count, sizeof(*list), compare);
		for (size_t i = 0; i < count; i++)
			ranks[list[i].id] = (uint32_t)i;
	} else {
		free(ranks);
		ranks = NULL;
	}
	free(list);
	return ranks;
}

struct place {
	int32_t parent;
	uint32_t rank;
	int32_t node;
};

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return compare_u64(a->rank, b->rank);
}

/* Links children and siblings, by name. */
static int link_nodes(struct tree *tree, const struct tally_profile *p)
{
	size_t count = tree->nodes.count;
	uint32_t *functions = rank(tree, p, p->functions.count, compare_functions);
	uint32_t *heads = rank(tree, p, tree->heads.count, compare_heads);
	struct place *places = calloc(count, sizeof(*places));
	int r = functions && heads && places ? 0 : -ENOMEM;

	if (r == 0) {
		for (int32_t i = 0; i < (int32_t)count; i++) {
			const struct tree_node *n = tree_at(tree, i);
			places[i] = (struct place){ n->parent, i, i };
			if (n->depth == 1)
				places[i].rank = heads[n->name];
			else if (i > TREE_ROOT && n->name < p->functions.count)
				places[i].rank = functions[n->name];
			else
				places[i].rank = n->name; /* places stand behind functions */
		}
		qsort(places, count, sizeof(*places), compare_places);
		/* From behind, so that each list ends up in order; the root stands first. */
		for (size_t i = count - 1; i > 0; i--) {
			struct tree_node *parent = tree_at(tree, places[i].parent);
			tree_at(tree, places[i].node)->next = parent->first;
			parent->first = places[i].node;
		}
	}
	free(functions);
	free(heads);
	free(places);
	return r;
}

int tree_build(struct tree *tree, const struct query *q, const bool *keys,
	       enum tree_unnamed unnamed)
{
	struct builder b = { .tree = tree, .q = q, .keys = keys };
	int r;

	*tree = (struct tree){
		.nodes = POOL(struct tree_node, name),
		.heads = POOL(struct tree_head, tid),
		.profile = q->profile,
		.unnamed = unnamed,
	};
	r = unnamed == TREE_BY_LINE ? find_lines(tree, q->profile) : 0;
	if (r == 0)
		r = add_node(tree, -1, 0);
	if (r >= 0)
		r = add_rows(&b);
	map64_done(&b.placed);
	vec_done(&b.pending);
	if (r == 0) {
		sum_up(tree);
		r = link_nodes(tree, q->profile);
	}
	if (r < 0)
		tree_done(tree);
	return r;
}

void tree_done(struct tree *tree)
{
	pool_done(&tree->nodes);
	pool_done(&tree->heads);
	free(tree->lines);
}

/* The location by which a node is told apart, else NULL. */
static const struct location *node_location(const struct tree *tree, int32_t node)
{
	const struct tree_node *n = tree_at(tree, node);
	uint32_t functions = (uint32_t)tree->profile->functions.count;

	return n->depth > 1 && n->name >= functions
		       ? location_at(tree->profile, n->name - functions)
		       : NULL;
}

const struct location *tree_address(const struct tree *tree, int32_t node)
{
	const struct location *l = node_location(tree, node);

	return l && function_at(tree->profile, (uint32_t)l->function)->name == NO_NAME ? l : NULL;
}

uint32_t tree_source(const struct tree *tree, int32_t node)
{
	const struct location *l = node_location(tree, node);

	return l ? l->source : 0;
}

const struct function *tree_function(const struct tree *tree, int32_t node)
{
	const struct location *l = node_location(tree, node);

	return function_at(tree->profile, l ? (uint32_t)l->function : tree_at(tree, node)->name);
}

uint32_t tree_name(const struct tree *tree, int32_t node)
{
	const struct location *l = node_location(tree, node);

	return l && !tree_address(tree, node) ? (uint32_t)l->function : tree_at(tree, node)->name;
}

const char *tree_label(const struct tree *tree, int32_t node, char room[TREE_LABEL_ROOM])
{
	const struct location *address = tree_address(tree, node);

	if (node == TREE_ROOT)
		return "all";
	if (tree_at(tree, node)->depth == 1)
		return text_of(tree->profile, tree_head(tree, node)->comm);
	if (!address)
		return text_of(tree->profile, tree_function(tree, node)->label);
	snprintf(room, TREE_LABEL_ROOM, "0x%016" PRIx64, address->address);
	return room;
}

int32_t tree_next(const struct tree *tree, int32_t node, bool skip)
{
	const struct tree_node *n = tree_at(tree, node);

	if (!skip && n->first >= 0)
		return n->first;
	while (n->next < 0) {
		if (n->parent < 0)
			return -1;
		n = tree_at(tree, n->parent);
	}
	return n->next;
}
