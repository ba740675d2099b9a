/* SPDX-License-Identifier: MIT */
/*
 * What the kernel does with events, which the library is built on: whom a verb reaches, what a reset
 * leaves, what is read through which descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
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
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL; /* or some users are refused for that */
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
		struct tally_count now = { 0 };
		fresh_touch(&f, 1);
		check_int(tally_counter_read(o.counter, &now), 0);
		check(now.value > last && now.value < 10000);
		/* Nobody shares a software event, also while it counts. */
		check_u64(now.running_ns, now.enabled_ns);
		check_int(now.state, TALLY_COUNT_EXACT);
		last = now.value;
	}
	close_all(&o);
	fresh_unmap(&f);
}

/*
 * The page is touched by the kernel, when it copies into it. By the system call itself: a sanitizer
 * would look at its shadow of the page.
 */
FRESH_UNWATCHED static bool fault_in_the_kernel(struct fresh *f, int zeroes, size_t n)
{
	bool ok = true;

	for (; n > 0; n--, f->touched++)
		ok &= syscall(SYS_read, zeroes, f->at + f->touched * f->page_size, 1ul) == 1;
	return ok;
}

static void modes_are_told_apart(void)
{
	int zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct fresh f = fresh_map(100);
	struct tally_count counts[3];
	struct opened o;

	require(zeroes >= 0 && f.at);
	if (!open_group(&o, "{page-faults:u,page-faults:k,page-faults:uk}", 0)) {
		close(zeroes);
		tap_skip("this user may not count in the kernel");
	}
	for (int round = 0; round < 2; round++) { /* the first one loads code */
		check_int(tally_group_reset(o.group), 0);
		check_int(tally_group_enable(o.group), 0);
		fresh_touch(&f, 30);
		bool copied = fault_in_the_kernel(&f, zeroes, 20);
		check_int(tally_group_disable(o.group), 0);
		check_int(tally_group_read(o.group, counts, 3), 0);
		check(copied);
	}
	check_u64(counts[0].value, 30);
	check_u64(counts[1].value, 20);
	check_u64(counts[2].value, 50);
	close(zeroes);
	close_all(&o);
	fresh_unmap(&f);
}

/* A list of n times one event, in braces. */
static char *many(const char *name, size_t n)
{
	size_t len = strlen(name) + 1;
	char *list = malloc(n * len + 8);

	for (size_t i = 0; list && i < n; i++)
		sprintf(list + 1 + i * len, "%s%s", name, i + 1 < n ? "," : "}:u");
	if (list)
		list[0] = '{';
	return list;
}

static bool open_many(struct opened *o, size_t n, uint32_t flags)
{
	char *list = many("page-faults", n);
	bool ok = list && open_group(o, list, flags);

	free(list);
	return ok;
}

static void a_large_group_counts_as_one(void)
{
	enum {
		MEMBERS = 300
	};
	static struct tally_count counts[MEMBERS];
	struct fresh f = fresh_map(20);
	struct opened o;

	if (!f.at || !open_many(&o, MEMBERS, 0)) {
		check_int(err.cause, TALLY_CAUSE_FD_LIMIT);
		tap_skip("there are not so many descriptors");
	}
	for (int round = 0; round < 2; round++) {
		check_int(tally_group_reset(o.group), 0);
		check_int(tally_group_enable(o.group), 0);
		fresh_touch(&f, 10);
		check_int(tally_group_disable(o.group), 0);
	}
	check_int(tally_group_read(o.group, counts, MEMBERS), 0);
	for (int i = 0; i < MEMBERS; i++)
		check_u64(counts[i].value, 10);
	close_all(&o);
	fresh_unmap(&f);
}

/* What a read(2) of a group answers has 16 KiB at most. */
static void a_group_that_is_too_large_is_told_or_split(void)
{
	enum {
		MEMBERS = 800
	};
	static struct tally_count counts[MEMBERS];
	struct fresh f = fresh_map(10);
	struct opened o;

	require(f.at && !open_many(&o, MEMBERS, 0));
	if (err.cause == TALLY_CAUSE_FD_LIMIT)
		tap_skip("there are not so many descriptors");
	check_int(err.code, -E2BIG);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "more members than the kernel can read");
	require(open_many(&o, MEMBERS, TALLY_COUNTER_WEAK));
	check_int(tally_group_pieces(o.group), 2);
	check_int(tally_group_enable(o.group), 0);
	fresh_touch(&f, 10);
	check_int(tally_group_disable(o.group), 0);
	check_int(tally_group_read(o.group, counts, MEMBERS), 0);
	check(counts[0].value >= 10 && counts[MEMBERS - 1].value >= 10);
	close_all(&o);
	fresh_unmap(&f);
}

