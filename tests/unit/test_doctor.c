/* SPDX-License-Identifier: MIT */
/*
 * The doctor on machines that are made up: a root folder with the files of /proc and /sys, and a
 * kernel whose perf_event_open(2) answers as told. What each setting means is taken from
 * Documentation/admin-guide/sysctl/kernel.rst, kernel/ksyms_common.c and kernel/events/core.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tally/attr.h>
#include <tally/doctor.h>

#include "base/sys.h"
#include "fakeroot.h"
#include "tap.h"

#define CAP_BIT(n) (1ull << (n))
#define PERFMON    38
#define SYS_PTRACE 19
#define IPC_LOCK   14

/* ---- a kernel that answers as told */

static struct {
	int unknown_flags; /* the answer to flags that no kernel knows */
	int answer;        /* to anything else: 0 opens it, else -errno */
	bool kills;        /* as a seccomp filter may */
	uint64_t value;    /* what every counter reads */
	int fd;            /* the one that was opened last */
	uint64_t read_format;
} kernel;

static int fake_perf_event_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	if (kernel.kills) {
		signal(SIGSYS, SIG_DFL);
		kill(getpid(), SIGSYS);
	}
	if (flags == ~0ul)
		return kernel.unknown_flags;
	if (kernel.answer < 0)
		return kernel.answer;
	kernel.read_format = ((const struct tally_attr *)attr)->read_format;
	kernel.fd = sys_kernel.open("/dev/null", 0, 0);
	return kernel.fd;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	return 0;
}

/* perf_event_open(2), "Reading results": value, then times, id and lost as asked for. */
static ssize_t fake_read(int fd, void *buf, size_t len)
{
	uint64_t words[5] = { kernel.value };
	size_t n = 1;

	if (fd != kernel.fd)
		return sys_kernel.read(fd, buf, len);
	if (kernel.read_format & TALLY_READ_TIME_ENABLED)
		words[n++] = 1000;
	if (kernel.read_format & TALLY_READ_TIME_RUNNING)
		words[n++] = 1000;
	if (kernel.read_format & TALLY_READ_ID)
		words[n++] = 7;
	if (kernel.read_format & TALLY_READ_LOST)
		words[n++] = 0;
	if (len < n * sizeof(*words))
		return -ENOSPC;
	memcpy(buf, words, n * sizeof(*words));
	return (ssize_t)(n * sizeof(*words));
}

static int fake_close(int fd)
{
	if (fd == kernel.fd)
		kernel.fd = -1;
	return sys_kernel.close(fd);
}

static struct sys_table table;

const struct sys_table *sys(void)
{
	return &table;
}

/* ---- a machine */

static struct fakeroot root;

