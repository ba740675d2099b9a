/* SPDX-License-Identifier: MIT */
/*
 * A check looks at one thing and writes one finding. doctor.c has the table of them; check-*.c have
 * the checks by what they look at, and probe-*.c what has to be tried out in a child process.
 */
#ifndef INSPECT_CHECK_H
#define INSPECT_CHECK_H

#include <tally/doctor.h>
#include <tally/system.h>

/* What checks share. Earlier checks tell later ones what there is no use in trying. */
struct doctor {
	struct tally_system system;
	const char *root;  /* "" is the real machine */
	char program[288]; /* the running program, quoted for a shell */
	int reached;       /* 0: perf_event_open(2) reaches the kernel; else how it does not */
	bool counts;       /* software events count */
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
void check_reached(struct doctor *d, struct finding *f);
void check_paranoid(struct doctor *d, struct finding *f);
void check_capabilities(struct doctor *d, struct finding *f);
void check_seccomp(struct doctor *d, struct finding *f);
void check_kernel_symbols(struct doctor *d, struct finding *f);
void check_kernel_build_id(struct doctor *d, struct finding *f);
void check_tracefs(struct doctor *d, struct finding *f);
void check_processes(struct doctor *d, struct finding *f);
void check_ptrace(struct doctor *d, struct finding *f);

/* check-limits.c: what there is only so much of. */
void check_mlock(struct doctor *d, struct finding *f);
void check_descriptors(struct doctor *d, struct finding *f);
void check_max_rate(struct doctor *d, struct finding *f);
void check_nmi_watchdog(struct doctor *d, struct finding *f);

/* check-event.c: events, each opened and made to happen. */
void check_count(struct doctor *d, struct finding *f);
void check_count_kernel(struct doctor *d, struct finding *f);
void check_count_cpus(struct doctor *d, struct finding *f);
void check_sample(struct doctor *d, struct finding *f);
void check_pmu(struct doctor *d, struct finding *f);
void check_rdpmc(struct doctor *d, struct finding *f);
void check_breakpoints(struct doctor *d, struct finding *f);

/* check-step.c: a child process, stepped. */
void check_single_step(struct doctor *d, struct finding *f);
void check_single_block(struct doctor *d, struct finding *f);

#endif
