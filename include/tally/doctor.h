/* SPDX-License-Identifier: MIT */
/*
 * tally_doctor: what works here for this user, found by trying, and how to mend the rest.
 */
#ifndef TALLY_DOCTOR_H
#define TALLY_DOCTOR_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

enum tally_finding_state {
	TALLY_FINDING_OK,
	TALLY_FINDING_LIMITED, /* works in part */
	TALLY_FINDING_FAILS,
	TALLY_FINDING_UNKNOWN, /* could not be tried */
};

struct tally_finding {
	const char *name;    /* short and stable: "paranoid", "pmu", "breakpoints" */
	const char *value;   /* what was found: "2", "opens, never fires" */
	const char *meaning; /* one sentence: what follows for the user */
	const char *mend; /* the exact command that mends it, or what has to change; NULL: nothing
			     to mend */
	uint32_t state;   /* enum tally_finding_state */
	uint32_t reserved;
};

struct tally_doctor_opts {
	uint32_t size, flags;
	const char *root; /* folder above /proc and /sys; NULL: the real one. Borrowed. */
};

/*
 * Makes all checks and calls `fn` for each finding; its texts are borrowed for the call. A non-zero
 * answer ends it and is returned. Tries in child processes where a try could harm. Changes nothing.
 * Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_doctor_run(const struct tally_doctor_opts *opts,
			       int (*fn)(const struct tally_finding *finding, void *arg), void *arg,
			       struct tally_error *err);

TALLY_END_DECLS

#endif
