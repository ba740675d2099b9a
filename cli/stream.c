/* SPDX-License-Identifier: MIT */
/* Standard output, lent and taken back. */
#include <fcntl.h>
#include <unistd.h>

#include "stream.h"
#include "term.h"

bool stream_check(const char *command)
{
	if (!isatty(STDOUT_FILENO))
		return true;
	complain(command, "-o -: a recording is no text for a terminal");
	hint("pipe it: ... | perf report -i -, or send it into a file");
	return false;
}

bool stream_away(struct stream *stream)
{
	stream->saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return stream->saved >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

bool stream_back(struct stream *stream)
{
	if (stream->saved < 0)
		return true;
	bool good = dup2(stream->saved, STDOUT_FILENO) >= 0;
	close(stream->saved);
	stream->saved = -1;
	return good;
}
