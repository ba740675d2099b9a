/* SPDX-License-Identifier: MIT */
/*
 * explain: made-up machines, for each level of kernel.perf_event_paranoid
 * (Documentation/admin-guide/sysctl/kernel.rst; 3 and 4 are Debian's and Ubuntu's), and the errnos
 * that were measured on Linux 6.18.
 */
#include <errno.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "event/explain.h"
#include "fakeroot.h"
#include "tap.h"

#define CAP_PERFMON_MASK 0x4000000000ull /* bit 38 */

static struct fakeroot root;
static struct tally_error err;
static struct tally_attr attr;

struct machine {
	int paranoid;
	uint64_t capabilities;
	int seccomp;
	const char *uid_map; /* NULL: that of the first namespace */
	bool pmu, vm;
};

static void set_up(const struct machine *m)
{
	char text[128];

	fakeroot_make(&root);
	snprintf(text, sizeof(text), "%d\n", m->paranoid);
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", text);
	snprintf(text, sizeof(text), "Name:\tx\nCapEff:\t%016llx\nSeccomp:\t%d\n",
		 (unsigned long long)m->capabilities, m->seccomp);
	fakeroot_file(&root, "/proc/self/status", text);
	fakeroot_file(&root, "/proc/self/uid_map",
		      m->uid_map ? m->uid_map : "         0          0 4294967295\n");
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_max_sample_rate", "100000\n");
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_max_stack", "127\n");
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	fakeroot_file(&root, "/proc/sys/fs/file-max", "100\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-3,6\n");
	fakeroot_file(&root, "/proc/cpuinfo",
		      m->vm ? "processor : 0\nflags : fpu hypervisor lm\n" : "flags : fpu lm\n");
	if (m->pmu)
		fakeroot_file(&root, "/sys/bus/event_source/devices/cpu/type", "4\n");
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
}

static void tear_down(void)
{
	fakeroot_remove(&root);
}

static const char *release = "6.18.44"; /* of the made-up kernel */

/* The C library's, for the library under test. */
int uname(struct utsname *out)
{
	memset(out, 0, sizeof(*out));
	snprintf(out->release, sizeof(out->release), "%s", release);
	return 0;
}

static const char *explain(int code, int32_t tid, int32_t cpu)
{
	memset(&err, 0, sizeof(err));
	check_int(explain_open(&err, code, "it", &attr, tid, cpu, root.path), code);
	check_int(err.code, code);
	check(strlen(err.text) < TALLY_ERROR_TEXT - 1); /* not cut */
	return err.text;
}

static void cause_is(uint32_t cause)
{
	check_str(tally_cause_name(err.cause), tally_cause_name(cause));
}

static void user_mode_of_oneself_is_forbidden_above_two(void)
{
	for (int level = 3; level <= 4; level++) {
		char is[64];
		set_up(&(struct machine){ .paranoid = level });
		attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
		snprintf(is, sizeof(is), "kernel.perf_event_paranoid is %d", level);
		check_has(explain(-EACCES, 0, -1), is);
		cause_is(TALLY_CAUSE_PARANOID);
		check_has(err.text, "sysctl kernel.perf_event_paranoid=2");
		check_has(err.text, "setcap cap_");
		check_has(err.text, "=ep /");
		check(!strstr(err.text, "modifier"));
		tear_down();
	}
}

static void the_kernel_is_forbidden_at_two(void)
{
	set_up(&(struct machine){ .paranoid = 2 });
	check_has(explain(-EACCES, 0, -1), "kernel.perf_event_paranoid is 2");
	cause_is(TALLY_CAUSE_PARANOID);
	check_has(err.text, "sysctl kernel.perf_event_paranoid=1");
	check_has(err.text, "modifier u");
	attr.config = TALLY_SW_CONTEXT_SWITCHES; /* user mode would count none */
	check(!strstr(explain(-EACCES, 0, -1), "modifier u"));
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	attr.sample_type = TALLY_SAMPLE_PHYS_ADDR;
	check_has(explain(-EACCES, 0, -1), "paranoid=1");
	tear_down();
}

