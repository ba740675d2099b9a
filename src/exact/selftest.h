/* SPDX-License-Identifier: MIT */
/*
 * Trials of counters, inside: selftest-measure.c opens events and counts loads; selftest-try.c
 * draws conclusions, a trial each; selftest.c has the order of the trials, and their words.
 */
#ifndef EXACT_SELFTEST_H
#define EXACT_SELFTEST_H

#include <sched.h>
#include <stdio.h>

#include <tally/selftest.h>
#include <tally/system.h>

#include "exact/loads.h"
#include "exact/uarch.h"

/* Iterations of a load: what is the same around a small one and a large one drops out. */
#define TRIAL_SMALL 100
#define TRIAL_LARGE 1100

struct trial {
	const char *root;
	uint32_t rounds;
	int32_t cpu;
	char identity[80];
	struct uarch_pmu pmu;
	const struct uarch *row; /* NULL: the CPU is not known */
	struct tally_attr attr;  /* of the event that is tried */
	uint64_t minus;          /* an event to be taken off it; 0: none */
	uint32_t ticks;          /* what it should count */
};

/* How the counts of a load were. */
struct measured {
	int error;   /* the event could not be opened or read */
	bool steady; /* the same each time */
	uint64_t want,
		got; /* of the difference of a large and a small load; the last one that was wrong */
	uint32_t wrong; /* rounds that were */
};

/* What an iteration of a load counts by the semantics that is tried. */
uint64_t trial_each(const struct trial *t, enum load load);

/* Counts a load, again and again. `beside`: another event that interrupts meanwhile; NULL: none. */
struct measured trial_measure(const struct trial *t, enum load load,
			      const struct tally_attr *beside);

/* Counts one load by one event, whatever it means. 0 or -errno. */
int trial_count(const struct trial *t, const struct tally_attr *attr, enum load load, uint64_t n,
		uint64_t *out);

/* Whether two events at once both count. 0 or -errno; `*second`: what the second one counted of `n`. */
int trial_second(const struct trial *t, uint64_t n, uint64_t *second);

/*
 * Arms for one interrupt after `period`, and has far more ticks happen. Answers how late it came;
 * -ENODATA: it never did; -EINVAL: the period is refused; or another errno. `to`: a CPU to go to
 * on the way, and back from; negative: none.
 */
int64_t trial_interrupt(const struct trial *t, uint64_t period, int32_t to);

/* Binds the calling thread. 0 or -errno. */
int trial_bind(int32_t cpu);

struct selftest {
	struct trial trial;
	struct tally_system system;
	struct tally_selftest *out;
	int (*fn)(const struct tally_selftest_finding *finding, void *arg);
	void *arg;
	/* The finding in the making. */
	uint32_t state;
	char value[160], meaning[512], mend[TALLY_ERROR_TEXT];
};

/* A finding, each a format with what goes into it: what was found, what follows, what to do. */
#define selftest_found(s, found, ...)                                  \
	do {                                                           \
		(s)->state = (found);                                  \
		snprintf((s)->value, sizeof((s)->value), __VA_ARGS__); \
	} while (0)
#define selftest_means(s, ...) snprintf((s)->meaning, sizeof((s)->meaning), __VA_ARGS__)
#define selftest_mend(s, ...)  snprintf((s)->mend, sizeof((s)->mend), __VA_ARGS__)
/* A trial that could not be made. */
void selftest_not_tried(struct selftest *s, int code);
bool selftest_is_vendor(const struct selftest *s, const char *vendor);

#define SELFTEST_REPORT "take the step clock meanwhile, and report this CPU to tally"

/* The trials, a finding each. */
void selftest_try_calls(struct selftest *s);
void selftest_try_locks(struct selftest *s);
void selftest_try_quirks(struct selftest *s);
void selftest_try_interrupted(struct selftest *s);
void selftest_try_second(struct selftest *s);
void selftest_try_period(struct selftest *s);
void selftest_try_interrupts(struct selftest *s);
void selftest_try_migration(struct selftest *s, const cpu_set_t *allowed);
void selftest_try_firmware(struct selftest *s);
void selftest_try_transactions(struct selftest *s);
void selftest_try_cores(struct selftest *s);

#endif
