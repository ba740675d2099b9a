/* SPDX-License-Identifier: MIT */
/* Folded stacks: the text that flamegraph.pl, inferno, speedscope and others read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "profile/names.h"
#include "profile/tree.h"

/* A frame as flamegraph.pl knows it: of the kernel and of inlined functions by what is appended. */
static void print_frame(const struct tree *tree, int32_t node, FILE *to)
{
	char room[TREE_LABEL_ROOM];
	const struct function *f = tree_at(tree, node)->depth > 1 ? tree_function(tree, node)
								  : NULL;

	if (f && f->inlined) {
		name_folded(to, text_of(tree->profile, f->name));
		fputs("_[i]", to);
		return;
	}
	name_folded(to, tree_label(tree, node, room));
	if (f && (f->mode == TALLY_MODE_KERNEL || f->mode == TALLY_MODE_GUEST_KERNEL))
		fputs("_[k]", to);
}

static void print_line(const struct tree *tree, const int32_t *path, uint32_t depth, FILE *to)
{
	for (uint32_t i = 1; i <= depth; i++) {
		print_frame(tree, path[i], to);
		putc(i < depth ? ';' : ' ', to);
	}
	fprintf(to, "%" PRIu64 "\n", tree_at(tree, path[depth])->self);
}

/* `path` holds the nodes from the root to the current one, by depth. */
static int print_lines(const struct tree *tree, FILE *to)
{
	VEC(int32_t) path = { 0 };
	int r = 0;

	for (int32_t at = TREE_ROOT; at >= 0; at = tree_next(tree, at, false)) {
		const struct tree_node *n = tree_at(tree, at);
		path.count = n->depth;
		int32_t *slot = vec_push(&path);
		if (!slot) {
			r = -ENOMEM;
			break;
		}
		*slot = at;
		if (n->self)
			print_line(tree, path.at, n->depth, to);
	}
	vec_done(&path);
	return r;
}

int tally_report_folded(const struct tally_profile *profile, const struct tally_query_opts *query,
			FILE *to, struct tally_error *err)
{
	static const bool by_comm[QUERY_KEYS] = { [QUERY_COMM] = true };
	struct query q;
	struct tree tree;
	int r = query_open(&q, profile, query, err);

	if (r < 0)
		return r;
	r = tree_build(&tree, &q, by_comm, TREE_BY_MODULE);
	if (r == 0) {
		r = print_lines(&tree, to);
		tree_done(&tree);
	}
	query_done(&q);
	if (r < 0)
		return error_nomem(err, "folded stacks");
	return output_end(to, "folded stacks", err);
}
