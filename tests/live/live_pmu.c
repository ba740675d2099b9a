/* SPDX-License-Identifier: MIT */
/*
 * Counters of the CPU: what a machine with a PMU must show. Where there is none, or where it does not
 * move, each test is skipped with the library's own reason.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "pmu.h"

#define SPINS 1000000ull

static void instructions_per_cycle(void)
{
	struct tally_count counts[2];
	struct opened o;

	NEED_PMU();
	require(open_group(&o, "{instructions,cycles}:u", 0));
	check_int(tally_group_enable(o.group), 0);
	loop(SPINS);
	check_int(tally_group_disable(o.group), 0);
	check_int(tally_group_read(o.group, counts, 2), 0);
	check(counts[0].value >= 2 * SPINS && counts[0].value < 2 * SPINS + 100000);
	check(counts[1].value > 0);
	/* They belong to the same stretch of time. */
	check_u64(counts[0].enabled_ns, counts[1].enabled_ns);
	check_u64(counts[0].running_ns, counts[1].running_ns);
	close_all(&o);
}

static void with_software_events_in_one_group(void)
{
	/* Either kind may lead. */
	static const char *const lists[] = { "{cycles,instructions,dummy}:u",
					     "{task-clock,cycles,instructions}:u" };

	NEED_PMU();
	for (size_t i = 0; i < 2; i++) {
		struct tally_count counts[3];
		struct opened o;
		require(open_group(&o, lists[i], 0));
		check_int(tally_group_enable(o.group), 0);
		loop(SPINS);
		check_int(tally_group_disable(o.group), 0);
		check_int(tally_group_read(o.group, counts, 3), 0);
		check(counts[0].value > 0 && counts[1].value > 0);
		check(i ? counts[2].value > 0 : counts[2].value == 0);
		check_str(tally_event_name(tally_events_at(o.events, 0)),
			  i ? "task-clock:u" : "cycles:u");
		close_all(&o);
	}
}

/* Far apart, so that each is in another line and page. */
static void walk(volatile char *memory, size_t bytes, size_t step)
{
	for (size_t at = 0; at < bytes; at += step)
		memory[at]++;
}

static void misses_of_the_first_cache(void)
{
	const size_t bytes = 64u << 20;
	volatile char *memory;
	struct opened o;

	NEED_PMU();
	if (!open_counter(&o, "L1-dcache-load-misses:u", &self, 0, 0))
		tap_skip("this PMU does not count misses of the first data cache");
	memory = calloc(1, bytes);
	require(memory != NULL);
	check_int(tally_counter_enable(o.counter), 0);
	walk(memory, bytes, 4160);
	check_int(tally_counter_disable(o.counter), 0);
	uint64_t far = value_of(o.counter);
	if (far == 0) {
		free((void *)(uintptr_t)memory);
		close_all(&o);
		tap_skip(
			"a walk over 64 MiB misses nothing: the caches of this CPU are not emulated");
	}
	check_int(tally_counter_reset(o.counter), 0);
	check_int(tally_counter_enable(o.counter), 0);
	for (int i = 0; i < 4; i++)
		walk(memory, bytes / 4160, 1);
	check_int(tally_counter_disable(o.counter), 0);
	check(value_of(o.counter) < far);
	free((void *)(uintptr_t)memory);
	close_all(&o);
}

static void first_caches_in_one_group(void)
{
	struct tally_count counts[2];
	struct opened o;

	NEED_PMU();
	if (!open_group(&o, "{L1-dcache-load-misses,L1-icache-load-misses}:u", 0)) {
		check(strlen(err.text) > 20);
		tap_skip("this PMU does not count misses of both first caches");
	}
	check_int(tally_group_enable(o.group), 0);
	loop(1000);
	check_int(tally_group_disable(o.group), 0);
	check_int(tally_group_read(o.group, counts, 2), 0);
	close_all(&o);
}

static void a_commands_instructions(void)
{
	char *argv[] = { (char[]){ "/bin/echo" }, NULL };
	struct tally_launch *launch = NULL;
	struct tally_events *events = NULL;
	struct tally_group *group = NULL;
	struct tally_count counts[2];
	struct tally_exit end;

	NEED_PMU();
	require(tally_events_parse(&events, "{instructions,cycles}:u", NULL, &err) == 0);
	require(tally_launch_start(&launch, argv, &err) == 0);
	const struct tally_target target = { .scope = TALLY_SCOPE_COMMAND,
					     .id = tally_launch_pid(launch) };
	check_int(tally_group_open(&group, events, 0, &target, NULL, &err), 0);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	if (check(group != NULL)) {
		check_int(tally_group_read(group, counts, 2), 0);
		check(counts[0].value >= 1000 && counts[1].value >= 1000);
	}
	tally_group_close(group);
	tally_launch_close(launch);
	tally_events_free(events);
}