static bool make_machine(const char *paranoid, uint64_t capabilities)
{
	char status[128];

	kernel = (__typeof__(kernel)){ .unknown_flags = -EINVAL, .answer = -EACCES, .fd = -1 };
	table = sys_kernel;
	table.perf_event_open = fake_perf_event_open;
	table.ioctl = fake_ioctl;
	table.read = table.plain_read = fake_read;
	table.close = fake_close;
	snprintf(status, sizeof(status), "Name:\tx\nCapEff:\t%016" PRIx64 "\nSeccomp:\t0\n",
		 capabilities);
	return fakeroot_make(&root) &&
	       (!paranoid ||
		fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", paranoid)) &&
	       fakeroot_file(&root, "/proc/self/status", status) &&
	       fakeroot_file(&root, "/proc/self/uid_map", "         0          0 4294967295\n") &&
	       fakeroot_file(&root, "/proc/filesystems", "nodev\tsysfs\nnodev\ttracefs\n") &&
	       fakeroot_file(&root, "/proc/mounts", "proc /proc proc rw,nosuid 0 0\n") &&
	       fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-1\n");
}

/* ---- what the doctor finds there */

struct found {
	const char *name; /* what is looked for */
	bool seen;
	uint32_t state;
	char value[256], meaning[1024], mend[512];
};

static int take(const struct tally_finding *finding, void *arg)
{
	struct found *found = arg;

	if (strcmp(finding->name, found->name))
		return 0;
	found->seen = true;
	found->state = finding->state;
	snprintf(found->value, sizeof(found->value), "%s", finding->value);
	snprintf(found->meaning, sizeof(found->meaning), "%s", finding->meaning);
	snprintf(found->mend, sizeof(found->mend), "%s", finding->mend ? finding->mend : "-");
	return 0;
}

static struct found look(const char *name)
{
	struct found found = { .name = name };
	struct tally_error err = { 0 };

	check_int(tally_doctor_run(TALLY_OPTS(doctor, .root = root.path), take, &found, &err), 0);
	check(found.seen);
	return found;
}

static struct found examine(const char *name)
{
	struct found found = look(name);

	fakeroot_remove(&root);
	return found;
}

/* ---- settings */

static void paranoid_4_forbids_all_to_a_plain_user(void)
{
	require(make_machine("4\n", 0));
	struct found f = look("paranoid");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_str(f.value, "4");
	check_str(f.mend, "sysctl -w kernel.perf_event_paranoid=1");
	f = examine("count");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_str(f.mend, "sysctl -w kernel.perf_event_paranoid=1");
}

static void lower_levels_leave_more(void)
{
	static const struct {
		const char *level;
		uint32_t state;
		const char *mend;
	} rows[] = {
		{ "3\n", TALLY_FINDING_FAILS, "sysctl -w kernel.perf_event_paranoid=1" },
		{ "2\n", TALLY_FINDING_LIMITED, "sysctl -w kernel.perf_event_paranoid=1" },
		{ "1\n", TALLY_FINDING_LIMITED, "sysctl -w kernel.perf_event_paranoid=0" },
		{ "0\n", TALLY_FINDING_OK, "-" },
		{ "-1\n", TALLY_FINDING_OK, "-" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		require(make_machine(rows[i].level, 0));
		struct found f = examine("paranoid");
		check_int(f.state, rows[i].state);
		check_str(f.mend, rows[i].mend);
	}
}

static void cap_perfmon_is_above_the_level(void)
{
	require(make_machine("4\n", CAP_BIT(PERFMON)));
	struct found f = look("paranoid");
	check_int(f.state, TALLY_FINDING_OK);
	check_has(f.meaning, "CAP_PERFMON");
	f = examine("capabilities");
	check_has(f.value, "perfmon");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_has(f.mend, "setcap cap_perfmon,cap_sys_ptrace");
}

static void capabilities_of_a_user_namespace_do_not_count(void)
{
	require(make_machine("2\n", ~0ull));
	require(fakeroot_file(&root, "/proc/self/uid_map", "0 1000 1\n"));
	struct found f = examine("capabilities");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_has(f.value, "user namespace");
}

static void a_kernel_without_perf_events_is_told(void)
{
	require(make_machine(NULL, 0));
	kernel.unknown_flags = -ENOSYS;
	struct found f = look("perf-events");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_has(f.mend, "CONFIG_PERF_EVENTS");
	f = examine("count");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_str(f.value, "not tried");
}

static void a_filter_that_refuses_is_told(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/self/status", "CapEff:\t0\nSeccomp:\t2\n"));
	kernel.unknown_flags = -EPERM;
	struct found f = look("seccomp");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_has(f.mend, "--security-opt seccomp=");
	f = examine("perf-events");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_str(f.value, strerror(EPERM));
}

static void a_filter_that_kills_kills_a_child_only(void)
{
	require(make_machine("2\n", 0));
	kernel.kills = true;
	struct found f = examine("perf-events");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_has(f.value, "killed");
}

static void a_filter_that_lets_pass_is_fine(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/self/status", "CapEff:\t0\nSeccomp:\t2\n"));
	struct found f = examine("seccomp");
	check_int(f.state, TALLY_FINDING_OK);
}

/* ---- kernel symbols */

static void kptr_restrict_2_hides_kernel_addresses(void)
{
	require(make_machine("1\n", 0));
	require(fakeroot_file(&root, "/proc/sys/kernel/kptr_restrict", "2\n"));
	require(fakeroot_file(&root, "/proc/kallsyms",
			      "0000000000000000 T _stext\n0000000000000000 T do_one_initcall\n"));
	struct found f = examine("kernel-symbols");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_has(f.value, "kptr_restrict is 2");
	check_str(f.mend, "sysctl -w kernel.kptr_restrict=0");
}

/* kallsyms_for_perf() shows them at level 1 and below only. */
static void paranoid_2_hides_kernel_addresses_too(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/sys/kernel/kptr_restrict", "0\n"));
	require(fakeroot_file(&root, "/proc/kallsyms", "0000000000000000 T _stext\n"));
	struct found f = examine("kernel-symbols");
	check_str(f.mend, "sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
}

static void per_cpu_symbols_at_zero_hide_nothing(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/kallsyms",
			      "0000000000000000 D __per_cpu_start\n"
			      "0000000000001000 D cpu_debug_store\nffffffff81000000 T _text\n"));
	struct found f = examine("kernel-symbols");
	check_int(f.state, TALLY_FINDING_OK);
}

static void a_build_id_is_found_behind_other_notes(void)
{
	static const char notes[] = "\4\0\0\0\4\0\0\0\6\0\0\0Xen\0\1\2\3\4"
				    "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\1\2\3\4";

	require(make_machine("2\n", 0));
	require(fakeroot_bytes(&root, "/sys/kernel/notes", notes, sizeof(notes) - 1));
	check_int(look("kernel-build-id").state, TALLY_FINDING_OK);
	require(fakeroot_bytes(&root, "/sys/kernel/notes", notes, 20));
	check_int(look("kernel-build-id").state, TALLY_FINDING_LIMITED);
	require(fakeroot_bytes(&root, "/sys/kernel/notes",
			       "\xff\xff\xff\xff\xff\xff\xff\xff\3\0\0\0", 12));
	check_int(examine("kernel-build-id").state, TALLY_FINDING_LIMITED);
}

/* ---- tracefs, processes */

static void tracefs_says_which_of_three_things_it_lacks(void)
{
	require(make_machine("2\n", 0));
	check_str(look("tracefs").mend, "mount -t tracefs nodev /sys/kernel/tracing");
	require(fakeroot_file(&root, "/proc/mounts", "nodev /sys/kernel/tracing tracefs rw 0 0\n"));
	check_str(look("tracefs").mend, "mount -o remount,mode=755 /sys/kernel/tracing");
	require(fakeroot_file(&root, "/proc/mounts", "proc /proc proc rw 0 0\n"));
	require(fakeroot_file(&root, "/proc/filesystems", "nodev\tsysfs\n"));
	check_has(look("tracefs").mend, "CONFIG_FTRACE");
	require(fakeroot_file(&root, "/sys/kernel/tracing/events/header_page", "field: u64\n"));
	struct found f = examine("tracefs");
	check_int(f.state, TALLY_FINDING_OK);
	check_str(f.value, "/sys/kernel/tracing");
}

static void hidden_processes_are_told(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/mounts", "proc /proc proc rw,hidepid=invisible 0 0\n"));
	check_str(look("processes").mend, "mount -o remount,hidepid=0 /proc");
	require(fakeroot_file(&root, "/proc/mounts", "proc /proc proc rw,hidepid=0 0 0\n"));
	check_has(examine("processes").mend, "setcap");
	require(make_machine("2\n", CAP_BIT(SYS_PTRACE)));
	check_int(examine("processes").state, TALLY_FINDING_OK);
}

static void yama_binds_tracing(void)
{
	require(make_machine("2\n", 0));
	check_int(look("ptrace").state, TALLY_FINDING_OK);
	require(fakeroot_file(&root, "/proc/sys/kernel/yama/ptrace_scope", "1\n"));
	check_str(look("ptrace").mend, "sysctl -w kernel.yama.ptrace_scope=0");
	require(fakeroot_file(&root, "/proc/sys/kernel/yama/ptrace_scope", "3\n"));
	struct found f = examine("ptrace");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_has(f.mend, "boot");
}

/* ---- limits */

static void set_memlock(rlim_t bytes)
{
	struct rlimit limit;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = bytes;
	check_int(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* perf_mmap() takes 1 + 2^n pages; with 516 KiB a CPU and nothing more that is 1 + 128 of 4 KiB. */
static void the_mlock_budget_says_which_ring_follows(void)
{
	if (sysconf(_SC_PAGESIZE) != 4096)
		tap_skip("the figures are for pages of 4 KiB");
	set_memlock(0);
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "516\n"));
	struct found f = look("mlock");
	check_int(f.state, TALLY_FINDING_OK);
	check_has(f.meaning, "rings of 512 KiB on each of 2 CPUs");
	require(fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "515\n"));
	f = look("mlock");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_has(f.meaning, "rings of 256 KiB");
	check_str(f.mend, "sysctl -w kernel.perf_event_mlock_kb=516");
	require(fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "4\n"));
	check_int(look("mlock").state, TALLY_FINDING_FAILS);
	set_memlock(65536); /* 32 KiB for each CPU: 4 + 32 KiB hold 1 + 8 pages */
	check_has(examine("mlock").meaning, "rings of 32 KiB");
}

