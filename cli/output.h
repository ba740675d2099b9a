/* SPDX-License-Identifier: MIT */
/*
 * A file that is written aside and then given its name, so that nobody sees half of it and an older
 * one stays until the new one is whole.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
	FILE *to;
	const char *path;
	char *aside; /* NULL: standard output */
};

/* "-" is standard output. Under sudo the file belongs to who called it. false: said for `command`. */
bool output_open(struct output *output, const char *path, const char *command);
/* Gives the file its name, or removes it when `good` is false. */
bool output_close(struct output *output, bool good, const char *command);

#endif