static void whole_cpus_are_forbidden_at_one(void)
{
	set_up(&(struct machine){ .paranoid = 1 });
	check_has(explain(-EACCES, -1, 3), "cannot open it on CPU 3: ");
	check_has(err.text, "kernel.perf_event_paranoid is 1");
	check_has(err.text, "sysctl kernel.perf_event_paranoid=0");
	tear_down();
}

static void tracepoints_are_forbidden_at_zero(void)
{
	set_up(&(struct machine){ .paranoid = 0, .seccomp = 2 });
	attr.type = TALLY_TYPE_TRACEPOINT;
	attr.sample_type = TALLY_SAMPLE_RAW;
	check_has(explain(-EPERM, 0, -1), "kernel.perf_event_paranoid is 0");
	cause_is(TALLY_CAUSE_PARANOID);
	check_has(err.text, "sysctl kernel.perf_event_paranoid=-1");
	tear_down();
}

static void another_users_process(void)
{
	for (int level = -1; level <= 1; level++) {
		set_up(&(struct machine){ .paranoid = level });
		fakeroot_file(&root, "/proc/77/stat", "");
		explain(-EACCES, 77, -1);
		cause_is(TALLY_CAUSE_PERMISSION);
		check_has(err.text, "for thread 77: ");
		check_has(err.text, "setcap");
		tear_down();
	}
	if (geteuid() != 0)
		return;
	/* A lower level of paranoid would not let this user in, so none is proposed. */
	for (int level = -1; level <= 4; level++) {
		char path[128];
		set_up(&(struct machine){ .paranoid = level });
		fakeroot_file(&root, "/proc/77/stat", "");
		snprintf(path, sizeof(path), "%s/proc/77", root.path);
		check_int(chown(path, 1234, 1234), 0);
		check_has(explain(-EACCES, 77, -1), "belongs to user 1234, this is user 0");
		cause_is(TALLY_CAUSE_PERMISSION);
		tear_down();
	}
}

static void namespaces_need_the_capability(void)
{
	set_up(&(struct machine){ .paranoid = 0 });
	attr.flags = TALLY_ATTR_NAMESPACES;
	explain(-EACCES, 0, -1);
	cause_is(TALLY_CAUSE_PERMISSION);
	check_has(err.text, "whatever kernel.perf_event_paranoid is");
	tear_down();
}

/* At no level may a user who has the capability be told to change the level. */
static void refused_though_capable(void)
{
	for (int level = -1; level <= 4; level++) {
		set_up(&(struct machine){
			.paranoid = level, .capabilities = CAP_PERFMON_MASK, .seccomp = 2 });
		check_has(explain(-EACCES, 0, -1), "seccomp");
		cause_is(TALLY_CAUSE_SECCOMP);
		check_has(err.text, "though it has the capability");
		tear_down();
		set_up(&(struct machine){ .paranoid = level, .capabilities = CAP_PERFMON_MASK });
		check_has(explain(-EPERM, 0, -1), "security module");
		cause_is(TALLY_CAUSE_SECCOMP);
		tear_down();
	}
}

/* Docker's profile answers EPERM; paranoid answers EACCES. */
static void a_container_without_the_capability(void)
{
	set_up(&(struct machine){ .paranoid = 2, .seccomp = 2 });
	check_has(explain(-EPERM, 0, -1), "--cap-add PERFMON");
	cause_is(TALLY_CAUSE_SECCOMP);
	explain(-EACCES, 0, -1);
	cause_is(TALLY_CAUSE_PARANOID);
	tear_down();
}

static void capabilities_of_a_user_namespace_do_not_count(void)
{
	set_up(&(struct machine){ .paranoid = 2,
				  .capabilities = UINT64_MAX,
				  .uid_map = "         0       1000          1\n" });
	explain(-EACCES, 0, -1);
	cause_is(TALLY_CAUSE_PARANOID);
	check_has(err.text, "paranoid is 2");
	tear_down();
}

static void no_counters_in_a_virtual_machine(void)
{
	set_up(&(struct machine){ .paranoid = 2, .vm = true });
	attr.type = TALLY_TYPE_HARDWARE;
	check_has(explain(-ENOENT, 0, -1), "virtual machine");
	cause_is(TALLY_CAUSE_NO_PMU);
	check_has(err.text, "pmu=on");
	tear_down();
	set_up(&(struct machine){ .paranoid = 2 });
	attr.type = TALLY_TYPE_RAW;
	check(!strstr(explain(-ENOENT, 0, -1), "virtual"));
	cause_is(TALLY_CAUSE_NO_PMU);
	tear_down();
}

