/* SPDX-License-Identifier: MIT */
/* What disturbs a count that is exact by itself, and what its interrupts are like. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <tally/clock.h>

#include "exact/calibration.h"
#include "exact/selftest.h"

#define PERIOD    100000 /* of interrupts that are tried */
#define MOST_MIN  1024   /* no PMU has a longer shortest period */
#define SPEC_LOCK 0x0825 /* Zen's PMCx025, unit mask 8: speculation past a lock */

void selftest_try_calls(struct selftest *s)
{
	struct measured m = trial_measure(&s->trial, LOAD_SYSCALLS, NULL);

	if (m.error < 0) {
		selftest_not_tried(s, m.error);
		return;
	}
	if (!m.wrong) {
		selftest_found(s, TALLY_SELFTEST_OK, "not counted");
		selftest_means(s, "what the kernel does for a program is kept apart");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_FAILS, "%" PRIu64 " instead of %" PRIu64 " in %d calls",
		       m.got, m.want, TRIAL_LARGE - TRIAL_SMALL);
	selftest_means(
		s,
		"branches of the kernel are counted as the program's, so that counts depend on it");
	selftest_mend(s, s->system.in_vm
				 ? "run it on the host, or on another hypervisor; " SELFTEST_REPORT
				 : SELFTEST_REPORT);
}

static void say_speculation(struct selftest *s)
{
	selftest_means(
		s,
		"this CPU speculates past locked instructions and does not take back what it counted "
		"then (SpecLockMap): counts vary with them");
	selftest_mend(
		s,
		"as root: modprobe msr; wrmsr -a 0xc0011020 $(($(rdmsr -u 0xc0011020) | 1<<54)); a virtual "
		"machine needs that of its host");
}

void selftest_try_locks(struct selftest *s)
{
	struct measured m = trial_measure(&s->trial, LOAD_ATOMIC, NULL);
	struct tally_attr probe = s->trial.attr;
	uint64_t speculated = 0;

	if (m.error < 0) {
		selftest_not_tried(s, m.error);
		return;
	}
	probe.config = SPEC_LOCK;
	if (selftest_is_vendor(s, "AuthenticAMD") &&
	    trial_count(&s->trial, &probe, LOAD_ATOMIC, TRIAL_LARGE, &speculated) < 0)
		speculated = 0;
	if (!m.wrong && !speculated) {
		selftest_found(s, TALLY_SELFTEST_OK, "counts stay exact");
		selftest_means(s, "locked instructions do not disturb the count");
		return;
	}
	selftest_found(s, m.wrong ? TALLY_SELFTEST_FAILS : TALLY_SELFTEST_LIMITED,
		       "%u of %u counts wrong, %" PRIu64 " speculations past %d locks", m.wrong,
		       s->trial.rounds, speculated, TRIAL_LARGE);
	if (selftest_is_vendor(s, "AuthenticAMD")) {
		say_speculation(s);
		return;
	}
	selftest_means(s, "locked instructions, or exclusive ones that fail, disturb the count");
	selftest_mend(s, SELFTEST_REPORT);
}

/* LOOP is a conditional branch by its definition, and repetitions of REP are not. */
void selftest_try_quirks(struct selftest *s)
{
	const struct trial *t = &s->trial;
	struct measured loop, rep;

	if (!load_each[LOAD_LOOP].instructions || t->ticks != TALLY_TICKS_CONDITIONAL) {
		selftest_found(s, TALLY_SELFTEST_OK, "none");
		selftest_means(s, "there are no such instructions to count differently");
		return;
	}
	loop = trial_measure(t, LOAD_LOOP, NULL);
	rep = trial_measure(t, LOAD_REP, NULL);
	if (loop.error < 0 || rep.error < 0) {
		selftest_not_tried(s, loop.error < 0 ? loop.error : rep.error);
		return;
	}
	s->out->quirks |= loop.wrong ? TALLY_CLOCK_NO_LOOP : 0;
	s->out->quirks |= rep.wrong ? TALLY_CLOCK_COUNTS_REP : 0;
	bool steady = loop.steady && rep.steady;
	selftest_found(s,
		       !steady          ? TALLY_SELFTEST_FAILS
		       : s->out->quirks ? TALLY_SELFTEST_LIMITED
					: TALLY_SELFTEST_OK,
		       "LOOP %s, REP %s", loop.wrong ? "does not count" : "counts",
		       rep.wrong ? "counts" : "does not count");
	if (!steady)
		selftest_means(
			s,
			"they are counted differently each time: programs with them are not reached");
	else if (s->out->quirks)
		selftest_means(
			s,
			"points of programs with LOOP or REP are other ones than by the step clock");
	else
		selftest_means(s, "points are the same as by the step clock");
	if (s->out->quirks)
		selftest_mend(s, "record and replay by one kind of clock");
}

/* Interrupts of another event, which Xen and some others add to the count. */
void selftest_try_interrupted(struct selftest *s)
{
	struct measured m = trial_measure(&s->trial, LOAD_MIXED, &s->trial.attr);

	if (m.error < 0) {
		selftest_not_tried(s, m.error);
		return;
	}
	if (!m.wrong) {
		selftest_found(s, TALLY_SELFTEST_OK, "counts stay exact");
		selftest_means(s, "interrupts of a counter do not disturb the count of another");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_FAILS,
		       "%" PRIu64 " instead of %" PRIu64 ", in %u of %u counts", m.got, m.want,
		       m.wrong, s->trial.rounds);
	selftest_means(s,
		       "each interrupt adds branches of the kernel or the hypervisor to the count");
	selftest_mend(s, s->system.in_vm ? "this is known of Xen: run it on the host, or under KVM"
					 : SELFTEST_REPORT);
}

