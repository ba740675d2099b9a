/* SPDX-License-Identifier: MIT */
/* tally count: how many branches or instructions a command executes, exactly, by thread. */
#include <inttypes.h>
#include <stdio.h>
#include <tally/tally.h>

#include "command.h"
#include "exact.h"
#include "term.h"

struct count_run {
	struct exact exact;
	bool branches, instructions;
};

static void print_json(FILE *to, const struct tally_run *run,
		       const struct tally_run_thread *threads, uint32_t count, uint64_t total,
		       bool exact)
{
	const struct tally_clock_about *clock = tally_clock_about(tally_run_clock(run));

	fprintf(to, "{\"clock\": \"%s\", \"what\": \"%s\", \"total\": %" PRIu64 ", \"exact\": %s, ",
		clock->backend, tally_ticks_name(clock->ticks), total, exact ? "true" : "false");
	fprintf(to, "\"status\": %d, \"threads\": [", tally_run_status(run));
	for (uint32_t i = 0; i < count; i++)
		fprintf(to, "%s{\"tid\": %" PRId32 ", \"count\": %" PRIu64 "}", i ? ", " : "",
			threads[i].tid, threads[i].clock.ticks);
	fputs("]}\n", to);
}

static void print_text(FILE *to, const struct tally_run *run,
		       const struct tally_run_thread *threads, uint32_t count, uint64_t total,
		       bool exact)
{
	const struct tally_clock_about *clock = tally_clock_about(tally_run_clock(run));

	for (uint32_t i = 0; count > 1 && i < count; i++)
		fprintf(to, "%16" PRIu64 "  in thread %" PRId32 "\n", threads[i].clock.ticks,
			threads[i].tid);
	fprintf(to, "%16" PRIu64 "  %s%s (%s clock)\n", total, tally_ticks_name(clock->ticks),
		exact ? "" : ", not exact", clock->backend);
}

static int report(struct count_run *c, const struct tally_run *run)
{
	const struct tally_run_thread *threads;
	uint32_t count = tally_run_threads(run, &threads);
	uint64_t total = 0;
	bool exact = true;

	for (uint32_t i = 0; i < count; i++) {
		total += threads[i].clock.ticks;
		exact &= threads[i].clock.validity == TALLY_CLOCK_VALID;
		if (threads[i].clock.validity != TALLY_CLOCK_VALID)
			complain("count", "the clock of thread %" PRId32 " does not hold: %s",
				 threads[i].tid,
				 tally_clock_validity_name(threads[i].clock.validity));
	}
	(c->exact.json ? print_json : print_text)(c->exact.to, run, threads, count, total, exact);
	return exact ? tally_run_status(run) : EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	struct count_run c = { .exact = { .command = "count", .ticks = UINT64_MAX } };
	const struct arg table[] = {
		{ 0, "branches", NULL, "count conditional branches (this is the default)", ARG_FLAG,
		  &c.branches },
		{ 0, "instructions", NULL, "count instructions", ARG_FLAG, &c.instructions },
		EXACT_ARGS(&c.exact),
		{ 0 },
	};
	const struct args args = {
		.command = "count",
		.synopsis = "[OPTIONS] -- CMD [ARG...]",
		.description =
			"Counts what a command executes in its own code, to the last one, and "
			"each of its\nthreads by itself. The exit status is the command's.",
		.examples = "  tally count -- ./program\n"
			    "  tally count --instructions --json -o count.json -- ./program\n",
		.table = table,
	};
	struct tally_run_opts opts = { 0 };
	struct tally_run *tally_run = NULL;

	int at = args_parse(&args, argc, argv);
	if (at < 0)
		return args_status(at);
	if (at == argc) {
		complain("count", "there is no command to count");
		hint("tally count -- ls");
		return EXIT_USAGE;
	}
	if (c.branches && c.instructions) {
		complain("count", "--branches and --instructions are counted one at a time");
		hint("choose one of them");
		return EXIT_USAGE;
	}
	opts.ticks = c.instructions ? TALLY_TICKS_INSTRUCTIONS : TALLY_TICKS_CONDITIONAL;
	int status = exact_run(&c.exact, &opts, argv + at, &tally_run);
	if (status == EXIT_DONE)
		status = report(&c, tally_run);
	tally_run_free(tally_run);
	return c.exact.to ? exact_finish(&c.exact, status) : status;
}

const struct command cmd_count = { "count", "how many branches or instructions, exactly", run };
