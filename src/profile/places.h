/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a recording as text, as perf script prints them. Addresses repeat, so each text is made
 * once and kept for as long as it holds: until a mapping of its process changes.
 */
#ifndef PROFILE_PLACES_H
#define PROFILE_PLACES_H

#include <tally/symbolizer.h>

#include "profile/out.h"
#include "profile/sideband.h"

/* Among the fields: a call returns to the address, and the line is that of the call. */
#define PLACE_CALL (1u << 31)

/* How an address is written. */
enum place_form {
	PLACE_FRAME, /* of a callchain: tab, address (in its file for user code), symbol, dso, newline */
	PLACE_SAMPLE, /* address, symbol, dso */
	PLACE_NAME,   /* "symbol+0x1f" or "[unknown]", without its address */
	PLACE_DSO,    /* "(dso)", as behind the addresses of branches */
	PLACE_OFFSET, /* "0x1f", the address in its file */
	PLACE_JSON,   /* members "ip", "symbol", "offset", "dso", of an object */
};

struct place {
	uint32_t at, len; /* in the texts */
	bool passes;      /* PLACE_SAMPLE: the filters let it through */
};

/* Zeroed, but for the borrowed parts, is empty. */
struct places {
	struct sideband *sideband;
	struct tally_symbolizer *symbolizer;
	bool full_source;           /* lines with the whole path of their file */
	const char *symbols, *dsos; /* filters: comma-separated lists; NULL: all */
	struct out texts;
	VEC(struct place) list;
	struct map64 known; /* index + 1 */
};

/* Whose address, and when. */
struct whose {
	int32_t pid;
	struct epoch epoch;
	uint64_t time;
};

/*
 * The text of an address; `mode` is enum tally_mode, `fields` are those of enum field that decide what is
 * in it (SYM, SYMOFF, DSO, IP, SRCLINE), and PLACE_CALL. Valid until the next call; NULL: no memory.
 */
const struct place *place_of(struct places *p, const struct whose *whose, uint64_t address,
			     uint32_t mode, enum place_form form, uint32_t fields);

/* A text under a key of the caller's own; NULL: not known. */
const struct place *place_known(struct places *p, uint64_t key);
/* Keeps the text that was put into p->texts from `start` on. NULL: no memory. */
const struct place *place_keep(struct places *p, uint64_t key, size_t start);

/* Appends a text that is known to the one that is being put together. false: no memory. */
bool places_repeat(struct places *p, const struct place *place);

static inline const char *place_text(const struct places *p, const struct place *place)
{
	return p->texts.at + place->at;
}

/* Forgets all when there is much; call it between samples. */
void places_trim(struct places *p);

/* Whether a comma-separated list has a word. */
bool list_has(const char *list, const char *word);

void places_done(struct places *p);

#endif