void selftest_try_second(struct selftest *s)
{
	uint64_t second = 0;
	int r = trial_second(&s->trial, TRIAL_LARGE, &second);

	if (r < 0 && r != -ENODATA) {
		selftest_not_tried(s, r);
		return;
	}
	if (r == 0 && second >= TRIAL_LARGE) {
		selftest_found(s, TALLY_SELFTEST_OK, "two at least");
		selftest_means(s, "one counter can count while another one interrupts");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_FAILS, "only one works at a time");
	selftest_means(
		s,
		"a clock that interrupts needs two: one would lose counts around its interrupts");
	selftest_mend(s, s->system.nmi_watchdog == 1
				 ? "sysctl kernel.nmi_watchdog=0, which takes one"
				 : "stop other users of counters; a virtual machine may be given "
				   "more of them");
}

/* The shortest period that interrupts, of powers of two; 0: none does. */
static uint64_t shortest_period(const struct selftest *s, int64_t *last)
{
	for (uint64_t period = 1; period <= MOST_MIN; period *= 2) {
		*last = trial_interrupt(&s->trial, period, -1);
		if (*last >= 0)
			return period;
	}
	return 0;
}

void selftest_try_period(struct selftest *s)
{
	int64_t last = 0;
	uint64_t period = shortest_period(s, &last);

	s->out->min_period = period;
	if (period) {
		selftest_found(s, TALLY_SELFTEST_OK, "%" PRIu64 " at the least", period);
		selftest_means(s,
			       "a changed period holds at once; what is left below it is stepped");
		return;
	}
	if (last != -ENODATA && last != -EINVAL) {
		selftest_not_tried(s, (int)last);
		return;
	}
	selftest_found(s, TALLY_SELFTEST_FAILS, "none interrupts");
	selftest_means(
		s,
		"a period that is changed takes no effect, as before Linux 3.14 (3.7 on Arm), or counters do "
		"not interrupt here");
	selftest_mend(
		s, s->system.in_vm
			   ? "the host has to pass on the counters' interrupts (KVM: a kernel-mode "
			     "local APIC)"
			   : "take a newer kernel");
}

/* Interrupts, one after the other; the errno of the first that could not be tried. */
static int interrupt_often(struct selftest *s, int32_t to, uint64_t *lost)
{
	for (uint32_t i = 0; i < s->trial.rounds; i++) {
		int64_t skid = trial_interrupt(&s->trial, PERIOD + i, to);
		if (skid < 0 && skid != -ENODATA)
			return (int)skid;
		s->out->interrupts++;
		*lost += skid < 0;
		if (skid >= 0)
			skids_add(&s->out->skids, (uint64_t)skid);
	}
	s->out->lost += *lost;
	return 0;
}

static void say_lost(struct selftest *s, uint64_t lost)
{
	selftest_found(s, TALLY_SELFTEST_LIMITED, "%" PRIu64 " of %u never came", lost,
		       s->trial.rounds);
	selftest_means(s, "a timer notices by its watchdog, and then it is late");
}

void selftest_try_interrupts(struct selftest *s)
{
	uint64_t lost = 0;
	int r = interrupt_often(s, -1, &lost);
	uint64_t margin = s->trial.row && s->trial.row->margin ? s->trial.row->margin : 0;

	if (r < 0) {
		selftest_not_tried(s, r);
		return;
	}
	if (lost) {
		say_lost(s, lost);
		selftest_mend(
			s,
			"sysctl kernel.perf_event_max_sample_rate and perf_cpu_time_max_percent throttle "
			"them: raise both; give timers a checkpoint");
		return;
	}
	const struct tally_skids *skids = &s->out->skids;
	bool more = margin && skids->max > margin;
	selftest_found(s, more ? TALLY_SELFTEST_LIMITED : TALLY_SELFTEST_OK,
		       "all came; up to %" PRIu64 " ticks late, half of them up to %" PRIu64,
		       skids->max, skids_bound(skids, skids->count / 2));
	if (!more) {
		selftest_means(s, "timers step about so many ticks before their target");
		return;
	}
	selftest_means(s,
		       "that is more than the %" PRIu64
		       " ticks that are known of this CPU: timers may be late",
		       margin);
	selftest_mend(s,
		      "give timers this calibration, or a margin of their own (tally_timer_opts)");
}

/* Another CPU that the thread may run on, and that the same PMU counts on; negative: none. */
static int32_t another_cpu(const struct trial *t, const cpu_set_t *allowed)
{
	struct uarch_pmu pmu;

	for (int32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpu != t->cpu && CPU_ISSET((size_t)cpu, allowed) &&
		    uarch_pmu(&pmu, t->root, cpu) == 0 && pmu.type == t->pmu.type)
			return cpu;
	return -1;
}

void selftest_try_migration(struct selftest *s, const cpu_set_t *allowed)
{
	int32_t to = another_cpu(&s->trial, allowed);
	uint64_t lost = 0;

	if (to < 0) {
		selftest_found(s, TALLY_SELFTEST_OK, "one CPU");
		selftest_means(s, "there is no other CPU to go to");
		return;
	}
	int r = interrupt_often(s, to, &lost);
	if (r < 0) {
		selftest_not_tried(s, r);
		return;
	}
	if (!lost) {
		selftest_found(s, TALLY_SELFTEST_OK, "all came");
		selftest_means(s, "threads may move between CPUs while a timer is armed");
		return;
	}
	say_lost(s, lost);
	selftest_mend(
		s, "bind what is timed to one CPU (taskset -c %d), as tally does unless --no-pin",
		s->trial.cpu);
}
