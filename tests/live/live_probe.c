/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints, filters, probes and breakpoints on the real kernel. All of them count exactly: what is
 * done N times here is counted N times.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "tap.h"
#include "tracefs.h"

#define N        137u
#define MANY     41u /* of others, which must not be counted */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* No file has these numbers: close(2) is entered and refused, whoever else closes files. */
#define FD_A 999983
#define FD_B 999979

#define CLOSE "syscalls:sys_enter_close"

static struct tally_error err;
static bool has_tracefs;
static char uprobe[4200], uretprobe[4200], inside[4200];
static volatile unsigned sink;

/* What is probed: neither inlined nor cloned, by any compiler. */
#if defined(__clang__)
#define ALONE __attribute__((noinline, optnone))
#else
#define ALONE __attribute__((noipa))
#endif

/* Recursion: each call is one hit and one return. */
ALONE unsigned probed_function(unsigned depth);

ALONE unsigned probed_function(unsigned depth)
{
	sink++;
	if (!depth)
		return 1;
	unsigned below = probed_function(depth - 1);
	sink++; /* or an optimizer makes a loop of it */
	return below + 1;
}

static void call_it(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		sink += probed_function(0);
}

static void close_fds(long fd, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		syscall(SYS_close, fd);
}

static void both(void)
{
	close_fds(FD_A, N);
	close_fds(FD_B, MANY);
	call_it(N);
}

/* Counts the events of a list over `work`. false: the reason is in err. */
static bool count(const char *text, const char *filter, uint32_t scope, void (*work)(void),
		  uint64_t *values, uint32_t room)
{
	const struct tally_target self = { .scope = scope };
	struct tally_counter *counters[16] = { NULL };
	struct tally_events *events;
	bool ok = true;

	memset(&err, 0, sizeof(err));
	if (tally_events_parse(&events, text, NULL, &err) < 0)
		return false;
	uint32_t have = tally_events_count(events);
	ok = have <= room && have <= COUNT(counters);
	for (uint32_t i = 0; ok && i < have; i++) {
		struct tally_event *e = tally_events_at(events, i);
		ok = tally_event_set_filter(e, filter) == 0 &&
		     tally_counter_open(&counters[i], e, &self, NULL, &err) == 0;
	}
	for (uint32_t i = 0; ok && i < have; i++)
		ok = tally_counter_enable(counters[i]) == 0;
	if (ok)
		work();
	for (uint32_t i = 0; ok && i < have; i++) {
		struct tally_count c;
		ok = tally_counter_disable(counters[i]) == 0 &&
		     tally_counter_read(counters[i], &c) == 0 && c.state == TALLY_COUNT_EXACT;
		values[i] = c.value;
	}
	for (uint32_t i = 0; i < COUNT(counters); i++)
		tally_counter_close(counters[i]);
	tally_events_free(events);
	return ok;
}

static bool counted(const char *text, const char *filter, uint64_t *values, uint32_t room)
{
	bool ok = count(text, filter, TALLY_SCOPE_SELF, both, values, room);

	if (!ok)
		printf("# %s: %s\n", text, err.text);
	return ok;
}

/* Tried by doing: one close, counted. */
static void one_close(void)
{
	close_fds(FD_A, 1);
}

static const char *why_no_tracepoints(void)
{
	uint64_t value = 0;

	if (!has_tracefs)
		return "tracefs can be neither read nor mounted here";
	if (!count(CLOSE, NULL, TALLY_SCOPE_SELF, one_close, &value, 1))
		return "this user or kernel opens no tracepoint of a system call";
	return value ? NULL : "tracepoints open here, but count nothing";
}

static void a_tracepoint_alone(void)
{
	const char *why = why_no_tracepoints();
	uint64_t value = 0;

	if (why)
		tap_skip(why);
	require(counted(CLOSE, "fd == 999983 || fd == 999979", &value, 1));
	check_u64(value, N + MANY);
}

