/* SPDX-License-Identifier: MIT */
/*
 * The self-test on PMUs that are not here, each with one fault that is known of some machine. The loads
 * are not executed: they tell the counters what would have been retired.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <tally/clock.h>
#include <tally/selftest.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "exact/loads.h"
#include "fakeroot.h"
#include "tap.h"

#define FIRST_FD 100000
#define EVENTS   64

/* What an encoding counts. */
enum counts {
	NOTHING,
	CONDITIONAL,
	TAKEN,
	NOT_TAKEN,
	ALL,
	SPECULATION
};

struct event {
	bool open, on, once;
	uint64_t config, value, period, left; /* `left`: to the overflow */
	int cpu;                              /* where it was armed */
	bool moved;
};

/* The machine: sound, unless something is set. */
static struct {
	struct {
		uint64_t config;
		enum counts what;
	} encodings[8];
	int open_code;
	bool counts_kernel; /* a branch for each system call */
	bool locks_disturb; /* one branch more for each thousand locks, now and then */
	bool speculates;
	bool no_loop, counts_rep;
	bool xen; /* each overflow adds to all events */
	bool one_counter;
	bool multiplexed;
	uint64_t min_period;
	bool old_kernel;    /* a changed period holds from the next overflow on */
	uint32_t lose_each; /* interrupts; 0: none is lost */
	bool lose_migrated;
	uint64_t skid;
} pmu;

static struct event events[EVENTS];
static uint32_t interrupts;

const struct tally_retired load_each[LOADS] = {
	[LOAD_TAKEN] = { 2, 1, 1, 1 },  [LOAD_NEVER] = { 18, 9, 9, 1 },
	[LOAD_MIXED] = { 7, 3, 3, 2 },  [LOAD_JUMPS] = { 6, 5, 1, 5 },
	[LOAD_ATOMIC] = { 3, 1, 1, 1 }, [LOAD_SYSCALLS] = { 4, 1, 1, 1 },
	[LOAD_LOOP] = { 2, 2, 2, 1 },   [LOAD_REP] = { 5, 1, 1, 1 },
};

static enum counts counts_of(uint64_t config)
{
	for (size_t i = 0; i < ARRAY_SIZE(pmu.encodings); i++)
		if (pmu.encodings[i].what && pmu.encodings[i].config == config)
			return pmu.encodings[i].what;
	return NOTHING;
}

static uint64_t ticks_of(uint64_t config, enum load load)
{
	const struct tally_retired *each = &load_each[load];

	switch (counts_of(config)) {
	case CONDITIONAL:
		return (load != LOAD_LOOP || !pmu.no_loop) * each->conditional +
		       (load == LOAD_REP && pmu.counts_rep) * 4 +
		       (load == LOAD_SYSCALLS && pmu.counts_kernel);
	case TAKEN:
		return each->taken;
	case NOT_TAKEN:
		return each->branches - each->taken;
	case ALL:
		return each->branches;
	case SPECULATION:
		return load == LOAD_ATOMIC && pmu.speculates;
	default:
		return 0;
	}
}

/* The interrupt of an event: with IOC_REFRESH it is disabled, as late as the machine is. */
static void overflow(struct event *e, uint64_t beyond)
{
	interrupts++;
	for (size_t i = 0; pmu.xen && i < EVENTS; i++)
		events[i].value += events[i].on;
	e->left = e->period;
	if (!e->once)
		return;
	if ((pmu.lose_each && interrupts % pmu.lose_each == 0) || (pmu.lose_migrated && e->moved))
		return;
	e->on = false;
	if (beyond > pmu.skid)
		e->value -= beyond - pmu.skid;
}

static void count(struct event *e, uint64_t ticks)
{
	e->value += ticks;
	if (!e->period)
		return;
	while (e->on && ticks >= e->left) {
		ticks -= e->left;
		overflow(e, ticks);
	}
	e->left -= ticks < e->left ? ticks : 0;
}