static void cap_ipc_lock_is_not_bound_by_mlock(void)
{
	require(make_machine("2\n", CAP_BIT(IPC_LOCK)));
	require(fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "4\n"));
	check_str(examine("mlock").value, "not bound");
}

static void a_low_rate_is_told(void)
{
	require(make_machine("2\n", 0));
	require(fakeroot_file(&root, "/proc/sys/kernel/perf_event_max_sample_rate", "250\n"));
	struct found f = examine("max-rate");
	check_int(f.state, TALLY_FINDING_LIMITED);
	check_str(f.mend, "sysctl -w kernel.perf_event_max_sample_rate=100000");
}

static void the_watchdog_takes_a_counter(void)
{
	require(make_machine("2\n", 0));
	check_int(look("nmi-watchdog").state, TALLY_FINDING_OK);
	require(fakeroot_file(&root, "/proc/sys/kernel/nmi_watchdog", "1\n"));
	check_str(examine("nmi-watchdog").mend, "sysctl -w kernel.nmi_watchdog=0");
}

/* ---- by effect */

static void what_opens_and_counts_nothing_fails(void)
{
	require(make_machine("2\n", CAP_BIT(PERFMON)));
	kernel.answer = 0;
	check_str(look("breakpoints").value, "opens, never fires");
	check_int(look("breakpoints").state, TALLY_FINDING_FAILS);
	check_int(look("count").state, TALLY_FINDING_FAILS);
	check_int(look("count-cpus").state, TALLY_FINDING_FAILS);
	struct found f = examine("pmu");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_has(f.value, "count nothing");
}

