/* SPDX-License-Identifier: MIT */
/*
 * Two tables: numbers to numbers (open addressing, for hot paths), and interned strings.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A 64-bit hash of bytes; not stable between versions, so never stored in files. */
uint64_t hash_bytes(const void *bytes, size_t len);

/* Mixes a number into a well-spread one (the finaliser of splitmix64). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* uint64_t -> uint32_t. Zeroed is empty. Value 0 means absent, so store index + 1. */
struct map64 {
	struct map64_slot {
		uint64_t key;
		uint32_t value, pad;
	} * slots;
	size_t room, count; /* room is a power of two, at most three quarters are used */
};

/* The slot of `key`, made with value 0 when absent. Valid until the next call. NULL: no memory. */
uint32_t *map64_at(struct map64 *m, uint64_t key);
/* The value of `key`, 0 when absent. */
uint32_t map64_get(const struct map64 *m, uint64_t key);
void map64_done(struct map64 *m);

/* Interned strings: equal text, equal id. Id 0 is "". */
struct strings {
	char *text;      /* all strings, each NUL-terminated */
	uint32_t *slots; /* hash -> id + 1 */
	uint32_t *offsets, *hashes;
	size_t text_len, text_room, slot_room, count, offset_room, hash_room;
};

/* The id of the first `len` bytes of `text`. UINT32_MAX: no memory. */
uint32_t strings_add_n(struct strings *s, const char *text, size_t len);
uint32_t strings_add(struct strings *s, const char *text);
/* The text of an id. Valid until the next add. */
const char *strings_get(const struct strings *s, uint32_t id);
void strings_done(struct strings *s);

#endif