static void an_event_that_nobody_has(void)
{
	set_up(&(struct machine){ .paranoid = 2, .pmu = true });
	attr.type = TALLY_TYPE_HW_CACHE;
	explain(-ENOENT, 0, -1);
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	check_has(err.text, "PMU of this CPU");
	attr.type = TALLY_TYPE_SOFTWARE;
	attr.config = 99;
	check_has(explain(-ENOENT, 0, -1), "no software event 99");
	attr.type = 42;
	check_has(explain(-ENOENT, 0, -1), "no PMU has type 42");
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	tear_down();
}

static void what_a_pmu_cannot_do(void)
{
	set_up(&(struct machine){ .paranoid = 2, .pmu = true });
	attr.type = TALLY_TYPE_HARDWARE;
	attr.sample_period = 1;
	check_has(explain(-EOPNOTSUPP, 0, -1), "no interrupts");
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	attr.flags = 3ull << TALLY_ATTR_PRECISE_IP_SHIFT;
	check_has(explain(-EOPNOTSUPP, 0, -1), "precise level 3");
	attr.sample_type = TALLY_SAMPLE_BRANCH_STACK;
	check_has(explain(-EOPNOTSUPP, 0, -1), "branch stacks");
	attr.sample_type = TALLY_SAMPLE_REGS_USER;
	attr.flags = 0;
	attr.sample_regs_user = 1ull << 63;
	check_has(explain(-EOPNOTSUPP, 0, -1), "0x8000000000000000");
	tear_down();
}

static void limits_are_told_with_their_value(void)
{
	set_up(&(struct machine){ .paranoid = 2 });
	check_has(explain(-EMFILE, 0, -1), "RLIMIT_NOFILE");
	check(strstr(err.text, "ulimit -n ") || strstr(err.text, "prlimit --nofile="));
	cause_is(TALLY_CAUSE_FD_LIMIT);
	check_has(explain(-ENFILE, 0, -1), "fs.file-max=200', now 100");
	cause_is(TALLY_CAUSE_FD_LIMIT);
	attr.sample_max_stack = 500;
	check_has(explain(-EOVERFLOW, 0, -1), "kernel.perf_event_max_stack (127)");
	cause_is(TALLY_CAUSE_LIMIT);
	check_has(err.text, "perf_event_max_stack=500");
	attr.type = TALLY_TYPE_BREAKPOINT;
	check_has(explain(-ENOSPC, 0, -1), "breakpoints");
	cause_is(TALLY_CAUSE_LIMIT);
	tear_down();
}

static void the_rest_has_words_too(void)
{
	set_up(&(struct machine){ .paranoid = 2 });
	check_has(explain(-ESRCH, 99, -1), "for thread 99: no thread");
	cause_is(TALLY_CAUSE_NO_PROCESS);
	explain(-EBUSY, 0, -1);
	cause_is(TALLY_CAUSE_BUSY);
	check_has(explain(-ENODEV, -1, 3), "offline");
	cause_is(TALLY_CAUSE_NO_PROCESS);
	check_has(explain(-ENODEV, 0, -1), "hardware");
	explain(-ENOMEM, 0, -1);
	cause_is(TALLY_CAUSE_MEMORY);
	check_has(explain(-EBADF, 0, -1), "leader");
	check_has(explain(-ENOSYS, 0, -1), "seccomp"); /* the sysctl shows that the kernel has it */
	cause_is(TALLY_CAUSE_SECCOMP);
	check_has(err.text, "--security-opt seccomp=unconfined");
	attr.size = 136;
	attr.config4 = 1;
	check_has(explain(-E2BIG, 0, -1), "knows 136 bytes");
	check_has(err.text, "144 bytes");
	check_has(explain(-EDOM, 0, -1), "argument out of domain");
	tear_down();
	fakeroot_make(&root);
	check_has(explain(-ENOSYS, 0, -1), "CONFIG_PERF_EVENTS");
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	tear_down();
}