static void a_filter_lets_by_what_it_says(void)
{
	static const struct {
		const char *filter;
		uint64_t want;
	} filters[] = {
		{ "fd == 999983", N },    { "fd == 999979", MANY },
		{ "fd == 1", 0 },         { "fd > 999900 && fd != 999979", N },
		{ "common_pid == 0", 0 },
	};
	const char *why = why_no_tracepoints();

	if (why)
		tap_skip(why);
	for (size_t i = 0; i < COUNT(filters); i++) {
		uint64_t value = 12345;
		require(counted(CLOSE, filters[i].filter, &value, 1));
		check_u64(value, filters[i].want);
	}
}

/* Opened as enabled: the call that sets the filter must not be counted, nor any other. */
static void a_filter_is_there_from_the_first_moment(void)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	const char *why = why_no_tracepoints();
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_count c;

	if (why)
		tap_skip(why);
	require(tally_events_parse(&events, "raw_syscalls:sys_enter", NULL, &err) == 0);
	struct tally_event *e = tally_events_at(events, 0);
	check_int(tally_event_set_filter(e, "id == 999983"), 0);
	int r = tally_counter_open(&counter, e, &self,
				   TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED), &err);
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	close_fds(FD_A, N);
	check_int(tally_counter_read(counter, &c), 0);
	check_u64(c.value, 0);
	tally_counter_close(counter);
	tally_events_free(events);
}

static void a_filter_that_is_none(void)
{
	const char *why = why_no_tracepoints();
	uint64_t value;

	if (why)
		tap_skip(why);
	check(!count(CLOSE, "fdd == 3", TALLY_SCOPE_SELF, both, &value, 1));
	check_int(err.code, -EINVAL);
	check_has(err.text, "no field 'fdd', the nearest is 'fd'");
	check(!count(CLOSE, "fd == ", TALLY_SCOPE_SELF, both, &value, 1));
	check_has(err.text, "its fields are common_pid, __syscall_nr, fd");
	check(!count("page-faults", "fd == 3", TALLY_SCOPE_SELF, both, &value, 1));
	check_has(err.text, "takes no filter");
}

static void patterns_expand_to_what_there_is(void)
{
	const char *why = why_no_tracepoints();
	struct tally_events *events;
	uint64_t values[4] = { 0 };

	if (why)
		tap_skip(why);
	require(tally_events_parse(&events, "syscalls:sys_*_close", NULL, &err) == 0);
	require(tally_events_count(events) == 2);
	check_str(tally_event_name(tally_events_at(events, 0)), CLOSE);
	check_str(tally_event_name(tally_events_at(events, 1)), "syscalls:sys_exit_close");
	tally_events_free(events);
	/* The one that reads the counts closes nothing meanwhile. */
	require(counted("*:sys_*_close", NULL, values, COUNT(values)));
	check_u64(values[0], N + MANY);
	check_u64(values[1], N + MANY);
}

static void read_group(const struct tally_group *group, uint64_t *values, uint32_t count_of)
{
	struct tally_count counts[8];

	check(tally_group_read((struct tally_group *)(uintptr_t)group, counts, COUNT(counts)) >= 0);
	for (uint32_t i = 0; i < count_of; i++) {
		check_int(counts[i].state, TALLY_COUNT_EXACT);
		values[i] = counts[i].value;
	}
}

static bool count_group(const char *text, const char *const *filters, uint64_t *values,
			uint32_t members)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_group *group;

	if (tally_events_parse(&events, text, NULL, &err) < 0)
		return false;
	for (uint32_t i = 0; i < members; i++)
		if (filters && filters[i])
			tally_event_set_filter(tally_events_at(events, i), filters[i]);
	bool ok = tally_group_open(&group, events, 0, &self, NULL, &err) == 0;
	if (ok) {
		check_int(tally_group_enable(group), 0);
		both();
		check_int(tally_group_disable(group), 0);
		read_group(group, values, members);
		tally_group_close(group);
	}
	tally_events_free(events);
	return ok;
}

static void tracepoints_in_a_group(void)
{
	static const char *const filters[] = { "fd == 999983", "fd == 999979", NULL,
					       "fd == 999983" };
	const char *why = why_no_tracepoints();
	uint64_t values[4] = { 0 };

	if (why)
		tap_skip(why);
	bool ok = count_group("{" CLOSE "," CLOSE ",dummy," CLOSE "}", filters, values, 4);
	if (!ok)
		printf("# %s\n", err.text);
	require(ok);
	check_u64(values[0], N);
	check_u64(values[1], MANY);
	check_u64(values[2], 0);
	check_u64(values[3], N);
}