void load_run(enum load load, uint64_t n)
{
	static uint32_t runs;

	runs++;
	for (size_t i = 0; i < EVENTS; i++) {
		struct event *e = &events[i];
		if (!e->open || !e->on || (pmu.one_counter && i > 0))
			continue;
		if (e->cpu != sched_getcpu())
			e->moved = true;
		/* What is around a load counts, too, and the same each time. */
		bool around = counts_of(e->config) && counts_of(e->config) != SPECULATION;
		count(e, ticks_of(e->config, load) * n + 7 * around);
		if (load == LOAD_ATOMIC && pmu.locks_disturb && runs % 3 == 0)
			e->value++;
	}
}

static int fake_open(void *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	const struct tally_attr *a = attr;

	if (pmu.open_code)
		return pmu.open_code;
	for (int i = 0; i < EVENTS; i++) {
		if (events[i].open)
			continue;
		events[i] = (struct event){ .open = true,
					    .on = !(a->flags & TALLY_ATTR_DISABLED),
					    .config = a->config,
					    .period = a->sample_period,
					    .left = a->sample_period };
		return FIRST_FD + i;
	}
	return -EMFILE;
}

static struct event *event_of(int fd)
{
	return fd >= FIRST_FD && fd < FIRST_FD + EVENTS ? &events[fd - FIRST_FD] : NULL;
}

static ssize_t fake_read(int fd, void *buf, size_t len)
{
	const struct event *e = event_of(fd);

	if (!e)
		return sys_kernel.read(fd, buf, len);
	memcpy(buf, (uint64_t[]){ e->value, 1000, pmu.multiplexed ? 500 : 1000 }, 24);
	return 24;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct event *e = event_of(fd);
	uint64_t period;

	if (!e)
		return -EBADF;
	if (request == PERF_EVENT_IOC_REFRESH) {
		e->on = e->once = true;
		e->cpu = sched_getcpu();
	} else if (request == PERF_EVENT_IOC_PERIOD) {
		memcpy(&period, (const void *)arg, sizeof(period));
		if (period < pmu.min_period)
			return -EINVAL;
		e->period = period;
		e->left = pmu.old_kernel ? e->left : period;
	}
	return 0;
}

static int fake_close(int fd)
{
	struct event *e = event_of(fd);

	if (!e)
		return sys_kernel.close(fd);
	e->open = e->on = false;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = fake_open;
	table.read = table.plain_read = fake_read;
	table.ioctl = fake_ioctl;
	table.close = fake_close;
	return &table;
}

/* ---- machines */

#define DEVICES "/sys/bus/event_source/devices/"

static struct fakeroot root;

static void encode(uint64_t config, enum counts what)
{
	size_t i = 0;

	while (pmu.encodings[i].what)
		i++;
	pmu.encodings[i].config = config;
	pmu.encodings[i].what = what;
}

static bool cpu_is(const char *vendor, int family, int model, const char *flags)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nstepping\t: 1\n"
		 "flags\t\t: fpu vme%s sse\nbugs\t\t:\n\nprocessor\t: 1\n",
		 vendor, family, model, flags);
	return fakeroot_file(&root, "/proc/cpuinfo", text);
}

/* A machine with one PMU, that is sound. */
static bool start(const char *vendor, int family, int model)
{
	memset(&pmu, 0, sizeof(pmu));
	memset(events, 0, sizeof(events));
	interrupts = 0;
	pmu.skid = 33;
	pmu.min_period = 1;
	return fakeroot_make(&root) && cpu_is(vendor, family, model, "") &&
	       fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-1\n") &&
	       fakeroot_file(&root, DEVICES "cpu/type", "4\n") &&
	       fakeroot_file(&root, DEVICES "cpu/format/event", "config:0-7\n");
}

static struct {
	char name[32], value[160], meaning[512], mend[512];
	uint32_t state;
} all[32];
static size_t told;

static int take(const struct tally_selftest_finding *f, void *arg)
{
	if (told == ARRAY_SIZE(all))
		return -E2BIG;
	snprintf(all[told].name, sizeof(all[told].name), "%s", f->name);
	snprintf(all[told].value, sizeof(all[told].value), "%s", f->value);
	snprintf(all[told].meaning, sizeof(all[told].meaning), "%s", f->meaning);
	snprintf(all[told].mend, sizeof(all[told].mend), "%s", f->mend ? f->mend : "");
	all[told++].state = f->state;
	return 0;
}

static struct tally_selftest out;

