/* SPDX-License-Identifier: MIT */
/*
 * Creating a file under a name that may be taken. The recorder often runs as root in a folder of
 * somebody else, so links are never followed to regular files, and nothing that was not made here
 * is given away or removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"
#include "perfdata/new-file.h"

#define FILE_MODE 0600

#define STANDARD_OUTPUT "-"

static int fail_path(struct tally_error *err, int code, const char *doing, const char *path)
{
	enum tally_cause cause = code == -ENOENT ? TALLY_CAUSE_NO_FILE : TALLY_CAUSE_IO;

	if (code == -EACCES || code == -EPERM || code == -EROFS)
		cause = TALLY_CAUSE_PERMISSION;
	return error_set(err, code, cause, "cannot %s %s: %s", doing, path, strerror(-code));
}

/* Moves what has the name out of the way. A symbolic link is moved itself, never followed: whoever
 * owns the folder must not make a privileged recorder overwrite another file. */
static int clear_name(struct new_file *file, bool keep_old, struct tally_error *err)
{
	if (!keep_old)
		return unlink(file->path) < 0 ? fail_path(err, -errno, "replace", file->path) : 0;
	char *old_path;
	if (asprintf(&old_path, "%s.old", file->path) < 0)
		return error_nomem(err, file->path);
	if (rename(file->path, old_path) < 0) {
		int code = -errno;
		free(old_path);
		return error_set(err, code, TALLY_CAUSE_IO,
				 "cannot keep %s as %s.old: %s; move either away", file->path,
				 file->path, strerror(-code));
	}
	file->old_path = old_path;
	return 0;
}

/* What the name stands for. A link to a regular file is a name like any other; one to a device, as
 * /dev/stdout may be, stands for the device. */
static int stat_name(const char *path, struct stat *st)
{
	struct stat target;

	if (lstat(path, st) < 0)
		return -errno;
	if (S_ISLNK(st->st_mode) && stat(path, &target) == 0 && !S_ISREG(target.st_mode))
		*st = target;
	return 0;
}

/* Links there lead to what a process has open: they are nobody's to move. */
static bool is_system_link(const char *path, const struct stat *st)
{
	return S_ISLNK(st->st_mode) && (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6));
}

/* Clears the name when something has it, and tells how to open it. Device files such as /dev/null
 * are written as they are. */
static int open_flags(struct new_file *file, bool keep_old, bool stream, struct tally_error *err)
{
	const int create_flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
	struct stat st;

	if (stat_name(file->path, &st) < 0)
		return create_flags; /* open will say what is wrong, if anything is */
	if (S_ISDIR(st.st_mode))
		return error_set(err, -EISDIR, TALLY_CAUSE_ARGUMENT,
				 "cannot write %s: it is a folder; name a file in it", file->path);
	if (stream && (S_ISFIFO(st.st_mode) || is_system_link(file->path, &st)))
		return O_WRONLY;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || is_system_link(file->path, &st))
		return error_set(err, -ESPIPE, TALLY_CAUSE_UNSUPPORTED,
				 "cannot write %s: the header is completed last, which needs a "
				 "file; name one",
				 file->path);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return O_WRONLY;
	int r = clear_name(file, keep_old, err);
	return r < 0 ? r : create_flags;
}

/* What open found may have been exchanged since its name was looked at. */
static int check_device(const struct new_file *file, struct tally_error *err)
{
	struct stat st;

	if (fstat(file->fd, &st) == 0 && !S_ISREG(st.st_mode))
		return 0;
	return error_set(err, -EEXIST, TALLY_CAUSE_BUSY,
			 "cannot write %s: it was exchanged while it was opened", file->path);
}

/* EPERM: not root, or a file system without owners, where there is nothing to give. */
static int give(const struct new_file *file, const struct tally_writer_opts *opts,
		struct tally_error *err)
{
	/* 0 becomes -1, which is fchown's "as it is". */
	uid_t uid = (uid_t)opts->owner_uid_plus_1 - 1;
	gid_t gid = (gid_t)opts->owner_gid_plus_1 - 1;

	if ((!opts->owner_uid_plus_1 && !opts->owner_gid_plus_1) ||
	    fchown(file->fd, uid, gid) == 0 || errno == EPERM)
		return 0;
	return fail_path(err, -errno, "give to its owner", file->path);
}

static int take_standard_output(struct new_file *file, struct tally_error *err)
{
	file->fd = sys()->fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return file->fd < 0 ? fail_path(err, file->fd, "write to", "standard output") : 0;
}

int new_file_open(struct new_file *file, const char *path, const struct tally_writer_opts *opts,
		  struct tally_error *err)
{
	file->fd = -1;
	file->path = strdup(path);
	if (!file->path)
		return error_nomem(err, path);
	if (!strcmp(path, STANDARD_OUTPUT))
		return take_standard_output(file, err);
	int flags = open_flags(file, !(opts->flags & TALLY_WRITER_NO_OLD),
			       opts->flags & TALLY_WRITER_STREAM, err);
	if (flags < 0)
		return flags;
	file->fd = sys()->open(path, flags, FILE_MODE);
	int r = file->fd < 0 ? fail_path(err, file->fd, "create", path) : 0;
	file->made = r == 0 && (flags & O_CREAT);
	if (r == 0)
		r = file->made ? give(file, opts, err) : check_device(file, err);
	if (r < 0)
		new_file_undo(file);
	return r;
}

void new_file_undo(struct new_file *file)
{
	if (file->made)
		unlink(file->path);
	if (file->old_path)
		(void)!rename(file->old_path, file->path);
}

void new_file_done(struct new_file *file)
{
	if (file->fd >= 0)
		sys()->close(file->fd);
	free(file->old_path);
	free(file->path);
}
