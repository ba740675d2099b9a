/* SPDX-License-Identifier: MIT */
/* Persistent four-way trees over addresses: painting ranges and looking them up. */
#include <stdlib.h>

#include "base/vec.h"
#include "image/space.h"

#define NODE      0x80000000u
#define TOP_SHIFT 62 /* a root's child spans 1 << 62 addresses */

/* A painted range has two ends, and a way to an end has a node for each pair of address bits. */
#define MAX_NEW_NODES (2 * (TOP_SHIFT / 2 + 1))

struct paint {
	struct spaces *s;
	size_t owned;
	uint32_t value;
};

/* A node that may be changed: `space` itself when it is owned, else a copy. */
static uint32_t own_node(const struct paint *p, space_t space)
{
	if (space & NODE && (space & ~NODE) >= p->owned)
		return space & ~NODE;
	uint32_t index = (uint32_t)p->s->count++;
	struct space_node *node = &p->s->at[index];
	if (space & NODE)
		*node = p->s->at[space & ~NODE];
	else
		*node = (struct space_node){ { space, space, space, space } };
	return index;
}

/* first and last count from the start of the block that `space` stands for. */
static space_t paint_block(const struct paint *p, space_t space, unsigned shift, uint64_t first,
			   uint64_t last)
{
	uint32_t index = own_node(p, space);
	uint64_t mask = ((uint64_t)1 << shift) - 1;
	unsigned from = (unsigned)(first >> shift), to = (unsigned)(last >> shift);

	for (unsigned i = from; i <= to; i++) {
		uint64_t a = i == from ? first & mask : 0;
		uint64_t b = i == to ? last & mask : mask;
		space_t child = p->s->at[index].child[i];
		if (a == 0 && b == mask)
			p->s->at[index].child[i] = p->value;
		else
			p->s->at[index].child[i] = paint_block(p, child, shift - 2, a, b);
	}
	return index | NODE;
}

bool space_paint(struct spaces *s, space_t *space, size_t owned, uint64_t first, uint64_t last,
		 uint32_t value)
{
	/* Nodes are numbered with 31 bits. */
	if (s->count > NODE - MAX_NEW_NODES ||
	    !vec_grow(&s->at, s->count, &s->room, MAX_NEW_NODES, sizeof(*s->at)))
		return false;
	struct paint p = { .s = s, .owned = owned, .value = value };
	*space = paint_block(&p, *space, TOP_SHIFT, first, last);
	return true;
}

struct space_block space_look(const struct spaces *s, space_t space, uint64_t address)
{
	uint64_t mask = UINT64_MAX;

	for (unsigned shift = TOP_SHIFT; space & NODE; shift -= 2) {
		space = s->at[space & ~NODE].child[address >> shift & 3];
		mask = ((uint64_t)1 << shift) - 1;
	}
	return (struct space_block){ address & ~mask, address | mask, space };
}

struct space_block space_extent(const struct spaces *s, space_t space, uint64_t address)
{
	struct space_block block = space_look(s, space, address);

	while (block.first > 0) {
		struct space_block before = space_look(s, space, block.first - 1);
		if (before.value != block.value)
			break;
		block.first = before.first;
	}
	while (block.last < UINT64_MAX) {
		struct space_block after = space_look(s, space, block.last + 1);
		if (after.value != block.value)
			break;
		block.last = after.last;
	}
	return block;
}

void spaces_done(struct spaces *s)
{
	free(s->at);
	*s = (struct spaces){ 0 };
}
