/* SPDX-License-Identifier: MIT */
/*
 * What the kernel does with events, which the library is built on: whom a verb reaches, what a reset
 * leaves, what is read through which descriptor.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <tally/tally.h>

#include "fresh.h"
#include "opening.h"
#include "tap.h"
#include "tracefs.h"

static bool has_tracefs;

static void one_trigger_is_one(void)
{
	static const struct {
		const char *name;
		long call;
	} rows[] = {
		{ "syscalls:sys_enter_getpid", SYS_getpid },
		{ "syscalls:sys_enter_read", SYS_read },
		{ "syscalls:sys_enter_write", SYS_write },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct opened o;
		if (!has_tracefs || !open_counter(&o, rows[i].name, &self, 0, 0))
			tap_skip("no tracepoints of system calls");
		check_int(tally_counter_enable(o.counter), 0);
		syscall(rows[i].call, -1, NULL, 0);
		check_int(tally_counter_disable(o.counter), 0);
		check_u64(value_of(o.counter), 1);
		close_all(&o);
	}
}

static void ids_differ_by_cpu_and_agree_with_readings(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_CPUS };
	uint64_t words[5], ids[2];
	struct opened o;

	if (!open_counter(&o, "page-faults", &cpus, 0, 0))
		tap_skip("this user may not count CPUs");
	uint32_t places = tally_counter_places(o.counter, NULL);
	for (uint32_t p = 0; p < places && p < 2; p++) {
		check_int(tally_counter_id(o.counter, p, &ids[p]), 0);
		ssize_t n = read(tally_counter_fd(o.counter, p), words, sizeof(words));
		check(n >= 32);
		check_u64(words[3], ids[p]);
	}
	if (places > 1)
		check(ids[0] != ids[1]);
	/* A shorter buffer than the reading. */
	check(read(tally_counter_fd(o.counter, 0), words, 8) < 0 && errno == ENOSPC);
	close_all(&o);
}

static void an_unknown_type_is_told(void)
{
	struct tally_counter *counter;
	struct tally_events *events;
	struct tally_attr attr;

	tally_attr_init(&attr, 0x7fffff42, 0);
	require(tally_events_new(&events, NULL, &attr, NULL, &err) == 0);
	/* It has a name all the same. */
	check(tally_event_name(tally_events_at(events, 0))[0] != '\0');
	check_int(tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err),
		  -ENOENT);
	check_has(err.text, tally_event_name(tally_events_at(events, 0)));
	tally_events_free(events);
}

