/* SPDX-License-Identifier: MIT */
/*
 * What literals and strcmp_cpuid_str are worth, on made-up machines: files as the kernel documents
 * them in Documentation/ABI/{stable,testing}/sysfs-devices-system-cpu and as perf reads them.
 */
#include <errno.h>

#include <tally/metric.h>

#include "fakeroot.h"
#include "tap.h"

#define CPUS "/sys/devices/system/cpu"
#define PMUS "/sys/bus/event_source/devices"

static struct fakeroot root;
static struct tally_error err;

/* The value of a formula without events, -errno when it has none. */
static double value_of(const char *formula, uint32_t flags)
{
	const struct tally_events_opts events = { .size = sizeof(events), .root = root.path };
	const struct tally_metric_opts o = {
		.size = sizeof(o),
		.flags = flags,
		.events = &events,
	};
	struct tally_metric_value value = { 0 };
	struct tally_metric *m;

	memset(&err, 0, sizeof(err));
	int r = tally_metric_parse(&m, "test", formula, &o, &err);
	if (r < 0)
		return r;
	r = tally_metric_compute(m, NULL, 0, NULL, &value, &err);
	tally_metric_free(m);
	return r < 0 ? r : value.value;
}

static void is(const char *formula, uint32_t flags, double want, int line)
{
	double got = value_of(formula, flags);

	if (!tap_check_(got == want, __FILE__, line, formula))
		printf("# it is %.17g, not %.17g: %s\n", got, want, err.text);
}
#define IS(formula, want) is(formula, 0, want, __LINE__)

static bool put(const char *path, const char *text)
{
	return fakeroot_file(&root, path, text);
}

static bool put_cpu(int cpu, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), CPUS "/cpu%d/topology/%s", cpu, file);
	return put(path, text);
}

/* Two packages of two cores of two threads, numbered as Intel's servers are; CPU 7 is offline. */
static bool make_server(void)
{
	static const char *const cores[] = { "0,4\n", "1,5\n", "2,6\n", "3\n" };
	static const char *const packages[] = { "0,2,4,6\n", "1,3,5\n" };
	bool ok = fakeroot_make(&root) && put(CPUS "/present", "0-7\n") &&
		  put(CPUS "/online", "0-6\n") && put(CPUS "/smt/active", "1\n");

	for (int cpu = 0; cpu < 7; cpu++)
		ok = ok && put_cpu(cpu, "core_cpus_list", cores[cpu % 4]) &&
		     put_cpu(cpu, "package_cpus_list", packages[cpu % 2]) &&
		     put_cpu(cpu, "die_cpus_list", packages[cpu % 2]);
	return ok;
}

static void counts_cpus(void)
{
	require(make_server());
	IS("#num_cpus", 8);
	IS("#num_cpus_online", 7);
	IS("#num_cores", 4);
	IS("#num_packages", 2);
	IS("#num_dies", 2);
	IS("#NUM_DIES", 2);
	IS("#smt_on", 1);
	IS("#has_pmem", 0);
	IS("#num_cpus_online * 2 - #num_cores", 10);
	require(put("/sys/firmware/acpi/tables/NFIT", ""));
	IS("#has_pmem", 1);
	require(put(CPUS "/present", "0,3-11,13\n"));
	IS("#num_cpus", 14);
	fakeroot_remove(&root);
}

/* Before smt/active, and by the files' older names. */
static void reads_older_files(void)
{
	require(fakeroot_make(&root));
	require(put(CPUS "/online", "0-1\n"));
	IS("#smt_on", -ENODATA);
	for (int cpu = 0; cpu < 2; cpu++) {
		require(put_cpu(cpu, "thread_siblings_list", "0-1\n"));
		require(put_cpu(cpu, "core_siblings_list", "0-1\n"));
	}
	IS("#smt_on", 1);
	IS("#num_cores", 1);
	IS("#num_packages", 1);
	IS("#num_dies", -ENODATA);
	check_has(err.text, "'#num_dies' cannot be found out here");
	require(put_cpu(0, "thread_siblings_list", "0\n"));
	require(put_cpu(1, "thread_siblings_list", "1\n"));
	IS("#smt_on", 0);
	IS("#num_cores", 2);
	require(put_cpu(1, "thread_siblings_list", "one\n"));
	IS("#num_cores", -ENODATA);
	fakeroot_remove(&root);
}