/* Each of these is EINVAL on Linux 6.18. */
static void the_many_causes_of_einval(void)
{
	static const struct {
		int32_t tid, cpu;
		uint64_t flags, sample_type, period;
		uint32_t type, stack;
		const char *part;
		int32_t clock;
	} wrong[] = {
		{ -1, -1, .type = 1, .part = "neither a thread nor a CPU" },
		{ -1, 9999, .type = 1, .part = "no such CPU" },
		{ -1, 4, .type = 1, .part = "no such CPU" },
		{ 0, -1, TALLY_ATTR_FREQ, 0, 100001, 1, 0, "perf_event_max_sample_rate (100000)" },
		{ 0, -1, 0, 0, 1ull << 63, 1, 0, "63 bits" },
		{ 0, -1, 0, TALLY_SAMPLE_STACK_USER, 0, 1, 7, "multiple of 8" },
		{ 0, -1, 0, TALLY_SAMPLE_STACK_USER, 0, 1, 65536, "65528" },
		{ 0, -1, 0, TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, 0, 1, 0, "weight" },
		{ 0, -1, 0, TALLY_SAMPLE_BRANCH_STACK, 0, 0, 0, "branch_sample_type" },
		{ 0, -1, 0, TALLY_SAMPLE_REGS_USER, 0, 1, 0, "sample_regs_user" },
		{ 0, -1, 0, TALLY_SAMPLE_REGS_INTR, 0, 1, 0, "sample_regs_intr" },
		{ 0, -1, TALLY_ATTR_INHERIT_THREAD, 0, 0, 1, 0, "needs inherit" },
		{ 0, -1, TALLY_ATTR_SIGTRAP, 0, 0, 1, 0, "needs remove_on_exec" },
		{ 0, -1, TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_REMOVE_ON_EXEC, 0, 0, 1, 0,
		  "exclude each other" },
		{ 0, -1, TALLY_ATTR_INHERIT, TALLY_SAMPLE_READ, 0, 1, 0, "6.13" },
		{ 0, -1, TALLY_ATTR_USE_CLOCKID, 0, 0, 1, 0, "the clock 99 cannot", 99 },
		{ 0, -1, TALLY_ATTR_USE_CLOCKID, 0, 0, 0, 0, "CLOCK_MONOTONIC_RAW",
		  CLOCK_BOOTTIME },
		{ 0, -1, .type = TALLY_TYPE_TRACEPOINT, .part = "no tracepoint" },
		{ 0, -1, .type = TALLY_TYPE_BREAKPOINT, .part = "breakpoint" },
		{ 0, -1, .type = TALLY_TYPE_HW_CACHE, .part = "cache event" },
		{ 0, -1, .type = 12, .part = "whole CPUs" },
		{ 0, -1, 1ull << 50, 0, 0, 1, 0, "0x4000000000000" },
	};

	set_up(&(struct machine){ .paranoid = 2 });
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		tally_attr_init(&attr, wrong[i].type, 0);
		attr.flags = wrong[i].flags;
		attr.sample_type = wrong[i].sample_type;
		attr.sample_period = wrong[i].period;
		attr.sample_stack_user = wrong[i].stack;
		attr.clockid = wrong[i].clock;
		check_has(explain(-EINVAL, wrong[i].tid, wrong[i].cpu), wrong[i].part);
	}
	tear_down();
}

#define UPROBE 7
#define KPROBE 6

static void set_up_probes(const struct machine *m)
{
	set_up(m);
	fakeroot_file(&root, "/sys/bus/event_source/devices/kprobe/type", "6\n");
	fakeroot_file(&root, "/sys/bus/event_source/devices/uprobe/type", "7\n");
}

