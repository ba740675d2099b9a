/* SPDX-License-Identifier: MIT */
/*
 * Which of many ranges an address belongs to, where ranges lie in each other: the one of the highest
 * rank, among equals the one that was added last. Addresses are kept as distances from a base, in 32
 * bits; what lies further away is left out.
 */
#ifndef IMAGE_COVER_H
#define IMAGE_COVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define COVER_NONE UINT32_MAX

struct cover_range {
	uint32_t low, high, value, rank;
};

struct cover_ranges {
	struct cover_range *at;
	size_t count, room;
};

/* From starts[i] to starts[i + 1] it is values[i]. */
struct cover {
	uint64_t base;
	bool has_base;
	struct cover_ranges ranges; /* until it is sealed; then others may use the memory */
	VEC(uint32_t) starts, values;
};

/* low < high. The first range, less 2 GiB, sets the base. false: no memory. */
bool cover_add(struct cover *c, uint64_t low, uint64_t high, uint32_t value, uint32_t rank);
/* Look-ups may follow, no more ranges. false: no memory. */
bool cover_seal(struct cover *c);
/* The value at an address; COVER_NONE: none. */
uint32_t cover_find(const struct cover *c, uint64_t address);
void cover_done(struct cover *c);

#endif
