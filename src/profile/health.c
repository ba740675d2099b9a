/* SPDX-License-Identifier: MIT */
/* Sentences about a recording. */
#include <stdio.h>

#include "profile/health.h"

void health_text(char *text, size_t size, const char *path, const char *const *parts, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used < size; i++) {
		if (!parts[i])
			continue;
		int n = snprintf(text + used, size - used, "%s%s %s", used ? "; " : "",
				 used ? "it" : path, parts[i]);
		used += n > 0 ? (size_t)n : 0;
	}
}
