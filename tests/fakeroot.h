/* SPDX-License-Identifier: MIT */
/* A made-up root folder with files of /proc and /sys, for code that takes one. */
#ifndef TESTS_FAKEROOT_H
#define TESTS_FAKEROOT_H

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct fakeroot {
	char path[64];
};

static inline bool fakeroot_make(struct fakeroot *root)
{
	snprintf(root->path, sizeof(root->path), "/tmp/tally-root-XXXXXX");
	return mkdtemp(root->path) != NULL;
}

/* Writes a file of `len` bytes, with the folders above it. */
static inline bool fakeroot_bytes(const struct fakeroot *root, const char *path, const void *bytes,
				  size_t len)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s%s", root->path, path) >= (int)sizeof(full))
		return false;
	for (char *slash = strchr(full + strlen(root->path) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(full, 0755) < 0 && errno != EEXIST)
			return false;
		*slash = '/';
	}
	FILE *f = fopen(full, "w");
	if (!f)
		return false;
	bool ok = fwrite(bytes, 1, len, f) == len;
	return fclose(f) == 0 && ok;
}

static inline bool fakeroot_file(const struct fakeroot *root, const char *path, const char *text)
{
	return fakeroot_bytes(root, path, text, strlen(text));
}

static inline int fakeroot_unlink_(const char *path, const struct stat *st, int type,
				   struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static inline void fakeroot_remove(const struct fakeroot *root)
{
	nftw(root->path, fakeroot_unlink_, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
