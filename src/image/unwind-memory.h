/* SPDX-License-Identifier: MIT */
/* The memory of the thread that is unwound: a copy of its stack, and a function for the rest. */
#ifndef IMAGE_UNWIND_MEMORY_H
#define IMAGE_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct unwind_memory {
	uint64_t start; /* of the copy */
	uint64_t len;
	const uint8_t *copy;
	bool (*read)(void *arg, uint64_t address, uint64_t *out); /* NULL: there is no more */
	void *arg;
	uint64_t missed; /* the last address that could not be read */
};

static inline bool unwind_load(struct unwind_memory *m, uint64_t address, uint64_t *out)
{
	if (address - m->start < m->len && m->len - (address - m->start) >= sizeof(*out)) {
		memcpy(out, m->copy + (address - m->start), sizeof(*out));
		return true;
	}
	if (m->read && m->read(m->arg, address, out))
		return true;
	m->missed = address;
	return false;
}

#endif