static bool open_branches(struct opened *o, const struct tally_target *target)
{
	return open_counter(o, "branches:u", target, 0, 0);
}

static void branches_of_oneself(void)
{
	struct opened o;

	NEED_PMU();
	if (!open_branches(&o, &self))
		tap_skip("this PMU counts no branches");
	for (uint64_t n = 500; n <= 500000; n *= 10) {
		check_int(tally_counter_reset(o.counter), 0);
		check_int(tally_counter_enable(o.counter), 0);
		loop(n);
		check_int(tally_counter_disable(o.counter), 0);
		uint64_t value = value_of(o.counter);
		check(value >= n && value <= n + 100);
	}
	close_all(&o);
}

/* A thread that spins when it is told. */
struct spinner {
	pthread_barrier_t begin;
	_Atomic pid_t tid;
};

static void *spin_when_told(void *arg)
{
	struct spinner *s = arg;

	s->tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&s->begin);
	pthread_barrier_wait(&s->begin);
	loop(SPINS);
	return NULL;
}

static void branches_of_another_thread(void)
{
	struct spinner spinner = { .tid = 0 };
	pthread_t thread;
	struct opened o;

	NEED_PMU();
	pthread_barrier_init(&spinner.begin, NULL, 2);
	require(pthread_create(&thread, NULL, spin_when_told, &spinner) == 0);
	pthread_barrier_wait(&spinner.begin);
	const struct tally_target target = { .scope = TALLY_SCOPE_THREAD, .id = spinner.tid };
	bool opened = open_branches(&o, &target);
	if (opened)
		check_int(tally_counter_enable(o.counter), 0);
	pthread_barrier_wait(&spinner.begin);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&spinner.begin);
	if (!opened)
		tap_skip("this PMU counts no branches");
	uint64_t value = value_of(o.counter);
	check(value >= SPINS && value <= SPINS + 5000);
	close_all(&o);
}

static void read_in_user_space_it_is_the_kernels(void)
{
	struct tally_count fast_count, count;
	struct tally_fast fast;
	struct opened o;
	uint64_t value;

	NEED_PMU();
	require(open_counter(&o, "instructions:u", &self,
			     TALLY_COUNTER_FAST | TALLY_COUNTER_ENABLED, 0));
	check_int(tally_counter_fast(o.counter, &fast, &err), 0);
	bool user = tally_fast_is_user(&fast);
	for (int i = 0; i < 1000; i++) {
		check_int(tally_fast_read(&fast, &value), 0);
		check_int(tally_fast_read_count(&fast, &fast_count), 0);
		check_int(tally_counter_read(o.counter, &count), 0);
		if (!check(value <= fast_count.raw && fast_count.raw <= count.raw &&
			   fast_count.enabled_ns <= count.enabled_ns &&
			   fast_count.running_ns <= count.running_ns))
			break;
	}
	close_all(&o);
	if (!user)
		tap_skip("its counters are not read in user space here: the kernel was asked");
}

static void a_group_that_is_too_large_is_told(void)
{
	static const char list[] =
		"{instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions,instructions,instructions,"
		"instructions,instructions,instructions,instructions}:u";
	struct tally_count counts[40];
	struct opened o;

	NEED_PMU();
	if (!open_group(&o, list, 0)) {
		/* The kernel knows that it can never be counted. */
		check_int(err.code, -EINVAL);
		check_int(err.cause, TALLY_CAUSE_LIMIT);
		check_has(err.text, "smaller group");
	} else {
		/* It finds out when it tries. */
		check_int(tally_group_enable(o.group), 0);
		loop(100 * SPINS); /* some milliseconds: not too short to say so */
		check_int(tally_group_disable(o.group), 0);
		check_int(tally_group_read(o.group, counts, 40), 0);
		check_int(counts[0].state, TALLY_COUNT_NEVER_RAN);
		check_int(tally_group_explain(o.group, counts, &err), -ENOSPC);
		check_has(err.text, "40 hardware events");
		close_all(&o);
	}
	require(open_group(&o, list, TALLY_COUNTER_WEAK));
	check(tally_group_is_split(o.group));
	close_all(&o);
}

