/* SPDX-License-Identifier: MIT */
/* tour: what is listed of made-up machines, and what is tried to find out whether it opens. */
#include <errno.h>

#include <tally/event.h>

#include "base/sys.h"
#include "fakepmu.h"
#include "tap.h"

#define FD 100000

static struct fakeroot root;
static struct tally_error err;

/* The kernel: which type it refuses with what, and what it was asked last for each type. */
static struct {
	int refuse[100]; /* -errno by type */
	struct {
		int pid, cpu, calls;
		uint64_t config, flags;
	} asked[100];
	bool refuses_threads; /* of types beyond those of the ABI, with EINVAL */
	int open;
} kernel;

static int fake_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	struct tally_attr a = { 0 };

	memcpy(&a, attr, TALLY_ATTR_SIZE_MIN);
	if (a.type >= 100)
		return -ENOENT;
	kernel.asked[a.type].pid = pid;
	kernel.asked[a.type].cpu = cpu;
	kernel.asked[a.type].calls++;
	kernel.asked[a.type].config = a.config;
	kernel.asked[a.type].flags = a.flags;
	if (kernel.refuse[a.type])
		return kernel.refuse[a.type];
	if (kernel.refuses_threads && a.type > TALLY_TYPE_BREAKPOINT && pid != -1)
		return -EINVAL;
	kernel.open++;
	return FD;
}

static int fake_close(int fd)
{
	if (fd != FD)
		return sys_kernel.close(fd);
	kernel.open--;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = fake_open;
	table.close = fake_close;
	return &table;
}

/* What is listed, as lines. */
static struct {
	char text[8192];
	char why[512];
	int count, stop_at;
} seen;

static int see(const struct tally_event_info *info, void *arg)
{
	size_t len = strlen(seen.text);

	(void)arg;
	seen.count++;
	check(info->pmu && info->unit);
	check(!info->openable == !!info->why);
	if (info->why)
		snprintf(seen.why, sizeof(seen.why), "%s", info->why);
	snprintf(seen.text + len, sizeof(seen.text) - len, "%s%s|%s|%s|%u", len ? "\n" : "",
		 info->name, info->pmu, info->unit, info->openable);
	check(info->kind != TALLY_EVENT_PMU || !info->description);
	return seen.count == seen.stop_at ? 7 : 0;
}

static int list(const char *glob)
{
	memset(&seen, 0, sizeof(seen));
	return tally_event_each(glob, TALLY_OPTS(events, .root = root.path), see, NULL, &err);
}

static void setup(const struct fakefile *files)
{
	memset(&kernel, 0, sizeof(kernel));
	if (!fakepmu_make(&root, files))
		perror("a made-up root");
}

static void pmu_events_with_their_units(void)
{
	setup(fake_server);
	check_int(list("*/*"), 0);
	check_str(seen.text, "cpu/cpu-cycles/|cpu||1\n"
			     "cpu/instructions/|cpu||1\n"
			     "cpu/mem-loads/|cpu||1\n"
			     "cpu/topdown-slots-issued/|cpu||1\n"
			     "msr/tsc/|msr||1\n"
			     "power/energy-pkg/|power|Joules|1\n"
			     "power/energy-ram/|power|Joules|1\n"
			     "uncore_cha/clockticks/|uncore_cha||1\n"
			     "uncore_imc/cas_count_read/|uncore_imc|MiB|1\n"
			     "uncore_imc/clockticks/|uncore_imc||1\n"
			     "uncore_imc_free_running_0/read/|uncore_imc_free_running_0||1");
	check_int(kernel.open, 0);
	/* Of packages: on the first CPU of the cpumask, for no thread, with no mode left out. */
	check_int(kernel.asked[11].pid, -1);
	check_int(kernel.asked[11].cpu, 0);
	check_u64(kernel.asked[11].config, 3);
	check_u64(kernel.asked[11].flags, TALLY_ATTR_DISABLED);
	/* Of cores: for this thread. */
	check_int(kernel.asked[4].pid, 0);
	check_int(kernel.asked[4].cpu, -1);
	check_u64(kernel.asked[4].flags, TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_GUEST);
	fakeroot_remove(&root);
}

static void what_does_not_open_says_why(void)
{
	setup(fake_server);
	kernel.refuse[11] = -EBUSY;
	check_int(list("power/energy-pkg/"), 0);
	check_str(seen.text, "power/energy-pkg/|power|Joules|0");
	check_has(seen.why, "somebody else holds this PMU");
	kernel.refuse[0] = -ENOENT;
	check_int(list("cycles"), 0);
	check_str(seen.text, "cpu-cycles|||0");
	check_has(seen.why, "the PMU of this CPU does not have it");
	check(!strstr(seen.why, "cannot open"));
	check_int(list("cpu-clock"), 0);
	check_str(seen.text, "cpu-clock||ns|1");
	fakeroot_remove(&root);
}

static void a_pmu_that_refuses_threads_is_tried_on_a_cpu(void)
{
	setup(fake_server);
	kernel.refuses_threads = true;
	check_int(list("msr/*"), 0);
	check_str(seen.text, "msr/tsc/|msr||1");
	check_int(kernel.asked[10].pid, -1);
	check_int(kernel.asked[10].cpu, 0);
	fakeroot_remove(&root);
}

static void parameters_are_shown_and_not_tried(void)
{
	setup(fake_odd);
	check_int(list("hv_24x7/*"), 0);
	check_str(seen.text, "hv_24x7/CPM_CCYC,core=?/|hv_24x7||1");
	check_int(kernel.asked[7].calls, 0);
	check_int(list("odd/bad-scale/"), 0);
	check_int(seen.count, 1);
	check_has(seen.why, "cannot understand");
	check_int(kernel.asked[99].calls, 0);
	fakeroot_remove(&root);
}

static void kinds_in_their_order_and_stopped_at_will(void)
{
	setup(fake_hybrid);
	check(fakeroot_file(&root, "/sys/kernel/tracing/events/sched/sched_switch/id", "3\n"));
	check_int(list("*s*"), 0);
	const char *hw = strstr(seen.text, "instructions|");
	const char *sw = strstr(seen.text, "page-faults|");
	const char *cache = strstr(seen.text, "LLC-loads|");
	const char *pmu = strstr(seen.text, "cpu_core/slots/|cpu_core|");
	const char *tracepoint = strstr(seen.text, "sched:sched_switch|");
	check(hw && sw && cache && pmu && tracepoint);
	check(hw < sw && sw < cache && cache < pmu && pmu < tracepoint);
	check(strstr(seen.text, "cpu_atom/mem-loads/|cpu_atom|"));
	memset(&seen, 0, sizeof(seen));
	seen.stop_at = 1;
	check_int(tally_event_each("cpu_atom/*", TALLY_OPTS(events, .root = root.path), see, NULL,
				   &err),
		  7);
	check_int(seen.count, 1);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(pmu_events_with_their_units);
	tap_run(what_does_not_open_says_why);
	tap_run(a_pmu_that_refuses_threads_is_tried_on_a_cpu);
	tap_run(parameters_are_shown_and_not_tried);
	tap_run(kinds_in_their_order_and_stopped_at_will);
	return tap_end();
}
