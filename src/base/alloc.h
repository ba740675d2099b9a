/* SPDX-License-Identifier: MIT */
/* Memory for objects that are opened often. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdlib.h>
#include <string.h>

/*
 * As calloc(3), which before glibc 2.41 goes past the thread's own cache of free chunks: a counter
 * that is opened and closed in a loop would spend as long in the allocator as in all else that is
 * not the kernel's.
 */
static inline void *alloc_zeroed(size_t count, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);

	/* Lest the compiler make a calloc of the two. */
	__asm__("" : "+r"(p));
	return p ? memset(p, 0, bytes) : NULL;
}

#endif
