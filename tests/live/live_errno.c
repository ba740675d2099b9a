/* SPDX-License-Identifier: MIT */
/*
 * What the kernel refuses, and how it is told: the same attr goes to perf_event_open(2) itself, which
 * is the referee, and through a counter, whose error must have the kernel's errno, the cause and a
 * remedy. The errnos were measured on Linux 6.18; bits that a newer kernel knows are left out there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "opening.h"
#include "tap.h"

#define CLOEXEC 8ul

static int raw(struct tally_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);

	return fd < 0 ? -errno : fd;
}

/* Opens and closes it: 0 or the errno. */
static int raw_answer(const struct tally_attr *attr)
{
	struct tally_attr copy = *attr;

	copy.size = tally_attr_size(attr);
	copy.flags |= TALLY_ATTR_DISABLED;
	int r = raw(&copy, 0, -1, -1, CLOEXEC);
	if (r >= 0)
		close(r);
	return r < 0 ? r : 0;
}

static int api_answer(const struct tally_attr *attr)
{
	struct opened o = { 0 };

	memset(&err, 0, sizeof(err));
	int r = tally_events_new(&o.events, "it", attr, NULL, &err);
	if (r == 0)
		r = tally_counter_open(&o.counter, tally_events_at(o.events, 0), &self, NULL, &err);
	close_all(&o);
	return r;
}

