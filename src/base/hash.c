/* SPDX-License-Identifier: MIT */
/* Open-addressing tables: linear probing, powers of two, at most three quarters full. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/vec.h"

#define FIRST_ROOM 64

uint64_t hash_bytes(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t h = 0x9e3779b97f4a7c15u ^ len;

	for (; len >= 8; p += 8, len -= 8)
		h = hash_u64(h ^ load_u64(p, false));
	uint64_t tail = 0;
	memcpy(&tail, p, len);
	return hash_u64(h ^ tail);
}

static struct map64_slot *find_slot(struct map64_slot *slots, size_t room, uint64_t key)
{
	size_t i = hash_u64(key) & (room - 1);

	while (slots[i].value && slots[i].key != key)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static bool map64_resize(struct map64 *m)
{
	size_t room = m->room ? m->room * 2 : FIRST_ROOM;
	struct map64_slot *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return false;
	size_t used = 0;
	for (size_t i = 0; i < m->room; i++) {
		if (m->slots[i].value) {
			*find_slot(slots, room, m->slots[i].key) = m->slots[i];
			used++;
		}
	}
	free(m->slots);
	m->slots = slots;
	m->room = room;
	m->count = used;
	return true;
}

uint32_t *map64_at(struct map64 *m, uint64_t key)
{
	/* `count` also counts slots handed out and left at 0; resizing counts anew. */
	if (m->count >= m->room / 4 * 3 && !map64_resize(m))
		return NULL;
	struct map64_slot *slot = find_slot(m->slots, m->room, key);
	if (!slot->value) {
		slot->key = key;
		m->count++;
	}
	return &slot->value;
}

uint32_t map64_get(const struct map64 *m, uint64_t key)
{
	return m->room ? find_slot(m->slots, m->room, key)->value : 0;
}

void map64_done(struct map64 *m)
{
	free(m->slots);
	*m = (struct map64){ 0 };
}

static bool strings_grow_slots(struct strings *s)
{
	size_t room = s->slot_room ? s->slot_room * 2 : FIRST_ROOM;
	uint32_t *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t id = 0; id < s->count; id++) {
		size_t i = s->hashes[id] & (room - 1);
		while (slots[i])
			i = (i + 1) & (room - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(s->slots);
	s->slots = slots;
	s->slot_room = room;
	return true;
}

static uint32_t strings_append(struct strings *s, const char *text, size_t len, uint32_t hash)
{
	if (s->count >= UINT32_MAX - 1 || len >= UINT32_MAX - s->text_len ||
	    !vec_grow(&s->text, s->text_len, &s->text_room, len + 1, 1) ||
	    !vec_grow(&s->offsets, s->count, &s->offset_room, 1, sizeof(*s->offsets)) ||
	    !vec_grow(&s->hashes, s->count, &s->hash_room, 1, sizeof(*s->hashes)))
		return UINT32_MAX;
	memcpy(s->text + s->text_len, text, len);
	s->text[s->text_len + len] = '\0';
	s->offsets[s->count] = (uint32_t)s->text_len;
	s->hashes[s->count] = hash;
	s->text_len += len + 1;
	return (uint32_t)s->count++;
}

uint32_t strings_add_n(struct strings *s, const char *text, size_t len)
{
	len = strnlen(text, len);
	if (!s->count && len && strings_add_n(s, "", 0) == UINT32_MAX)
		return UINT32_MAX;
	if (s->count >= s->slot_room / 4 * 3 && !strings_grow_slots(s))
		return UINT32_MAX;

	uint32_t hash = (uint32_t)hash_bytes(text, len);
	size_t i = hash & (s->slot_room - 1);
	for (; s->slots[i]; i = (i + 1) & (s->slot_room - 1)) {
		uint32_t id = s->slots[i] - 1;
		const char *known = s->text + s->offsets[id];
		if (s->hashes[id] == hash && !strncmp(known, text, len) && !known[len])
			return id;
	}
	uint32_t id = strings_append(s, text, len, hash);
	if (id != UINT32_MAX)
		s->slots[i] = id + 1;
	return id;
}

uint32_t strings_add(struct strings *s, const char *text)
{
	return strings_add_n(s, text, strlen(text));
}

const char *strings_get(const struct strings *s, uint32_t id)
{
	return id < s->count ? s->text + s->offsets[id] : "";
}

void strings_done(struct strings *s)
{
	free(s->text);
	free(s->slots);
	free(s->offsets);
	free(s->hashes);
	*s = (struct strings){ 0 };
}
