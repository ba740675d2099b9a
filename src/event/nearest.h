/* SPDX-License-Identifier: MIT */
/* The existing name that a mistyped one comes nearest to. */
#ifndef EVENT_NEAREST_H
#define EVENT_NEAREST_H

#include <stddef.h>

/* Longer names are neither looked at nor suggested. */
#define NEAREST_MAX 80

struct nearest {
	const char *wanted;
	size_t len;
	unsigned distance; /* of `name`, or one more than is still near */
	char name[NEAREST_MAX + 1];
};

void nearest_init(struct nearest *n, const char *wanted, size_t len);
/* Keeps `name` when it is nearer than all before. */
void nearest_offer(struct nearest *n, const char *name);

#endif
