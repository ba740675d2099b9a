/* SPDX-License-Identifier: MIT */
/* What is wrong with a recording, as one sentence. */
#ifndef PROFILE_HEALTH_H
#define PROFILE_HEALTH_H

#include <stddef.h>

/* Puts those parts that are not NULL behind the path and "it": "FILE has this; it has that". Cut to
 * `size`; without parts `text` stays as it is. */
void health_text(char *text, size_t size, const char *path, const char *const *parts, size_t count);

#endif
