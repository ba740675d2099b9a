/* SPDX-License-Identifier: MIT */
/*
 * count, on the real kernel. The exact event is a page fault: a fresh page that is touched is one,
 * whatever the machine. Programs fault on their own too (loader, stack), so what they touch is the
 * difference to a twin that touches nothing; the least of several runs is the undisturbed one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "fresh.h"
#include "tap.h"
#include "tracefs.h"

#define PAGES 100u
#define RUNS  15

static struct tally_error err;
/* A counter of one event, NULL with the reason in err. */
static struct tally_counter *open_one(const char *name, uint32_t scope, int32_t id, uint32_t flags,
				      struct tally_events **events)
{
	struct tally_target target = { .scope = scope, .id = id };
	struct tally_counter *counter = NULL;

	if (tally_events_parse(events, name, NULL, &err) < 0)
		return NULL;
	if (tally_counter_open(&counter, tally_events_at(*events, 0), &target,
			       TALLY_OPTS(counter, .flags = flags), &err) < 0) {
		tally_events_free(*events);
		return NULL;
	}
	return counter;
}

static void close_one(struct tally_counter *counter, struct tally_events *events)
{
	tally_counter_close(counter);
	tally_events_free(events);
}

static void touched_pages_are_counted_exactly(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, 0, 0, &events);
	struct tally_count count;

	require(counter != NULL);
	/* The first round warms up the code that reads. */
	for (int round = 0; round < 2; round++) {
		struct fresh f = fresh_map(PAGES);
		check_int(tally_counter_reset(counter), 0);
		check_int(tally_counter_enable(counter), 0);
		fresh_touch(&f, PAGES);
		check_int(tally_counter_disable(counter), 0);
		check_int(tally_counter_read(counter, &count), 0);
		fresh_unmap(&f);
	}
	check_u64(count.value, PAGES);
	check_int(count.state, TALLY_COUNT_EXACT);
	check(count.enabled_ns > 0);
	check_u64(count.running_ns, count.enabled_ns);
	close_one(counter, events);
}

static void disabled_it_counts_nothing(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, 0, 0, &events);
	struct fresh f = fresh_map(PAGES);
	struct tally_count count;

	require(counter != NULL);
	fresh_touch(&f, PAGES);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 0);
	check_u64(count.enabled_ns, 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	fresh_unmap(&f);
	close_one(counter, events);
}

static void enabled_from_the_open_on_it_counts_at_once(void)
{
	struct fresh f = fresh_map(PAGES);
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, 0,
						 TALLY_COUNTER_ENABLED, &events);
	struct tally_count count;

	require(counter != NULL);
	fresh_touch(&f, PAGES);
	check_int(tally_counter_read(counter, &count), 0);
	check(count.value >= PAGES);
	check(count.enabled_ns > 0);
	fresh_unmap(&f);
	close_one(counter, events);
}

static void reset_makes_a_zero_of_counts_and_times(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, 0,
						 TALLY_COUNTER_ENABLED, &events);
	struct fresh f = fresh_map(PAGES);
	struct tally_count count, later;

	require(counter != NULL);
	fresh_touch(&f, PAGES);
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 0);
	check_u64(count.enabled_ns, 0);
	check_u64(count.running_ns, 0);
	check_int(tally_counter_enable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_int(tally_counter_read(counter, &later), 0);
	check(later.enabled_ns > count.enabled_ns);
	check(later.value >= count.value);
	fresh_unmap(&f);
	close_one(counter, events);
}

static void members_of_a_group_count_the_same_stretch(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_count counts[3];
	struct tally_events *events;
	struct tally_group *group;

	require(tally_events_parse(&events, "{page-faults,minor-faults,major-faults}:u", NULL,
				   &err) == 0);
	require(tally_group_open(&group, events, 0, &self, NULL, &err) == 0);
	for (int round = 0; round < 2; round++) {
		struct fresh f = fresh_map(PAGES);
		check_int(tally_group_reset(group), 0);
		check_int(tally_group_enable(group), 0);
		fresh_touch(&f, PAGES);
		check_int(tally_group_disable(group), 0);
		check_int(tally_group_read(group, counts, 3), 0);
		fresh_unmap(&f);
	}
	check_u64(counts[0].value, PAGES);
	check_u64(counts[1].value, PAGES);
	check_u64(counts[2].value, 0);
	check_u64(counts[0].enabled_ns, counts[2].enabled_ns);
	/* Stopped: nothing moves. */
	struct tally_count again[3];
	struct fresh f = fresh_map(PAGES);
	fresh_touch(&f, PAGES);
	check_int(tally_group_read(group, again, 3), 0);
	check_u64(again[1].value, counts[1].value);
	check_u64(again[1].enabled_ns, counts[1].enabled_ns);
	fresh_unmap(&f);
	tally_group_close(group);
	tally_events_free(events);
}

