/* SPDX-License-Identifier: MIT */
/* Functions of libraries that are loaded when they are needed. */
#ifndef BASE_DL_H
#define BASE_DL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct dl_symbol {
	const char *name;
	void *to; /* a pointer to a function, which C has no generic type for */
};

/* false: the library lacks one of them. */
static inline bool dl_find(void *library, const struct dl_symbol *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(library, symbols[i].name);
		if (!found)
			return false;
		memcpy(symbols[i].to, &found, sizeof(found));
	}
	return true;
}

#endif
