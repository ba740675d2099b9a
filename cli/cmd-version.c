/* SPDX-License-Identifier: MIT */
/* tally version */
#include <stdio.h>
#include <sys/utsname.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "term.h"

static int run(int argc, char **argv)
{
	static const struct arg table[] = { { 0 } };
	static const struct args args = {
		.command = "version",
		.synopsis = "",
		.description = "Prints the version of tally, and the kernel that it runs on.",
		.table = table,
	};
	struct utsname kernel;
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argv[at]) {
		complain("version", "'%s' is no option", argv[at]);
		hint("it takes none but -h");
		return EXIT_USAGE;
	}
	printf("tally %s\n", tally_version());
	if (uname(&kernel) == 0)
		printf("kernel %s %s\n", kernel.release, kernel.machine);
	return EXIT_DONE;
}

const struct command cmd_version = { "version", "version of tally and of the kernel", run };
