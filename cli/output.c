/* SPDX-License-Identifier: MIT */
/* Files that appear when they are whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "term.h"

static bool fail(struct output *o, const char *command)
{
	int reason = errno;

	complain(command, "cannot write '%s': %s", o->path, strerror(reason));
	if (o->to)
		fclose(o->to);
	if (o->aside)
		unlink(o->aside);
	free(o->aside);
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
