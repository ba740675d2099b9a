/* SPDX-License-Identifier: MIT */
/* Interned structs: an array, and an open-addressing table of indices into it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/vec.h"
#include "profile/pool.h"

#define FIRST_SLOTS 64

static bool has_key(const struct pool *pool, size_t index, const uint32_t *key)
{
	const char *element = (const char *)pool->at + index * pool->element;

	for (uint32_t i = 0; i < pool->key; i++)
		if (load_u32(element + i * sizeof(uint32_t), false) != key[i])
			return false;
	return true;
}

/* The slot of a key, or the empty one where it belongs. */
static struct pool_slot *find_slot(const struct pool *pool, const uint32_t *key, uint32_t hash)
{
	size_t mask = pool->slot_room - 1, i = hash & mask;

	while (pool->slots[i].index_plus_1 &&
	       (pool->slots[i].hash != hash ||
		!has_key(pool, pool->slots[i].index_plus_1 - 1, key)))
		i = (i + 1) & mask;
	return &pool->slots[i];
}

static bool grow_slots(struct pool *pool)
{
	size_t room = pool->slot_room ? pool->slot_room * 2 : FIRST_SLOTS;
	struct pool_slot *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t k = 0; k < pool->slot_room; k++) {
		const struct pool_slot *old = &pool->slots[k];
		size_t i = old->hash & (room - 1);
		if (!old->index_plus_1)
			continue;
		while (slots[i].index_plus_1)
			i = (i + 1) & (room - 1);
		slots[i] = *old;
	}
	free(pool->slots);
	pool->slots = slots;
	pool->slot_room = room;
	return true;
}

int pool_add(struct pool *pool, const void *element)
{
	if (pool->count >= pool->slot_room / 2 && !grow_slots(pool))
		return -ENOMEM;
	uint32_t hash = (uint32_t)hash_bytes(element, pool->key * sizeof(uint32_t));
	struct pool_slot *slot = find_slot(pool, element, hash);
	if (slot->index_plus_1)
		return (int)(slot->index_plus_1 - 1);
	if (pool->count >= INT32_MAX)
		return -ENOMEM;
	void *added = vec_add(&pool->at, &pool->count, &pool->room, pool->element);
	if (!added)
		return -ENOMEM;
	memcpy(added, element, pool->element);
	*slot = (struct pool_slot){ hash, (uint32_t)pool->count };
	return (int)pool->count - 1;
}

void pool_done(struct pool *pool)
{
	free(pool->at);
	free(pool->slots);
	*pool = (struct pool){ .element = pool->element, .key = pool->key };
}
