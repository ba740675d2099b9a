/* SPDX-License-Identifier: MIT */
/*
 * stop-at BRANCHES CMD [ARG...]: runs a command until it has executed so many conditional branches, and
 * shows where that is and what its stack begins with. The same command stops at the same place again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/tally.h>

#define WORDS 4

static void show(struct tally_tracee *tracee)
{
	struct tally_tracee_regs regs;
	uint64_t stack[WORDS];

	if (tally_tracee_regs(tracee, &regs) < 0)
		return;
	printf("pc 0x%016" PRIx64 "\n", tally_tracee_regs_pc(&regs));
	if (tally_tracee_peek(tracee, tally_tracee_regs_sp(&regs), stack, sizeof(stack)) < 0)
		return;
	for (int i = 0; i < WORDS; i++)
		printf("stack 0x%016" PRIx64 "\n", stack[i]);
}

int main(int argc, char **argv)
{
	struct tally_timer_request request = {
		.size = sizeof(request),
		.kind = TALLY_TIMER_EXACTLY,
	};
	struct tally_error err;
	struct tally_run *run;

	if (argc < 3) {
		fprintf(stderr, "stop-at BRANCHES CMD [ARG...]\n");
		return 2;
	}
	request.ticks = strtoull(argv[1], NULL, 10);
	if (tally_tracee_run(&run, argv + 2, TALLY_OPTS(run, .request = &request), &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	const struct tally_timer_outcome *outcome = tally_run_outcome(run);
	printf("%s, %" PRIu64 " branches by the %s clock\n", tally_outcome_name(outcome->kind),
	       outcome->clock.ticks, tally_clock_about(tally_run_clock(run))->backend);
	if (outcome->kind == TALLY_OUTCOME_REACHED)
		show(tally_run_tracee(run));
	int status = outcome->kind != TALLY_OUTCOME_REACHED;
	tally_run_free(run);
	return status;
}
