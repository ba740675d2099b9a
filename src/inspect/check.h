/* SPDX-License-Identifier: MIT */
/*
 * A check looks at one thing and writes one finding. doctor.c has the table of them; check-*.c have
 * the checks by what they look at, and probe-*.c what has to be tried out in a child process.
 */
#ifndef INSPECT_CHECK_H
#define INSPECT_CHECK_H

#include <tally/doctor.h>
#include <tally/system.h>

/* What checks share. */
struct doctor {
	struct tally_system system;
	const char *root;  /* "" is the real machine */
	char program[288]; /* the running program, quoted for a shell */
	int reached;       /* 0: perf_event_open(2) reaches the kernel; else how it does not */
};

/* A finding in the making, with room for its texts. */
struct finding {
	uint32_t state; /* enum tally_finding_state */
	char value[160], meaning[640], mend[448];
};

/* The state, and the value that was found. */
TALLY_PRINTF(3, 4)
void finding_set(struct finding *f, enum tally_finding_state state, const char *value, ...);
TALLY_PRINTF(2, 3) void finding_means(struct finding *f, const char *meaning, ...);
TALLY_PRINTF(2, 3) void finding_mend(struct finding *f, const char *mend, ...);

/* check-kernel.c: what the kernel's settings and files say. */
void check_reached(const struct doctor *d, struct finding *f);
void check_paranoid(const struct doctor *d, struct finding *f);
void check_capabilities(const struct doctor *d, struct finding *f);
void check_seccomp(const struct doctor *d, struct finding *f);
void check_kernel_symbols(const struct doctor *d, struct finding *f);
void check_kernel_build_id(const struct doctor *d, struct finding *f);
void check_tracefs(const struct doctor *d, struct finding *f);
void check_processes(const struct doctor *d, struct finding *f);
void check_ptrace(const struct doctor *d, struct finding *f);

/* check-limits.c: what there is only so much of. */
void check_mlock(const struct doctor *d, struct finding *f);
void check_descriptors(const struct doctor *d, struct finding *f);
void check_max_rate(const struct doctor *d, struct finding *f);
void check_nmi_watchdog(const struct doctor *d, struct finding *f);

/* check-event.c: events, each opened and made to happen. */
void check_count(const struct doctor *d, struct finding *f);
void check_count_kernel(const struct doctor *d, struct finding *f);
void check_count_cpus(const struct doctor *d, struct finding *f);
void check_sample(const struct doctor *d, struct finding *f);
void check_pmu(const struct doctor *d, struct finding *f);
void check_rdpmc(const struct doctor *d, struct finding *f);
void check_breakpoints(const struct doctor *d, struct finding *f);

/* check-attach.c: what runs already, and control groups. */
void check_attach(const struct doctor *d, struct finding *f);
void check_cgroups(const struct doctor *d, struct finding *f);

/* check-clock.c: counters as clocks, many findings. 0, what `fn` answers, or -errno. */
int check_clock(const struct doctor *d, int (*fn)(const struct tally_finding *finding, void *arg),
		void *arg, struct tally_error *err);

/* check-step.c: a child process, stepped. */
void check_single_step(const struct doctor *d, struct finding *f);
void check_single_block(const struct doctor *d, struct finding *f);

#endif
