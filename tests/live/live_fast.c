/* SPDX-License-Identifier: MIT */
/*
 * fast, on the real kernel: it answers in the counted thread, in another one, in a forked child and
 * after a vfork, and says what read(2) says. Where the CPU can be read in user space, that is
 * tried.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "fresh.h"
#include "tap.h"

#define PAGES 50u

static struct tally_error err;
static size_t page_size;

/* Page faults of this thread, counting. */
static struct tally_counter *open_faults(struct tally_events **events)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter *counter;

	if (tally_events_parse(events, "page-faults:u", NULL, &err) < 0)
		return NULL;
	if (tally_counter_open(
		    &counter, tally_events_at(*events, 0), &target,
		    TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED | TALLY_COUNTER_FAST),
		    &err) < 0) {
		tally_events_free(*events);
		return NULL;
	}
	return counter;
}

static void close_faults(struct tally_counter *counter, struct tally_events *events)
{
	tally_counter_close(counter);
	tally_events_free(events);
}

static void a_live_software_event_is_exact(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_fast fast;
	uint64_t before = 0, after = 0;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	check(!tally_fast_is_user(&fast));
	for (int round = 0; round < 2; round++) { /* the first one warms the code up */
		struct fresh f = fresh_map(PAGES);
		require(f.at != NULL);
		check_int(tally_fast_read(&fast, &before), 0);
		fresh_touch(&f, PAGES);
		check_int(tally_fast_read(&fast, &after), 0);
		fresh_unmap(&f);
	}
	check_u64(after - before, PAGES);
	close_faults(counter, events);
}

static void it_says_what_the_counter_says(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_count slow, quick;
	struct tally_fast fast;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_read(counter, &slow), 0);
	check_int(tally_fast_read_count(&fast, &quick), 0);
	check_u64(quick.raw, slow.raw);
	check_u64(quick.value, slow.value);
	check_u64(quick.enabled_ns, slow.enabled_ns);
	check_u64(quick.running_ns, slow.running_ns);
	check_int(quick.state, TALLY_COUNT_EXACT);
	/* A reset is the counter's own. */
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_read(counter, &slow), 0);
	check_u64(slow.enabled_ns, 0);
	check_int(tally_fast_read_count(&fast, &quick), 0);
	check(quick.enabled_ns > 0);
	close_faults(counter, events);
}

/*
 * With a page or without, whatever there is on this machine: hardware events are read either way.
 */
static void reads_of_any_event_agree_with_the_kernel(void)
{
	static const char *const names[] = { "task-clock:u", "cpu-clock", "instructions:u",
					     "cycles:u" };
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	int tried = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct tally_events *events;
		struct tally_counter *counter;
		struct tally_fast fast;
		struct tally_count c1, c2, c3;

		require(tally_events_parse(&events, names[i], NULL, &err) == 0);
		if (tally_counter_open(&counter, tally_events_at(events, 0), &target,
				       TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED |
								    TALLY_COUNTER_FAST),
				       &err) == 0) {
			tried++;
			check_int(tally_counter_fast(counter, &fast, &err), 0);
			for (int n = 0; n < 1000; n++) {
				check_int(tally_counter_read(counter, &c1), 0);
				check_int(tally_fast_read_count(&fast, &c2), 0);
				check_int(tally_counter_read(counter, &c3), 0);
				if (!check(c1.raw <= c2.raw && c2.raw <= c3.raw) ||
				    !check(c1.enabled_ns <= c2.enabled_ns &&
					   c2.enabled_ns <= c3.enabled_ns) ||
				    !check(c1.running_ns <= c2.running_ns &&
					   c2.running_ns <= c3.running_ns))
					break;
			}
			tally_counter_close(counter);
		}
		tally_events_free(events);
	}
	check(tried > 0);
}

struct asked {
	struct tally_fast *fast;
	uint64_t value;
	int result;
	bool user;
};

static void *ask(void *arg)
{
	struct asked *a = arg;

	a->result = tally_fast_read(a->fast, &a->value);
	a->user = tally_fast_is_user(a->fast);
	return NULL;
}

