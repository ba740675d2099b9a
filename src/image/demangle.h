/* SPDX-License-Identifier: MIT */
/* Demangling, with and without the parameters of functions. */
#ifndef IMAGE_DEMANGLE_H
#define IMAGE_DEMANGLE_H

#include <stdbool.h>

/*
 * A malloc'ed readable form of a linker's name; NULL when it is not mangled, or too strange, or
 * there is no memory.
 */
char *demangle(const char *name, bool parameters);

#endif