static void find_self(void)
{
	char path[4000];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	snprintf(uprobe, sizeof(uprobe), "uprobe:%s:probed_function", path);
	snprintf(uretprobe, sizeof(uretprobe), "uretprobe:%s:probed_function", path);
	snprintf(inside, sizeof(inside), "uprobe:%s:probed_function:u", path);
}

static const char *why_no_uprobes(void)
{
	uint64_t value = 0;

	if (!count(uprobe, NULL, TALLY_SCOPE_SELF, both, &value, 1)) {
		printf("# %s\n", err.text);
		return "this user or kernel opens no uprobe";
	}
	return NULL; /* that it counts is what is tested */
}

static void calls_and_returns_of_a_function(void)
{
	const char *why = why_no_uprobes();
	uint64_t values[3] = { 0 };
	char text[3 * sizeof(uprobe)];

	if (why)
		tap_skip(why);
	snprintf(text, sizeof(text), "%s,%s,%s", uprobe, uretprobe, inside);
	require(counted(text, NULL, values, 3));
	check_u64(values[0], N);
	check_u64(values[1], N);
	check_u64(values[2], N);
}

static void recurse(void)
{
	sink += probed_function(N - 1);
}

static void recursion_returns_as_often(void)
{
	const char *why = why_no_uprobes();
	uint64_t values[2] = { 0 };
	char text[2 * sizeof(uprobe)];

	if (why)
		tap_skip(why);
	/* The kernel follows 64 returns of a thread at once (MAX_URETPROBE_DEPTH). */
	snprintf(text, sizeof(text), "%s", uprobe);
	require(count(text, NULL, TALLY_SCOPE_SELF, recurse, values, 1));
	check_u64(values[0], N);
}

static void probes_in_a_group(void)
{
	const char *why = why_no_uprobes();
	uint64_t values[3] = { 0 };
	char text[3 * sizeof(uprobe)];

	if (why)
		tap_skip(why);
	snprintf(text, sizeof(text), "{dummy,%s,%s}", uprobe, uretprobe);
	require(count_group(text, NULL, values, 3));
	check_u64(values[0], 0);
	check_u64(values[1], N);
	check_u64(values[2], N);
}

/* A child of ours that calls the function; -1: it could not be made. */
static int run_child(unsigned calls)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		call_it(calls);
		_exit(7);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

/* A process that is probed can fork, and neither that nor the child's end changes what it counts. */
static void a_probed_process_may_fork(const char *text)
{
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_count c = { 0 };

	require(tally_events_parse(&events, text, NULL, &err) == 0);
	struct tally_event *e = tally_events_at(events, 0);
	int r = tally_counter_open(&counter, e, &target, NULL, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	check_int(tally_counter_enable(counter), 0);
	call_it(1);
	check_int(run_child(MANY), 7);
	call_it(N - 1);
	check_int(tally_counter_read(counter, &c), 0);
	check_u64(c.value, N);
	check(!(tally_event_granted(e)->flags & TALLY_ATTR_INHERIT));
	check(tally_event_inherit_refused(e));
	check_has(tally_event_compromise(e),
		  "threads and children that start later are not counted");
	tally_counter_close(counter);
	tally_events_free(events);
}

static void probes_do_not_disturb_a_fork(void)
{
	const char *why = why_no_uprobes();

	if (why)
		tap_skip(why);
	a_probed_process_may_fork(uprobe);
	a_probed_process_may_fork(uretprobe);
}

static void probes_do_not_disturb_a_command(void)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t) "/bin/true; exit $?", NULL };
	const char *why = why_no_uprobes();
	struct tally_events *events;
	struct tally_launch *launch;
	struct tally_counter *counter;
	struct tally_exit end = { 0 };

	if (why)
		tap_skip(why);
	require(tally_events_parse(&events, uprobe, NULL, &err) == 0);
	require(tally_launch_start(&launch, argv, &err) == 0);
	const struct tally_target target = { .scope = TALLY_SCOPE_COMMAND,
					     .id = tally_launch_pid(launch) };
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check_int(end.status, 0);
	tally_counter_close(counter);
	tally_launch_close(launch);
	tally_events_free(events);
}