static void another_thread_reads_the_counted_one(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct fresh f = fresh_map(PAGES);
	struct tally_fast fast;
	struct asked a = { .fast = &fast, .result = 1 };
	uint64_t before = 0;
	pthread_t thread;

	require(counter != NULL && f.at != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	check_int(tally_fast_read(&fast, &before), 0);
	fresh_touch(&f, PAGES);
	check_int(tally_counter_disable(counter), 0);
	require(pthread_create(&thread, NULL, ask, &a) == 0);
	pthread_join(thread, NULL);
	check_int(a.result, 0);
	check(a.value >= before + PAGES);
	check(!a.user);
	uint64_t mine = 0;
	check_int(tally_fast_read(&fast, &mine), 0);
	check_u64(a.value, mine);
	fresh_unmap(&f);
	close_faults(counter, events);
}

struct asks_for_it {
	struct tally_counter *counter;
	struct tally_fast fast;
	int result;
};

static void *map_elsewhere(void *arg)
{
	struct asks_for_it *a = arg;

	a->result = tally_counter_fast(a->counter, &a->fast, NULL);
	return NULL;
}

static void asked_by_another_thread_it_has_no_page(void)
{
	struct tally_events *events;
	struct asks_for_it a = { .counter = open_faults(&events), .result = 1 };
	pthread_t thread;
	uint64_t value;

	require(a.counter != NULL);
	require(pthread_create(&thread, NULL, map_elsewhere, &a) == 0);
	pthread_join(thread, NULL);
	check_int(a.result, 0);
	check(a.fast.page == NULL);
	check_int(tally_fast_read(&a.fast, &value), 0);
	close_faults(a.counter, events);
}

/* The page is not there in the child; its place may be taken by something else. */
static void a_forked_child_reads_its_parent(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_fast fast;
	uint64_t before = 0, value = 0;
	int status = -1;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_fast_read(&fast, &before), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(tally_fast_read(&fast, &value) == 0 && value == before &&
				      !tally_fast_is_user(&fast)
			      ? 0
			      : 1);
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	/*
	 * So does one that was forked by another thread's like-named pointer: the parent still
	 * reads.
	 */
	check_int(tally_fast_read(&fast, &value), 0);
	check_u64(value, before);
	close_faults(counter, events);
}

/* The counter's page was not copied, so that the child may have something else in its place. */
static void a_forked_child_closes_nothing_of_its_own(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_fast fast;
	int status = -1;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	if (!fast.page) {
		close_faults(counter, events);
		tap_skip("the page cannot be mapped here");
	}
	pid_t pid = fork();
	if (pid == 0) {
		void *there = (void *)(uintptr_t)fast.page;
		if (mmap(there, page_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != there)
			_exit(2);
		tally_counter_close(counter);
		_exit(msync(there, page_size, MS_ASYNC) == 0 ? 0 : 1);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	close_faults(counter, events);
}

/*
 * It has the parent's memory and thread pointer; the parent's event is not on a counter meanwhile.
 */
static void a_vfork_child_reads_its_parent(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_fast fast;
	volatile uint64_t value = 0;
	volatile int r = 1;
	uint64_t after = 0;
	int status = -1;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	pid_t pid = vfork();
	if (pid == 0) {
		uint64_t v = 0;
		r = tally_fast_read(&fast, &v);
		value = v;
		_exit(0);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(r, 0);
	check_int(tally_fast_read(&fast, &after), 0);
	check(value <= after);
	close_faults(counter, events);
}

static void *open_and_end(void *arg)
{
	struct asks_for_it *a = arg;
	struct tally_events *events;

	a->counter = open_faults(&events);
	a->result = a->counter ? tally_counter_fast(a->counter, &a->fast, NULL) : -1;
	return events;
}

/* libc gives the next thread the same block, and with it the same thread pointer. */
static void the_thread_pointer_of_an_ended_thread_deceives_nobody(void)
{
	struct asks_for_it a = { .result = -1 };
	struct asked again = { .fast = &a.fast, .result = 1 };
	pthread_t thread;
	void *events = NULL;
	uint64_t first = 0;

	require(pthread_create(&thread, NULL, open_and_end, &a) == 0);
	pthread_join(thread, &events);
	require(a.result == 0);
	check_int(tally_fast_read(&a.fast, &first), 0);
	require(pthread_create(&thread, NULL, ask, &again) == 0);
	pthread_join(thread, NULL);
	check_int(again.result, 0);
	check(!again.user);
	check_u64(again.value, first);
	close_faults(a.counter, events);
}

static void members_of_a_group_are_read_one_by_one(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_group *group;
	struct tally_count all[3], one;
	struct tally_fast fast;

	require(tally_events_parse(&events, "{page-faults,minor-faults,task-clock}:u", NULL,
				   &err) == 0);
	require(tally_group_open(&group, events, 0, &target, NULL, &err) == 0);
	check_int(tally_group_enable(group), 0);
	struct fresh f = fresh_map(PAGES);
	require(f.at != NULL);
	fresh_touch(&f, PAGES);
	check_int(tally_group_disable(group), 0);
	check_int(tally_group_read(group, all, 3), 0);
	check(all[0].value >= PAGES);
	for (uint32_t m = 0; m < 3; m++) {
		check_int(tally_group_fast(group, m, &fast, &err), 0);
		check_int(tally_fast_read_count(&fast, &one), 0);
		check_u64(one.raw, all[m].raw);
		check_u64(one.enabled_ns, all[m].enabled_ns);
		check_u64(one.running_ns, all[m].running_ns);
	}
	fresh_unmap(&f);
	tally_group_close(group);
	tally_events_free(events);
}

static void the_page_says_what_it_says_elsewhere(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_faults(&events);
	struct tally_fast fast;
	struct tally_page page;
	int status = -1;

	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	if (!fast.page) {
		check_int(tally_page_read(&fast, &page, sizeof(page)), -ENODATA);
		close_faults(counter, events);
		tap_skip("the page cannot be mapped here");
	}
	check_int(tally_page_read(&fast, &page, sizeof(page)), 0);
	/* A software event is on no counter, and has no ring. */
	check_u64(page.index, 0);
	check_u64(page.caps & TALLY_PAGE_CAP_USER_RDPMC, 0);
	check_u64(page.data_head, 0);
	check(page.size > 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(tally_page_read(&fast, &page, sizeof(page)) == -ENODATA ? 0 : 1);
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	close_faults(counter, events);
}

static void an_inherited_event_has_no_page(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_fast fast;
	uint64_t value;

	require(tally_events_parse(&events, "page-faults:u", NULL, &err) == 0);
	require(tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err) == 0);
	if (tally_counter_places(counter, NULL) == 1) {
		check_int(tally_counter_fast(counter, &fast, &err), 0);
		check(fast.page == NULL);
		check_int(tally_fast_read(&fast, &value), 0);
	} else {
		/* A sanitizer's thread. */
		check_int(tally_counter_fast(counter, &fast, &err), -EINVAL);
	}
	close_faults(counter, events);
}

int main(void)
{
	struct tally_events *events;

	page_size = (size_t)sysconf(_SC_PAGESIZE);
	struct tally_counter *probe = open_faults(&events);
	if (!probe) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_faults(probe, events);
	tap_run(a_live_software_event_is_exact);
	tap_run(it_says_what_the_counter_says);
	tap_run(reads_of_any_event_agree_with_the_kernel);
	tap_run(another_thread_reads_the_counted_one);
	tap_run(asked_by_another_thread_it_has_no_page);
	tap_run(a_forked_child_reads_its_parent);
	tap_run(a_forked_child_closes_nothing_of_its_own);
	tap_run(a_vfork_child_reads_its_parent);
	tap_run(the_thread_pointer_of_an_ended_thread_deceives_nobody);
	tap_run(members_of_a_group_are_read_one_by_one);
	tap_run(the_page_says_what_it_says_elsewhere);
	tap_run(an_inherited_event_has_no_page);
	return tap_end();
}