/* What a run of the program `touch` faults, from its exec on. UINT64_MAX: it did not work. */
static uint64_t touch_faults(const char *list, uint32_t flags, char *const argv[])
{
	uint64_t faults = UINT64_MAX;
	struct tally_launch *launch = NULL;
	struct tally_events *events = NULL;
	struct tally_group *group = NULL;
	struct tally_count counts[2];
	struct tally_exit end;

	if (tally_events_parse(&events, list, NULL, &err) < 0 ||
	    tally_launch_start(&launch, argv, &err) < 0)
		goto out;
	struct tally_target target = { .scope = TALLY_SCOPE_COMMAND,
				       .id = tally_launch_pid(launch) };
	if (tally_group_open(&group, events, 0, &target, TALLY_OPTS(counter, .flags = flags),
			     &err) == 0 &&
	    tally_launch_go(launch, &err) == 0 && tally_launch_wait(launch, -1, &end, &err) == 1 &&
	    end.status == 0 && tally_group_read(group, counts, 2) == 0)
		faults = counts[tally_group_size(group) - 1].value;
out:
	tally_group_close(group);
	tally_launch_close(launch);
	tally_events_free(events);
	return faults;
}

/* The faults of `touch PAGES THREADS CHILDREN`. */
static uint64_t faults_of(const char *list, uint32_t flags, const char *pages, const char *threads,
			  const char *children)
{
	const char *program = getenv("TOUCH");
	char *argv[] = { strdup(program ? program : ""), strdup(pages), strdup(threads),
			 strdup(children), NULL };
	uint64_t faults = touch_faults(list, flags, argv);

	for (int i = 0; argv[i]; i++)
		free(argv[i]);
	return faults;
}

/*
 * How many faults 1,000 pages are more than none: the least of several runs, since a run may be
 * disturbed, by turns, so that what the page cache holds of the program is the same for both.
 */
static uint64_t touched(const char *list, uint32_t flags, const char *threads, const char *children)
{
	uint64_t twin = UINT64_MAX, full = UINT64_MAX;

	for (int i = 0; i < RUNS; i++) {
		uint64_t empty = faults_of(list, flags, "0", threads, children);
		uint64_t faults = faults_of(list, flags, "1000", threads, children);
		twin = empty < twin ? empty : twin;
		full = faults < full ? faults : full;
	}
	return full == UINT64_MAX ? full : full - twin;
}

static void a_command_is_counted_exactly(void)
{
	check_u64(touched("page-faults:u", 0, "0", "0"), 1000);
}

static void threads_and_children_are_counted_exactly(void)
{
	/* Itself, two threads and three children. */
	check_u64(touched("page-faults:u", 0, "2", "3"), 6000);
	check_u64(touched("{minor-faults,page-faults}:u", 0, "2", "3"), 6000);
}

static void not_inherited_it_is_the_first_thread_alone(void)
{
	check_u64(touched("page-faults:u", TALLY_COUNTER_NO_INHERIT, "2", "3"), 1000);
}

/* Threads of a process that waits to be told to touch. */
struct worker {
	int from, to; /* a byte for each step */
};

static void *work(void *arg)
{
	const struct worker *w = arg;
	struct fresh f = fresh_map(PAGES);
	char byte = 0;

	/* Ready, go, done. */
	if (write(w->to, &byte, 1) == 1 && read(w->from, &byte, 1) == 1) {
		fresh_touch(&f, PAGES);
		if (write(w->to, &byte, 1) != 1)
			return NULL;
	}
	return arg;
}

