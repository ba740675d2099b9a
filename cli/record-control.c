/* SPDX-License-Identifier: MIT */
/*
 * `tally record --control`: commands from a pipe, one a line, as perf(1) takes them; each that was
 * carried out is answered by "ack" and a newline.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"
#include "term.h"

static const struct {
	const char *word;
	enum control_command command;
} words[] = {
	{ "enable", CONTROL_ENABLE },     { "disable", CONTROL_DISABLE },
	{ "snapshot", CONTROL_SNAPSHOT }, { "stop", CONTROL_STOP },
	{ "ping", CONTROL_PING },         { "evlist", CONTROL_EVLIST },
};

static bool take_descriptor(const char *text, const char *end, int *fd)
{
	char *rest;
	long number = strtol(text, &rest, 10);

	if (rest == text || rest != end || number < 0 || number > INT_MAX ||
	    fcntl((int)number, F_GETFD) < 0)
		return false;
	*fd = (int)number;
	return true;
}

/* Read and write, so that no end of file comes when a writer goes and another may follow. */
static bool take_fifo(const char *text, const char *end, int *fd)
{
	char *path = strndup(text, (size_t)(end - text));

	*fd = path ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
	if (*fd < 0)
		complain("record", "--control: cannot open '%s': %s", path ? path : "",
			 strerror(errno));
	free(path);
	return *fd >= 0;
}

bool control_open(struct control *c, const char *text)
{
	*c = (struct control){ .fd = -1, .ack = -1 };
	if (!text)
		return true;
	c->ours = !strncmp(text, "fifo:", 5);
	if (!c->ours && strncmp(text, "fd:", 3) != 0) {
		complain("record", "--control: '%s' begins with neither fd: nor fifo:", text);
		return false;
	}
	bool (*take)(const char *, const char *, int *) = c->ours ? take_fifo : take_descriptor;
	const char *first = strchr(text, ':') + 1, *comma = strchr(first, ',');
	const char *end = text + strlen(text);
	if (take(first, comma ? comma : end, &c->fd) && (!comma || take(comma + 1, end, &c->ack)))
		return true;
	if (!c->ours)
		complain("record", "--control: '%s' names no open descriptor", text);
	control_close(c);
	return false;
}

/* More bytes, if there are any. A writer that is gone for good ends it. */
static void fill(struct control *c)
{
	struct pollfd ready = { .fd = c->fd, .events = POLLIN };

	if (poll(&ready, 1, 0) <= 0 || c->used == sizeof(c->line) - 1)
		return;
	ssize_t n = read(c->fd, c->line + c->used, sizeof(c->line) - 1 - c->used);
	if (n > 0) {
		c->used += (size_t)n;
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (c->ours)
		close(c->fd);
	c->fd = -1;
}

static char *line_end(struct control *c)
{
	return memchr(c->line, '\n', c->used);
}

enum control_command control_next(struct control *c, const char **argument)
{
	if (c->fd >= 0 && !line_end(c))
		fill(c);
	char *end = line_end(c);
	/* A line that fits into no buffer is no command, and neither is its rest. */
	bool too_long = !end && c->used == sizeof(c->line) - 1;
	if (!end && !too_long)
		return CONTROL_NONE;
	size_t length = end ? (size_t)(end - c->line) : c->used, taken = length + (end != NULL);
	memcpy(c->word, c->line, length);
	c->word[length] = '\0';
	c->used -= taken;
	memmove(c->line, c->line + taken, c->used);

	char *rest = c->word;
	const char *word = strsep(&rest, " ");
	*argument = rest ? rest : "";
	for (size_t i = 0; i < sizeof(words) / sizeof(*words) && !too_long; i++)
		if (!strcmp(word, words[i].word))
			return words[i].command;
	*argument = word;
	return CONTROL_UNKNOWN;
}

void control_done(struct control *c)
{
	static const char ack[] = "ack\n";

	/* Nobody who listens is no reason to end a recording. */
	if (c->ack >= 0 && write(c->ack, ack, sizeof(ack) - 1) < 0 && errno != EAGAIN) {
		complain("record", "--control: cannot write 'ack': %s", strerror(errno));
		c->ack = -1;
	}
}

void control_close(struct control *c)
{
	if (c->ours && c->fd >= 0)
		close(c->fd);
	if (c->ours && c->ack >= 0)
		close(c->ack);
	c->fd = c->ack = -1;
}
