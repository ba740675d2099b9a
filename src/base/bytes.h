/* SPDX-License-Identifier: MIT */
/* Unaligned loads and stores, in either byte order, and sizes. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load_u16(const void *p, bool swapped)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t load_u32(const void *p, bool swapped)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t load_u64(const void *p, bool swapped)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap64(v) : v;
}

static inline void store_u16(void *p, uint16_t v, bool swapped)
{
	v = swapped ? __builtin_bswap16(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline void store_u32(void *p, uint32_t v, bool swapped)
{
	v = swapped ? __builtin_bswap32(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline void store_u64(void *p, uint64_t v, bool swapped)
{
	v = swapped ? __builtin_bswap64(v) : v;
	memcpy(p, &v, sizeof(v));
}

static inline size_t align_up(size_t n, size_t power_of_two)
{
	return (n + power_of_two - 1) & ~(power_of_two - 1);
}

static inline bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

__extension__ typedef unsigned __int128 u128;

/* value * num / den without overflow in between; saturates; den 0 gives 0. */
static inline uint64_t mul_div(uint64_t value, uint64_t num, uint64_t den)
{
	if (!den)
		return 0;
	u128 r = (u128)value * num / den;
	return r > UINT64_MAX ? UINT64_MAX : (uint64_t)r;
}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
