/* SPDX-License-Identifier: MIT */
/* Files that appear when they are whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "term.h"

static const struct {
	int reason;
	const char *remedy;
} remedies[] = {
	{ ENOENT, "the folder does not exist: make it, or choose another place with -o" },
	{ ENOTDIR, "what stands before the last / is no folder: choose another place with -o" },
	{ EISDIR, "that is a folder: name a file in it with -o" },
	{ EACCES, "you may not write there: choose another place with -o" },
	{ EPERM, "you may not write there: choose another place with -o" },
	{ EROFS, "nothing can be written there: choose another place with -o" },
	{ ENOSPC, "make room, or choose another place with -o" },
	{ EDQUOT, "make room, or choose another place with -o" },
};

static void hint_remedy(int reason)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
		if (remedies[i].reason == reason)
			hint("%s", remedies[i].remedy);
}

static bool fail_stdout(int reason, const char *command)
{
	__fpurge(stdout); /* or complain would try it once more */
	complain(command, "cannot write to standard output: %s", strerror(reason));
	if (reason == ENOSPC || reason == EDQUOT)
		hint("make room where it leads to");
	return false;
}

static bool fail(struct output *o, const char *command)
{
	int reason = errno;

	if (o->to == stdout)
		return fail_stdout(reason, command);
	complain(command, "cannot write '%s': %s", o->path, strerror(reason));
	hint_remedy(reason);
	if (o->to)
		fclose(o->to);
	if (o->aside)
		unlink(o->aside);
	free(o->aside);
	*o = (struct output){ 0 };
	return false;
}

static uid_t id_from(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	unsigned long id = text ? strtoul(text, &end, 10) : 0;

	return text && *text && !*end ? (uid_t)id : (uid_t)-1;
}

/* mkstemp makes it private; a picture gets what any new file gets. */
static void give_away(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	fchmod(fd, 0666 & ~mask);
	if (geteuid() == 0 && getenv("SUDO_UID") &&
	    fchown(fd, id_from("SUDO_UID"), (gid_t)id_from("SUDO_GID")) < 0)
		return; /* it stays root's, as without sudo */
}

/* Devices and pipes cannot be replaced, only written to. */
static bool is_special(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

bool output_open(struct output *o, const char *path, const char *command)
{
	*o = (struct output){ .path = path };
	if (!strcmp(path, "-")) {
		o->to = stdout;
		return true;
	}
	if (is_special(path)) {
		o->to = fopen(path, "we");
		return o->to ? true : fail(o, command);
	}
	if (asprintf(&o->aside, "%s.XXXXXX", path) < 0) {
		o->aside = NULL;
		return fail(o, command);
	}
	int fd = mkostemp(o->aside, O_CLOEXEC);
	if (fd < 0) {
		int reason = errno;
		free(o->aside);
		o->aside = NULL;
		errno = reason;
		return fail(o, command);
	}
	give_away(fd);
	o->to = fdopen(fd, "w");
	if (!o->to) {
		close(fd);
		return fail(o, command);
	}
	return true;
}

bool output_write(struct output *o, const char *text, size_t len, const char *command)
{
	errno = EIO;
	if (fwrite(text, 1, len, o->to) == len && fflush(o->to) == 0)
		return true;
	return fail(o, command);
}

bool output_close(struct output *o, bool good, const char *command)
{
	if (o->to == stdout)
		return good;
	FILE *to = o->to;
	o->to = NULL;
	bool written = fclose(to) == 0;
	if (good && !written)
		return fail(o, command);
	if (good && o->aside && rename(o->aside, o->path) < 0)
		return fail(o, command);
	if (!good && o->aside)
		unlink(o->aside);
	free(o->aside);
	return good;
}
