/* SPDX-License-Identifier: MIT */
/* Splitting a list of terms, and the numbers in it. */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "event/term-text.h"

#define MAX_TERMS 256

const char *term_place(const char *where, const struct term *t)
{
	return where ? where : t->name;
}

static void trim(const char **text, size_t *len)
{
	while (*len && isspace((unsigned char)**text))
		++*text, --*len;
	while (*len && isspace((unsigned char)(*text)[*len - 1]))
		--*len;
}

/* The length of the term at `text`; a comma between single quotes belongs to it. */
static size_t term_length(const char *text, size_t len)
{
	bool quoted = false;
	size_t i = 0;

	for (; i < len && (quoted || text[i] != ','); i++)
		if (text[i] == '\'' && (quoted || (i && text[i - 1] == '=')))
			quoted = !quoted;
	return i;
}

static int add_term(term_list *out, const struct naming *n, const char *where, const char *text,
		    size_t len)
{
	const char *equals = memchr(text, '=', len);
	struct term *t = vec_push(out);

	if (!t)
		return error_nomem(n->err, "terms");
	t->name = text;
	t->name_len = equals ? (size_t)(equals - text) : len;
	if (equals) {
		t->value = equals + 1;
		t->value_len = len - t->name_len - 1;
		trim(&t->value, &t->value_len);
	}
	trim(&t->name, &t->name_len);
	if (!t->name_len)
		return resolve_fail(n, where ? where : text, TALLY_CAUSE_SYNTAX,
				    "a term is missing here");
	if (t->name_len > RESOLVE_MAX_NAME || t->value_len > RESOLVE_MAX_NAME)
		return resolve_fail(n, term_place(where, t), TALLY_CAUSE_SYNTAX,
				    "a term and its value have %d bytes each at most",
				    RESOLVE_MAX_NAME);
	if (out->count > MAX_TERMS)
		return resolve_fail(n, term_place(where, t), TALLY_CAUSE_LIMIT,
				    "there are more than %d terms", MAX_TERMS);
	return 0;
}

/* No text at all is no term; between commas there must be one. */
int term_split(term_list *out, const struct naming *n, const char *where, const char *text,
	       size_t len)
{
	const char *end = text + len;
	int r = 0;

	trim(&text, &len);
	if (!len)
		return 0;
	for (;;) {
		size_t one = term_length(text, (size_t)(end - text));
		r = add_term(out, n, where, text, one);
		text += one;
		if (r < 0 || text == end)
			return r;
		text++;
	}
}

bool term_is(const struct term *t, const char *name)
{
	return strlen(name) == t->name_len && !memcmp(t->name, name, t->name_len);
}

/* A term without a value is 1. */
int term_value(const struct naming *n, const char *where, const struct term *t, uint64_t *out)
{
	char text[RESOLVE_MAX_NAME + 1];

	*out = 1;
	if (!t->value)
		return 0;
	resolve_copy(text, t->value, t->value_len);
	if (parse_u64(text, out))
		return 0;
	if (!strcmp(text, "?"))
		return resolve_fail(n, term_place(where, t), TALLY_CAUSE_SYNTAX,
				    "'%.*s' stands for a number: give one, as in %.*s=1",
				    SHOWN(t->name, t->name_len), SHOWN(t->name, t->name_len));
	uint64_t hex;
	bool unmarked = parse_hex(text, &hex) && strpbrk(text, "abcdefABCDEF");
	return resolve_fail(n, term_place(where, t), TALLY_CAUSE_SYNTAX,
			    "'%.*s' of %.*s is no number of 64 bits%s",
			    SHOWN(t->value, t->value_len), SHOWN(t->name, t->name_len),
			    unmarked ? ": hex begins with 0x" : "");
}