static int64_t number_in(const char *path)
{
	long long n = -1;
	FILE *f = fopen(path, "r");

	if (f && fscanf(f, "%lld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static int64_t sysctl_of(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	return number_in(path);
}

static bool is_root(void)
{
	return geteuid() == 0 && sysctl_of("perf_event_paranoid") != -1;
}

static volatile uint64_t watched[2];

#define F(name) TALLY_ATTR_##name
#define S(name) TALLY_SAMPLE_##name

struct row {
	uint32_t type;
	uint64_t config, flags, sample_type, period, branches, regs, config1, config2;
	uint32_t stack, bp_type;
	uint16_t max_stack;
	int32_t clock;
	int code; /* of the kernel; 0: it takes it */
	uint32_t cause;
	const char *why, *mend;
};

static void fill(struct tally_attr *attr, const struct row *row)
{
	tally_attr_init(attr, row->type, row->config);
	attr->flags = row->flags;
	attr->sample_type = row->sample_type;
	attr->sample_period = row->period;
	attr->branch_sample_type = row->branches;
	attr->sample_regs_user = row->regs;
	attr->config1 = row->config1;
	attr->config2 = row->config2;
	attr->sample_stack_user = row->stack;
	attr->bp_type = row->bp_type;
	attr->sample_max_stack = row->max_stack;
	attr->clockid = row->clock;
}

static void check_row(const struct row *row, size_t i)
{
	struct tally_attr attr;

	fill(&attr, row);
	bool right = check_int(raw_answer(&attr), row->code) &&
		     check_int(api_answer(&attr), row->code);
	if (right && row->code)
		right = check_has(err.text, row->why) && check_has(err.text, row->mend) &&
			check_str(tally_cause_name(err.cause), tally_cause_name(row->cause));
	if (!right)
		printf("# row %zu: %s\n", i, err.text);
}

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_row(&rows[i], i);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(*(rows)))

#define UNSUPPORTED TALLY_CAUSE_UNSUPPORTED
#define ARGUMENT    TALLY_CAUSE_ARGUMENT

static void events_that_nobody_has(void)
{
	static const struct row rows[] = {
		{ 0x7fffff42, 0, .code = -ENOENT, .cause = UNSUPPORTED, .why = "no PMU has type",
		  .mend = "/sys/bus/event_source" },
		{ 1, 99, .code = -ENOENT, .cause = UNSUPPORTED, .why = "no software event 99",
		  .mend = "newer" },
		{ 2, 0, .code = -EINVAL, .cause = TALLY_CAUSE_UNKNOWN, .why = "no tracepoint with",
		  .mend = "tally list" },
		{ 2, 0xfffffff, .code = -EINVAL, .cause = TALLY_CAUSE_UNKNOWN,
		  .why = "no tracepoint with", .mend = "tally list" },
		/* The upper half is no alias of a tracepoint that there is. */
		{ 2, 1ull << 32 | 1, .code = -EINVAL, .cause = TALLY_CAUSE_UNKNOWN,
		  .why = "no tracepoint with", .mend = "tally list" },
	};

	if (!is_root())
		tap_skip("what another user is refused is refused for other reasons");
	CHECK_ROWS(rows);
}

static void hardware_where_there_is_none(void)
{
	static const struct row rows[] = {
		{ 0, 0, .code = -ENOENT, .cause = TALLY_CAUSE_NO_PMU, .why = "hardware counters",
		  .mend = "software event" },
		{ 0, 99, .code = -ENOENT, .cause = TALLY_CAUSE_NO_PMU, .why = "hardware counters",
		  .mend = "software event" },
		{ 3, 0, .code = -ENOENT, .cause = TALLY_CAUSE_NO_PMU, .why = "hardware counters",
		  .mend = "software event" },
		{ 4, 0x3c, .code = -ENOENT, .cause = TALLY_CAUSE_NO_PMU, .why = "hardware counters",
		  .mend = "software event" },
	};
	struct tally_attr cycles;

	fill(&cycles, &rows[0]);
	if (raw_answer(&cycles) != -ENOENT)
		tap_skip("this machine has hardware counters, or this user may not ask");
	CHECK_ROWS(rows);
}

static void bits_that_nobody_knows(void)
{
	static const struct row rows[] = {
		{ 1, .flags = 1ull << 60, .code = -EINVAL, .cause = UNSUPPORTED,
		  .why = "flags 0x1000000000000001", .mend = "dmesg" },
		{ 1, .sample_type = 1ull << 60, .code = -EINVAL, .cause = UNSUPPORTED,
		  .why = "sample_type 0x1000000000000000", .mend = "dmesg" },
		{ 1, .flags = F(USE_CLOCKID), .clock = 99, .code = -EINVAL, .cause = ARGUMENT,
		  .why = "the clock 99", .mend = "CLOCK_MONOTONIC" },
		{ 1, .flags = F(AUX_OUTPUT), .code = -EOPNOTSUPP, .cause = UNSUPPORTED,
		  .why = "AUX area", .mend = "member of a group" },
	};

	if (!is_root())
		tap_skip("what another user is refused is refused for other reasons");
	CHECK_ROWS(rows);
}

static void samples_that_cannot_be(void)
{
	static const struct row rows[] = {
		{ 1, .period = 1ull << 63, .code = -EINVAL, .cause = ARGUMENT, .why = "period",
		  .mend = "63 bits at most" },
		{ 1, .sample_type = S(BRANCH_STACK), .branches = 1 << 3, .code = -EOPNOTSUPP,
		  .cause = UNSUPPORTED, .why = "branch stacks need", .mend = "without them" },
		{ 1, .sample_type = S(BRANCH_STACK), .code = -EINVAL, .cause = ARGUMENT,
		  .why = "branch_sample_type", .mend = "which branches" },
		{ 1, .sample_type = S(REGS_USER), .code = -EINVAL, .cause = ARGUMENT,
		  .why = "sample_regs_user", .mend = "names no register" },
		{ 1, .sample_type = S(STACK_USER), .stack = 7, .code = -EINVAL, .cause = ARGUMENT,
		  .why = "7 bytes", .mend = "multiple of 8" },
		{ 1, .sample_type = S(STACK_USER), .stack = 65536, .code = -EINVAL,
		  .cause = ARGUMENT, .why = "65536 bytes", .mend = "at most 65528" },
		{ 1, .sample_type = S(WEIGHT) | S(WEIGHT_STRUCT), .code = -EINVAL,
		  .cause = ARGUMENT, .why = "weight", .mend = "either whole or split" },
	};

	if (!is_root())
		tap_skip("what another user is refused is refused for other reasons");
	CHECK_ROWS(rows);
}

static void limits_of_the_machine(void)
{
	int64_t rate = sysctl_of("perf_event_max_sample_rate");
	int64_t depth = sysctl_of("perf_event_max_stack");

	if (!is_root() || rate < 0 || depth < 0 || depth > 60000)
		tap_skip("the limits cannot be read, or are none");
	const struct row rows[] = {
		{ 1, .flags = F(FREQ), .period = (uint64_t)rate + 1, .code = -EINVAL,
		  .cause = TALLY_CAUSE_LIMIT, .why = "perf_event_max_sample_rate",
		  .mend = "ask for fewer, or 'sudo sysctl" },
		{ 1, .sample_type = S(CALLCHAIN), .max_stack = (uint16_t)(depth + 1),
		  .code = -EOVERFLOW, .cause = TALLY_CAUSE_LIMIT, .why = "perf_event_max_stack",
		  .mend = "ask for fewer, or 'sudo sysctl" },
	};
	CHECK_ROWS(rows);
}

/* What looks wrong, and is not refused. */
static void what_the_kernel_takes(void)
{
	static const struct row rows[] = {
		{ 1, .flags = F(FREQ) }, /* 0 a second: never samples */
		{ 1, .flags = 3ull << TALLY_ATTR_PRECISE_IP_SHIFT },
		{ 1, .clock = 99 },
		{ 1, .flags = F(BUILD_ID) },
		{ 1, .sample_type = S(STACK_USER) },
		{ 1, .sample_type = S(STACK_USER), .stack = 65528 },
		{ 1, .flags = F(EXCLUDE_USER) | F(EXCLUDE_KERNEL) | F(EXCLUDE_HV) },
	};

	if (!is_root())
		tap_skip("what another user is refused is refused for other reasons");
	CHECK_ROWS(rows);
}

static void breakpoints_that_cannot_be(void)
{
	const uint64_t at = (uintptr_t)&watched[0];
	const char *align = "align it", *no = "no breakpoint like that";
	const struct row rows[] = {
		{ 5, .config1 = at + 1, .config2 = 8, .bp_type = 2, .code = -EINVAL,
		  .cause = ARGUMENT, .why = no, .mend = align },
		{ 5, .config1 = at, .config2 = 8, .bp_type = 1, .code = -EINVAL, .cause = ARGUMENT,
		  .why = no, .mend = "reading alone" },
		{ 5, .config1 = at, .config2 = 8, .bp_type = 7, .code = -EINVAL, .cause = ARGUMENT,
		  .why = no, .mend = align },
		{ 5, .config1 = at, .config2 = 4, .bp_type = 4, .code = -EINVAL, .cause = ARGUMENT,
		  .why = no, .mend = "other than a long" },
	};
	struct tally_attr attr;

	fill(&attr, &(struct row){ 5, .config1 = at, .config2 = 8, .bp_type = 2 });
	if (!is_root() || raw_answer(&attr) != 0)
		tap_skip("no breakpoint can be opened here");
#if defined(__x86_64__)
	CHECK_ROWS(rows);
#else
	(void)rows;
	tap_skip("what x86 cannot watch");
#endif
}

static void more_breakpoints_than_the_cpu_has(void)
{
	struct opened o[32];
	struct tally_attr attr;
	int n = 0, r = 0;

	fill(&attr, &(struct row){ 5, .flags = F(EXCLUDE_KERNEL), .config2 = 8, .bp_type = 2,
				   .config1 = (uintptr_t)&watched[0] });
	memset(o, 0, sizeof(o));
	for (; r == 0 && n < 32; n++) {
		require(tally_events_new(&o[n].events, NULL, &attr, NULL, &err) == 0);
		r = tally_counter_open(&o[n].counter, tally_events_at(o[n].events, 0), &self, NULL,
				       &err);
	}
	struct tally_error last = err;
	for (int i = 0; i < n; i++)
		close_all(&o[i]);
	if (n == 1)
		tap_skip("no breakpoint can be opened here");
	check_int(r, -ENOSPC);
	check_has(last.text, "breakpoints of the CPU are in use");
	check_has(last.text, "close one first");
	check_int(last.cause, TALLY_CAUSE_LIMIT);
	/* All of them are free again. */
	check_int(api_answer(&attr), 0);
}

static void a_probe_without_a_path(void)
{
	int64_t type = number_in("/sys/bus/event_source/devices/uprobe/type");
	const struct row row = { (uint32_t)type, .code = -EINVAL, .cause = ARGUMENT,
				 .why = "no place for a probe", .mend = "regular one" };

	if (type < 0 || !is_root())
		tap_skip("no uprobe PMU here, or another user");
	check_row(&row, 0);
}

/* -- what a newer library asks of an older kernel, and other sizes -------------------------------- */

/* The kernel writes its own size into an attr that is too large for it. */
static uint32_t kernels_size(void)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.size = 8;
	return raw(&attr, 0, -1, -1, CLOEXEC) == -E2BIG ? attr.size : 0;
}