static void run(void)
{
	struct tally_selftest_opts opts = { .size = sizeof(opts), .root = root.path, .cpu = 1 };
	struct tally_error err = { 0 };
	cpu_set_t before, after;
	bool open = false;

	told = 0;
	sched_getaffinity(0, sizeof(before), &before);
	check_int(tally_selftest_run(&opts, take, NULL, &out, &err), 0);
	if (err.code)
		printf("# %s\n", err.text);
	sched_getaffinity(0, sizeof(after), &after);
	check(CPU_EQUAL(&before, &after));
	for (size_t i = 0; i < EVENTS; i++)
		open |= events[i].open;
	check(!open);
}

static size_t index_of(const char *name)
{
	for (size_t i = 0; i < told; i++)
		if (!strcmp(all[i].name, name))
			return i;
	return ARRAY_SIZE(all) - 1;
}

/* What was found, and a word of its value; what is not OK has a remedy. */
static void check_found(const char *name, uint32_t state, const char *value)
{
	size_t i = index_of(name);

	if (all[i].state != state || !strstr(all[i].value, value))
		printf("# %s: %u, %s; %s; %s\n", all[i].name, all[i].state, all[i].value,
		       all[i].meaning, all[i].mend);
	check_int(all[i].state, state);
	check_has(all[i].value, value);
	check(all[i].meaning[0] != '\0');
	check(state == TALLY_SELFTEST_OK || all[i].mend[0]);
}

/* All but one finding are OK. */
static void check_only(const char *name, uint32_t state, const char *value)
{
	check_found(name, state, value);
	for (size_t i = 0; i < told; i++)
		if (strcmp(all[i].name, name) != 0 && all[i].state != TALLY_SELFTEST_OK) {
			printf("# also %s: %s\n", all[i].name, all[i].value);
			check(all[i].state == TALLY_SELFTEST_OK);
		}
}

static void end(void)
{
	fakeroot_remove(&root);
}

static void trusts_an_honest_one(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	run();
	check_only("clock-event", TALLY_SELFTEST_OK, "0x1c4");
	check_int((int)told, 12);
	check_int(out.ticks, TALLY_TICKS_CONDITIONAL);
	check_u64(out.attr.config, 0x01c4);
	check_int(out.attr.type, 4);
	check_int(out.quirks, 0);
	check_u64(out.min_period, 1);
	check_u64(out.lost, 0);
	check_u64(out.skids.max, 33);
	check_u64(out.skids.count, out.interrupts);
	end();
}

/* The name says Skylake, and the unit mask of that counts taken branches alone: it is an Ice Lake. */
static void adopts_another_encoding(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, TAKEN);
	encode(0x10c4, NOT_TAKEN);
	encode(0x11c4, CONDITIONAL);
	run();
	check_only("clock-event", TALLY_SELFTEST_LIMITED, "0x11c4");
	check_has(all[0].meaning, "Skylake");
	check_u64(out.attr.config, 0x11c4);
	end();
}

static void finds_the_event_of_a_new_cpu(void)
{
	require(start("GenuineIntel", 6, 0xfe));
	encode(0x01c4, TAKEN);
	encode(0x11c4, NOT_TAKEN);
	encode(0x07c4, CONDITIONAL);
	run();
	check_only("clock-event", TALLY_SELFTEST_LIMITED, "0x7c4");
	check_has(all[0].meaning, "GenuineIntel-6-FE");
	end();
}

/* Taken branches, all branches: not what can be stopped by, whatever a loop of taken ones says. */
static void refuses_what_only_looks_right(void)
{
	static const enum counts wrong[] = { TAKEN, ALL, NOT_TAKEN, NOTHING };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		require(start("GenuineIntel", 6, 0x55));
		encode(0x01c4, wrong[i]);
		run();
		check_int((int)told, 1);
		check_found("clock-event", TALLY_SELFTEST_FAILS,
			    wrong[i] == NOTHING ? "0 of" : "each time");
		check_int(out.ticks, 0);
		end();
	}
}

static void says_why_it_cannot_be_opened(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.open_code = -EACCES;
	run();
	check_int((int)told, 1);
	check_found("clock-event", TALLY_SELFTEST_FAILS, "Permission denied");
	pmu.open_code = -ENOENT;
	run();
	check_found("clock-event", TALLY_SELFTEST_FAILS, "No such file");
	end();
}