static void a_function_of_the_kernel(void)
{
	uint64_t values[2] = { 0 };

	if (access("/sys/bus/event_source/devices/kprobe/type", R_OK) < 0)
		tap_skip("this kernel has no kprobe PMU");
	if (!count("kprobe:__x64_sys_close", NULL, TALLY_SCOPE_SELF, one_close, values, 1)) {
		printf("# %s\n", err.text);
		tap_skip("the function __x64_sys_close is not probed here");
	}
	require(counted("kprobe:__x64_sys_close,kretprobe:__x64_sys_close", NULL, values, 2));
	check_u64(values[0], N + MANY);
	check_u64(values[1], N + MANY);
	check(!count("kprobe:there_is_no_such_function", NULL, TALLY_SCOPE_SELF, both, values, 1));
	check_has(err.text, "kallsyms");
}

static volatile uint64_t watched __attribute__((aligned(8)));

static void write_it(void)
{
	for (unsigned i = 0; i < N; i++)
		watched = i;
}

static void write_and_read_it(void)
{
	write_it();
	for (unsigned i = 0; i < MANY; i++)
		sink += (unsigned)watched;
}

static void call_it_often(void)
{
	call_it(N);
}

/* Whether breakpoints fire here, by the system call itself: what is opened may never fire. */
static bool fires(uint32_t type, const volatile void *at, uint64_t len, void (*work)(void))
{
	struct tally_attr attr;
	uint64_t value = 0;

	tally_attr_init(&attr, TALLY_TYPE_BREAKPOINT, 0);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	attr.bp_type = type;
	attr.config1 = (uintptr_t)at;
	attr.config2 = len;
	attr.size = tally_attr_size(&attr);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 8ul);
	if (fd < 0)
		return false;
	work();
	bool fired = read(fd, &value, sizeof(value)) == sizeof(value) && value > 0;
	close(fd);
	return fired;
}

static const char *const never_fire =
	"breakpoints cannot be opened here, or never fire (as in some virtual machines)";

static uint64_t hits(const char *access, const volatile void *at, void (*work)(void))
{
	uint64_t value = UINT64_MAX;
	char text[64];

	snprintf(text, sizeof(text), "mem:%#llx%s:u", (unsigned long long)(uintptr_t)at, access);
	if (!count(text, NULL, TALLY_SCOPE_SELF, work, &value, 1))
		printf("# %s: %s\n", text, err.text);
	return value;
}

static void writes_of_a_variable(void)
{
	if (!fires(2, &watched, 8, write_it))
		tap_skip(never_fire);
	check_u64(hits("/8:w", &watched, write_it), N);
	check_u64(hits("/8:w", &watched, write_and_read_it), N);
}

static void accesses_of_a_variable(void)
{
	if (!fires(3, &watched, 8, write_and_read_it))
		tap_skip(never_fire);
	check_u64(hits("/8:rw", &watched, write_and_read_it), N + MANY);
}

static void calls_by_a_breakpoint(void)
{
	const void *at = (const void *)(uintptr_t)probed_function;

	if (!fires(4, at, sizeof(long), call_it_often))
		tap_skip(never_fire);
	check_u64(hits(":x", at, call_it_often), N);
}

int main(void)
{
	has_tracefs = tracefs_ready();
	find_self();
	tap_run(a_tracepoint_alone);
	tap_run(a_filter_lets_by_what_it_says);
	tap_run(a_filter_is_there_from_the_first_moment);
	tap_run(a_filter_that_is_none);
	tap_run(patterns_expand_to_what_there_is);
	tap_run(tracepoints_in_a_group);
	tap_run(calls_and_returns_of_a_function);
	tap_run(recursion_returns_as_often);
	tap_run(probes_in_a_group);
	tap_run(probes_do_not_disturb_a_fork);
	tap_run(probes_do_not_disturb_a_command);
	tap_run(a_function_of_the_kernel);
	tap_run(writes_of_a_variable);
	tap_run(accesses_of_a_variable);
	tap_run(calls_by_a_breakpoint);
	return tap_end();
}