static void sizes_of_an_attr(void)
{
	static struct {
		struct tally_attr attr;
		unsigned char more[65536];
	} big;
	long page = sysconf(_SC_PAGESIZE);
	uint32_t known = kernels_size();

	check(known >= TALLY_ATTR_SIZE_MIN && known % 8 == 0);
	tally_attr_init(&big.attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	big.attr.flags = F(EXCLUDE_KERNEL);
	const uint32_t fine[] = { 0, TALLY_ATTR_SIZE_MIN, known, (uint32_t)page };
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		big.attr.size = fine[i];
		int fd = raw(&big.attr, 0, -1, -1, CLOEXEC);
		check(fd >= 0);
		close(fd);
	}
	big.attr.size = (uint32_t)page + 8;
	check_int(raw(&big.attr, 0, -1, -1, CLOEXEC), -E2BIG);
	check_int(big.attr.size, known);
	/* Something that it does not know. */
	big.attr.size = (uint32_t)page;
	((unsigned char *)&big)[page - 1] = 1;
	check_int(raw(&big.attr, 0, -1, -1, CLOEXEC), -E2BIG);
	check_int(big.attr.size, known);
}

static void fields_of_a_newer_kernel(void)
{
	struct tally_attr attr;
	uint32_t known = kernels_size();
	char has[64];

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.flags = F(EXCLUDE_KERNEL);
	attr.config4 = 1;
	if (known >= tally_attr_size(&attr))
		tap_skip("this kernel has all the fields that the library has");
	check_int(raw_answer(&attr), -E2BIG);
	/* It selects what is counted: it is not left out. */
	check_int(api_answer(&attr), -E2BIG);
	snprintf(has, sizeof(has), "knows %u bytes", known);
	check_has(err.text, has);
	check_has(err.text, "newer kernel");
}

