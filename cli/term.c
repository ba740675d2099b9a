/* SPDX-License-Identifier: MIT */
/* Messages, terminal and pager. */
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "term.h"

void complain(const char *command, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	if (command)
		fprintf(stderr, "tally %s: ", command);
	else
		fputs("tally: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void hint(const char *fmt, ...)
{
	va_list ap;

	fputs("  hint: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

bool term_colors(FILE *to)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(to)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

unsigned term_width(FILE *to)
{
	struct winsize size;

	if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

static bool is_program(const char *folder, size_t len, const char *name)
{
	char path[PATH_MAX];
	struct stat s;
	int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)len, folder, len ? "/" : "", name);

	return n > 0 && (size_t)n < sizeof(path) && stat(path, &s) == 0 && S_ISREG(s.st_mode) &&
	       access(path, X_OK) == 0;
}

/* popen(3) starts a shell, which is there whatever the pager: its absence would show too late. */
static bool can_run(const char *command)
{
	char name[PATH_MAX];
	const char *path = getenv("PATH");

	command += strspn(command, " \t");
	size_t len = strcspn(command, " \t");
	if (strcspn(command, "\"'\\$`=;&|<>(){}*?[~#!") < len)
		return true; /* the shell's affair */
	if (!len || len >= sizeof(name))
		return false;
	memcpy(name, command, len);
	name[len] = '\0';
	if (strchr(name, '/'))
		return is_program("", 0, name);
	while (path) {
		size_t folder = strcspn(path, ":");
		if (is_program(folder ? path : ".", folder ? folder : 1, name))
			return true;
		path = path[folder] ? path + folder + 1 : NULL;
	}
	return false;
}

FILE *pager_open(bool wanted)
{
	if (!wanted || !isatty(STDOUT_FILENO))
		return NULL;
	const char *pager = getenv("TALLY_PAGER");
	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		pager = "less";
	if (!*pager || !strcmp(pager, "cat") || !can_run(pager))
		return NULL;
	/* less: quit when all fits, colours through, no clearing. */
	setenv("LESS", "FRSX", 0);
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN); /* the reader may quit early; writes then fail, which is fine */
	return popen(pager, "w");
}

void pager_close(FILE *pager)
{
	if (pager)
		pclose(pager);
}
