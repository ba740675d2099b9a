/* SPDX-License-Identifier: MIT */
/* Running a command by an exact clock: which clock, how long that will take, and where results go. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "exact.h"
#include "term.h"

/* What takes longer is announced. */
#define LONG_SECONDS 2.0

#define STEPS_A_SECOND 30000.0

#define REFUSED 1 /* of `begin`, which no errno is */

static const struct {
	const char *name;
	uint32_t clock;
} clocks[] = {
	{ "auto", TALLY_RUN_AUTO },
	{ "pmu", TALLY_RUN_PMU },
	{ "step", TALLY_RUN_STEP },
};

static bool choose_clock(const struct exact *e, uint32_t *clock)
{
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++)
		if (!e->clock || !strcmp(e->clock, clocks[i].name)) {
			*clock = clocks[i].clock;
			return true;
		}
	complain(e->command, "there is no clock '%s'", e->clock);
	hint("clocks are auto, pmu (hardware counters) and step (instruction by instruction)");
	return false;
}

/* Before the first instruction. */
static int begin(void *arg, const struct tally_clock_about *clock, const char *why)
{
	const struct exact *e = arg;

	if (clock->can & TALLY_CLOCK_COUNTS_FREE)
		return 0;
	if (*why && !e->json)
		complain(e->command, "no hardware counter will do, so it is stepped: %s", why);
	if (e->ticks == UINT64_MAX) {
		if (!e->json)
			complain(e->command,
				 "stepping executes about %.0f instructions a second, and is given "
				 "up after %.0f s",
				 STEPS_A_SECOND, e->max_time);
		return 0;
	}
	double seconds = (double)e->ticks / clock->rate + (double)e->instructions / STEPS_A_SECOND;
	if (seconds > e->max_time) {
		complain(e->command,
			 "by steps it takes about %.0f s to get there (%.0f %s a second)", seconds,
			 clock->rate, tally_ticks_name(clock->ticks));
		hint("--max-time %.0f lets it, if it is worth that", seconds * 3);
		return REFUSED;
	}
	if (seconds > LONG_SECONDS)
		complain(e->command, "this takes about %.0f s: %.0f %s a second", seconds,
			 clock->rate, tally_ticks_name(clock->ticks));
	return 0;
}

static bool open_output(struct exact *e)
{
	if (!e->output || !strcmp(e->output, "-")) {
		e->to = e->output ? stdout : stderr;
		return true;
	}
	int fd = open(e->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	e->to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!e->to)
		complain(e->command, "cannot write '%s': %s", e->output, strerror(errno));
	return e->to != NULL;
}

int exact_run(struct exact *e, struct tally_run_opts *opts, char **argv, struct tally_run **run)
{
	struct tally_error err;

	if (!e->max_time)
		e->max_time = EXACT_MAX_TIME;
	if (!choose_clock(e, &opts->clock))
		return EXIT_USAGE;
	if (!open_output(e))
		return EXIT_FAILED;
	opts->size = sizeof(*opts);
	opts->flags = e->no_pin ? TALLY_RUN_NO_PIN : 0;
	opts->max_ms = (uint64_t)(e->max_time * 1000) + 1;
	opts->begin = begin;
	opts->arg = e;
	int r = tally_tracee_run(run, argv, opts, &err);
	if (r == 0)
		return EXIT_DONE;
	if (r != REFUSED)
		complain(e->command, "%s", err.text);
	if (r == -ETIME)
		hint("--max-time gives it longer");
	if (r < 0 && err.cause == TALLY_CAUSE_EXEC)
		return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	return EXIT_FAILED;
}

int exact_finish(struct exact *e, int status)
{
	bool good = fflush(e->to) == 0 && !ferror(e->to);

	if (e->output && strcmp(e->output, "-") != 0)
		good &= fclose(e->to) == 0;
	if (good)
		return status;
	complain(e->command, "cannot write the results: %s", strerror(errno));
	return EXIT_FAILED;
}