/* Deferred callchains are of Linux 6.19, and EINVAL before: they change no count. */
static void bits_of_a_newer_kernel(void)
{
	const struct tally_events_opts opts = { .size = sizeof(opts),
						.fallback = TALLY_FALLBACK_NEWER_BITS };
	struct opened o = { 0 };
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.flags = F(EXCLUDE_KERNEL) | F(DEFER_CALLCHAIN);
	if (raw_answer(&attr) != -EINVAL)
		tap_skip("this kernel has all the bits that the library has");
	require(tally_events_new(&o.events, NULL, &attr, &opts, &err) == 0);
	struct tally_event *e = tally_events_at(o.events, 0);
	check_int(tally_counter_open(&o.counter, e, &self, NULL, &err), 0);
	check_has(tally_event_compromise(e), "without deferred callchains");
	check(!(tally_event_granted(e)->flags & F(DEFER_CALLCHAIN)));
	close_all(&o);
}

/* -- what the library never asks for ------------------------------------------------------------ */

static struct tally_attr dummy_attr(void)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.flags = F(EXCLUDE_KERNEL);
	return attr;
}

static void check_raw(const struct tally_attr *as, pid_t pid, int cpu, int group,
		      unsigned long flags, int want)
{
	struct tally_attr attr = *as;
	int r = raw(&attr, pid, cpu, group, flags | CLOEXEC);

	if (!check_int(r < 0 ? r : 0, want))
		printf("# pid %d cpu %d group %d flags %#lx attr.flags %#llx\n", pid, cpu, group,
		       flags, (unsigned long long)as->flags);
	if (r >= 0)
		close(r);
}

