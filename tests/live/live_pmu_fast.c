/* SPDX-License-Identifier: MIT */
/*
 * Counters of the CPU read in user space: exact, as the kernel's answer is, whichever counter an event is
 * on, and by way of the kernel whenever it is on none, or when somebody else asks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmu.h"

static char not_in_user_space[TALLY_ERROR_TEXT];

#define NEED_FAST()                                  \
	do {                                         \
		NEED_PMU();                          \
		if (not_in_user_space[0])            \
			tap_skip(not_in_user_space); \
	} while (0)

static bool open_fast(struct opened *o, struct tally_fast *fast, const char *name, uint32_t flags)
{
	if (!open_counter(o, name, &self, TALLY_COUNTER_FAST | flags, 0))
		return false;
	if (check_int(tally_counter_fast(o->counter, fast, &err), 0))
		return true;
	close_all(o);
	return false;
}

/* What a fast reader sees of a loop. */
static uint64_t see_loop(const struct tally_fast *fast, uint64_t rounds)
{
	uint64_t before = 0, after = 0;

	check_int(tally_fast_read(fast, &before), 0);
	loop(rounds);
	check_int(tally_fast_read(fast, &after), 0);
	return after - before;
}

/*
 * The loop is what a reader sees more of with more rounds; nothing else changes. The least of some, since
 * an interrupt may count.
 */
static void check_sees_loop(const struct tally_fast *fast, uint64_t each)
{
	uint64_t least[2] = { UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 200; i++) {
		uint64_t seen[2] = { see_loop(fast, 1), see_loop(fast, 1001) };
		for (int n = 0; n < 2; n++)
			least[n] = seen[n] < least[n] ? seen[n] : least[n];
	}
	check_u64(least[1] - least[0], 1000 * each);
}

static void a_loop_is_seen_exactly(void)
{
	struct tally_fast fast;
	struct opened o;

	NEED_FAST();
	require(open_fast(&o, &fast, "instructions:u", TALLY_COUNTER_ENABLED));
	check(tally_fast_is_user(&fast));
	check_sees_loop(&fast, LOOP_INSTRUCTIONS);
	check(tally_fast_is_user(&fast));
	close_all(&o);
	if (!LOOP_INSTRUCTIONS)
		tap_skip("the loop is not written in assembly for this architecture");
}

static void branches_are_seen_exactly(void)
{
	struct tally_fast fast;
	struct opened o;

	NEED_FAST();
	if (!open_moving(&o, loop_branches(), 0, 0))
		tap_skip("no event that is known to count conditional branches does so here");
	close_all(&o);
	require(open_fast(&o, &fast, loop_branches(), TALLY_COUNTER_ENABLED));
	check(tally_fast_is_user(&fast));
	check_sees_loop(&fast, 1);
	close_all(&o);
}

/* Intel's first is on a fixed counter, the others on general ones. All see the same. */
static void each_member_of_a_group_has_its_own_counter(void)
{
	enum {
		MEMBERS = 3
	};
	struct tally_fast fast[MEMBERS];
	struct tally_page page;
	uint32_t index[MEMBERS];
	struct opened o;

	NEED_FAST();
	o = (struct opened){ 0 };
	require(tally_events_parse(&o.events, "{instructions,instructions,instructions}:u", NULL,
				   &err) == 0);
	require(tally_group_open(&o.group, o.events, 0, &self,
				 TALLY_OPTS(counter, .flags = TALLY_COUNTER_FAST), &err) == 0);
	check_int(tally_group_enable(o.group), 0);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		check_int(tally_group_fast(o.group, i, &fast[i], &err), 0);
		check(tally_fast_is_user(&fast[i]));
		check_int(tally_page_read(&fast[i], &page, sizeof(page)), 0);
		index[i] = page.index;
		for (uint32_t j = 0; j < i; j++)
			check(index[i] != index[j]);
		if (LOOP_INSTRUCTIONS)
			check_sees_loop(&fast[i], LOOP_INSTRUCTIONS);
	}
	close_all(&o);
}

/* Without a counter there is no index, and the answer comes from the kernel: the same one. */
static void off_the_counter_the_kernel_answers(void)
{
	struct tally_count count;
	struct tally_fast fast;
	struct opened o;
	uint64_t value;

	NEED_FAST();
	require(open_fast(&o, &fast, "instructions:u", 0));
	for (int i = 0; i < 20; i++) {
		check(!tally_fast_is_user(&fast));
		check_int(tally_counter_read(o.counter, &count), 0);
		check_int(tally_fast_read(&fast, &value), 0);
		check_u64(value, count.raw);
		check_int(tally_counter_enable(o.counter), 0);
		check(tally_fast_is_user(&fast));
		loop(1000);
		uint64_t running;
		check_int(tally_fast_read(&fast, &running), 0);
		check_int(tally_counter_disable(o.counter), 0);
		check_int(tally_counter_read(o.counter, &count), 0);
		check(running > value && running <= count.raw);
	}
	close_all(&o);
}

