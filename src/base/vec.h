/* SPDX-License-Identifier: MIT */
/*
 * A growing array of any type.
 *
 *	VEC(struct mapping) maps = {};
 *	struct mapping *m = vec_push(&maps);   // zeroed; NULL: no memory, the array is unchanged
 *	vec_each(&maps, m) ...
 *	vec_done(&maps);
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define VEC(type)                   \
	struct {                    \
		type *at;           \
		size_t count, room; \
	}

/* Makes room for `more` further elements. false: no memory. */
bool vec_grow(void *at_pointer, size_t count, size_t *room, size_t more, size_t element);
/* vec_push() for elements whose type is not known. */
void *vec_add(void *at_pointer, size_t *count, size_t *room, size_t element);

/* Gives back room for elements that did not come. */
void vec_cut(void *at_pointer, size_t count, size_t *room, size_t element);

/* There is room most of the time, so that this is looked at without a call. */
#define vec_reserve(v, more)                 \
	((v)->room - (v)->count >= (more) || \
	 vec_grow((void *)&(v)->at, (v)->count, &(v)->room, (more), sizeof(*(v)->at)))
#define vec_push(v)                                                                          \
	((__typeof__((v)->at))(vec_reserve(v, 1)                                             \
				       ? memset(&(v)->at[(v)->count++], 0, sizeof(*(v)->at)) \
				       : NULL))
#define vec_trim(v) vec_cut((void *)&(v)->at, (v)->count, &(v)->room, sizeof(*(v)->at))
/* NULL + 0 is undefined in C, so nothing is added to an array that never grew. */
#define vec_each(v, p) \
	for (__typeof__((v)->at) p = (v)->at, p##_end_ = p ? p + (v)->count : p; p < p##_end_; p++)
#define vec_done(v)                         \
	do {                                \
		free((v)->at);              \
		(v)->at = NULL;             \
		(v)->count = (v)->room = 0; \
	} while (0)

#endif