static void places_and_groups_that_cannot_be(void)
{
	struct tally_attr plain = dummy_attr(), attr;
	int leader = raw(&plain, 0, -1, -1, CLOEXEC), member = raw(&plain, 0, -1, leader, CLOEXEC);
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), folder = open("/tmp", O_RDONLY);

	require(leader >= 0 && member >= 0 && file >= 0 && folder >= 0);
	check_raw(&plain, -1, -1, -1, 0, -EINVAL);
	check_raw(&plain, 0, 9999, -1, 0, -EINVAL);
	check_raw(&plain, 0x3fffff, -1, -1, 0, -ESRCH);
	check_raw(&plain, 0, -1, 4000, 0, -EBADF);
	check_raw(&plain, 0, -1, file, 0, -EBADF);
	check_raw(&plain, 0, -1, member, 0, -EINVAL);
	check_raw(&plain, 0, 0, leader, 0, -EINVAL);
	check_raw(&plain, getppid() > 1 ? getppid() : 1, -1, leader, 0, -EINVAL);
	check_raw(&plain, 0, -1, -1, 1ul << 20, -EINVAL);
	/* Flags that a counter has options for, which are checked before. */
	static const uint64_t lonely[] = { F(INHERIT_THREAD), F(SIGTRAP),
					   F(ENABLE_ON_EXEC) | F(REMOVE_ON_EXEC) };
	for (size_t i = 0; i < sizeof(lonely) / sizeof(*lonely); i++) {
		attr = plain;
		attr.flags |= lonely[i];
		check_raw(&attr, 0, -1, -1, 0, -EINVAL);
	}
	check_raw(&plain, folder, -1, -1, PERF_FLAG_PID_CGROUP, -EINVAL);
	check_raw(&plain, folder, 0, -1, PERF_FLAG_PID_CGROUP, -EBADF);
	check_raw(&plain, 4000, 0, -1, PERF_FLAG_PID_CGROUP, -EBADF);
	check_raw(&plain, 0, -1, leader, PERF_FLAG_FD_OUTPUT, -EINVAL);
	static const uint64_t differ[] = { F(PINNED), F(EXCLUSIVE), F(INHERIT), F(USE_CLOCKID) };
	for (size_t i = 0; i < sizeof(differ) / sizeof(*differ); i++) {
		attr = plain;
		attr.flags |= differ[i];
		attr.clockid = CLOCK_MONOTONIC;
		attr.size = tally_attr_size(&attr);
		check_raw(&attr, 0, -1, leader, 0, -EINVAL);
	}
	attr = plain;
	attr.read_format = 1ull << 60;
	check_raw(&attr, 0, -1, -1, 0, -EINVAL);
	/* Members need not agree on how they are read. */
	attr.read_format = TALLY_READ_ID;
	check_raw(&attr, 0, -1, leader, 0, 0);
	/* On CPUs these two have no effect. */
	attr.flags |= F(INHERIT) | F(ENABLE_ON_EXEC);
	if (is_root())
		check_raw(&attr, -1, 0, -1, 0, 0);
	close(folder);
	close(file);
	close(member);
	close(leader);
}

/* And refuses by itself, before the kernel may take it for something else. */
static void what_has_no_effect_is_refused(void)
{
	static const uint32_t flags[] = { TALLY_COUNTER_INHERIT, TALLY_COUNTER_ENABLE_ON_EXEC,
					  TALLY_COUNTER_REMOVE_ON_EXEC };
	const struct tally_target cpus = { .scope = TALLY_SCOPE_CPUS };
	struct opened o;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		check(!open_counter(&o, "page-faults:u", &cpus, flags[i], 0));
		check_int(err.code, -EINVAL);
		check_has(err.text, "CPUs neither start threads nor exec");
	}
}

static void a_mapped_event_writes_to_no_other(void)
{
	struct opened ring, other;
	struct tally_ring *first, *second;

	require(open_counter(&ring, "dummy:u", &self, 0, 1));
	require(open_counter(&other, "page-faults:u", &self, 0, 1));
	int fd = tally_counter_fd(ring.counter, 0), fd2 = tally_counter_fd(other.counter, 0);
	require(tally_ring_open(&first, fd, TALLY_OPTS(ring, .bytes = 4096), &err) == 0);
	check_int(tally_counter_set_output(other.counter, 0, fd), 0);
	int r = tally_ring_open(&second, fd2, TALLY_OPTS(ring, .bytes = 4096), &err);
	if (r == 0) {
		tally_ring_close(second);
		tally_ring_close(first);
		close_all(&ring);
		close_all(&other);
		tap_skip("this kernel maps the ring of the other event instead, as 6.1 does");
	}
	check_int(r, -EBUSY);
	check_int(err.cause, TALLY_CAUSE_BUSY);
	check_has(err.text, "detach its output");
	check_int(tally_counter_detach_output(other.counter, 0), 0);
	check_int(tally_ring_open(&second, fd2, TALLY_OPTS(ring, .bytes = 4096), &err), 0);
	/* Its own is mapped now. */
	check_int(tally_counter_set_output(other.counter, 0, fd), -EINVAL);
	tally_ring_close(second);
	tally_ring_close(first);
	close_all(&ring);
	close_all(&other);
}

