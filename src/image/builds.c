/* SPDX-License-Identifier: MIT */
/* Build-ids by path and process. */
#include <stdlib.h>

#include "image/builds.h"

/* Under which it is noted that a path has ids for single processes. */
#define SINGLE (-2)

static uint64_t key_of(uint32_t path, int32_t pid)
{
	return (uint64_t)path << 32 | (uint32_t)pid;
}

static bool set(struct builds *b, uint32_t path, int32_t pid, const struct build_id *id)
{
	uint32_t *index = map64_at(&b->index, key_of(path, pid));

	if (!index)
		return false;
	if (!*index) {
		if (!vec_push(&b->ids))
			return false;
		*index = (uint32_t)b->ids.count;
	}
	b->ids.at[*index - 1] = *id;
	return true;
}

bool builds_set(struct builds *b, const char *path, int32_t pid, const struct build_id *id)
{
	uint32_t text = strings_add(&b->paths, path);

	if (pid < 0)
		pid = BUILDS_ANY_PID;
	return text != UINT32_MAX && set(b, text, pid, id) &&
	       (pid == BUILDS_ANY_PID || set(b, text, SINGLE, id));
}

struct build_id builds_get(struct builds *b, const char *path, int32_t pid)
{
	uint32_t text = b->ids.count ? strings_add(&b->paths, path) : UINT32_MAX;

	if (text == UINT32_MAX)
		return (struct build_id){ 0 };
	uint32_t index = map64_get(&b->index, key_of(text, pid));
	if (!index && !map64_get(&b->index, key_of(text, SINGLE)))
		index = map64_get(&b->index, key_of(text, BUILDS_ANY_PID));
	return index ? b->ids.at[index - 1] : (struct build_id){ 0 };
}

void builds_done(struct builds *b)
{
	strings_done(&b->paths);
	map64_done(&b->index);
	vec_done(&b->ids);
}
