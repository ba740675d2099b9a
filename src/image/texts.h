/* SPDX-License-Identifier: MIT */
/*
 * Interned bytes whose addresses last: equal bytes give the same pointer until texts_done(). (Those
 * of base/hash.h move when the table grows; paths, thread names and functions are handed out.)
 */
#ifndef IMAGE_TEXTS_H
#define IMAGE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct texts_entry {
	const char *at;
	size_t len;
	uint32_t next; /* another entry with the same hash, index + 1 */
};

/* Zeroed is empty. */
struct texts {
	struct map64 first; /* hash -> entry index + 1 */
	struct texts_entry *at;
	size_t count, room;
	char **chunks;
	size_t chunk_count, chunk_room;
	size_t left; /* free bytes at the end of the last chunk */
	size_t chunk_size;
};

/* The index of these bytes, from 0 upwards; UINT32_MAX: no memory. A NUL follows them. */
uint32_t texts_add(struct texts *t, const char *bytes, size_t len);
/* As texts_add, but the text itself. NULL: no memory. */
const char *texts_intern(struct texts *t, const char *text);
static inline const char *texts_get(const struct texts *t, uint32_t index)
{
	return t->at[index].at;
}
void texts_done(struct texts *t);

#endif
