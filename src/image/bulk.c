/* SPDX-License-Identifier: MIT */
/*
 * Memory in huge pages, where the system gives them (transparent_hugepage: always, madvise), or
 * with all its pages at once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "image/bulk.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE      ((size_t)4096)    /* where it is larger, the advice is refused */
#define HUGE_PAGE ((size_t)2 << 20) /* x86-64, and arm64 with pages of 4 KiB */

/* From so many bytes on: half of a huge page is used; a system call costs less than the faults. */
#define WORTH_HUGE  (HUGE_PAGE / 2)
#define WORTH_PAGES (16 * PAGE)

/* Advice: a refusal costs time, not correctness. */
static void advise(char *at, size_t size)
{
	if (size >= WORTH_HUGE)
		madvise(at, size, MADV_HUGEPAGE);
	else if (size >= WORTH_PAGES)
		madvise((char *)align_up((uintptr_t)at, PAGE), (size - PAGE) & ~(PAGE - 1),
			MADV_POPULATE_WRITE);
}

void *bulk_alloc(size_t size)
{
	if (size > SIZE_MAX - HUGE_PAGE)
		return NULL;
	if (size >= WORTH_HUGE)
		size = align_up(size, HUGE_PAGE);
	void *at = size >= WORTH_HUGE ? aligned_alloc(HUGE_PAGE, size) : malloc(size);
	if (at)
		advise(at, size);
	return at;
}

bool bulk_grow(void *at_pointer, size_t count, size_t *room, size_t more, size_t element)
{
	void **at = at_pointer;

	if (more <= *room - count)
		return true;
	if (more > SIZE_MAX / element - count)
		return false;
	void *grown = bulk_alloc((count + more) * element);
	if (!grown)
		return false;
	if (count)
		memcpy(grown, *at, count * element);
	free(*at);
	*at = grown;
	*room = count + more;
	return true;
}
