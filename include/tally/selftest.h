/* SPDX-License-Identifier: MIT */
/*
 * tally_selftest: whether this machine's counters are honest enough for clocks and timers, by
 * trying.
 *
 * What a table says of a CPU's events, and what a virtual machine says of itself, is a first
 * guess. So code whose branches are known is counted: branches that are always taken, never, now
 * and then, and jumps, locked instructions and system calls between. Where the event of the table
 * does not count exactly, or the CPU has no row, other encodings are tried, and the one that does
 * is adopted. Interrupts are tried for the shortest period, for being lost, and for how late they
 * come.
 *
 * The calling thread is bound to one CPU meanwhile, and its events count itself; a few tenths of a
 * second. tally doctor shows the findings.
 */
#ifndef TALLY_SELFTEST_H
#define TALLY_SELFTEST_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/calibration.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

enum tally_selftest_state {
	TALLY_SELFTEST_OK,
	TALLY_SELFTEST_LIMITED, /* works in part, or with care */
	TALLY_SELFTEST_FAILS,
	TALLY_SELFTEST_UNKNOWN, /* could not be tried */
};

/* One thing that was tried. Texts are borrowed for the call. */
struct tally_selftest_finding {
	const char *name;    /* short and stable: "clock-event", "clock-exact", ... */
	const char *value;   /* what was found: "0x11c4 counts exactly" */
	const char *meaning; /* one sentence: what follows */
	const char *mend;    /* what to do about it; NULL: nothing */
	uint32_t state;      /* enum tally_selftest_state */
	uint32_t reserved;
};

/* What clocks and timers can rely on; for tally_clock_pmu_opts.tried. */
struct tally_selftest {
	uint32_t ticks;  /* enum tally_ticks of the event that counts exactly; 0: there is none */
	uint32_t quirks; /* enum tally_clock_quirks */
	struct tally_attr attr;    /* the event */
	uint64_t minus;            /* config of an event that is to be taken off it; 0: none */
	uint64_t min_period;       /* the shortest that interrupts; 0: none does */
	uint64_t interrupts, lost; /* that were asked for, that never came */
	struct tally_skids skids;  /* how late the others were */
};

struct tally_selftest_opts {
	uint32_t size, flags; /* no flags yet */
	const char *root;     /* folder above /proc and /sys; NULL: the real one. Borrowed. */
	int32_t cpu;          /* the one to judge, plus 1; 0: that of the caller */
	uint32_t rounds;      /* how often each thing is tried; 0: 20 */
};

/*
 * Makes all trials, calls `fn` for each finding, and fills in `*out`. `fn` may be NULL. A
 * non-zero answer of it ends the trials and is returned. Without a PMU there is one finding,
 * which says so. Errors: -EINVAL, -E2BIG (options), -ENOMEM; those of sched_setaffinity(2) for
 * `cpu`. Since: 0.1
 */
TALLY_API int tally_selftest_run(const struct tally_selftest_opts *opts,
				 int (*fn)(const struct tally_selftest_finding *finding, void *arg),
				 void *arg, struct tally_selftest *out, struct tally_error *err);

TALLY_END_DECLS

#endif