/* perf_kprobe_event_init() asks for the capability alone, and says EACCES: no level helps. */
static void probes_need_the_capability_at_every_level(void)
{
	static const uint32_t types[] = { KPROBE, UPROBE };

	for (int level = -1; level <= 4; level++) {
		for (int i = 0; i < 2; i++) {
			set_up_probes(&(struct machine){ .paranoid = level });
			attr.type = types[i];
			attr.flags = i ? TALLY_ATTR_EXCLUDE_KERNEL : 0;
			check_has(explain(-EACCES, 0, -1), "probes need a capability, whatever");
			cause_is(TALLY_CAUSE_PERMISSION);
			check_has(err.text, "setcap cap_");
			check(!strstr(err.text, "sysctl"));
			tear_down();
		}
	}
	set_up_probes(&(struct machine){ .paranoid = 2, .capabilities = CAP_PERFMON_MASK });
	attr.type = UPROBE;
	explain(-EACCES, 0, -1);
	cause_is(TALLY_CAUSE_SECCOMP);
	tear_down();
}

/* Measured on Linux 6.18 for uprobes; those of kprobes by trace_kprobe.c. */
static void errnos_of_probes(void)
{
	static const struct {
		uint32_t type;
		int code;
		uint32_t cause;
		const char *part;
	} wrong[] = {
		{ UPROBE, -ENOENT, TALLY_CAUSE_NO_FILE, "file" },
		{ UPROBE, -EINVAL, TALLY_CAUSE_ARGUMENT, "offset" },
		{ UPROBE, -EIO, TALLY_CAUSE_UNSUPPORTED, "file system" },
		{ UPROBE, -E2BIG, TALLY_CAUSE_ARGUMENT, "path" },
		{ UPROBE, -EFAULT, TALLY_CAUSE_ARGUMENT, "config1" },
		{ UPROBE, -524, TALLY_CAUSE_UNSUPPORTED, "instruction" },
		{ KPROBE, -ENOENT, TALLY_CAUSE_UNKNOWN, "/proc/kallsyms" },
		{ KPROBE, -EADDRNOTAVAIL, TALLY_CAUSE_UNKNOWN, "several functions" },
		{ KPROBE, -EINVAL, TALLY_CAUSE_UNSUPPORTED, "kprobes/blacklist" },
		{ KPROBE, -EILSEQ, TALLY_CAUSE_ARGUMENT, "instruction" },
		{ KPROBE, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED, "instruction" },
		{ KPROBE, -EMFILE, TALLY_CAUSE_FD_LIMIT, "RLIMIT_NOFILE" }, /* as of all events */
	};

	set_up_probes(&(struct machine){ .paranoid = 2 });
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		attr.type = wrong[i].type;
		check_has(explain(wrong[i].code, 0, -1), wrong[i].part);
		cause_is(wrong[i].cause);
	}
	/* A wrong place goes first. */
	attr.type = UPROBE;
	check_has(explain(-EINVAL, -1, 9999), "no such CPU");
	tear_down();
}

/* hw_breakpoint_parse() and arch/x86/kernel/hw_breakpoint.c */
static void errnos_of_breakpoints(void)
{
	set_up(&(struct machine){ .paranoid = 1 });
	tally_attr_init(&attr, TALLY_TYPE_BREAKPOINT, 0);
	attr.config1 = 0xffffffff81000000;
	attr.config2 = 4;
	check_has(explain(-EPERM, 0, -1), "0xffffffff81000000 is the kernel's");
	check_has(err.text, "CAP_SYS_ADMIN");
	cause_is(TALLY_CAUSE_PERMISSION);
	/* At level 2 it says EACCES, and would say EPERM when that is mended. */
	check_has(explain(-EACCES, 0, -1), "CAP_SYS_ADMIN");
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	check_has(explain(-EINVAL, 0, -1), "without the modifier u");
	cause_is(TALLY_CAUSE_ARGUMENT);
	attr.config1 = 0x1000;
	attr.config2 = 16;
	check_has(explain(-EOPNOTSUPP, 0, -1), "8 bytes at most, not 16");
	check_has(explain(-EINVAL, 0, -1), "no breakpoint like that");
	check_has(explain(-ENOENT, 0, -1), "CONFIG_HAVE_HW_BREAKPOINT");
	check_has(explain(-ENODEV, 0, -1), "hardware");
	check_has(explain(-ENOSPC, 0, -1), "in use");
	attr.type = TALLY_TYPE_TRACEPOINT;
	check_has(explain(-ENOENT, 0, -1), "CONFIG_EVENT_TRACING");
	tear_down();
}

