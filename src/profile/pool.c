/* SPDX-License-Identifier: MIT */
/* Interned structs: an array, and an open-addressing table of indices into it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/pool.h"

#define FIRST_SLOTS 64

static const char *element_at(const struct pool *pool, size_t index)
{
	return (const char *)pool->at + index * pool->element;
}

/* The slot of a key, or the empty one where it belongs. */
static uint32_t *find_slot(const struct pool *pool, uint32_t *slots, size_t room, const void *key)
{
	size_t i = hash_bytes(key, pool->key) & (room - 1);

	while (slots[i] && memcmp(element_at(pool, slots[i] - 1), key, pool->key) != 0)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static bool grow_slots(struct pool *pool)
{
	size_t room = pool->slot_room ? pool->slot_room * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < pool->count; i++)
		*find_slot(pool, slots, room, element_at(pool, i)) = (uint32_t)i + 1;
	free(pool->slots);
	pool->slots = slots;
	pool->slot_room = room;
	return true;
}

int pool_add(struct pool *pool, const void *element)
{
	if (pool->count >= pool->slot_room / 2 && !grow_slots(pool))
		return -ENOMEM;
	uint32_t *slot = find_slot(pool, pool->slots, pool->slot_room, element);
	if (*slot)
		return (int)(*slot - 1);
	if (pool->count >= INT32_MAX)
		return -ENOMEM;
	void *added = vec_add(&pool->at, &pool->count, &pool->room, pool->element);
	if (!added)
		return -ENOMEM;
	memcpy(added, element, pool->element);
	*slot = (uint32_t)pool->count;
	return (int)pool->count - 1;
}

void pool_done(struct pool *pool)
{
	free(pool->at);
	free(pool->slots);
	*pool = (struct pool){ .element = pool->element, .key = pool->key };
}
