/* SPDX-License-Identifier: MIT */
/* Checks of stepping through ptrace(2), by what a stepped child really did. */
#include <string.h>

#include "inspect/check.h"
#include "inspect/probe.h"

/* Some stops before and behind the line may count; a stop each few instructions is neither. */
#define FEW (PROBE_LINE / 8)

static bool could_not_step(struct finding *f, int stops, const char *what)
{
	if (stops >= 0)
		return false;
	finding_set(f, TALLY_FINDING_FAILS, "%s", strerror(-stops));
	finding_means(f, "a child process could not be stepped by %s", what);
	return true;
}

void check_single_step(const struct doctor *d, struct finding *f)
{
	int stops = probe_steps(PROBE_SINGLE_STEP);

	if (could_not_step(f, stops, "instruction"))
		return;
	if (stops >= PROBE_LINE) {
		finding_set(f, TALLY_FINDING_OK, "a stop an instruction");
		finding_means(f, "programs can be stepped by instruction");
		return;
	}
	finding_set(f, TALLY_FINDING_FAILS, "%d stops in %d instructions", stops, PROBE_LINE);
	finding_means(f, "steps are lost: nothing that counts them can be exact");
}

void check_single_block(const struct doctor *d, struct finding *f)
{
	int stops = probe_steps(PROBE_SINGLE_BLOCK);

	if (could_not_step(f, stops, "block"))
		return;
	if (stops <= FEW) {
		finding_set(f, TALLY_FINDING_OK, "a stop a branch");
		finding_means(f, "programs can be stepped from branch to branch");
		return;
	}
	finding_set(f, TALLY_FINDING_FAILS, "accepted, but stops at each instruction");
	finding_means(f,
		      "the hypervisor ignores branch stepping (BTF of the debug control register), "
		      "so that it is slower than single steps");
	if (d->system.in_vm)
		finding_mend(f, "run it on a machine or hypervisor that has DEBUGCTL.BTF");
}
