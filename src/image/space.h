/* SPDX-License-Identifier: MIT */
/*
 * Address spaces that share what they have in common.
 *
 * A space says for each 64-bit address which value (a number, 0: none) stands there. It is a tree
 * of four-way nodes, each halving the address twice, in which a block with one value is that value
 * itself. Painting a range makes a new space and leaves the old one as it was: only the nodes on
 * the way are new, at most 64 a call. So a fork is a copied number, and every past state of a
 * process remains, however many mappings and forks a recording claims to have.
 */
#ifndef IMAGE_SPACE_H
#define IMAGE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct space_node {
	uint32_t child[4];
};

/* Where the nodes of many spaces live. Zeroed is empty. */
struct spaces {
	struct space_node *at;
	size_t count, room;
};

/* A space: bit 31 set, the index of a node; clear, one value everywhere. 0 is empty. */
typedef uint32_t space_t;
#define SPACE_MAX_VALUE 0x7fffffffu

/* A range of addresses with one value, ends inclusive. */
struct space_block {
	uint64_t first, last;
	uint32_t value;
};

/*
 * Sets first..last (inclusive) to `value`. Nodes from index `owned` on belong to this space alone
 * and are changed in place. false: no memory; `*space` is unchanged.
 */
bool space_paint(struct spaces *s, space_t *space, size_t owned, uint64_t first, uint64_t last,
		 uint32_t value);

/* The value at `address`, and a range around it that has no other. */
struct space_block space_look(const struct spaces *s, space_t space, uint64_t address);
/* As space_look, but the largest such range. */
struct space_block space_extent(const struct spaces *s, space_t space, uint64_t address);

void spaces_done(struct spaces *s);

#endif
