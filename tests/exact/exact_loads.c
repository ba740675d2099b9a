/* SPDX-License-Identifier: MIT */
/*
 * The loads of the self-test, stepped: each iteration retires what is said of it. The self-test judges
 * counters by these numbers.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tracee.h>

#include "exact/loads.h"
#include "tap.h"

#define FEW  10
#define MANY 60

/* What the child is doing: read by the parent after each step. */
enum phase {
	WAITS,
	BETWEEN,
	RUNS_FEW,
	RUNS_MANY,
	DONE
};

struct shared {
	volatile uint32_t phase, begin;
};

/* Twice each, since the first call of a function may bind it. */
static void child_runs(struct shared *shared, enum load load)
{
	while (!shared->begin)
		;
	for (int i = 0; i < 2; i++) {
		shared->phase = RUNS_FEW;
		load_run(load, FEW);
		shared->phase = BETWEEN;
		shared->phase = RUNS_MANY;
		load_run(load, MANY);
		shared->phase = BETWEEN;
	}
	shared->phase = DONE;
	_exit(0);
}

static void add(struct tally_retired *sum, const struct tally_retired *more)
{
	sum->instructions += more->instructions;
	sum->branches += more->branches;
	sum->conditional += more->conditional;
	sum->taken += more->taken;
}

/* What was retired in each phase; of the second time. */
static bool step_phases(struct tally_tracee *tracee, const struct shared *shared,
			struct tally_retired sums[DONE + 1])
{
	uint32_t before = WAITS;
	struct tally_stop stop;

	while (shared->phase != DONE) {
		if (tally_tracee_resume(tracee, TALLY_RESUME_STEP, 0) < 0 ||
		    tally_tracee_wait(tracee, -1, &stop) < 0 || stop.kind != TALLY_STOP_STEP)
			return false;
		if (shared->phase != before)
			sums[shared->phase] = (struct tally_retired){ 0 };
		before = shared->phase;
		add(&sums[before], &stop.retired);
	}
	return true;
}

static bool step_load(enum load load, struct tally_retired sums[DONE + 1])
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally_tracee *tracee = NULL;
	struct tally_stop stop;
	bool ok = false;

	if (shared == MAP_FAILED)
		return false;
	pid_t child = fork();
	if (child == 0)
		child_runs(shared, load);
	if (child > 0 && tally_tracee_seize(&tracee, child, NULL, NULL) == 0 &&
	    tally_tracee_wait(tracee, -1, &stop) == 0) {
		shared->begin = 1;
		ok = step_phases(tracee, shared, sums);
		tally_tracee_free(tracee);
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(shared, sizeof(*shared));
	return ok;
}

static void each_iteration_retires_what_is_said(void)
{
	for (enum load load = 0; load < LOADS; load++) {
		const struct tally_retired *each = &load_each[load];
		struct tally_retired sums[DONE + 1] = { { 0 } };
		if (!each->instructions)
			continue;
		require(step_load(load, sums));
		const struct tally_retired *few = &sums[RUNS_FEW], *many = &sums[RUNS_MANY];
		printf("# load %u: %u instructions, %u branches\n", load, few->instructions,
		       few->branches);
		check_int(many->instructions - few->instructions,
			  each->instructions * (MANY - FEW));
		check_int(many->branches - few->branches, each->branches * (MANY - FEW));
		check_int(many->conditional - few->conditional, each->conditional * (MANY - FEW));
		check_int(many->taken - few->taken, each->taken * (MANY - FEW));
	}
}

int main(void)
{
	if (!load_each[LOAD_TAKEN].instructions) {
		printf("1..0 # SKIP no loads for this architecture\n");
		return 0;
	}
	tap_run(each_iteration_retires_what_is_said);
	return tap_end();
}
