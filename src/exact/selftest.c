/* SPDX-License-Identifier: MIT */
/*
 * Whether counters are honest: which event counts exactly, and then the trials in their order.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <tally/clock.h>
#include <tally/system.h>

#include "base/bytes.h"
#include "base/error.h"
#include "event/cpu.h"
#include "event/explain.h"
#include "exact/selftest.h"

#define ROUNDS      20
#define MOST_ROUNDS 10000

#define NO_PMU_MEND                                                                         \
	"give the virtual machine a PMU (libvirt: <features><pmu state='on'/></features>; " \
	"QEMU: -cpu host,pmu=on; clouds: a bare-metal size)"

/* A trial that could not be made. */
void selftest_not_tried(struct selftest *s, int code)
{
	selftest_found(s, TALLY_SELFTEST_UNKNOWN, "%s", strerror(-code));
	selftest_means(
		s, code == -ENODATA
			   ? "the counter was not on the hardware all the time: others use it, or "
			     "it is taken away"
			   : "it could not be tried");
	if (code == -ENODATA)
		selftest_mend(s, "stop other users of counters; sysctl kernel.nmi_watchdog=0");
}

bool selftest_is_vendor(const struct selftest *s, const char *vendor)
{
	return !strncmp(s->trial.identity, vendor, strlen(vendor));
}

/* ---- the event */

static const enum load exact_loads[] = { LOAD_TAKEN, LOAD_NEVER, LOAD_MIXED, LOAD_JUMPS };

/* Whether the event of the trial counts exactly; else how the first load was counted that was not. */
static bool is_exact(const struct trial *t, struct measured *wrong)
{
	for (size_t i = 0; i < ARRAY_SIZE(exact_loads); i++) {
		*wrong = trial_measure(t, exact_loads[i], NULL);
		if (wrong->error < 0 || wrong->wrong)
			return false;
	}
	return true;
}

static bool try_encoding(struct trial *t, uint64_t config, uint64_t minus, uint32_t ticks)
{
	struct measured wrong;

	t->attr.config = config;
	t->minus = minus;
	t->ticks = ticks;
	return is_exact(t, &wrong);
}

/* Other encodings of conditional branches, on x86; whether one is exact. */
static bool adopt(struct trial *t)
{
	size_t count;
	const uint64_t *configs = uarch_candidates(&count);

	if (!strncmp(t->identity, "0x", 2)) /* a MIDR: arm64 has no such events */
		return false;
	for (size_t i = 0; i < count; i++)
		if (try_encoding(t, configs[i], 0, TALLY_TICKS_CONDITIONAL))
			return true;
	return false;
}

static void say_exact(struct selftest *s)
{
	const struct trial *t = &s->trial;

	s->out->ticks = t->ticks;
	s->out->attr = t->attr;
	s->out->minus = t->minus;
	selftest_found(s, TALLY_SELFTEST_OK, "%s: %#" PRIx64 "%s counts %s exactly", t->pmu.name,
		       t->attr.config, t->minus ? " less another event" : "",
		       tally_ticks_name(t->ticks));
	selftest_means(s, "programs can be stopped at exact points at full speed");
}

static void say_adopted(struct selftest *s, uint64_t expected)
{
	const struct trial *t = &s->trial;

	s->out->ticks = t->ticks;
	s->out->attr = t->attr;
	selftest_found(s, TALLY_SELFTEST_LIMITED, "%s: %#" PRIx64 " counts %s exactly, %s",
		       t->pmu.name, t->attr.config, tally_ticks_name(t->ticks),
		       t->row ? "and not the event that this CPU should have"
			      : "on a CPU that is not known");
	if (t->row)
		selftest_means(s,
			       "by its name this CPU (%s, %s) has %#" PRIx64
			       ", which does not: it is another "
			       "one, or a virtual machine shows it as one",
			       t->identity, t->row->name, expected);
	else
		selftest_means(s, "the CPU %s is not in the table; the event was found by trying",
			       t->identity);
	selftest_mend(s,
		      "give the event to the clock (tally_clock_pmu_opts.attr, config %#" PRIx64
		      "), and report this CPU to tally",
		      t->attr.config);
}

static void say_not_exact(struct selftest *s, const struct measured *wrong)
{
	if (wrong->error < 0) {
		struct tally_error err;
		explain_open(&err, wrong->error, "branches", &s->trial.attr, 0, -1, s->trial.root);
		selftest_found(s, TALLY_SELFTEST_FAILS, "%s", strerror(-wrong->error));
		selftest_means(s, "the event cannot be counted");
		selftest_mend(s, "%s", err.text);
		return;
	}
	selftest_found(s, TALLY_SELFTEST_FAILS, "%" PRIu64 " of %" PRIu64 " branches, %s",
		       wrong->got, wrong->want, wrong->steady ? "each time" : "now and then");
	if (!wrong->got)
		selftest_means(
			s,
			"the counter counts nothing: it is listed, and the hypervisor does not run it, or "
			"another user holds it");
	else
		selftest_means(
			s,
			wrong->steady
				? "no event that is known counts branches exactly here"
				: "the counter counts what is not the program's, or loses counts: "
				  "no point can be reached by it");
	selftest_mend(s, s->system.in_vm
				 ? "run it on the host, or on another hypervisor; " SELFTEST_REPORT
				 : SELFTEST_REPORT);
}