/* Each level, for each kind of event and place: the level that is named is the kernel's own rule. */
static void every_level_for_every_kind(void)
{
	static const struct {
		uint32_t type;
		int32_t tid, cpu;
		uint64_t flags;
		int code, needs;
	} kinds[] = {
		{ TALLY_TYPE_SOFTWARE, 0, -1, TALLY_ATTR_EXCLUDE_KERNEL, -EACCES, 2 },
		{ TALLY_TYPE_HARDWARE, 0, -1, TALLY_ATTR_EXCLUDE_KERNEL, -EACCES, 2 },
		{ TALLY_TYPE_BREAKPOINT, 0, -1, TALLY_ATTR_EXCLUDE_KERNEL, -EACCES, 2 },
		{ TALLY_TYPE_SOFTWARE, 0, -1, 0, -EACCES, 1 },
		{ TALLY_TYPE_BREAKPOINT, 0, -1, 0, -EACCES, 1 },
		{ TALLY_TYPE_HW_CACHE, 0, -1, 0, -EACCES, 1 },
		{ TALLY_TYPE_RAW, -1, 3, TALLY_ATTR_EXCLUDE_KERNEL, -EACCES, 0 },
		{ TALLY_TYPE_TRACEPOINT, 0, -1, 0, -EPERM, -1 },
		{ TALLY_TYPE_TRACEPOINT, -1, 3, 0, -EPERM, -1 },
	};

	for (int level = -1; level <= 4; level++)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			char want[64];
			set_up(&(struct machine){ .paranoid = level });
			tally_attr_init(&attr, kinds[i].type, 0);
			attr.flags = kinds[i].flags;
			explain(kinds[i].code, kinds[i].tid, kinds[i].cpu);
			snprintf(want, sizeof(want), "sysctl kernel.perf_event_paranoid=%d'",
				 kinds[i].needs);
			if (level > kinds[i].needs) {
				cause_is(TALLY_CAUSE_PARANOID);
				check_has(err.text, want);
				snprintf(want, sizeof(want), "paranoid is %d,", level);
				check_has(err.text, want);
			} else { /* the level allows it: somebody else refuses */
				cause_is(TALLY_CAUSE_SECCOMP);
			}
			tear_down();
		}
}

/* Each errno that perf_event_open(2) answers for counting: why, and what to do. */
static void each_errno_has_a_cause_and_a_remedy(void)
{
	static const struct {
		int code;
		uint32_t cause, type;
		int32_t tid, cpu;
		const char *why, *mend;
	} rows[] = {
		{ -EACCES, TALLY_CAUSE_PARANOID, 1, 0, -1, "paranoid is 3", "be root" },
		{ -EPERM, TALLY_CAUSE_PARANOID, 2, 0, -1, "paranoid is 3", "sysctl" },
		{ -ENOENT, TALLY_CAUSE_NO_PMU, 0, 0, -1, "no hardware counters", "cpu-clock" },
		{ -ENOENT, TALLY_CAUSE_UNSUPPORTED, 1, 0, -1, "no software event", "newer" },
		{ -ENXIO, TALLY_CAUSE_UNSUPPORTED, 42, 0, -1, "type 42", "/sys/bus/event_source" },
		{ -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED, 1, 0, -1, "does not support", "ask for" },
		{ -ENODEV, TALLY_CAUSE_NO_PROCESS, 1, -1, 3, "offline", "cpu/online" },
		{ -ENODEV, TALLY_CAUSE_UNSUPPORTED, 1, 0, -1, "hardware", "another event" },
		{ -ESRCH, TALLY_CAUSE_NO_PROCESS, 1, 9, -1, "ended", "ps -eL" },
		{ -ENOSYS, TALLY_CAUSE_SECCOMP, 1, 0, -1, "seccomp", "--cap-add PERFMON" },
		{ -EMFILE, TALLY_CAUSE_FD_LIMIT, 1, 0, -1, "RLIMIT_NOFILE", "fewer events or" },
		{ -ENFILE, TALLY_CAUSE_FD_LIMIT, 1, 0, -1, "all processes", "fs.file-max=200" },
		{ -EBUSY, TALLY_CAUSE_BUSY, 0, 0, -1, "somebody else", "end the other" },
		{ -ENOSPC, TALLY_CAUSE_LIMIT, 5, 0, -1, "in use", "close one" },
		{ -ENOSPC, TALLY_CAUSE_LIMIT, 0, 0, -1, "no counter left", "fewer events" },
		{ -EOVERFLOW, TALLY_CAUSE_LIMIT, 1, 0, -1, "perf_event_max_stack", "fewer" },
		{ -ENOMEM, TALLY_CAUSE_MEMORY, 1, 0, -1, "no memory", "fewer events" },
		{ -EBADF, TALLY_CAUSE_ARGUMENT, 1, 0, -1, "leader is closed", "the leader first" },
		{ -EINVAL, TALLY_CAUSE_UNSUPPORTED, 1, 0, -1, "does not take", "dmesg" },
		{ -EINVAL, TALLY_CAUSE_UNKNOWN, 2, 0, -1, "no tracepoint", "tally list" },
		{ -E2BIG, TALLY_CAUSE_LIMIT, 1, 0, -1, "16 KiB", "modifier W" },
	};

	set_up(&(struct machine){ .paranoid = 3, .vm = true });
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		tally_attr_init(&attr, rows[i].type, 0);
		check_has(explain(rows[i].code, rows[i].tid, rows[i].cpu), rows[i].why);
		check_has(err.text, rows[i].mend);
		cause_is(rows[i].cause);
	}
	/* The kernel has written its own size into an attr that is too large for it. */
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, 0);
	attr.config4 = 1;
	attr.size = 136;
	check_has(explain(-E2BIG, 0, -1), "knows 136 bytes");
	check_has(err.text, "leave it out");
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	attr.flags = TALLY_ATTR_AUX_OUTPUT;
	check_has(explain(-EOPNOTSUPP, 0, -1), "whose leader has an AUX area");
	tear_down();
}

