/* SPDX-License-Identifier: MIT */
/* Standard output as a recording's: what a command prints must not come between its records. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include <stdbool.h>

struct stream {
	int saved; /* standard output, while a command is started; -1: it is in its place */
};

/* Whether a stream can be written there; said for `command` when not. */
bool stream_check(const char *command);

/* Puts standard error in the place of standard output, for a command that is started now, and puts
 * it back. false: errno tells. */
bool stream_away(struct stream *stream);
bool stream_back(struct stream *stream);

#endif
