/* SPDX-License-Identifier: MIT */
/*
 * Interned plain structs: equal keys, equal index. An element begins with its key; what stands
 * behind it is the first adder's, and may be changed in place. Keys are compared bytewise, so they
 * must have no padding.
 */
#ifndef PROFILE_POOL_H
#define PROFILE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
	void *at;
	uint32_t *slots; /* by hash: index + 1; a power of two of them, at most half in use */
	size_t count, room, slot_room;
	uint32_t element, key; /* bytes */
};

#define POOL(type, last_of_key)                              \
	((struct pool){ .element = sizeof(type),             \
			.key = offsetof(type, last_of_key) + \
			       (uint32_t)sizeof(((type *)NULL)->last_of_key) })

/* The index of the element whose key is that of `element`, which is copied in when there is none.
 * -ENOMEM. */
int pool_add(struct pool *pool, const void *element);
void pool_done(struct pool *pool);

#endif