static void a_member_switches_and_reads_the_whole_in_the_kernel(void)
{
	struct fresh f = fresh_map(40);
	uint64_t words[16];
	struct opened o;

	require(f.at && open_group(&o, "{page-faults,minor-faults,major-faults}:u", 0));
	int leader = tally_counter_fd(tally_group_member(o.group, 0), 0);
	int last = tally_counter_fd(tally_group_member(o.group, 2), 0);
	/* By any member's descriptor. */
	check_int(ioctl(last, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP), 0);
	fresh_touch(&f, 10);
	check_int(ioctl(last, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
	fresh_touch(&f, 10);
	check(read(last, words, sizeof(words)) > 0);
	check_u64(words[0], 3);
	check_u64(value_of(tally_group_member(o.group, 1)), 10);
	/* One alone stays off below its leader. */
	check_int(tally_group_enable(o.group), 0);
	check_int(ioctl(tally_counter_fd(tally_group_member(o.group, 1), 0), PERF_EVENT_IOC_DISABLE,
			0),
		  0);
	fresh_touch(&f, 10);
	check_u64(value_of(tally_group_member(o.group, 1)), 10);
	check_u64(value_of(tally_group_member(o.group, 0)), 20);
	/* Switching the group reaches it again. */
	check_int(tally_group_disable(o.group), 0);
	check_int(tally_group_enable(o.group), 0);
	fresh_touch(&f, 10);
	check_u64(value_of(tally_group_member(o.group, 1)), 20);
	check(leader >= 0);
	close_all(&o);
	fresh_unmap(&f);
}

static void the_kernels_reset_is_not_ours(void)
{
	struct fresh f = fresh_map(20);
	struct tally_count counts[2];
	struct opened o;

	require(f.at && open_group(&o, "{page-faults,minor-faults}:u", 0));
	check_int(tally_group_enable(o.group), 0);
	fresh_touch(&f, 10);
	check_int(tally_group_disable(o.group), 0);
	check_int(
		ioctl(tally_counter_fd(tally_group_member(o.group, 0), 0), PERF_EVENT_IOC_RESET, 0),
		0);
	check_int(tally_group_read(o.group, counts, 2), 0);
	check_u64(counts[0].value, 0);
	check_u64(counts[1].value, 10);
	check(counts[0].enabled_ns > 0);
	check_int(tally_group_reset(o.group), 0);
	check_int(tally_group_read(o.group, counts, 2), 0);
	check_u64(counts[1].value, 0);
	check_u64(counts[0].enabled_ns, 0);
	close_all(&o);
	fresh_unmap(&f);
}

static void without_a_leader_members_count_alone(void)
{
	struct fresh f = fresh_map(20);
	uint64_t words[16] = { 0 };
	struct opened o;

	require(f.at && open_group(&o, "{page-faults,minor-faults}:u", TALLY_COUNTER_ENABLED));
	int leader = tally_counter_fd(tally_group_member(o.group, 0), 0);
	int second = tally_counter_fd(tally_group_member(o.group, 1), 0);
	int kept = dup(second);
	check_int(close(leader), 0);
	check(read(kept, words, sizeof(words)) > 0);
	check_u64(words[0], 1);
	uint64_t before = words[3];
	fresh_touch(&f, 10);
	check(read(kept, words, sizeof(words)) > 0);
	check(words[3] >= before + 10);
	/* The group knows that it cannot be read any more. */
	struct tally_count counts[2];
	check_int(tally_group_read(o.group, counts, 2), -EBADF);
	close(kept);
	close_all(&o);
	fresh_unmap(&f);
}

/* Touches n pages in a child, and waits for its end. */
static void touch_in_child(struct fresh *f, size_t n)
{
	pid_t pid = fork();

	if (pid == 0) {
		fresh_touch(f, n);
		_exit(0);
	}
	check_int(waitpid(pid, NULL, 0), pid);
}

/*
 * The kernel's reset reaches them or not, by whether it swapped the contexts of parent and child
 * when it switched from one to the other.
 */
static void a_reset_covers_ended_children(void)
{
	const struct tally_target process = { .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
	struct fresh f = fresh_map(300);
	struct tally_count count;
	struct opened o;

	require(f.at && open_counter(&o, "page-faults:u", &process, TALLY_COUNTER_ENABLED, 0));
	touch_in_child(&f, 300);
	check_int(tally_counter_disable(o.counter), 0);
	check(value_of(o.counter) >= 300);
	check_int(tally_counter_reset(o.counter), 0);
	check_int(tally_counter_read(o.counter, &count), 0);
	check_u64(count.value, 0);
	check_u64(count.enabled_ns, 0);
	close_all(&o);
	fresh_unmap(&f);
}

static void switches_happen_in_the_kernel_alone(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	struct opened user, both;

	require(open_counter(&user, "context-switches:u", &self, TALLY_COUNTER_ENABLED, 0));
	if (!open_counter(&both, "context-switches", &self, TALLY_COUNTER_ENABLED, 0)) {
		close_all(&user);
		tap_skip("this user may not count in the kernel");
	}
	for (int i = 0; i < 5; i++)
		nanosleep(&moment, NULL);
	check_u64(value_of(user.counter), 0);
	check(value_of(both.counter) >= 5);
	close_all(&user);
	close_all(&both);
}

/* A child that touches pages whenever it is told, and answers. */
static pid_t start_toucher(int to[2], int from[2])
{
	char byte;

	if (pipe(to) < 0 || pipe(from) < 0)
		return -1;
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct fresh f = fresh_map(100);
	close(to[1]);
	while (read(to[0], &byte, 1) == 1) {
		fresh_touch(&f, 10);
		if (write(from[1], &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static bool touch_there(int to, int from)
{
	char byte = 0;

	return write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1;
}

static void a_threads_events_are_switched_at_once(void)
{
	struct fresh f = fresh_map(60);
	struct opened mine, theirs;
	int to[2], from[2];
	pid_t pid = start_toucher(to, from);
	const struct tally_target child = { .scope = TALLY_SCOPE_THREAD, .id = pid };

	require(f.at && pid > 0);
	require(open_group(&mine, "{page-faults,minor-faults}:u", 0));
	require(open_counter(&theirs, "page-faults:u", &child, TALLY_COUNTER_ENABLED, 0));
	check_int(tally_group_enable(mine.group), 0);
	fresh_touch(&f, 10);
	check_int(tally_task_events_disable(), 0);
	/* Code that runs for the first time faults as well. */
	uint64_t first = value_of(tally_group_member(mine.group, 0));
	uint64_t second = value_of(tally_group_member(mine.group, 1));
	check(first >= 10);
	fresh_touch(&f, 10);
	check_u64(value_of(tally_group_member(mine.group, 0)), first);
	check_u64(value_of(tally_group_member(mine.group, 1)), second);
	/* Those on others too, as long as this thread opened them. */
	uint64_t before = value_of(theirs.counter);
	check(touch_there(to[1], from[0]));
	check_u64(value_of(theirs.counter), before);
	check_int(tally_task_events_enable(), 0);
	fresh_touch(&f, 10);
	check(value_of(tally_group_member(mine.group, 1)) >= second + 10);
	check(touch_there(to[1], from[0]));
	check(value_of(theirs.counter) >= before + 10);
	/* Switched off so, it is switched on by its own verb. */
	check_int(tally_task_events_disable(), 0);
	check_int(tally_group_reset(mine.group), 0);
	check_int(tally_group_enable(mine.group), 0);
	fresh_touch(&f, 10);
	check(value_of(tally_group_member(mine.group, 1)) >= 10);
	close(to[1]);
	check_int(waitpid(pid, NULL, 0), pid);
	close(to[0]);
	close(from[0]);
	close(from[1]);
	close_all(&mine);
	close_all(&theirs);
	fresh_unmap(&f);
}

static void counts_never_go_back(void)
{
	struct fresh f = fresh_map(200);
	struct opened o;
	uint64_t last = 0;

	require(f.at && open_counter(&o, "page-faults:u", &self, TALLY_COUNTER_ENABLED, 0));
	for (int i = 0; i < 200; i++) {
		fresh_touch(&f, 1);
		uint64_t now = value_of(o.counter);
		check(now > last && now != UINT64_MAX);
		last = now;
	}
	close_all(&o);
	fresh_unmap(&f);
}

int main(void)
{
	struct opened probe;

	has_tracefs = tracefs_ready();
	if (!open_counter(&probe, "page-faults:u", &self, 0, 0)) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_all(&probe);
	tap_run(one_trigger_is_one);
	tap_run(ids_differ_by_cpu_and_agree_with_readings);
	tap_run(an_unknown_type_is_told);
	tap_run(a_member_switches_and_reads_the_whole_in_the_kernel);
	tap_run(the_kernels_reset_is_not_ours);
	tap_run(without_a_leader_members_count_alone);
	tap_run(a_reset_covers_ended_children);
	tap_run(switches_happen_in_the_kernel_alone);
	tap_run(a_threads_events_are_switched_at_once);
	tap_run(counts_never_go_back);
	return tap_end();
}
