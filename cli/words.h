/* SPDX-License-Identifier: MIT */
/* A command in one text, as its words. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

struct words {
	char **argv; /* ends with NULL */
	char *text;  /* what they point into */
	int shell;   /* 1: it holds what only a shell understands, argv is sh -c TEXT */
};

/*
 * Splits at blanks; '...' and "..." hold together, a backslash takes the next character for itself.
 * Where an unquoted character, or a $ or ` within "...", would mean something to sh(1), it is left
 * to that. Returns 0; -EINVAL: a quote is not closed, or there is no word; -ENOMEM.
 */
int words_split(struct words *out, const char *text);
void words_free(struct words *words);

#endif
