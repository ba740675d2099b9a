/* SPDX-License-Identifier: MIT */
/*
 * Names on their way out. They come from files and programs that nobody vouches for, so each output
 * writes them through one of these.
 */
#ifndef PROFILE_NAMES_H
#define PROFILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <tally/error.h>

/*
 * The next character of a NUL-terminated text: its code point, 0 at the end, or -1 for a byte that
 * begins no valid UTF-8 sequence. `*at` moves behind it.
 */
int32_t utf8_next(const char **at);

/* Invalid bytes (-1), C0 and C1 controls, and what makes a terminal show text in another order. */
bool is_harmful(int32_t point);

/* How many characters name_text writes. */
size_t name_length(const char *name);

/* For terminals: controls, bidirectional overrides and invalid bytes become '?'. At most `limit`
 * characters, the last of them '~' when there are more; 0: no limit. */
void name_text(FILE *to, const char *name, size_t limit);

/* For folded stacks: blanks and controls become '_', ';' becomes ':'. */
void name_folded(FILE *to, const char *name);

/* For XML text and attributes: markup is escaped, what XML 1.0 forbids becomes U+FFFD. At most
 * `limit` characters, the last two of them ".." when there are more; 0: no limit. */
void name_xml(FILE *to, const char *name, size_t limit);

/* Ends an output: 0, or -EIO when something did not reach `to`. */
int output_end(FILE *to, const char *what, struct tally_error *err);

#endif
