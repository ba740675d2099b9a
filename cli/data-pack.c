/* SPDX-License-Identifier: MIT */
/* tally data pack. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "data.h"
#include "term.h"

#define DEFAULT_FILE "perf.data"

int data_pack(int argc, char **argv)
{
	const char *output = NULL;
	char *made = NULL;
	struct tally_packed packed;
	struct tally_error err;
	const struct arg table[] = {
		{ 'o', "output", "FILE", "the archive (default: FILE.tar)", ARG_TEXT, &output },
		{ 0 },
	};
	const struct args args = {
		.command = "data pack",
		.synopsis = "[OPTIONS] [FILE]",
		.description =
			"Puts a recording, the programs and libraries in which its samples lie and "
			"the kernel's\nsymbols into one archive, which report and flame read on "
			"any machine.",
		.examples = "  tally data pack perf.data && scp perf.data.tar desk:\n"
			    "  tally report -i perf.data.tar\n",
		.table = table,
	};
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argc - at > 1) {
		complain("data pack", "one file at a time");
		return EXIT_USAGE;
	}
	const char *path = at < argc ? argv[at] : DEFAULT_FILE;
	if (!output && asprintf(&made, "%s.tar", path) < 0) {
		complain("data pack", "no memory");
		return EXIT_FAILED;
	}
	int r = tally_pack(output ? output : made, path, &packed, &err);
	if (r < 0) {
		complain("data pack", "%s", err.text);
	} else {
		complain("data pack",
			 "%" PRIu32 " files and the recording in %s, %" PRIu64 " bytes",
			 packed.files, output ? output : made, packed.bytes);
		if (packed.missing)
			complain("data pack",
				 "%" PRIu32
				 " files are not here any more as they were recorded; the "
				 "first is %s",
				 packed.missing, packed.first);
	}
	free(made);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
