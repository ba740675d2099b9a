/* SPDX-License-Identifier: MIT */
/* tally: a table of commands and a loop. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "term.h"

static const struct command *const commands[] = {
	&cmd_annotate, &cmd_count, &cmd_data,   &cmd_doctor, &cmd_flame, &cmd_list,  &cmd_record,
	&cmd_report,   &cmd_same,  &cmd_script, &cmd_stack,  &cmd_stat,  &cmd_until, &cmd_version,
};

static void print_commands(FILE *to)
{
	fputs("Usage: tally COMMAND [OPTIONS]\n\n"
	      "Counts what a program does, samples where it does it, and stops it at an exact point.\n\nCommands:\n",
	      to);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(to, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
	fputs("\n'tally COMMAND -h' tells more about one.\n", to);
}

/* What was printed may not have been written: a full disk must not end as success. Who failed has
 * said so already. */
static int finish(int status)
{
	if (status != EXIT_DONE || (fflush(stdout) == 0 && !ferror(stdout)))
		return status;
	complain(NULL, "cannot write to standard output: %s", strerror(errno));
	return EXIT_FAILED;
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	complain(NULL, "there is no command '%s'", name);
	hint("'tally -h' lists the commands");
	return NULL;
}

/* `tally help stat` is `tally stat -h`. */
static int help(char *name)
{
	char option[] = "-h";

	if (!name) {
		print_commands(stdout);
		return EXIT_DONE;
	}
	const struct command *command = find(name);
	char *argv[] = { name, option, NULL };
	return command ? command->run(2, argv) : EXIT_USAGE;
}

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list) != 0)
		list++;
	return *list;
}

int main(int argc, char **argv)
{
	static const char *const helps[] = { "-h", "--help", "help", NULL };
	static const char *const versions[] = { "-v", "-V", "--version", NULL };
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		print_commands(stderr);
		return EXIT_USAGE;
	}
	if (is_one_of(name, helps))
		return finish(help(argv[2]));
	const struct command *command = is_one_of(name, versions) ? &cmd_version : find(name);
	return command ? finish(command->run(argc - 1, argv + 1)) : EXIT_USAGE;
}
