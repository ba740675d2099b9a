/* SPDX-License-Identifier: MIT */
/* One command of the tally program. Each cmd-*.c defines one; main.c lists them. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

struct command {
	const char *name;
	const char *summary;
	int (*run)(int argc,
		   char **argv); /* argv[0] is the command's name; answers the exit status */
};

extern const struct command cmd_annotate, cmd_count, cmd_data, cmd_doctor, cmd_flame, cmd_list,
	cmd_record, cmd_report, cmd_same, cmd_script, cmd_stack, cmd_stat, cmd_until, cmd_version;

/* Exit statuses beside those of a measured command. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

#endif
