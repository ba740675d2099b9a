/* SPDX-License-Identifier: MIT */
/* A packed recording while it is read: unpacked into a folder of its own. */
#ifndef PROFILE_UNPACKED_H
#define PROFILE_UNPACKED_H

#include <tally/error.h>

/* The folder in an archive with what is no file's at its path: a cache as recordings keep one. */
#define PACK_CACHE "tally-cache"

struct unpacked {
	char *folder, *recording; /* NULL: it is no archive */
};

/* Zero the struct before. What is no archive is left alone. Errors: of making the folder, -EBADMSG. */
int unpacked_open(struct unpacked *u, const char *path, struct tally_error *err);
/* Removes the folder. */
void unpacked_close(struct unpacked *u);

#endif
