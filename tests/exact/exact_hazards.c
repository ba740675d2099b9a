/* SPDX-License-Identifier: MIT */
/*
 * A program that is stepped ends as it does alone: what it says, how it ends, its registers. The
 * programs look for what a tracer could show itself by.
 */
#include <stdio.h>

#include "../programs/counted.h"
#include "guests.h"
#include "tap.h"

#define NAMES_MAX 64

static char *hazards;
static char names[NAMES_MAX][32];
static unsigned name_count;

static void list_names(void)
{
	char *const argv[] = { hazards, NULL };
	struct guest_end end;

	guest_alone(argv, &end);
	for (char *line = strtok(end.text, "\n"); line && name_count < NAMES_MAX;
	     line = strtok(NULL, "\n"))
		snprintf(names[name_count++], sizeof(names[0]), "%s", line);
	check(name_count > 10);
}

static void compare(char *name, uint32_t flags, uint32_t how, int keep)
{
	char *const argv[] = { hazards, name, NULL };
	struct guest_end alone, traced;

	guest_alone(argv, &alone);
	guest_traced_keeping(argv, flags, how, keep, &traced);
	if (!check_int(traced.error, 0) || !check_int(traced.status, alone.status) ||
	    !check_str(traced.text, alone.text) || !check_u64(traced.strange, 0))
		printf("# hazard '%s'\n", name);
	if (how == TALLY_RESUME_STEP && !check(traced.exact))
		printf("# hazard '%s'\n", name);
}

static void all_are_as_alone(uint32_t flags, uint32_t how, int keep)
{
	/* Code that threads go through which are not followed: exact_run.c steps it with all of them. */
	for (unsigned i = 0; i < name_count; i++)
		if (how != TALLY_RESUME_STEP || strcmp(names[i], "together") != 0)
			compare(names[i], flags, how, keep);
}

static void stepped_programs_see_nothing(void)
{
	all_are_as_alone(TALLY_TRACEE_PIN, TALLY_RESUME_STEP, 0);
}

static void stepped_programs_see_nothing_on_many_cpus(void)
{
	all_are_as_alone(0, TALLY_RESUME_STEP, 0);
}

static void programs_stopped_at_calls_see_nothing(void)
{
	all_are_as_alone(TALLY_TRACEE_PIN, TALLY_RESUME_SYSCALL, 0);
}

static void programs_that_run_see_nothing(void)
{
	all_are_as_alone(TALLY_TRACEE_PIN, TALLY_RESUME_RUN, 0);
	all_are_as_alone(0, TALLY_RESUME_RUN, 0);
}

/* Whatever it blocks and handles, a clock's signal is kept out of its mask, and it does not see that. */
static void programs_do_not_see_that_a_signal_is_kept(void)
{
	all_are_as_alone(0, TALLY_RESUME_RUN, 16);
	all_are_as_alone(TALLY_TRACEE_PIN, TALLY_RESUME_RUN, SIGUSR1);
	all_are_as_alone(0, TALLY_RESUME_STEP, 16);
}

static void sums_are_those_of_the_program(void)
{
	char *const argv[] = { getenv("COUNTED"), NULL };
	struct guest_end end;

	guest_traced(argv, TALLY_TRACEE_PIN, TALLY_RESUME_STEP, &end);
	check_int(end.error, 0);
	check_int(end.status, 0);
	check(end.exact);
	check_u64(end.retired.instructions, COUNTED_INSTRUCTIONS);
	check_u64(end.retired.conditional, COUNTED_CONDITIONAL);
	check_u64(end.retired.branches, COUNTED_BRANCHES);
	check_u64(end.retired.taken, COUNTED_TAKEN);
}

static void registers_at_the_end_are_the_same(void)
{
	char *const argv[] = { getenv("WALK"), NULL };
	struct guest_end ran, stepped;

	guest_traced(argv, TALLY_TRACEE_NO_RANDOM, TALLY_RESUME_RUN, &ran);
	guest_traced(argv, TALLY_TRACEE_NO_RANDOM, TALLY_RESUME_STEP, &stepped);
	check(ran.last.count > 30 || ran.last.count == 27);
	check_int(stepped.status, ran.status);
	check_mem(&stepped.last, &ran.last, sizeof(ran.last));
}

int main(void)
{
	hazards = getenv("HAZARDS");
	tap_run(list_names);
	tap_run(sums_are_those_of_the_program);
	tap_run(registers_at_the_end_are_the_same);
	tap_run(stepped_programs_see_nothing);
	tap_run(stepped_programs_see_nothing_on_many_cpus);
	tap_run(programs_stopped_at_calls_see_nothing);
	tap_run(programs_that_run_see_nothing);
	tap_run(programs_do_not_see_that_a_signal_is_kept);
	return tap_end();
}
