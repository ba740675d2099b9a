/* SPDX-License-Identifier: MIT */
/* Which event of which CPU ticks. */
#ifndef EXACT_UARCH_H
#define EXACT_UARCH_H

#include <errno.h>
#include <tally/clock.h>

#include "event/pmu.h"

struct uarch {
	const char *pattern; /* of its CPUs, for cpu_matches() */
	const char *name;
	const char *pmu; /* of machines with several kinds of cores; NULL: any */
	uint32_t ticks;  /* enum tally_ticks; 0: none of its events will do */
	uint64_t config; /* of the PMU's type */
	uint64_t minus;  /* an event to be taken off; 0: none */
	uint64_t margin; /* ticks that an interrupt has been seen late */
};

/* NULL: it is not known. */
const struct uarch *uarch_of(const char *identity, const char *pmu);

/* Encodings of conditional branches to try on an x86 CPU that is not known, or by a wrong name. */
const uint64_t *uarch_candidates(size_t *count);

/* The PMU that counts on a CPU. -ENODEV: none; or -errno of sysfs. */
struct uarch_pmu {
	char name[PMU_MAX_NAME + 1];
	uint32_t type;
};
int uarch_pmu(struct uarch_pmu *out, const char *root, int32_t cpu);

#endif
