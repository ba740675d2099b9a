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
/*
 * Writes it. false: said with the file's name and what to do, and the file was removed; only
 * output_open may follow.
 */
bool output_write(struct output *output, const char *text, size_t len, const char *command);
/* Gives the file its name, or removes it when `good` is false. */
bool output_close(struct output *output, bool good, const char *command);

#endif
