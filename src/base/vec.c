/* SPDX-License-Identifier: MIT */
/* Growing arrays: doubling, overflow checked. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

bool vec_grow(void *at_pointer, size_t count, size_t *room, size_t more, size_t element)
{
	void **at = at_pointer;

	if (*room - count >= more)
		return true;
	if (more > SIZE_MAX - count)
		return false;
	size_t want = *room > SIZE_MAX / 2 ? SIZE_MAX : *room * 2;
	if (want < count + more)
		want = count + more;
	if (want < 8)
		want = 8;
	if (want > SIZE_MAX / element)
		return false;
	void *grown = realloc(*at, want * element);
	if (!grown)
		return false;
	*at = grown;
	*room = want;
	return true;
}

void *vec_add(void *at_pointer, size_t *count, size_t *room, size_t element)
{
	if (!vec_grow(at_pointer, *count, room, 1, element))
		return NULL;
	char *slot = *(char **)at_pointer + *count * element;
	memset(slot, 0, element);
	(*count)++;
	return slot;
}

void vec_cut(void *at_pointer, size_t count, size_t *room, size_t element)
{
	void **at = at_pointer,
	     *cut = count && count < *room ? realloc(*at, count * element) : NULL;

	if (!cut)
		return;
	*at = cut;
	*room = count;
}
