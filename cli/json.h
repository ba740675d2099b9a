/* SPDX-License-Identifier: MIT */
/* The little JSON that commands print themselves. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdio.h>

/* A string in quotes, escaped; what is not UTF-8 becomes U+FFFD. NULL prints null. */
void json_text(FILE *to, const char *text);

#endif