/* A child with three threads that touch PAGES pages each when told, and then start one more. */
static pid_t start_process(int *to_child, int *from_child)
{
	int down[2], up[2];

	if (pipe(down) < 0 || pipe(up) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct worker w = { down[0], up[1] };
		pthread_t threads[2], late;
		char byte;
		close(down[1]);
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, work, &w);
		work(&w);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		pthread_create(&late, NULL, work, &w);
		pthread_join(late, NULL);
		_exit(read(down[0], &byte, 1) < 0);
	}
	close(down[0]);
	close(up[1]);
	*to_child = down[1];
	*from_child = up[0];
	return pid;
}

static bool await_bytes(int fd, int count)
{
	char byte;

	while (count > 0 && read(fd, &byte, 1) == 1)
		count--;
	return count == 0;
}

static void an_attached_process_is_all_its_threads_now_and_later(void)
{
	const struct tally_place *places;
	struct tally_events *events;
	struct tally_count count;
	int to, from;
	pid_t pid = start_process(&to, &from);

	require(pid > 0 && await_bytes(from, 3));
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_PROCESS, pid,
						 TALLY_COUNTER_ENABLED, &events);
	require(counter != NULL);
	check_int(tally_counter_places(counter, &places), 3);
	check_int(places[0].tid, pid);
	check_int(write(to, "123", 3), 3);
	check(await_bytes(from, 4));
	check_int(tally_counter_read(counter, &count), 0);
	/* They have faults of their own, on stacks and in libc, but few. */
	check(count.value >= 3 * PAGES);
	check(count.value < 3 * PAGES + 64);
	uint64_t before = count.value;
	check_int(write(to, "4", 1), 1);
	check(await_bytes(from, 1));
	check_int(tally_counter_read(counter, &count), 0);
	check(count.value - before >= PAGES);
	check(count.value - before < PAGES + 64);
	/* The reset also covers what ended threads have counted. */
	check_int(tally_counter_disable(counter), 0);
	close(to);
	check_int(waitpid(pid, NULL, 0), pid);
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 0);
	check_u64(count.enabled_ns, 0);
	close(from);
	close_one(counter, events);
}

static void one_thread_is_that_thread_alone(void)
{
	struct tally_events *events;
	struct tally_count count;
	int to, from;
	pid_t pid = start_process(&to, &from);

	require(pid > 0 && await_bytes(from, 3));
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_THREAD, pid,
						 TALLY_COUNTER_ENABLED, &events);
	require(counter != NULL);
	check_int(tally_counter_places(counter, NULL), 1);
	check_int(write(to, "1234", 4), 4);
	check(await_bytes(from, 5));
	check_int(tally_counter_read(counter, &count), 0);
	check(count.value >= PAGES);
	check(count.value < PAGES + 64);
	close(to);
	check_int(waitpid(pid, NULL, 0), pid);
	close(from);
	close_one(counter, events);
}

static void a_process_that_is_gone_is_esrch(void)
{
	struct tally_events *events;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	check_int(waitpid(pid, NULL, 0), pid);
	check(open_one("page-faults:u", TALLY_SCOPE_PROCESS, pid, 0, &events) == NULL);
	check_int(err.code, -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check(open_one("page-faults:u", TALLY_SCOPE_THREAD, pid, 0, &events) == NULL);
	check_int(err.code, -ESRCH);
}

static void *churn(void *arg)
{
	return arg;
}

static void a_process_that_starts_threads_all_the_time_can_be_attached(void)
{
	struct tally_events *events;
	struct tally_count count;
	pid_t pid = fork();

	if (pid == 0) {
		for (;;) {
			pthread_t t;
			if (pthread_create(&t, NULL, churn, NULL) == 0)
				pthread_join(t, NULL);
		}
	}
	require(pid > 0);
	for (int i = 0; i < 20; i++) {
		struct tally_counter *counter = open_one("task-clock:u", TALLY_SCOPE_PROCESS, pid,
							 0, &events);
		if (!check(counter != NULL)) {
			printf("# %s\n", err.text);
			break;
		}
		check_int(tally_counter_enable(counter), 0);
		check_int(tally_counter_read(counter, &count), 0);
		close_one(counter, events);
	}
	kill(pid, SIGKILL);
	check_int(waitpid(pid, NULL, 0), pid);
}

static void cpus_count_whoever_runs_there(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults", TALLY_SCOPE_CPUS, 0, 0, &events);
	struct fresh f = fresh_map(PAGES);
	struct tally_count count;

	if (!counter && (err.cause == TALLY_CAUSE_PARANOID || err.cause == TALLY_CAUSE_PERMISSION))
		tap_skip("this user may not count CPUs");
	require(counter != NULL);
	check_int(tally_counter_places(counter, NULL), sysconf(_SC_NPROCESSORS_ONLN));
	check_int(tally_counter_enable(counter), 0);
	fresh_touch(&f, PAGES);
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check(count.value >= PAGES);
	fresh_unmap(&f);
	close_one(counter, events);
}

static bool has_tracefs;

static void a_tracepoint_counts_each_trigger(void)
{
	if (!has_tracefs)
		tap_skip("tracefs is not mounted, and this user may not mount it");
	struct tally_events *events;
	struct tally_counter *counter = open_one("syscalls:sys_enter_getppid", TALLY_SCOPE_SELF, 0,
						 0, &events);
	struct tally_count count;

	if (!counter && err.cause == TALLY_CAUSE_UNKNOWN)
		tap_skip("this kernel has no tracepoints of system calls");
	if (!counter && (err.cause == TALLY_CAUSE_PARANOID || err.cause == TALLY_CAUSE_PERMISSION))
		tap_skip("this user may not count tracepoints");
	require(counter != NULL);
	check_int(tally_counter_enable(counter), 0);
	for (int i = 0; i < 321; i++)
		syscall(SYS_getppid);
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 321);
	close_one(counter, events);
}

