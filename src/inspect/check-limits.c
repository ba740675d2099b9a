/* SPDX-License-Identifier: MIT */
/* Checks of what there is only so much of: locked memory, descriptors, rates, counters. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/bytes.h"
#include "inspect/check.h"

/* perf(1)'s defaults: what people expect to have. */
#define USUAL_RING     (512u << 10)
#define USUAL_MLOCK_KB 516
#define USUAL_RATE     4000

#define LARGEST_RING (UINT64_C(1) << 30)

static const char *size_text(char *out, size_t size, uint64_t bytes)
{
	if (bytes >= 1u << 20 && bytes % (1u << 20) == 0)
		snprintf(out, size, "%" PRIu64 " MiB", bytes >> 20);
	else
		snprintf(out, size, "%" PRIu64 " KiB", bytes >> 10);
	return out;
}

/* The largest ring for each CPU: a power of two of pages and one more, 0: none fits. */
static uint64_t ring_that_fits(uint64_t budget, uint64_t page)
{
	uint64_t ring = 0;

	for (uint64_t next = page; next + page <= budget && next <= LARGEST_RING; next *= 2)
		ring = next;
	return ring;
}

/*
 * kernel/events/core.c, perf_mmap(): a user has mlock_kb for each CPU that is online, and what goes
 * beyond counts against RLIMIT_MEMLOCK of the process; CAP_IPC_LOCK and level -1 are not bound.
 */
void check_mlock(const struct doctor *d, struct finding *f)
{
	const struct tally_system *s = &d->system;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char all[32], ring_text[32];

	if (s->mlock_kb < 0 || s->online_cpus <= 0) {
		finding_set(f, TALLY_FINDING_UNKNOWN, "kernel.perf_event_mlock_kb cannot be read");
		finding_means(f, "how large rings may be is seen when one is opened");
		return;
	}
	if ((!s->in_user_namespace && s->capabilities >> CAP_IPC_LOCK & 1) || s->paranoid == -1 ||
	    s->memlock_soft == UINT64_MAX) {
		finding_set(f, TALLY_FINDING_OK, "not bound");
		finding_means(f, "rings may be of any size");
		return;
	}
	uint64_t cpus = (uint64_t)s->online_cpus;
	uint64_t budget = (uint64_t)s->mlock_kb * 1024 + s->memlock_soft / cpus;
	uint64_t ring = ring_that_fits(budget, page);
	finding_set(f,
		    ring >= USUAL_RING ? TALLY_FINDING_OK
		    : ring             ? TALLY_FINDING_LIMITED
				       : TALLY_FINDING_FAILS,
		    "%" PRId64 " KiB a CPU and %s of memlock", s->mlock_kb,
		    size_text(all, sizeof(all), s->memlock_soft));
	finding_means(f, "a recording of this user gets rings of %s on each of %" PRIu64 " CPUs%s",
		      size_text(ring_text, sizeof(ring_text), ring), cpus,
		      ring >= USUAL_RING ? "" : ": bursts will lose samples");
	if (ring < USUAL_RING)
		finding_mend(f, "sysctl -w kernel.perf_event_mlock_kb=%d", USUAL_MLOCK_KB);
}

/* One event of a process needs a descriptor for each thread and each CPU. */
void check_descriptors(const struct doctor *d, struct finding *f)
{
	const struct tally_system *s = &d->system;
	uint64_t cpus = s->online_cpus > 0 ? (uint64_t)s->online_cpus : 1;
	uint64_t threads = s->nofile_hard / cpus;
	bool enough = threads >= 1000;

	finding_set(f, enough ? TALLY_FINDING_OK : TALLY_FINDING_LIMITED,
		    "%" PRIu64 ", up to %" PRIu64, s->nofile_soft, s->nofile_hard);
	finding_means(f,
		      "one event of a running process takes a descriptor a thread and CPU: enough "
		      "for about %" PRIu64 " threads here",
		      threads);
	if (!enough)
		finding_mend(f, "prlimit --nofile=%" PRIu64 " --pid $$", 1024 * cpus);
}

void check_max_rate(const struct doctor *d, struct finding *f)
{
	int64_t rate = d->system.max_sample_rate;

	if (rate == TALLY_SYSTEM_UNKNOWN) {
		finding_set(f, TALLY_FINDING_UNKNOWN,
			    "kernel.perf_event_max_sample_rate is missing");
		finding_means(f, "whether a rate is accepted is seen when it is asked for");
		return;
	}
	finding_set(f, rate >= USUAL_RATE ? TALLY_FINDING_OK : TALLY_FINDING_LIMITED,
		    "%" PRId64 " a second", rate);
	finding_means(f, "no higher sampling rate is accepted; the kernel lowers it by itself when "
			 "sampling takes too much time");
	if (rate < USUAL_RATE)
		finding_mend(f, "sysctl -w kernel.perf_event_max_sample_rate=100000");
}

void check_nmi_watchdog(const struct doctor *d, struct finding *f)
{
	if (d->system.nmi_watchdog != 1) {
		finding_set(f, TALLY_FINDING_OK, "%s",
			    d->system.nmi_watchdog == 0 ? "off" : "not in this kernel");
		finding_means(f, "all hardware counters are free");
		return;
	}
	finding_set(f, TALLY_FINDING_LIMITED, "on");
	finding_means(f,
		      "the watchdog holds one hardware counter of each CPU: large groups of events "
		      "may never run");
	finding_mend(f, "sysctl -w kernel.nmi_watchdog=0");
}