/*
 * Of many events some are without a counter at any time, and lose and get it between two instructions.
 * Each answer lies between two of the kernel's, and both ways are seen.
 */
static void reads_go_on_while_events_take_turns(void)
{
	enum {
		EVENTS = 24
	};
	struct tally_fast fast[EVENTS];
	struct tally_count before, after;
	struct opened o[EVENTS];
	int by_user = 0, by_kernel = 0;
	uint64_t value;

	NEED_FAST();
	for (int i = 0; i < EVENTS; i++)
		require(open_fast(&o[i], &fast[i], "instructions:u", TALLY_COUNTER_ENABLED));
	for (int n = 0; n < 40 * EVENTS; n++) {
		int i = n % EVENTS;
		check_int(tally_counter_read(o[i].counter, &before), 0);
		tally_fast_is_user(&fast[i]) ? by_user++ : by_kernel++;
		if (!check_int(tally_fast_read(&fast[i], &value), 0))
			break;
		check_int(tally_counter_read(o[i].counter, &after), 0);
		if (!check(before.raw <= value && value <= after.raw))
			break;
		loop(50000);
	}
	for (int i = 0; i < EVENTS; i++)
		close_all(&o[i]);
	check(by_user > 0);
	if (!by_kernel)
		tap_skip("this PMU has a counter for each of 24 events");
}

struct asked {
	const struct tally_fast *fast;
	uint64_t value;
	int result;
	bool user;
};

static void *ask(void *arg)
{
	struct asked *a = arg;

	a->user = tally_fast_is_user(a->fast);
	a->result = tally_fast_read(a->fast, &a->value);
	return NULL;
}

/* The counter of whom is running now is not the counter of whom was asked for. */
static void others_get_the_counted_threads_value(void)
{
	struct tally_fast fast;
	struct opened o;
	pthread_t thread;
	int status = -1;
	uint64_t after;

	NEED_FAST();
	require(open_fast(&o, &fast, "instructions:u", TALLY_COUNTER_ENABLED));
	loop(1000000);
	struct asked a = { .fast = &fast, .result = -1 };
	uint64_t before;
	check_int(tally_fast_read(&fast, &before), 0);
	require(pthread_create(&thread, NULL, ask, &a) == 0);
	pthread_join(thread, NULL);
	check_int(tally_fast_read(&fast, &after), 0);
	check_int(a.result, 0);
	check(!a.user);
	check(before <= a.value && a.value <= after);
	pid_t pid = fork();
	if (pid == 0) {
		uint64_t value = 0;
		_exit(tally_fast_read(&fast, &value) == 0 && value >= before &&
				      !tally_fast_is_user(&fast)
			      ? 0
			      : 1);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	check(tally_fast_is_user(&fast));
	close_all(&o);
}

/* arm64 has to be asked when the event is opened; whoever does not ask gets the kernel's answer. */
static void who_did_not_ask_is_answered_too(void)
{
	struct tally_fast fast;
	struct opened o;
	uint64_t first, second;

	NEED_PMU();
	require(open_counter(&o, "instructions:u", &self, TALLY_COUNTER_ENABLED, 0));
	check_int(tally_counter_fast(o.counter, &fast, &err), 0);
	check_int(tally_fast_read(&fast, &first), 0);
	loop(1000);
	check_int(tally_fast_read(&fast, &second), 0);
	check(second > first + 1000);
	close_all(&o);
}

/*
 * Whether this machine lets user space read an event that is on a counter, by the page of one. Bit 1 of
 * config1 asks for it on arm64 (Documentation/arm64/perf.rst) and means nothing to instructions on x86.
 */
static void probe_fast(void)
{
	int fd = open_by_hand(2);
	if (fd < 0)
		fd = open_by_hand(0);
	if (fd < 0)
		return;
	struct perf_event_mmap_page *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ,
						 MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || !page->cap_user_rdpmc || !page->index)
		snprintf(not_in_user_space, sizeof(not_in_user_space),
			 "user space may not read counters here: arm64 has "
			 "kernel.perf_user_access for that, x86 the PMU's file rdpmc");
	if (page != MAP_FAILED)
		munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	close(fd);
}

int main(void)
{
	probe_pmu();
	probe_fast();
	tap_run(a_loop_is_seen_exactly);
	tap_run(branches_are_seen_exactly);
	tap_run(each_member_of_a_group_has_its_own_counter);
	tap_run(off_the_counter_the_kernel_answers);
	tap_run(reads_go_on_while_events_take_turns);
	tap_run(others_get_the_counted_threads_value);
	tap_run(who_did_not_ask_is_answered_too);
	return tap_end();
}
