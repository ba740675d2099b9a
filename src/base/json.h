/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON into a buf. Commas are placed by looking at what stands before; strings are escaped,
 * and bytes that are not UTF-8 become U+FFFD, so that the output is valid whatever a file held.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

void json_open(struct buf *b, char bracket);  /* '{' or '[' as a value */
void json_close(struct buf *b, char bracket); /* '}' or ']' */
void json_key(struct buf *b, const char *key);
void json_string(struct buf *b, const char *value);
void json_u64(struct buf *b, uint64_t value);
void json_double(struct buf *b, double value); /* null when not finite */
void json_bool(struct buf *b, bool value);
void json_null(struct buf *b);

#endif
