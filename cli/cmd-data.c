/* SPDX-License-Identifier: MIT */
/* tally data: what is in recordings, and new ones made of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data.h"
#include "term.h"

static const struct command actions[] = {
	{ "info", "what a recording consists of", data_info },
	{ "check", "whether recordings are whole and in order", data_check },
	{ "cut", "a part of a recording, or one without names", data_cut },
	{ "merge", "several recordings in one", data_merge },
	{ "pack", "a recording with the programs that it needs, to take away", data_pack },
};

static void print_actions(FILE *to)
{
	fputs("Usage: tally data ACTION [OPTIONS] FILE...\n\n"
	      "Looks into recordings (perf.data files), and makes new ones of them.\n\nActions:\n",
	      to);
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		fprintf(to, "  %-10s%s\n", actions[i].name, actions[i].summary);
	fputs("\n'tally data ACTION -h' tells more about one.\n", to);
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		print_actions(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "-h") || !strcmp(name, "--help")) {
		print_actions(stdout);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
		if (!strcmp(name, actions[i].name))
			return actions[i].run(argc - 1, argv + 1);
	complain("data", "there is no action '%s'", name);
	hint("'tally data -h' lists them");
	return EXIT_USAGE;
}

const struct command cmd_data = { "data", "look into recordings, cut, merge and pack them", run };