/* The kernel's rules of PERF_EVENT_IOC_SET_OUTPUT. */
static void outputs_that_cannot_be_shared(void)
{
	const int32_t cpu = 0;
	const struct tally_target on_cpu = { .scope = TALLY_SCOPE_CPUS,
					     .cpus = &cpu,
					     .cpu_count = 1 };
	struct opened ring, elsewhere = { 0 }, clock = { 0 };
	struct tally_ring *map;

	require(open_counter(&ring, "dummy:u", &self, 0, 1));
	int fd = tally_counter_fd(ring.counter, 0);
	require(tally_ring_open(&map, fd, TALLY_OPTS(ring, .bytes = 4096), &err) == 0);
	if (open_counter(&elsewhere, "dummy:u", &on_cpu, 0, 1))
		check_int(tally_counter_set_output(elsewhere.counter, 0, fd), -EINVAL);
	require(tally_events_parse(&clock.events, "dummy:u", NULL, &err) == 0);
	require(tally_counter_open(&clock.counter, tally_events_at(clock.events, 0), &self,
				   TALLY_OPTS(counter, .flags = TALLY_COUNTER_USE_CLOCKID,
					      .clockid = CLOCK_MONOTONIC, .period = 1),
				   &err) == 0);
	check_int(tally_counter_set_output(clock.counter, 0, fd), -EINVAL);
	check_int(tally_counter_set_output(clock.counter, 1, fd), -EINVAL);
	tally_ring_close(map);
	close_all(&clock);
	close_all(&elsewhere);
	close_all(&ring);
}

/* -- sandboxes and limits, each in a child ------------------------------------------------------- */

/* What the child says on its standard output, for this test to look at. */
static bool in_child(void (*fn)(void), char *said, size_t room)
{
	int out[2], status = -1;
	size_t n = 0;

	said[0] = '\0';
	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		fn();
		dprintf(out[1], "%d %s %s", err.code, tally_cause_name(err.cause), err.text);
		_exit(0);
	}
	close(out[1]);
	for (ssize_t got; n + 1 < room && (got = read(out[0], said + n, room - 1 - n)) > 0;)
		n += (size_t)got;
	said[n] = '\0';
	close(out[0]);
	return waitpid(pid, &status, 0) == pid && status == 0 && n > 0;
}

/* What an ordinary user may have and not have at kernel.perf_event_paranoid 2. */
static void check_as_ordinary_user(void)
{
	const uint64_t at = (uintptr_t)&watched[0];
	const char *level = "kernel.perf_event_paranoid is 2";
	const char *one = "sysctl kernel.perf_event_paranoid=1";
	const struct row rows[] = {
		{ 1, TALLY_SW_PAGE_FAULTS, .code = -EACCES, .cause = TALLY_CAUSE_PARANOID,
		  .why = level, .mend = one },
		{ 1, TALLY_SW_DUMMY, .code = -EACCES, .cause = TALLY_CAUSE_PARANOID, .why = level,
		  .mend = one },
		{ 5, .config1 = at, .config2 = 8, .bp_type = 2, .code = -EACCES,
		  .cause = TALLY_CAUSE_PARANOID, .why = level, .mend = one },
		{ 1, .flags = F(EXCLUDE_KERNEL), .sample_type = S(PHYS_ADDR), .code = -EACCES,
		  .cause = TALLY_CAUSE_PARANOID, .why = level, .mend = one },
		{ 1, .flags = F(EXCLUDE_KERNEL) | F(NAMESPACES), .code = -EACCES,
		  .cause = TALLY_CAUSE_PERMISSION, .why = "whatever kernel.perf_event_paranoid",
		  .mend = "be root" },
		{ 1, TALLY_SW_PAGE_FAULTS, .flags = F(EXCLUDE_KERNEL) },
		{ 1, TALLY_SW_DUMMY, .flags = F(EXCLUDE_KERNEL) | F(KSYMBOL) },
		{ 1, .flags = F(EXCLUDE_KERNEL), .sample_type = S(CALLCHAIN) },
		{ 5, .config1 = at, .config2 = 8, .bp_type = 2, .flags = F(EXCLUDE_KERNEL) },
	};

	CHECK_ROWS(rows);
}