/* The doctor writes to the watched variable ten times. */
static void a_breakpoint_that_fires_each_time_is_fine(void)
{
	require(make_machine("2\n", CAP_BIT(PERFMON)));
	kernel.answer = 0;
	kernel.value = 10;
	check_int(look("breakpoints").state, TALLY_FINDING_OK);
	kernel.value = 9;
	check_int(examine("breakpoints").state, TALLY_FINDING_FAILS);
}

static void no_pmu_lists_what_there_is(void)
{
	require(make_machine("2\n", CAP_BIT(PERFMON)));
	require(fakeroot_file(&root, "/sys/bus/event_source/devices/software/type", "1\n"));
	require(fakeroot_file(&root, "/sys/bus/event_source/devices/msr/type", "9\n"));
	require(fakeroot_file(&root, "/proc/cpuinfo", "model\nflags\t\t: fpu hypervisor lm\n"));
	kernel.answer = -ENOENT;
	struct found f = examine("pmu");
	check_int(f.state, TALLY_FINDING_FAILS);
	check_has(f.value, "msr, software");
	check_has(f.mend, "<pmu state='on'/>");
}

/* ---- the call itself */

static int count_and_stop(const struct tally_finding *finding, void *arg)
{
	return ++*(int *)arg == 3 ? 42 : 0;
}

static void a_callback_ends_it(void)
{
	int calls = 0;

	require(make_machine("2\n", 0));
	check_int(tally_doctor_run(TALLY_OPTS(doctor, .root = root.path), count_and_stop, &calls,
				   NULL),
		  42);
	check_int(calls, 3);
	fakeroot_remove(&root);
}

static int check_texts(const struct tally_finding *finding, void *arg)
{
	check(finding->name[0] && finding->value[0]);
	check(finding->state <= TALLY_FINDING_UNKNOWN);
	check(finding->state == TALLY_FINDING_OK || finding->meaning[0]);
	check(!finding->mend || finding->mend[0]);
	return 0;
}

static void every_finding_says_what_follows(void)
{
	require(make_machine("3\n", 0));
	check_int(tally_doctor_run(TALLY_OPTS(doctor, .root = root.path), check_texts, NULL, NULL),
		  0);
	fakeroot_remove(&root);
}

static void options_are_checked(void)
{
	struct {
		struct tally_doctor_opts known;
		uint64_t newer;
	} opts = { .known.size = sizeof(opts), .newer = 1 };
	struct tally_error err;
	int calls = 0;

	require(make_machine("2\n", 0));
	check_int(tally_doctor_run(&opts.known, count_and_stop, &calls, &err), -E2BIG);
	opts.known.size = 0;
	check_int(tally_doctor_run(&opts.known, count_and_stop, &calls, &err), -EINVAL);
	check_int(calls, 0);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(paranoid_4_forbids_all_to_a_plain_user);
	tap_run(lower_levels_leave_more);
	tap_run(cap_perfmon_is_above_the_level);
	tap_run(capabilities_of_a_user_namespace_do_not_count);
	tap_run(a_kernel_without_perf_events_is_told);
	tap_run(a_filter_that_refuses_is_told);
	tap_run(a_filter_that_kills_kills_a_child_only);
	tap_run(a_filter_that_lets_pass_is_fine);
	tap_run(kptr_restrict_2_hides_kernel_addresses);
	tap_run(paranoid_2_hides_kernel_addresses_too);
	tap_run(per_cpu_symbols_at_zero_hide_nothing);
	tap_run(a_build_id_is_found_behind_other_notes);
	tap_run(tracefs_says_which_of_three_things_it_lacks);
	tap_run(hidden_processes_are_told);
	tap_run(yama_binds_tracing);
	tap_run(the_mlock_budget_says_which_ring_follows);
	tap_run(cap_ipc_lock_is_not_bound_by_mlock);
	tap_run(a_low_rate_is_told);
	tap_run(the_watchdog_takes_a_counter);
	tap_run(what_opens_and_counts_nothing_fails);
	tap_run(a_breakpoint_that_fires_each_time_is_fine);
	tap_run(no_pmu_lists_what_there_is);
	tap_run(a_callback_ends_it);
	tap_run(every_finding_says_what_follows);
	tap_run(options_are_checked);
	return tap_end();
}
