/* SPDX-License-Identifier: MIT */
/* recorder/stolen: steal time and cgroup throttling, from made-up trees of /proc and /sys. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fakeroot.h"
#include "recorder/stolen.h"
#include "tap.h"

static void steal_is_the_eighth_number(void)
{
	struct fakeroot root;
	struct stolen s;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/stat",
		      "cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
	stolen_read(&s, root.path);
	check_u64(s.steal_ns, 250 * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)));
	check_u64(s.cgroup_throttled_ns, 0);
	fakeroot_remove(&root);
}

static void throttling_of_version_2(void)
{
	struct fakeroot root;
	struct stolen s;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/self/cgroup", "0::/box/a\n");
	fakeroot_file(&root, "/sys/fs/cgroup/box/a/cpu.stat",
		      "usage_usec 5\nnr_throttled 2\nthrottled_usec 1234\n");
	stolen_read(&s, root.path);
	check_u64(s.cgroup_throttled_ns, 1234000);
	fakeroot_remove(&root);
}

static void throttling_of_version_1(void)
{
	struct fakeroot root;
	struct stolen s;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\n0::/\n");
	fakeroot_file(&root, "/sys/fs/cgroup/cpu/box/cpu.stat",
		      "nr_periods 9\nnr_throttled 2\nthrottled_time 77\n");
	stolen_read(&s, root.path);
	check_u64(s.cgroup_throttled_ns, 77);
	fakeroot_remove(&root);
}

static void nothing_there_is_nothing_stolen(void)
{
	struct fakeroot root;
	struct stolen s;

	require(fakeroot_make(&root));
	stolen_read(&s, root.path);
	check_u64(s.steal_ns, 0);
	check_u64(s.cgroup_throttled_ns, 0);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(steal_is_the_eighth_number);
	tap_run(throttling_of_version_2);
	tap_run(throttling_of_version_1);
	tap_run(nothing_there_is_nothing_stolen);
	return tap_end();
}
