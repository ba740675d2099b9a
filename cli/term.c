/* SPDX-License-Identifier: MIT */
/* Messages, terminal and pager. */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

FILE *pager_open(bool wanted)
{
	if (!wanted || !isatty(STDOUT_FILENO))
		return NULL;
	const char *pager = getenv("TALLY_PAGER");
	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		pager = "less";
	if (!*pager || !strcmp(pager, "cat"))
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
