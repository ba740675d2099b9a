/* SPDX-License-Identifier: MIT */
/* tally record --control: commands that come in pieces, several at once, too long, and not at all. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cli/record.h"
#include "../../cli/term.h"
#include "tap.h"

static char said[512];

void complain(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
}

static struct control control;
static int commands[2], acks[2];

static void begin(void)
{
	char text[64];

	require(pipe(commands) == 0 && pipe(acks) == 0);
	snprintf(text, sizeof(text), "fd:%d,%d", commands[0], acks[1]);
	require(control_open(&control, text));
}

static void end(void)
{
	control_close(&control);
	for (int i = 0; i < 2; i++) {
		close(commands[i]);
		close(acks[i]);
	}
}

static void send_text(const char *text)
{
	require(write(commands[1], text, strlen(text)) == (ssize_t)strlen(text));
}

static void check_next(enum control_command want, const char *argument)
{
	const char *got = "";

	check_int(control_next(&control, &got), want);
	if (argument)
		check_str(got, argument);
}

static void each_word_is_a_command(void)
{
	begin();
	check_next(CONTROL_NONE, NULL);
	send_text("enable\ndisable\nsnapshot\nstop\nping\nevlist\nhello there\n\n");
	check_next(CONTROL_ENABLE, "");
	check_next(CONTROL_DISABLE, "");
	check_next(CONTROL_SNAPSHOT, "");
	check_next(CONTROL_STOP, "");
	check_next(CONTROL_PING, "");
	check_next(CONTROL_EVLIST, "");
	check_next(CONTROL_UNKNOWN, "hello");
	check_next(CONTROL_UNKNOWN, "");
	check_next(CONTROL_NONE, NULL);
	end();
}

static void pieces_are_put_together(void)
{
	begin();
	send_text("ena");
	check_next(CONTROL_NONE, NULL);
	send_text("ble page-faults\ndis");
	check_next(CONTROL_ENABLE, "page-faults");
	check_next(CONTROL_NONE, NULL);
	send_text("able\n");
	check_next(CONTROL_DISABLE, "");
	end();
}

static void a_line_too_long_is_no_command(void)
{
	char text[sizeof(control.line) + 100];

	begin();
	memset(text, 'e', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	send_text(text);
	check_next(CONTROL_UNKNOWN, NULL);
	send_text("\n");
	check_next(CONTROL_UNKNOWN, NULL);
	send_text("stop\n");
	check_next(CONTROL_STOP, "");
	end();
}

static void what_is_done_is_answered(void)
{
	char got[16] = "";

	begin();
	control_done(&control);
	check_int(read(acks[0], got, sizeof(got)), 4);
	check_str(got, "ack\n");
	end();
}

static void the_end_of_commands_ends_nothing(void)
{
	begin();
	send_text("ping\n");
	close(commands[1]);
	commands[1] = -1;
	check_next(CONTROL_PING, "");
	check_next(CONTROL_NONE, NULL);
	check_next(CONTROL_NONE, NULL);
	check_int(control.fd, -1);
	end();
}

static void fifos_outlive_their_writers(void)
{
	char folder[] = "/tmp/tally-control-XXXXXX", path[64], text[128];

	require(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/c", folder);
	require(mkfifo(path, 0600) == 0);
	snprintf(text, sizeof(text), "fifo:%s", path);
	require(control_open(&control, text));
	for (int i = 0; i < 2; i++) {
		int fd = open(path, O_WRONLY);
		check_int(write(fd, "ping\n", 5), 5);
		close(fd);
		check_next(CONTROL_PING, "");
		check_next(CONTROL_NONE, NULL);
	}
	control_done(&control); /* nobody wants to know */
	control_close(&control);
	unlink(path);
	rmdir(folder);
}

static void other_texts_are_refused(void)
{
	static const char *const texts[] = { "",      "0",       "fd:",   "fd:x",
					     "fd:-1", "fd:9999", "fd:0,", "fifo:/no/such/fifo",
					     "pipe:0" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		said[0] = '\0';
		check(!control_open(&control, texts[i]));
		check_has(said, "--control");
	}
	check(control_open(&control, NULL));
	check_int(control.fd, -1);
}

int main(void)
{
	tap_run(each_word_is_a_command);
	tap_run(pieces_are_put_together);
	tap_run(a_line_too_long_is_no_command);
	tap_run(what_is_done_is_answered);
	tap_run(the_end_of_commands_ends_nothing);
	tap_run(fifos_outlive_their_writers);
	tap_run(other_texts_are_refused);
	return tap_end();
}