static void a_pinned_event_without_a_counter_is_an_error(void)
{
	enum {
		EVENTS = 40
	};
	struct opened o[EVENTS];
	struct tally_count count;
	int errors = 0;

	NEED_PMU();
	for (int i = 0; i < EVENTS; i++)
		require(open_counter(&o[i], "instructions:u", &self, TALLY_COUNTER_PINNED, 0));
	for (int i = 0; i < EVENTS; i++)
		check_int(tally_counter_enable(o[i].counter), 0);
	loop(SPINS);
	for (int i = 0; i < EVENTS; i++) {
		check_int(tally_counter_read(o[i].counter, &count), 0);
		if (count.state == TALLY_COUNT_ERROR) {
			errors++;
			check_u64(count.value, 0);
			check_int(count.error, -EBUSY);
			check(tally_counter_explain(o[i].counter, &count, &err) < 0);
			check_has(err.text, "pinned");
		} else {
			check_int(count.state, TALLY_COUNT_EXACT);
		}
	}
	for (int i = 0; i < EVENTS; i++)
		close_all(&o[i]);
	check(errors > 0 && errors < EVENTS);
}

static void an_exclusive_event_counts(void)
{
	struct opened o;

	NEED_PMU();
	require(open_counter(&o, "instructions:u", &self, TALLY_COUNTER_EXCLUSIVE, 0));
	check_int(tally_counter_enable(o.counter), 0);
	loop(SPINS);
	check_int(tally_counter_disable(o.counter), 0);
	check(value_of(o.counter) >= 2 * SPINS);
	close_all(&o);
}

static void modes_are_counted_apart(void)
{
	struct tally_count counts[3];
	struct opened o;

	NEED_PMU();
	if (!open_group(&o, "{instructions:u,instructions:k,instructions:uk}", 0))
		tap_skip("this user may not count in the kernel, or the PMU tells no modes apart");
	check_int(tally_group_enable(o.group), 0);
	loop(SPINS);
	for (int i = 0; i < 100; i++)
		syscall(SYS_getppid);
	check_int(tally_group_disable(o.group), 0);
	check_int(tally_group_read(o.group, counts, 3), 0);
	check(counts[0].value >= 2 * SPINS && counts[1].value > 0);
	/* A few instructions lie between one counter's start and the next one's. */
	uint64_t both = counts[0].value + counts[1].value;
	check(counts[2].value < both + 10000 && both < counts[2].value + 10000);
	close_all(&o);
}

/* Ten stretches of spinning bring one signal, to this thread, and nine bring none. */
static void an_overflow_is_a_signal(void)
{
	const int signo = SIGRTMIN + 3;
	const struct timespec now = { 0 };
	struct opened o;
	siginfo_t info;
	sigset_t set;

	NEED_PMU();
	sigemptyset(&set);
	sigaddset(&set, signo);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!open_counter(&o, "branches:u", &self, 0, 10 * SPINS))
		tap_skip("this PMU has no interrupts for branches");
	check_int(tally_counter_signal(o.counter, TALLY_OPTS(signal, .signo = signo), &err), 0);
	check_int(tally_counter_enable(o.counter), 0);
	for (int i = 0; i < 9; i++)
		loop(SPINS);
	check_int(sigtimedwait(&set, &info, &now), -1);
	loop(SPINS + 10000);
	check_int(tally_counter_disable(o.counter), 0);
	require(sigtimedwait(&set, &info, &now) == signo);
	check_int(tally_signal_is_overflow(&info, o.counter), POLL_IN);
	close_all(&o);
}

int main(void)
{
	probe_pmu();
	tap_run(instructions_per_cycle);
	tap_run(with_software_events_in_one_group);
	tap_run(misses_of_the_first_cache);
	tap_run(first_caches_in_one_group);
	tap_run(a_commands_instructions);
	tap_run(branches_of_oneself);
	tap_run(branches_of_another_thread);
	tap_run(read_in_user_space_it_is_the_kernels);
	tap_run(a_group_that_is_too_large_is_told);
	tap_run(a_pinned_event_without_a_counter_is_an_error);
	tap_run(an_exclusive_event_counts);
	tap_run(modes_are_counted_apart);
	tap_run(an_overflow_is_a_signal);
	return tap_end();
}
