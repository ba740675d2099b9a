/* SPDX-License-Identifier: MIT */
/*
 * Build-ids that are told apart from the mappings, in the BUILD_ID feature: of a path, for all
 * processes or for one, since containers have different files of the same path.
 */
#ifndef IMAGE_BUILDS_H
#define IMAGE_BUILDS_H

#include "base/hash.h"
#include "base/vec.h"
#include "image/build-id.h"

#define BUILDS_ANY_PID (-1)

/* Zeroed is empty. */
struct builds {
	struct strings paths;
	struct map64 index; /* path and pid -> number + 1 */
	VEC(struct build_id) ids;
};

/* false: no memory. */
bool builds_set(struct builds *b, const char *path, int32_t pid, const struct build_id *id);

/*
 * len 0: unknown. What is told for all processes counts for one only where the path is nobody's
 * own.
 */
struct build_id builds_get(struct builds *b, const char *path, int32_t pid);

void builds_done(struct builds *b);

#endif