/* What a filter may answer instead of the kernel, and what containers' filters do. */
static void each_errno_of_a_filter(void)
{
	static const int codes[] = { -EPERM, -EACCES, -ENOSYS };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		set_up(&(struct machine){
			.paranoid = 2, .seccomp = 2, .capabilities = CAP_PERFMON_MASK });
		check_has(explain(codes[i], 0, -1), "seccomp filter");
		check_has(err.text, "--cap-add PERFMON");
		cause_is(TALLY_CAUSE_SECCOMP);
		tear_down();
	}
}

/* CAP_PERFMON came with Linux 5.8, and inherit_thread, remove_on_exec and sigtrap with 5.13. */
static void older_kernels(void)
{
	static const struct {
		const char *release, *capability;
	} rows[] = {
		{ "4.19.0-amd64", "setcap cap_sys_admin=ep" },
		{ "5.7.19", "cap_sys_admin=ep" },
		{ "5.8.0", "setcap cap_perfmon=ep" },
		{ "6.18.44", "cap_perfmon=ep" },
		{ "10.1", "cap_perfmon=ep" },
		{ "nonsense", "cap_perfmon=ep" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up(&(struct machine){ .paranoid = 2 });
		release = rows[i].release;
		check_has(explain(-EACCES, 0, -1), rows[i].capability);
		tear_down();
	}
	set_up(&(struct machine){ .paranoid = 2 });
	release = "5.10.0";
	attr.flags = TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD;
	check_has(explain(-EINVAL, 0, -1), "inherit_thread needs Linux 5.13, this is 5.10.0");
	cause_is(TALLY_CAUSE_UNSUPPORTED);
	release = "6.18.44";
	tear_down();
}

/* Either capability is enough, and no other one is. */
static void capabilities(void)
{
	for (int bit = 0; bit < 41; bit++) {
		set_up(&(struct machine){ .paranoid = 2, .capabilities = 1ull << bit });
		explain(-EACCES, 0, -1);
		cause_is(bit == 21 || bit == 38 ? TALLY_CAUSE_SECCOMP : TALLY_CAUSE_PARANOID);
		tear_down();
	}
}

/* Nothing is read of the machine: what is not known is not said. */
static void an_empty_machine(void)
{
	fakeroot_make(&root);
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	check_has(explain(-EACCES, 0, -1), "perf_event_paranoid cannot be read");
	check_has(err.text, "be root");
	cause_is(TALLY_CAUSE_PERMISSION);
	tear_down();
}

static void members_of_a_group(void)
{
	set_up(&(struct machine){ .paranoid = 2 });
	fakeroot_file(&root, "/proc/sys/kernel/nmi_watchdog", "1\n");
	check_int(explain_member(&err, -EINVAL, "it", &attr, 0, -1, root.path), -EINVAL);
	check_has(err.text, "nmi_watchdog");
	cause_is(TALLY_CAUSE_LIMIT);
	check_has(err.text, "differ in clock, inheritance or place");
	check_has(err.text, "smaller group");
	attr.flags = TALLY_ATTR_PINNED;
	explain_member(&err, -EINVAL, "it", &attr, 0, -1, root.path);
	check_has(err.text, "pinned");
	check_int(explain_member(NULL, -EINVAL, "it", &attr, 0, -1, root.path), -EINVAL);
	tear_down();
}

static void locked_memory_with_need_and_limits(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char need[64];

	set_up(&(struct machine){ .paranoid = 2 });
	check_int(explain_mmap(&err, -EPERM, 128 * page, root.path), -EPERM);
	cause_is(TALLY_CAUSE_MLOCK_LIMIT);
	snprintf(need, sizeof(need), "a ring of %llu KiB", (unsigned long long)(129 * page / 1024));
	check_has(err.text, need);
	check_has(err.text, "516 KiB for each of 5 CPUs");
	check_has(err.text, "RLIMIT_MEMLOCK");
	check_has(err.text, "sysctl kernel.perf_event_mlock_kb=");
	check(strlen(err.text) < TALLY_ERROR_TEXT - 1);
	check_int(explain_mmap(&err, -ENOMEM, page, root.path), -ENOMEM);
	cause_is(TALLY_CAUSE_MEMORY);
	check_int(explain_mmap(&err, -EINVAL, page, root.path), -EINVAL);
	check_has(err.text, "power of two");
	check_int(explain_mmap(&err, -EBUSY, page, root.path), -EBUSY);
	cause_is(TALLY_CAUSE_BUSY);
	check_has(err.text, "detach its output");
	check_int(explain_mmap(&err, -ENODEV, page, root.path), -ENODEV);
	check_int(explain_mmap(NULL, -EPERM, page, root.path), -EPERM);
	tear_down();
}

static void long_and_hostile_names(void)
{
	char name[4000];

	set_up(&(struct machine){ .paranoid = 4 });
	memset(name, '\n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	explain_open(&err, -EACCES, name, &attr, 1, 2, root.path);
	check(!strchr(err.text, '\n'));
	check_has(err.text, "paranoid is 4");
	tear_down();
}

int main(void)
{
	tap_run(user_mode_of_oneself_is_forbidden_above_two);
	tap_run(the_kernel_is_forbidden_at_two);
	tap_run(whole_cpus_are_forbidden_at_one);
	tap_run(tracepoints_are_forbidden_at_zero);
	tap_run(another_users_process);
	tap_run(namespaces_need_the_capability);
	tap_run(refused_though_capable);
	tap_run(a_container_without_the_capability);
	tap_run(capabilities_of_a_user_namespace_do_not_count);
	tap_run(no_counters_in_a_virtual_machine);
	tap_run(an_event_that_nobody_has);
	tap_run(what_a_pmu_cannot_do);
	tap_run(limits_are_told_with_their_value);
	tap_run(the_rest_has_words_too);
	tap_run(the_many_causes_of_einval);
	tap_run(probes_need_the_capability_at_every_level);
	tap_run(errnos_of_probes);
	tap_run(errnos_of_breakpoints);
	tap_run(every_level_for_every_kind);
	tap_run(each_errno_has_a_cause_and_a_remedy);
	tap_run(each_errno_of_a_filter);
	tap_run(older_kernels);
	tap_run(capabilities);
	tap_run(an_empty_machine);
	tap_run(members_of_a_group);
	tap_run(locked_memory_with_need_and_limits);
	tap_run(long_and_hostile_names);
	return tap_end();
}
