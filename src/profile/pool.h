/* SPDX-License-Identifier: MIT */
/*
 * Interned plain structs: equal keys, equal index. An element begins with its key; what stands
 * behind it is the first adder's, and may be changed in place. Keys are compared as words of 32 bits,
 * so they must be made of such and have no padding.
 */
#ifndef PROFILE_POOL_H
#define PROFILE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool {
	void *at;
	/* By hash; a power of two of them, at most half in use. The hash in a slot saves most looks
	 * at elements, which lie far apart. */
	struct pool_slot {
		uint32_t hash, index_plus_1;
	} * slots;
	size_t count, room, slot_room;
	uint32_t element, key; /* bytes of an element; words of its key */
};

#define POOL(type, last_of_key)                                                   \
	((struct pool){ .element = sizeof(type),                                  \
			.key = (uint32_t)((offsetof(type, last_of_key) +          \
					   sizeof(((type *)NULL)->last_of_key)) / \
					  sizeof(uint32_t)) })

/* The index of the element whose key is that of `element`, which is copied in when there is none.
 * -ENOMEM. */
int pool_add(struct pool *pool, const void *element);
void pool_done(struct pool *pool);

#endif
