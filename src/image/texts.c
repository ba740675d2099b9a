/* SPDX-License-Identifier: MIT */
/* Interned bytes in chunks that never move. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "image/texts.h"

#define CHUNK_SIZE 16384

static char *new_chunk(struct texts *t, size_t size)
{
	if (!vec_grow(&t->chunks, t->chunk_count, &t->chunk_room, 1, sizeof(*t->chunks)))
		return NULL;
	char *chunk = malloc(size);
	if (!chunk)
		return NULL;
	t->chunks[t->chunk_count++] = chunk;
	t->chunk_size = size;
	t->left = size;
	return chunk;
}

static char *take(struct texts *t, size_t size)
{
	if (size > t->left && !new_chunk(t, size > CHUNK_SIZE ? size : CHUNK_SIZE))
		return NULL;
	char *at = t->chunks[t->chunk_count - 1] + t->chunk_size - t->left;
	t->left -= size;
	return at;
}

static uint32_t append(struct texts *t, const char *bytes, size_t len)
{
	if (t->count >= UINT32_MAX - 1 || !vec_grow(&t->at, t->count, &t->room, 1, sizeof(*t->at)))
		return UINT32_MAX;
	char *copy = len < SIZE_MAX ? take(t, len + 1) : NULL;
	if (!copy)
		return UINT32_MAX;
	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	t->at[t->count] = (struct texts_entry){ .at = copy, .len = len };
	return (uint32_t)t->count++;
}

uint32_t texts_add(struct texts *t, const char *bytes, size_t len)
{
	uint32_t *first = map64_at(&t->first, hash_bytes(bytes, len));

	if (!first)
		return UINT32_MAX;
	for (uint32_t i = *first; i; i = t->at[i - 1].next) {
		const struct texts_entry *e = &t->at[i - 1];
		if (e->len == len && !memcmp(e->at, bytes, len))
			return i - 1;
	}
	uint32_t index = append(t, bytes, len);
	if (index == UINT32_MAX)
		return index;
	t->at[index].next = *first;
	*first = index + 1;
	return index;
}

const char *texts_intern(struct texts *t, const char *text)
{
	uint32_t index = texts_add(t, text, strlen(text));

	return index == UINT32_MAX ? NULL : t->at[index].at;
}

void texts_done(struct texts *t)
{
	for (size_t i = 0; i < t->chunk_count; i++)
		free(t->chunks[i]);
	free(t->chunks);
	free(t->at);
	map64_done(&t->first);
	*t = (struct texts){ 0 };
}
