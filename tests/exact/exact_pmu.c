/* SPDX-License-Identifier: MIT */
/* The same points by the counter's clock and by the step clock: the same place and registers. */
#include <errno.h>
#include <stdlib.h>

#include <tally/tally.h>

#include "tap.h"

#define POINTS     30  /* each is stepped to, too, which takes a while where a CPU is emulated */
#define MOST_TICKS 600 /* more than the skid of most CPUs, so that the counter interrupts */
#define SEED       20240607u

static struct tally_run *run_to(uint64_t ticks, uint64_t instructions, uint32_t clock,
				struct tally_error *err)
{
	char *argv[] = { getenv("WANDER"), NULL }, *envp[] = { NULL };
	struct tally_timer_request request = {
		.size = sizeof(request),
		.flags = TALLY_TIMER_ABSOLUTE | TALLY_TIMER_FROM_HERE,
		.kind = TALLY_TIMER_INSTRUCTIONS,
		.ticks = ticks,
		.instructions = instructions,
	};
	struct tally_run *run = NULL;

	int r = tally_tracee_run(&run, argv,
				 TALLY_OPTS(run, .request = &request, .envp = envp, .clock = clock),
				 err);
	return r < 0 ? NULL : run;
}

static void same_point(uint64_t ticks, uint64_t instructions)
{
	static const uint32_t clocks[] = { TALLY_RUN_PMU, TALLY_RUN_STEP };
	struct tally_tracee_regs regs[2];
	struct tally_error err;

	for (int i = 0; i < 2; i++) {
		struct tally_run *run = run_to(ticks, instructions, clocks[i], &err);
		require(run);
		check_str(tally_outcome_name(tally_run_outcome(run)->kind), "reached");
		check_int(tally_tracee_regs(tally_run_tracee(run), &regs[i]), 0);
		tally_run_free(run);
	}
	if (!check_mem(&regs[0], &regs[1], sizeof(regs[0])))
		printf("# at (%llu, %llu)\n", (unsigned long long)ticks,
		       (unsigned long long)instructions);
}

static void both_clocks_lead_to_the_same_points(void)
{
	struct tally_error err;
	uint32_t random = SEED;

	if (!getenv("WANDER") || !*getenv("WANDER"))
		tap_skip("there is no program to wander through");
	struct tally_run *run = run_to(1, 0, TALLY_RUN_PMU, &err);
	if (!run && (err.code == -ENODEV || err.code == -ENOTSUP || err.code == -ENOENT))
		tap_skip("no counter counts conditional branches here");
	if (!check(run))
		printf("# %s\n", err.text);
	tally_run_free(run);
	for (int i = 0; i < POINTS; i++) {
		random = random * 1664525u + 1013904223u;
		same_point((random >> 8) % MOST_TICKS, (random >> 4) % 20);
	}
}

int main(void)
{
	tap_run(both_clocks_lead_to_the_same_points);
	return tap_end();
}
