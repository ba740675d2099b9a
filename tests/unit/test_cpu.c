/* SPDX-License-Identifier: MIT */
/*
 * cpu: /proc/cpuinfo as kernels write it, identities as `perf list --details` and the mapfiles of
 * the kernel's tools/perf/pmu-events give them.
 */
#include <errno.h>

#include "event/cpu.h"
#include "fakeroot.h"
#include "tap.h"

static const char skylake_server[] = "processor\t: 0\n"
				     "vendor_id\t: GenuineIntel\n"
				     "cpu family\t: 6\n"
				     "model\t\t: 85\n"
				     "model name\t: Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz\n"
				     "stepping\t: 4\n"
				     "microcode\t: 0x2006e05\n\n"
				     "processor\t: 1\n"
				     "vendor_id\t: GenuineIntel\n"
				     "stepping\t: 7\n";
static const char zen3[] = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n"
			   "model\t\t: 33\nmodel name\t: AMD Ryzen 9\nstepping\t: 0\n";
static const char riscv[] = "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\n"
			    "mvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\n"
			    "mimpid\t\t: 0x20181004\n";

static void identities_as_perf_spells_them(void)
{
	static const char *const rows[][2] = {
		{ skylake_server, "GenuineIntel-6-55-4" },
		{ zen3, "AuthenticAMD-25-21-0" },
		{ riscv, "0x489-0x8000000000000007-0x20181004" },
	};
	char identity[CPU_IDENTITY_MAX];
	struct fakeroot root;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		require(fakeroot_make(&root));
		fakeroot_file(&root, "/proc/cpuinfo", rows[i][0]);
		check_int(cpu_identity(identity, root.path, -1), 0);
		check_str(identity, rows[i][1]);
		fakeroot_remove(&root);
	}
}

static void a_long_cpuinfo_is_read_at_its_head(void)
{
	char identity[CPU_IDENTITY_MAX], *text = calloc(1, 1 << 20);
	struct fakeroot root;

	require(text && fakeroot_make(&root));
	strcpy(text, zen3);
	memset(text + strlen(text), '\n', (1 << 20) - sizeof(zen3));
	fakeroot_file(&root, "/proc/cpuinfo", text);
	check_int(cpu_identity(identity, root.path, -1), 0);
	check_str(identity, "AuthenticAMD-25-21-0");
	fakeroot_remove(&root);
	free(text);
}

static void a_midr_of_the_first_cpu_online(void)
{
	char identity[CPU_IDENTITY_MAX];
	struct fakeroot root;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/cpuinfo", "CPU implementer\t: 0x41\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "2-3\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu2/regs/identification/midr_el1",
		      "0x00000000410fd0c0\n");
	check_int(cpu_identity(identity, root.path, -1), 0);
	check_str(identity, "0x00000000410fd0c0");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu7/regs/identification/midr_el1",
		      "0x00000000410fd440\n");
	check_int(cpu_identity(identity, root.path, 7), 0);
	check_str(identity, "0x00000000410fd440");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu2/regs/identification/midr_el1", "?\n");
	check_int(cpu_identity(identity, root.path, -1), -EINVAL);
	fakeroot_remove(&root);
}

static void a_cpu_without_an_identity(void)
{
	char identity[CPU_IDENTITY_MAX];
	struct fakeroot root;

	require(fakeroot_make(&root));
	check_int(cpu_identity(identity, root.path, -1), -ENOENT);
	fakeroot_file(&root, "/proc/cpuinfo", "vendor_id       : IBM/S390\n# processors    : 4\n");
	check_int(cpu_identity(identity, root.path, -1), -ENOENT);
	fakeroot_file(&root, "/proc/cpuinfo",
		      "vendor_id\t: x\ncpu family\t: 99999999999\nmodel: 1\n");
	check_int(cpu_identity(identity, root.path, -1), -ENOENT);
	fakeroot_remove(&root);
}

static void rows_of_mapfiles(void)
{
	static const struct {
		const char *pattern, *identity;
		bool matches;
	} rows[] = {
		/* x86/mapfile.csv: skylakex and cascadelakex differ in steppings. */
		{ "GenuineIntel-6-55-[01234]", "GenuineIntel-6-55-4", true },
		{ "GenuineIntel-6-55-[56789ABCDEF]", "GenuineIntel-6-55-4", false },
		{ "GenuineIntel-6-55-[56789ABCDEF]", "GenuineIntel-6-55-7", true },
		{ "GenuineIntel-6-(4E|5E|8E|9E|A5|A6)", "GenuineIntel-6-9E-A", true },
		{ "GenuineIntel-6-(4E|5E|8E|9E|A5|A6)", "GenuineIntel-6-9-E", false },
		{ "GenuineIntel-6-5", "GenuineIntel-6-55-4", false },
		{ "AuthenticAMD-23-([12][0-9A-F]|[0-9A-F])", "AuthenticAMD-23-11-0", true },
		{ "AuthenticAMD-23-([12][0-9A-F]|[0-9A-F])", "AuthenticAMD-23-71-0", false },
		{ "AuthenticAMD-23-[[:xdigit:]]+", "AuthenticAMD-23-71-0", true },
		{ "AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]])", "AuthenticAMD-25-21-0",
		  true },
		{ "0x489-0x8000000000000007-0x[[:xdigit:]]+", "0x489-0x8000000000000007-0x20181004",
		  true },
		/* arm64: variant and revision of a row are the least; r1p3 < r2p0. */
		{ "0x00000000410fd0c0", "0x00000000410fd0c0", true },
		{ "0x00000000410fd0c0", "0x00000000413fd0c1", true },
		{ "0x00000000410fd0c0", "0x00000000410fd0d0", false },
		{ "0x00000000420f5160", "0x00000000410f5160", false },
		{ "0x00000000411fd0c3", "0x00000000412fd0c0", true },
		{ "0x00000000412fd0c0", "0x00000000411fd0c3", false },
		{ "GenuineIntel-6-55", "0x00000000410fd0c0", false },
		/* Broken or dear patterns */
		{ "GenuineIntel-6-(55", "GenuineIntel-6-55-4", false },
		{ "(.*)\\1", "GenuineIntel-6-55-4", false },
		{ ".{1,9}{1,9}", "GenuineIntel-6-55-4", false },
		{ "*********", "GenuineIntel-6-55-4", false },
		{ "(((((.+)+)+)+)+)", "GenuineIntel-6-55-4", false },
		{ "", "GenuineIntel-6-55-4", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!check(cpu_matches(rows[i].pattern, rows[i].identity) == rows[i].matches))
			printf("# row %zu: %s\n", i, rows[i].pattern);
}

int main(void)
{
	tap_run(identities_as_perf_spells_them);
	tap_run(a_long_cpuinfo_is_read_at_its_head);
	tap_run(a_midr_of_the_first_cpu_online);
	tap_run(a_cpu_without_an_identity);
	tap_run(rows_of_mapfiles);
	return tap_end();
}
