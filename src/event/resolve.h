/* SPDX-License-Identifier: MIT */
/*
 * What a name stands for. Each kind of name (generic, raw, terms of a PMU, breakpoint, probe, vendor's,
 * tracepoint) is a source: a function that looks at a word and answers the events that it means.
 */
#ifndef EVENT_RESOLVE_H
#define EVENT_RESOLVE_H

#include <tally/event.h>

#include "base/vec.h"
#include "event/event.h"

#define RESOLVE_MAX_NAME 127 /* longer than any name that the kernel can make */

/* The letters of modifiers, in the order of name.c's bits. */
#define RESOLVE_MODIFIERS "ukhHGIPDSWep"

/* Where names are looked up, and what errors need. */
struct naming {
	const char *text;   /* the whole list, for columns */
	const char *root;   /* folder above /proc and /sys, or NULL */
	const char *tables; /* folder of vendors' tables, or NULL */
	struct tally_error *err;
};

/* One event that a word means. All is owned by the list that it stands in. */
struct found_event {
	char *name; /* NULL: as it was written */
	struct tally_attr attr;
	event_parts parts; /* empty: the attr is all there is */
	char *text;        /* malloc'ed; what a pointer in the attr points to, NULL: nothing */
	double scale;      /* 0: 1.0 */
	char unit[32];
	bool per_package, snapshot;
	struct event_rate rate;
	bool keeps_name; /* it was chosen with name=: modifiers do not become a part of it */
	bool all_modes;  /* its PMU tells no modes apart, so that guests are not left out unasked */
};

/* What a source answers. */
struct found {
	VEC(struct found_event) events;
	size_t taken; /* length of the name in the word; ':' or, behind a '/', modifiers follow */
};

/*
 * Resolves a word of `len` bytes at `text`, modifiers included. 0, or -errno explained, with the
 * column. `out` is zeroed by the caller, who calls found_done() in any case.
 */
int resolve(const struct naming *n, const char *text, size_t len, struct found *out);

/*
 * A source answers 1 when the word is of its kind and resolved; 0 when it is not of its kind; or
 * -errno explained. It appends to out->events and sets out->taken.
 */
typedef int resolve_source(const struct naming *n, const char *text, size_t len, struct found *out);

/* Appends an event made of an attr, zeroed but for type and config. NULL: no memory. */
struct found_event *found_add(struct found *out, uint32_t type, uint64_t config);
void found_done(struct found *out);

/*
 * Where the word at `text` ends: at white space, a comma or a brace, none of which separates between
 * the slashes of pmu/terms/.
 */
size_t resolve_word(const char *text);

/* Fills in the error, with the column of `where` before it; answers -EINVAL. */
TALLY_PRINTF(4, 5)
int resolve_fail(const struct naming *n, const char *where, enum tally_cause cause, const char *fmt,
		 ...);

/* Copies a word of `len` bytes into `out` of RESOLVE_MAX_NAME + 1; false when it is too long. */
bool resolve_copy(char *out, const char *word, size_t len);

#endif
