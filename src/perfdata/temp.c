/* SPDX-License-Identifier: MIT */
/* Temporary files: made without a name (O_TMPFILE, Linux 3.11) or unlinked at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"
#include "perfdata/temp.h"

/* For file systems without O_TMPFILE (overlayfs before Linux 6.1, NFS). */
static int open_named(const char *folder)
{
	char path[4096];

	int n = snprintf(path, sizeof(path), "%s/tally-XXXXXX", folder);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int open_in(const char *folder)
{
	int fd = sys()->open(folder, O_TMPFILE | O_RDWR, 0600);

	return fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL ? open_named(folder) : fd;
}

int temp_open(const char *folder, struct tally_error *err)
{
	const char *const folders[] = { folder ? folder : getenv("TMPDIR"), "/var/tmp", "/tmp" };
	const char *tried = "";
	int fd = -ENOENT;

	for (size_t i = 0; i < 3 && fd < 0; i++) {
		if (!folders[i] || !*folders[i])
			continue;
		tried = folders[i];
		fd = open_in(tried);
		if (folder)
			break;
	}
	return fd >= 0 ? fd
		       : error_set(err, fd, TALLY_CAUSE_IO,
				   "cannot make a temporary file in %s: %s; set TMPDIR to a folder "
				   "that can be written to",
				   tried, strerror(-fd));
}

static int fail(int code, const char *what, struct tally_error *err)
{
	return error_set(err, code, TALLY_CAUSE_IO, "%s a temporary file failed: %s%s", what,
			 strerror(-code),
			 code == -ENOSPC ? "; set TMPDIR to a folder with more room" : "");
}

int temp_write(int fd, const void *bytes, size_t len, uint64_t offset, struct tally_error *err)
{
	int r = sys_pwrite_all(fd, bytes, len, offset);

	return r < 0 ? fail(r, "writing to", err) : 0;
}

int temp_read(int fd, void *bytes, size_t len, uint64_t offset, struct tally_error *err)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->pread(fd, (char *)bytes + done, len - done,
					 (off_t)(offset + done));
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return fail(n < 0 ? (int)n : -EIO, "reading", err);
		done += (size_t)n;
	}
	return 0;
}