static void knows_the_target(void)
{
	const uint32_t on_cpus = TALLY_METRIC_ON_CPUS;

	require(make_server());
	IS("#target_cpu", 0);
	IS("#core_wide", 0);
	is("#target_cpu", on_cpus, 1, __LINE__);
	is("#core_wide", on_cpus, 0, __LINE__);
	is("#core_wide", on_cpus | TALLY_METRIC_WHOLE_CORES, 1, __LINE__);
	is("#core_wide", TALLY_METRIC_WHOLE_CORES, 0, __LINE__);
	/* Without SMT a CPU is a whole core. */
	require(put(CPUS "/smt/active", "0\n"));
	is("#core_wide", on_cpus, 1, __LINE__);
	IS("#core_wide", 0);
	fakeroot_remove(&root);
}

static void reads_slots_of_arm(void)
{
	require(fakeroot_make(&root));
	require(put(PMUS "/cpu/events/cycles", "event=0x3c\n"));
	require(put(PMUS "/uncore_imc/caps/slots", "99\n"));
	IS("#slots", -ENODATA);
	require(put(PMUS "/armv8_pmuv3_0/caps/slots", "0x00000008\n"));
	IS("#slots", 8);
	/* A core that does not tell has 0 (PMMIR_EL1). */
	require(put(PMUS "/armv8_pmuv3_0/caps/slots", "0x00000000\n"));
	IS("#slots", -ENODATA);
	fakeroot_remove(&root);
}

static void reads_the_tsc_frequency(void)
{
	require(fakeroot_make(&root));
	IS("#system_tsc_freq", -ENODATA);
	require(put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
				     "model\t\t: 85\n"
				     "model name\t: Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz\n"
				     "stepping\t: 4\n"));
	IS("#system_tsc_freq", 3e9);
	require(put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
				     "model name\t: 13th Gen Intel(R) Core(TM) i7\n"
				     "flags\t: a @ 2.00GHz\n"));
	IS("#system_tsc_freq", -ENODATA);
	check_has(err.text, "/proc/cpuinfo does not tell it");
	require(put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n"
				     "model name\t: AMD @ 2.00GHz\n"));
	IS("#system_tsc_freq", 0);
	fakeroot_remove(&root);
}

static void compares_cpus(void)
{
	require(fakeroot_make(&root));
	require(put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
				     "model\t\t: 85\nmodel name\t: X\nstepping\t: 4\n"));
	IS("strcmp_cpuid_str(GenuineIntel\\-6\\-55\\-4)", 1);
	IS("strcmp_cpuid_str(GenuineIntel-6-55-4)", 1);
	IS("strcmp_cpuid_str(GenuineIntel-6-55)", 1);
	IS("strcmp_cpuid_str(GenuineIntel-6-5)", 0);
	IS("strcmp_cpuid_str(0x0)", 0);
	fakeroot_remove(&root);
	/* Arm: the part must be equal, and the revision this one or later. */
	require(fakeroot_make(&root));
	require(put(CPUS "/online", "0\n"));
	require(put(CPUS "/cpu0/regs/identification/midr_el1", "0x00000000411fd493\n"));
	IS("strcmp_cpuid_str(0x410fd493)", 1);
	IS("strcmp_cpuid_str(0x411fd493)", 1);
	IS("strcmp_cpuid_str(0x412fd490)", 0);
	IS("strcmp_cpuid_str(0x410fd400)", 0);
	IS("strcmp_cpuid_str(0x410fd493) | strcmp_cpuid_str(0x410fd490) ^ 1", 1);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(counts_cpus);
	tap_run(reads_older_files);
	tap_run(knows_the_target);
	tap_run(reads_slots_of_arm);
	tap_run(reads_the_tsc_frequency);
	tap_run(compares_cpus);
	return tap_end();
}
