/* SPDX-License-Identifier: MIT */
/* A span of a recording's time, as --time gives it: FROM,TO in seconds. */
#ifndef CLI_SPAN_H
#define CLI_SPAN_H

#include <stdbool.h>
#include <stdint.h>

struct span {
	uint64_t from, to; /* ns; to 0: no end */
	bool relative;     /* from the first sample on */
};

/* NULL is all. false: said for `command`. */
bool span_read(struct span *out, const char *text, const char *command);

#endif