static void notices_multiplexing(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.multiplexed = true;
	run();
	check_int((int)told, 1);
	check_int(all[0].state, TALLY_SELFTEST_FAILS);
	end();
}

static void notices_disturbances(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.counts_kernel = true;
	run();
	check_only("clock-calls", TALLY_SELFTEST_FAILS, "2000 instead of 1000");
	pmu.counts_kernel = false;
	pmu.locks_disturb = true;
	run();
	check_only("clock-locks", TALLY_SELFTEST_FAILS, "counts wrong");
	pmu.locks_disturb = false;
	pmu.xen = true;
	run();
	check_only("clock-interrupted", TALLY_SELFTEST_FAILS, "instead of 3000");
	pmu.xen = false;
	pmu.one_counter = true;
	run();
	check_found("clock-counters", TALLY_SELFTEST_FAILS, "only one");
	end();
}

/* SpecLockMap of Zen: the counts may be right by luck, the probe event is not. */
static void notices_speculation(void)
{
	require(start("AuthenticAMD", 26, 2));
	encode(0x00d1, CONDITIONAL);
	encode(0x0825, SPECULATION);
	run();
	check_only("clock-event", TALLY_SELFTEST_OK, "0xd1");
	pmu.speculates = true;
	run();
	check_only("clock-locks", TALLY_SELFTEST_LIMITED, "speculations");
	check_has(all[index_of("clock-locks")].mend, "0xc0011020");
	end();
}

static void notices_quirks(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.no_loop = true;
	run();
	check_only("clock-quirks", TALLY_SELFTEST_LIMITED, "LOOP does not count");
	check_int(out.quirks, TALLY_CLOCK_NO_LOOP);
	pmu.counts_rep = true;
	run();
	check_only("clock-quirks", TALLY_SELFTEST_LIMITED, "REP counts");
	check_int(out.quirks, TALLY_CLOCK_NO_LOOP | TALLY_CLOCK_COUNTS_REP);
	end();
}

static void finds_the_shortest_period(void)
{
	require(start("GenuineIntel", 6, 0x1a));
	encode(0x01c4, CONDITIONAL);
	pmu.min_period = 32;
	run();
	check_only("clock-period", TALLY_SELFTEST_OK, "32");
	check_u64(out.min_period, 32);
	pmu.min_period = 1;
	pmu.old_kernel = true;
	run();
	check_found("clock-period", TALLY_SELFTEST_FAILS, "none");
	check_u64(out.min_period, 0);
	end();
}

static void counts_lost_and_late_interrupts(void)
{
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.lose_each = 5;
	run();
	check_found("clock-interrupts", TALLY_SELFTEST_LIMITED, "never came");
	check(out.lost > 0);
	check_u64(out.skids.count, out.interrupts - out.lost);
	pmu.lose_each = 0;
	pmu.skid = 4000;
	run();
	check_only("clock-interrupts", TALLY_SELFTEST_LIMITED, "4000 ticks late");
	check_has(all[index_of("clock-interrupts")].meaning, "100 ticks");
	end();
}

static void notices_losses_by_moving(void)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	if (CPU_COUNT(&allowed) < 2 || !CPU_ISSET(0, &allowed))
		tap_skip("there is no other CPU to move to");
	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	pmu.lose_migrated = true;
	run();
	check_only("clock-migration", TALLY_SELFTEST_LIMITED, "20 of 20 never came");
	pmu.lose_migrated = false;
	run();
	check_only("clock-migration", TALLY_SELFTEST_OK, "all came");
	end();
}

