/* SPDX-License-Identifier: MIT */
/* A list of terms as text: "event=0x3c,umask=1,any". */
#ifndef EVENT_TERM_TEXT_H
#define EVENT_TERM_TEXT_H

#include "base/vec.h"
#include "event/pmu.h"
#include "event/resolve.h"

enum term_kind {
	TERM_FIELD,   /* of format/ */
	TERM_WORD,    /* config=, config1= ..., rNNN */
	TERM_ALIAS,   /* of events/ */
	TERM_GENERIC, /* a name of table.h */
	TERM_NAME,
	TERM_PERIOD,
	TERM_FREQ,
	TERM_FOREIGN, /* perf's own, and not ours */
};

struct term {
	const char *name, *value; /* value NULL: the name stands alone */
	size_t name_len, value_len;
	enum term_kind kind;
	struct pmu_field field; /* FIELD, WORD */
};

typedef VEC(struct term) term_list;

/* For "%.*s" in an error. */
#define SHOWN(text, len) (int)((len) > RESOLVE_MAX_NAME ? RESOLVE_MAX_NAME : (len)), (text)

/* Where an error about the term points to: `where`, or when it is NULL the term. */
const char *term_place(const char *where, const struct term *t);

/* Whether it has this name. */
bool term_is(const struct term *t, const char *name);

/*
 * Appends the terms of `len` bytes at `text`, into which they point: none of an empty text. Names
 * and values have RESOLVE_MAX_NAME bytes at most. 0 or -errno explained.
 */
int term_split(term_list *out, const struct naming *n, const char *where, const char *text,
	       size_t len);

/* The number behind the '=', 1 without one. 0 or -errno explained. */
int term_value(const struct naming *n, const char *where, const struct term *t, uint64_t *out);

#endif
