/* SPDX-License-Identifier: MIT */
/*
 * Large tables that are filled at once. A page fault costs 0.2 us on a good day and 15 us in some
 * virtual machines, where touching fresh memory page by page would cost more than all the work on
 * it; so tables ask for huge pages.
 */
#ifndef IMAGE_BULK_H
#define IMAGE_BULK_H

#include <stdbool.h>
#include <stddef.h>

/* As malloc; free() and realloc() take it. */
void *bulk_alloc(size_t size);

/* Makes room for just `more` further elements in a VEC. false: no memory. */
bool bulk_grow(void *at_pointer, size_t count, size_t *room, size_t more, size_t element);
#define bulk_reserve(v, more) \
	bulk_grow((void *)&(v)->at, (v)->count, &(v)->room, (more), sizeof(*(v)->at))

#endif
