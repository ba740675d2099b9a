/* SPDX-License-Identifier: MIT */
/* Talking to a person: messages, terminal, colours, pager. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stdio.h>
#include <tally/api.h>

/* "tally COMMAND: what" on stderr. */
TALLY_PRINTF(2, 3) void complain(const char *command, const char *fmt, ...);
/* "  hint: what" on stderr. */
TALLY_PRINTF(1, 2) void hint(const char *fmt, ...);

/* Whether colours are wanted on `to`: a terminal, TERM not dumb, NO_COLOR unset or empty. */
bool term_colors(FILE *to);
/* Columns of the terminal behind `to`, 0 when it is none. */
unsigned term_width(FILE *to);

/*
 * A pager on stdout ($TALLY_PAGER, $PAGER, less) when stdout is a terminal and `wanted`; NULL: none
 * runs or it is not there, print to stdout. Close it with pager_close, which waits for it.
 */
FILE *pager_open(bool wanted);
void pager_close(FILE *pager);

#endif
