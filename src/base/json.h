/* SPDX-License-Identifier: MIT */
/*
 * JSON (RFC 8259) as a stream of tokens over a text in memory. Nothing is allocated and no tree is
 * built, so that megabytes of it cost what reading them costs; nesting is a bit a level, so that
 * hostile input cannot exhaust the stack.
 *
 *	json_init(&j, text, len);
 *	while ((r = json_next(&j, &t)) > 0)
 *		... t.kind, t.text, t.len
 *	if (r < 0)
 *		json_place(&j, &line, &column), j.why
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH 64 /* levels of objects and arrays in each other */

enum json_kind {
	JSON_END, /* of the text; what is before it was whole */
	JSON_OBJECT,
	JSON_OBJECT_END,
	JSON_ARRAY,
	JSON_ARRAY_END,
	JSON_KEY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

struct json_token {
	enum json_kind kind;
	bool escaped; /* the text has backslashes, see json_decode() */
	uint32_t len;
	const char *text; /* borrowed from the input: a string's without its quotes */
};

struct json {
	const char *text, *at, *end;
	uint64_t objects; /* a bit a level: an object rather than an array */
	unsigned depth;
	int state;       /* enum state of json.c: what may come next */
	const char *why; /* what is wrong at `at`; NULL: nothing so far */
};

/* At most UINT32_MAX bytes; they stay yours and need no NUL. */
void json_init(struct json *j, const char *text, size_t len);

/*
 * The next token: its kind, JSON_END (0) at the end. Errors: -EINVAL for what is not JSON, with
 * `why`; -E2BIG below JSON_DEPTH levels. An error stays: the next call answers -EINVAL again.
 */
int json_next(struct json *j, struct json_token *t);

/*
 * Passes over the rest of the value that `t`, the last token, begins: all of an object or array,
 * the value of a key, nothing else. 0, or an error as json_next's.
 */
int json_skip(struct json *j, const struct json_token *t);

/* Whether a key or string is this text. */
bool json_is(const struct json_token *t, const char *text);

/*
 * Appends a key's or string's bytes, escapes resolved: \u as UTF-8, half of a surrogate pair and
 * \u0000, which would end a text early, as U+FFFD. Other tokens are appended as they stand.
 */
void json_decode(struct buf *out, const struct json_token *t);

/* Where the parser stands, from 1. */
void json_place(const struct json *j, unsigned *line, unsigned *column);

#endif
