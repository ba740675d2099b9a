/* SPDX-License-Identifier: MIT */
/* What clocks and timers can rely on: the findings of the self-test, as the doctor's. */
#include <tally/selftest.h>

#include "inspect/check.h"

/* Whom to tell. */
struct listener {
	int (*fn)(const struct tally_finding *finding, void *arg);
	void *arg;
};

/* The states have the same meaning in both, and the same order. */
_Static_assert((int)TALLY_SELFTEST_OK == (int)TALLY_FINDING_OK &&
		       (int)TALLY_SELFTEST_LIMITED == (int)TALLY_FINDING_LIMITED &&
		       (int)TALLY_SELFTEST_FAILS == (int)TALLY_FINDING_FAILS &&
		       (int)TALLY_SELFTEST_UNKNOWN == (int)TALLY_FINDING_UNKNOWN,
	       "states of findings");

static int pass_on(const struct tally_selftest_finding *found, void *arg)
{
	const struct listener *to = arg;
	struct tally_finding finding = {
		.name = found->name,
		.value = found->value,
		.meaning = found->meaning,
		.mend = found->mend,
		.state = found->state,
	};

	return to->fn(&finding, to->arg);
}

int check_clock(const struct doctor *d, int (*fn)(const struct tally_finding *finding, void *arg),
		void *arg, struct tally_error *err)
{
	struct tally_selftest_opts opts = { .size = sizeof(opts), .root = d->root };
	struct listener to = { fn, arg };
	struct tally_selftest out;

	/* Where a filter kills who asks, the trials would end this process. */
	if (d->reached < 0)
		return fn(
			&(const struct tally_finding){
				.name = "clock-event",
				.value = "not tried",
				.meaning = "perf_event_open(2) does not get through to the kernel",
				.state = TALLY_FINDING_UNKNOWN,
			},
			arg);
	return tally_selftest_run(&opts, pass_on, &to, &out, err);
}