static void reads_what_files_say(void)
{
	require(start("GenuineIntel", 6, 0xa5));
	encode(0x01c4, CONDITIONAL);
	check(fakeroot_file(&root, "/sys/devices/cpu/freeze_on_smi", "0\n"));
	run();
	check_only("clock-firmware", TALLY_SELFTEST_LIMITED, "may be counted");
	check_has(all[index_of("clock-firmware")].mend, "freeze_on_smi");
	check(fakeroot_file(&root, "/sys/devices/cpu/freeze_on_smi", "1\n"));
	run();
	check_only("clock-firmware", TALLY_SELFTEST_OK, "not counted");
	check(cpu_is("GenuineIntel", 6, 0xa5, " hle rtm"));
	run();
	check_only("clock-transactions", TALLY_SELFTEST_LIMITED, "TSX");
	/* A word that only begins alike is none. */
	check(cpu_is("GenuineIntel", 6, 0xa5, " rtm_always_abort"));
	run();
	check_only("clock-transactions", TALLY_SELFTEST_OK, "none");
	end();
}

static void notices_kinds_of_cores(void)
{
	require(start("GenuineIntel", 6, 0x97));
	encode(0x11c4, CONDITIONAL);
	fakeroot_remove(&root);
	require(fakeroot_make(&root));
	check(cpu_is("GenuineIntel", 6, 0x97, ""));
	check(fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-1\n"));
	check(fakeroot_file(&root, DEVICES "cpu_core/type", "4\n"));
	check(fakeroot_file(&root, DEVICES "cpu_core/cpus", "0\n"));
	check(fakeroot_file(&root, DEVICES "cpu_core/format/event", "config:0-7\n"));
	check(fakeroot_file(&root, DEVICES "cpu_atom/type", "10\n"));
	check(fakeroot_file(&root, DEVICES "cpu_atom/cpus", "1\n"));
	check(fakeroot_file(&root, DEVICES "cpu_atom/format/event", "config:0-7\n"));
	run();
	check_only("clock-cores", TALLY_SELFTEST_LIMITED, "several kinds");
	check_found("clock-migration", TALLY_SELFTEST_OK, "one CPU");
	end();
}

static void says_that_there_is_no_pmu(void)
{
	memset(&pmu, 0, sizeof(pmu));
	require(fakeroot_make(&root));
	check(cpu_is("AuthenticAMD", 26, 2, " hypervisor"));
	check(fakeroot_file(&root, DEVICES "software/type", "1\n"));
	run();
	check_int((int)told, 1);
	check_found("clock-event", TALLY_SELFTEST_LIMITED, "no hardware counters");
	check_has(all[0].mend, "pmu");
	check_int(out.ticks, 0);
	end();
}

static int stop_at_once(const struct tally_selftest_finding *f, void *arg)
{
	++*(int *)arg;
	return 42;
}

static void can_be_ended(void)
{
	struct tally_selftest_opts opts = { .size = sizeof(opts), .cpu = 1 };
	struct tally_error err;
	int calls = 0;

	require(start("GenuineIntel", 6, 0x55));
	encode(0x01c4, CONDITIONAL);
	opts.root = root.path;
	check_int(tally_selftest_run(&opts, stop_at_once, &calls, &out, &err), 42);
	check_int(calls, 1);
	check_int(tally_selftest_run(&opts, NULL, NULL, &out, &err), 0);
	check_int(out.ticks, TALLY_TICKS_CONDITIONAL);
	opts.cpu = -1;
	check_int(tally_selftest_run(&opts, NULL, NULL, &out, &err), -EINVAL);
	opts.cpu = CPU_SETSIZE;
	check_int(tally_selftest_run(&opts, NULL, NULL, &out, &err), -EINVAL);
	check_has(err.text, "cannot be judged");
	opts.cpu = 1;
	opts.rounds = 1000000;
	check_int(tally_selftest_run(&opts, NULL, NULL, &out, &err), -EINVAL);
	end();
}

int main(void)
{
	tap_run(trusts_an_honest_one);
	tap_run(adopts_another_encoding);
	tap_run(finds_the_event_of_a_new_cpu);
	tap_run(refuses_what_only_looks_right);
	tap_run(says_why_it_cannot_be_opened);
	tap_run(notices_multiplexing);
	tap_run(notices_disturbances);
	tap_run(notices_speculation);
	tap_run(notices_quirks);
	tap_run(finds_the_shortest_period);
	tap_run(counts_lost_and_late_interrupts);
	tap_run(notices_losses_by_moving);
	tap_run(reads_what_files_say);
	tap_run(notices_kinds_of_cores);
	tap_run(says_that_there_is_no_pmu);
	tap_run(can_be_ended);
	return tap_end();
}
