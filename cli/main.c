/* SPDX-License-Identifier: MIT */
/* tally: a table of commands and a loop. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "term.h"

static const struct command *const commands[] = {
	&cmd_doctor, &cmd_flame, &cmd_list, &cmd_record, &cmd_report, &cmd_stat, &cmd_version,
};

static void print_commands(FILE *to)
{
	fputs("Usage: tally COMMAND [OPTIONS]\n\n"
	      "Counts what a program does, and samples where it does it.\n\nCommands:\n",
	      to);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(to, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
	fputs("\n'tally COMMAND -h' tells more about one.\n", to);
}

/* What was printed may not have been written: a full disk must not end as success. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	complain(NULL, "cannot write to standard output: %s", strerror(errno));
	return status ? status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		print_commands(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help")) {
		print_commands(stdout);
		return finish(EXIT_DONE);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-v"))
		name = "version";
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(name, commands[i]->name))
			return finish(commands[i]->run(argc - 1, argv + 1));
	complain(NULL, "there is no command '%s'", name);
	hint("'tally -h' lists the commands");
	return EXIT_USAGE;
}