static void users_do_not_disturb_each_other(void)
{
	struct fresh f = fresh_map(60);
	struct opened a, b;

	require(f.at && open_counter(&a, "page-faults:u", &self, 0, 0) &&
		open_counter(&b, "page-faults:u", &self, 0, 0));
	for (int round = 0; round < 2; round++) {
		check_int(tally_counter_reset(a.counter), 0);
		check_int(tally_counter_reset(b.counter), 0);
		check_int(tally_counter_enable(a.counter), 0);
		fresh_touch(&f, 5);
		check_int(tally_counter_enable(b.counter), 0);
		fresh_touch(&f, 10);
		check_int(tally_counter_disable(a.counter), 0);
		fresh_touch(&f, 5);
		check_int(tally_counter_disable(b.counter), 0);
	}
	check_u64(value_of(a.counter), 15);
	check_u64(value_of(b.counter), 15);
	check_int(tally_counter_reset(a.counter), 0);
	check_u64(value_of(a.counter), 0);
	check_u64(value_of(b.counter), 15);
	close_all(&a);
	close_all(&b);
	fresh_unmap(&f);
}

static void each_cpu_has_a_count_of_its_own(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_CPUS };
	struct tally_count all, one;
	struct opened o;
	uint64_t sum = 0;

	if (!open_counter(&o, "cpu-clock", &cpus, TALLY_COUNTER_ENABLED, 0))
		tap_skip("this user may not count CPUs");
	check_int(tally_counter_disable(o.counter), 0);
	check_int(tally_counter_read(o.counter, &all), 0);
	for (uint32_t p = 0; p < tally_counter_places(o.counter, NULL); p++) {
		check_int(tally_counter_read_place(o.counter, p, &one), 0);
		check(one.value > 0);
		sum += one.value;
	}
	check_u64(sum, all.value);
	check_int(tally_counter_read_place(o.counter, 4096, &one), -EINVAL);
	close_all(&o);
}

/* It may exceed the time that it was enabled by a little; nothing is made of that. */
static void the_clock_of_a_task_is_as_the_kernel_tells_it(void)
{
	struct tally_count count;
	struct opened o;

	require(open_counter(&o, "task-clock:u", &self, TALLY_COUNTER_ENABLED, 0));
	for (volatile int i = 0; i < 100000; i++)
		;
	check_int(tally_counter_disable(o.counter), 0);
	check_int(tally_counter_read(o.counter, &count), 0);
	check(count.value > 0);
	check_u64(count.value, count.raw);
	check_int(count.state, TALLY_COUNT_EXACT);
	close_all(&o);
}

/* A thread that touches pages when it is told, and ends. */
struct toucher {
	struct fresh fresh;
	int from;
};

static void *touch_when_told(void *arg)
{
	struct toucher *t = arg;
	char byte;

	if (t->from < 0 || read(t->from, &byte, 1) == 1)
		fresh_touch(&t->fresh, t->fresh.pages);
	return NULL;
}

static void inheriting_covers_those_to_come_alone(void)
{
	struct toucher old = { fresh_map(300), -1 }, young = { fresh_map(100), -1 };
	pthread_t thread;
	struct opened o;
	int down[2];
	char byte = 0;

	require(old.fresh.at && young.fresh.at && pipe2(down, O_CLOEXEC) == 0);
	old.from = down[0];
	require(pthread_create(&thread, NULL, touch_when_told, &old) == 0);
	require(open_counter(&o, "page-faults:u", &self,
			     TALLY_COUNTER_INHERIT | TALLY_COUNTER_ENABLED, 0));
	check_int(write(down[1], &byte, 1), 1);
	pthread_join(thread, NULL);
	uint64_t before = value_of(o.counter);
	check(before < 100);
	require(pthread_create(&thread, NULL, touch_when_told, &young) == 0);
	pthread_join(thread, NULL);
	uint64_t after = value_of(o.counter);
	check(after >= before + 100 && after < before + 250);
	close(down[0]);
	close(down[1]);
	close_all(&o);
	fresh_unmap(&old.fresh);
	fresh_unmap(&young.fresh);
}

/* prctl(2) reaches what the caller has opened; a child has opened nothing. */
static void a_childs_switch_does_not_reach_its_parents(void)
{
	struct fresh f = fresh_map(10);
	struct opened o;
	int status = -1;

	require(f.at && open_counter(&o, "page-faults:u", &self, TALLY_COUNTER_ENABLED, 0));
	pid_t pid = fork();
	if (pid == 0)
		_exit(tally_task_events_disable() == 0 ? 0 : 1);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	uint64_t before = value_of(o.counter);
	fresh_touch(&f, 10);
	check(value_of(o.counter) >= before + 10);
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
	tap_run(modes_are_told_apart);
	tap_run(a_large_group_counts_as_one);
	tap_run(a_group_that_is_too_large_is_told_or_split);
	tap_run(users_do_not_disturb_each_other);
	tap_run(each_cpu_has_a_count_of_its_own);
	tap_run(the_clock_of_a_task_is_as_the_kernel_tells_it);
	tap_run(inheriting_covers_those_to_come_alone);
	tap_run(a_childs_switch_does_not_reach_its_parents);
	return tap_end();
}
