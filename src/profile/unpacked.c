/* SPDX-License-Identifier: MIT */
/* Archives, unpacked below $TMPDIR or /tmp and removed again. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "profile/tar.h"
#include "profile/unpacked.h"

#define OPEN_FOLDERS 16

int unpacked_open(struct unpacked *u, const char *path, struct tally_error *err)
{
	const char *temporary = getenv("TMPDIR");

	if (!tar_is(path))
		return 0;
	if (asprintf(&u->folder, "%s/tally-XXXXXX", temporary && *temporary ? temporary : "/tmp") <
	    0) {
		u->folder = NULL;
		return error_nomem(err, path);
	}
	if (!mkdtemp(u->folder)) {
		int code = -errno;
		error_set(err, code, TALLY_CAUSE_IO, "cannot unpack %s to %s: %s", path, u->folder,
			  strerror(-code));
		free(u->folder);
		u->folder = NULL;
		return code;
	}
	if (asprintf(&u->recording, "%s/perf.data", u->folder) < 0) {
		u->recording = NULL;
		return error_nomem(err, path);
	}
	return tar_unpack(path, u->folder, err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	(void)!remove(path);
	return 0;
}

void unpacked_close(struct unpacked *u)
{
	if (u->folder)
		nftw(u->folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
	free(u->folder);
	free(u->recording);
}
