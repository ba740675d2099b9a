/* SPDX-License-Identifier: MIT */
/* Compilers, linkers and other tools, run in a made-up root. */
#ifndef TESTS_SHELL_H
#define TESTS_SHELL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fakeroot.h"

#define SHELL_ROOM 2048

/* Runs a command in the root; what it says is not shown. Whether it succeeded. */
__attribute__((format(printf, 2, 3))) static inline bool shell(const struct fakeroot *root,
							       const char *command, ...)
{
	char text[SHELL_ROOM];
	va_list args;
	int n = snprintf(text, sizeof(text), "cd %s && exec >/dev/null 2>&1 && ", root->path);

	va_start(args, command);
	vsnprintf(text + n, sizeof(text) - (size_t)n, command, args);
	va_end(args);
	return system(text) == 0;
}

/* What a command prints. NULL: it cannot be run. */
__attribute__((format(printf, 1, 2))) static inline FILE *open_shell(const char *command, ...)
{
	char text[SHELL_ROOM];
	va_list args;

	va_start(args, command);
	vsnprintf(text, sizeof(text), command, args);
	va_end(args);
	return popen(text, "re");
}

static inline void close_shell(FILE *f)
{
	if (f)
		pclose(f);
}

#endif
