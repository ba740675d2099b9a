/* SPDX-License-Identifier: MIT */
/* What a process or a thread had at which time: an address space, a name. */
#ifndef IMAGE_HISTORY_H
#define IMAGE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"

/* From `time` on it is `value`; 0: nothing. */
struct change {
	uint64_t time;
	uint32_t value;
};

struct history {
	VEC(struct change) changes;
	size_t owned; /* nodes from here on belong to the last change's space alone */
};

struct histories {
	struct map64 index; /* pid or tid -> index + 1 */
	VEC(struct history) of;
};

/* NULL: it has none. */
struct history *history_get(const struct histories *of, int32_t id);
/* Made when absent; valid until the next one is made. NULL: no memory. */
struct history *history_make(struct histories *of, int32_t id);
void histories_done(struct histories *of);

/* The value that it has now; 0 for NULL, too. */
uint32_t history_last(const struct history *h);
/*
 * The change that begins at `time`, which is not before the last one; a copy of that when new, which
 * then owns nodes from `nodes` on. NULL: no memory.
 */
struct change *history_begin(struct history *h, uint64_t time, size_t nodes);
/* Forgets what is younger than `time`. */
void history_trim(const struct histories *of, int32_t id, uint64_t time, size_t nodes);
/* How many changes are not younger than `time`. */
size_t history_count_until(const struct history *h, uint64_t time);

#endif