/* No scope binds one thread to one CPU, so this goes to the kernel by itself. */
static void bound_to_another_cpu_it_never_ran(void)
{
	cpu_set_t before, one;
	struct tally_attr attr;
	uint64_t words[3];
	struct tally_count count = { 0 };

	sched_getaffinity(0, sizeof(before), &before);
	if (CPU_COUNT(&before) < 2)
		tap_skip("one CPU alone");
	int cpus[2], n = 0;
	for (int c = 0; c < CPU_SETSIZE && n < 2; c++)
		if (CPU_ISSET(c, &before))
			cpus[n++] = c;
	CPU_ZERO(&one);
	CPU_SET(cpus[1], &one);
	sched_setaffinity(0, sizeof(one), &one);
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	attr.read_format = TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING;
	attr.size = tally_attr_size(&attr);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, cpus[0], -1, 8ul);
	struct fresh f = fresh_map(PAGES);
	fresh_touch(&f, PAGES);
	fresh_unmap(&f);
	ssize_t got = fd < 0 ? -1 : read(fd, words, sizeof(words));
	sched_setaffinity(0, sizeof(before), &before);
	close(fd);
	require(got == sizeof(words));
	count.raw = words[0];
	count.enabled_ns = words[1];
	count.running_ns = words[2];
	tally_count_settle(&count);
	check(count.enabled_ns > 0);
	check_u64(count.running_ns, 0);
	check_int(count.state, TALLY_COUNT_NEVER_RAN);
	check_u64(count.value, 0);
}

int main(void)
{
	has_tracefs = tracefs_ready();
	struct tally_events *events;
	struct tally_counter *probe;

	/* For the programs: where the loader maps things decides how many faults it takes. */
	personality(ADDR_NO_RANDOMIZE);
	probe = open_one("page-faults:u", TALLY_SCOPE_SELF, 0, 0, &events);
	if (!probe) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_one(probe, events);
	tap_run(touched_pages_are_counted_exactly);
	tap_run(disabled_it_counts_nothing);
	tap_run(enabled_from_the_open_on_it_counts_at_once);
	tap_run(reset_makes_a_zero_of_counts_and_times);
	tap_run(members_of_a_group_count_the_same_stretch);
	tap_run(a_command_is_counted_exactly);
	tap_run(threads_and_children_are_counted_exactly);
	tap_run(not_inherited_it_is_the_first_thread_alone);
	tap_run(an_attached_process_is_all_its_threads_now_and_later);
	tap_run(one_thread_is_that_thread_alone);
	tap_run(a_process_that_is_gone_is_esrch);
	tap_run(a_process_that_starts_threads_all_the_time_can_be_attached);
	tap_run(cpus_count_whoever_runs_there);
	tap_run(a_tracepoint_counts_each_trigger);
	tap_run(bound_to_another_cpu_it_never_ran);
	return tap_end();
}