static void ordinary_users_at_level_two(void)
{
	int status = -1;

	if (geteuid() != 0 || sysctl_of("perf_event_paranoid") != 2)
		tap_skip("only root can become another user, and the level must be 2");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(77);
		tap_.bad = false;
		check_as_ordinary_user();
		fflush(stdout);
		_exit(tap_.bad);
	}
	check_int(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		tap_skip("this sandbox does not let root become another user");
	check_int(status, 0);
}

static int refuse_with; /* what the filter answers */

static void open_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)refuse_with),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	struct opened o;

	err = (struct tally_error){ .code = 1, .text = "no filter" };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
	    open_counter(&o, "page-faults:u", &self, 0, 0))
		close_all(&o);
}

static void a_filter_is_named(void)
{
	static const int codes[] = { EPERM, ENOSYS, EACCES };
	char said[1024], begin[32];

	if (!is_root())
		tap_skip("without the capability it may as well be the paranoid level");
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		refuse_with = codes[i];
		require(in_child(open_filtered, said, sizeof(said)));
		if (!strncmp(said, "1 ", 2))
			tap_skip("no seccomp filter can be set here");
		snprintf(begin, sizeof(begin), "-%d seccomp ", codes[i]);
		check(!strncmp(said, begin, strlen(begin)));
		check_has(said, "seccomp filter");
		check_has(said, "--cap-add PERFMON");
	}
}

/* Both limits, so that it cannot be raised again: the child alone is bound by them. */
static void open_with_few_descriptors(void)
{
	const struct rlimit few = { 8, 8 };
	struct tally_events *events;
	struct tally_group *group;

	if (setrlimit(RLIMIT_NOFILE, &few) < 0 ||
	    tally_events_parse(&events,
			       "{faults,faults,faults,faults,faults,faults,faults,faults}:u", NULL,
			       &err) < 0)
		return;
	if (tally_group_open(&group, events, 0, &self, NULL, &err) == 0)
		err = (struct tally_error){ .code = 1, .text = "it opened" };
	tally_events_free(events);
}

static void the_number_of_descriptors_is_told(void)
{
	char said[1024];

	require(in_child(open_with_few_descriptors, said, sizeof(said)));
	check(!strncmp(said, "-24 fd-limit ", 13));
	check_has(said, "it takes 8 file descriptors");
	check_has(said, "may have 8 (RLIMIT_NOFILE, hard limit 8)");
	check_has(said, "prlimit --nofile=");
}

int main(void)
{
	struct opened probe;

	if (!open_counter(&probe, "page-faults:u", &self, 0, 0)) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_all(&probe);
	tap_run(events_that_nobody_has);
	tap_run(hardware_where_there_is_none);
	tap_run(bits_that_nobody_knows);
	tap_run(samples_that_cannot_be);
	tap_run(limits_of_the_machine);
	tap_run(what_the_kernel_takes);
	tap_run(breakpoints_that_cannot_be);
	tap_run(more_breakpoints_than_the_cpu_has);
	tap_run(a_probe_without_a_path);
	tap_run(sizes_of_an_attr);
	tap_run(fields_of_a_newer_kernel);
	tap_run(bits_of_a_newer_kernel);
	tap_run(places_and_groups_that_cannot_be);
	tap_run(what_has_no_effect_is_refused);
	tap_run(a_mapped_event_writes_to_no_other);
	tap_run(outputs_that_cannot_be_shared);
	tap_run(ordinary_users_at_level_two);
	tap_run(a_filter_is_named);
	tap_run(the_number_of_descriptors_is_told);
	return tap_end();
}