/* Finds the event that the later trials use. False: there is none, and they are not made. */
static bool try_event(struct selftest *s)
{
	struct trial *t = &s->trial;
	uint64_t expected = t->row ? t->row->config : 0;
	struct measured wrong = { .error = -ENOENT };

	if (!load_each[LOAD_TAKEN].instructions) {
		selftest_found(s, TALLY_SELFTEST_UNKNOWN, "not on this architecture");
		selftest_means(s, "there is no code here whose branches are known");
		return false;
	}
	if (t->row && t->row->ticks) {
		t->attr.config = expected;
		t->minus = t->row->minus;
		t->ticks = t->row->ticks;
		if (is_exact(t, &wrong)) {
			say_exact(s);
			return true;
		}
	}
	/* What the event that it should have does is what is told when no other is exact. */
	bool adopted = wrong.error != -EACCES && wrong.error != -EPERM && adopt(t);
	if (adopted)
		say_adopted(s, expected);
	else
		say_not_exact(s, &wrong);
	return adopted;
}

/* ---- their order */

static int tell(struct selftest *s, const char *name)
{
	struct tally_selftest_finding finding = {
		.name = name,
		.value = s->value,
		.meaning = s->meaning,
		.mend = s->mend[0] ? s->mend : NULL,
		.state = s->state,
	};

	int r = s->fn ? s->fn(&finding, s->arg) : 0;
	s->value[0] = s->meaning[0] = s->mend[0] = '\0';
	return r;
}

static int try_all(struct selftest *s, const cpu_set_t *allowed)
{
	static const struct {
		const char *name;
		void (*try)(struct selftest *s);
	} trials[] = {
		{ "clock-calls", selftest_try_calls },
		{ "clock-locks", selftest_try_locks },
		{ "clock-quirks", selftest_try_quirks },
		{ "clock-counters", selftest_try_second },
		{ "clock-interrupted", selftest_try_interrupted },
		{ "clock-period", selftest_try_period },
		{ "clock-interrupts", selftest_try_interrupts },
		{ "clock-firmware", selftest_try_firmware },
		{ "clock-transactions", selftest_try_transactions },
		{ "clock-cores", selftest_try_cores },
	};
	bool counts = try_event(s);
	int r = tell(s, "clock-event");

	for (size_t i = 0; r == 0 && counts && i < ARRAY_SIZE(trials); i++) {
		trials[i].try(s);
		r = tell(s, trials[i].name);
	}
	if (r == 0 && counts) {
		selftest_try_migration(s, allowed);
		r = tell(s, "clock-migration");
	}
	return r;
}

static int tell_no_pmu(struct selftest *s)
{
	selftest_found(s, TALLY_SELFTEST_LIMITED, "no hardware counters");
	selftest_means(
		s,
		"the step clock takes their place, which is exact, too, and thousands of times slower than "
		"the program");
	selftest_mend(s, "%s", s->system.in_vm ? NO_PMU_MEND : "load the driver of the CPU's PMU");
	return tell(s, "clock-event");
}

/* On the CPU that is judged, with the thread where it was afterwards. */
static int run_bound(struct selftest *s, struct tally_error *err)
{
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	int r = sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ? -errno
								    : trial_bind(s->trial.cpu);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_ARGUMENT, "CPU %d cannot be judged: %s",
				 s->trial.cpu, strerror(-r));
	r = try_all(s, &allowed);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	return r;
}

int tally_selftest_run(const struct tally_selftest_opts *opts,
		       int (*fn)(const struct tally_selftest_finding *finding, void *arg),
		       void *arg, struct tally_selftest *out, struct tally_error *err)
{
	struct tally_selftest_opts known;
	struct selftest s = { .out = out, .fn = fn, .arg = arg };
	struct trial *t = &s.trial;

	int r = opts_read(&known, sizeof(known), 0, opts, err);
	if (r == 0)
		r = tally_system_read(&s.system, sizeof(s.system), known.root, err);
	if (r < 0)
		return r;
	if (known.cpu < 0 || known.cpu > CPU_SETSIZE || known.rounds > MOST_ROUNDS)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a self-test is of a CPU below %d, in %d rounds at most",
				 CPU_SETSIZE, MOST_ROUNDS);
	*out = (struct tally_selftest){ 0 };
	t->root = known.root;
	t->rounds = known.rounds ? known.rounds : ROUNDS;
	t->cpu = known.cpu ? known.cpu - 1 : sched_getcpu();
	snprintf(t->identity, sizeof(t->identity), "unknown");
	cpu_identity(t->identity, t->root, t->cpu);
	r = uarch_pmu(&t->pmu, t->root, t->cpu);
	if (r == -ENODEV || r == -ENOENT)
		return tell_no_pmu(&s);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "the list of PMUs cannot be read: %s",
				 strerror(-r));
	t->row = uarch_of(t->identity, t->pmu.name);
	t->attr.type = t->pmu.type;
	return run_bound(&s, err);
}
