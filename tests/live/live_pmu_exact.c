/* SPDX-License-Identifier: MIT */
/*
 * Counts that must be exact, of a loop whose instructions and branches are known, and what is told where a
 * count cannot be: groups beyond the counters, events that take turns, pinned ones that lose theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pmu.h"

#define REPETITIONS 200

#define NEED_LOOP()                                                                            \
	do {                                                                                   \
		NEED_PMU();                                                                    \
		if (!LOOP_INSTRUCTIONS)                                                        \
			tap_skip("the loop is not written in assembly for this architecture"); \
	} while (0)

/*
 * The loop many times over. Each time the count is what the loop is made of, beyond the constant that
 * starting and stopping count, except that CPUs of x86 are known to count an interrupt as an instruction
 * of the mode that it came in: what is beyond must not be more than there were interrupts.
 */
static void check_repetitions(struct tally_counter *counter, uint64_t rounds, uint64_t want)
{
	int disturbed = 0;

	for (int i = 0; i < REPETITIONS; i++) {
		uint64_t before = interrupts();
		uint64_t got = count_loop(counter, rounds);
		uint64_t allowed = interrupts() - before;
		disturbed += got != want;
		if (check(got >= want && got - want <= allowed))
			continue;
		printf("# %" PRIu64 " rounds: %" PRIu64 ", not %" PRIu64 "\n", rounds, got, want);
		break;
	}
	if (disturbed)
		printf("# %" PRIu64 " rounds: %d of %d counted interrupts\n", rounds, disturbed,
		       REPETITIONS);
}

static void check_loop(struct tally_counter *counter, uint64_t each)
{
	static const uint64_t sizes[] = { 1, 2, 1001, 1000001 };
	uint64_t least = UINT64_MAX;

	/* The smallest of some: not disturbed, and not the first one, which may fault. */
	for (int i = 0; i < 20; i++) {
		uint64_t got = count_loop(counter, 1);
		least = got < least ? got : least;
	}
	check(least >= each);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		check_repetitions(counter, sizes[i], least + (sizes[i] - 1) * each);
}

static void instructions_of_a_loop_are_exact(void)
{
	struct opened o;

	NEED_LOOP();
	require(open_moving(&o, "instructions:u", 0, 0));
	check_loop(o.counter, LOOP_INSTRUCTIONS);
	close_all(&o);
}

/* Which no interrupt adds to, so that they are what exact stops are made of. */
static void conditional_branches_of_a_loop_are_exact(void)
{
	struct opened o;

	NEED_LOOP();
	if (!open_moving(&o, loop_branches(), 0, 0))
		tap_skip("no event that is known to count conditional branches does so here");
	check_loop(o.counter, 1);
	close_all(&o);
}

static void all_branches_of_a_loop_are_exact(void)
{
	struct opened o;

	NEED_LOOP();
	if (!open_moving(&o, "branches:u", 0, 0))
		tap_skip("this PMU counts no branches");
	check_loop(o.counter, 1);
	close_all(&o);
}

static void call_kernel(int times)
{
	for (int i = 0; i < times; i++)
		syscall(SYS_getppid);
}

static uint64_t count_calls(struct tally_counter *counter, int times)
{
	uint64_t before = value_of(counter);

	tally_counter_enable(counter);
	call_kernel(times);
	tally_counter_disable(counter);
	return value_of(counter) - before;
}

/* Calls of the kernel are all alike in user mode, and cost the kernel a lot; a loop costs it nothing. */
static void modes_are_filtered(void)
{
	struct opened user, kernel;

	NEED_LOOP();
	if (!open_counter(&kernel, "instructions:k", &self, 0, 0))
		tap_skip("this user may not count in the kernel, or the PMU tells no modes apart");
	require(open_counter(&user, "instructions:u", &self, 0, 0));
	count_calls(user.counter, 10);
	count_calls(kernel.counter, 10);
	uint64_t at[4], all = interrupts();
	for (int i = 0; i < 4; i++)
		at[i] = count_calls(user.counter, 1000 * (i + 1));
	all = interrupts() - all;
	for (int i = 2; i < 4; i++) {
		int64_t difference = (int64_t)(at[i] - at[i - 1]) - (int64_t)(at[1] - at[0]);
		check(llabs(difference) <= (int64_t)all);
	}
	check(at[1] - at[0] >= 1000 && at[1] - at[0] < 1000 * 100);
	/* Entering the kernel and leaving it is more than 20 instructions. */
	uint64_t few = count_calls(kernel.counter, 1000), many = count_calls(kernel.counter, 10000);
	check(many > few + 9000 * 20);
	/* A thousand interrupts would not be as much as the loop. */
	check(count_loop(kernel.counter, 1000001) < 1000000);
	close_all(&user);
	close_all(&kernel);
}

static bool open_group_of(struct opened *o, const char *event, int members)
{
	char list[1024] = "{";

	for (int i = 0; i < members; i++) {
		strcat(list, i ? "," : "");
		strcat(list, event);
	}
	strcat(list, "}:u");
	return open_group(o, list, 0);
}

static bool watchdog_is_on(void)
{
	char text[2] = "";
	int fd = open("/proc/sys/kernel/nmi_watchdog", O_RDONLY | O_CLOEXEC);
	bool on = fd >= 0 && read(fd, text, 1) == 1 && text[0] == '1';

	if (fd >= 0)
		close(fd);
	return on;
}

/* A group that opened, and for which the kernel finds no room when it tries, as arm64 does. */
static void check_never_ran(const struct opened *o, const struct tally_count *counts, int members)
{
	char part[32];

	snprintf(part, sizeof(part), "%d hardware events", members);
	check_int(tally_group_explain(o->group, counts, &err), -ENOSPC);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, part);
	if (watchdog_is_on())
		check_has(err.text, "watchdog");
}

/* Counts the loop by a group of one event; whether it ran. */
static bool group_counts(struct opened *o, int members, uint64_t rounds)
{
	struct tally_count counts[40];

	check_int(tally_group_enable(o->group), 0);
	loop(rounds);
	check_int(tally_group_disable(o->group), 0);
	if (!check_int(tally_group_read(o->group, counts, 40), 0))
		return false;
	for (int i = 0; i < members; i++)
		check_int(counts[i].state, counts[0].state);
	if (counts[0].state == TALLY_COUNT_NEVER_RAN) {
		check_never_ran(o, counts, members);
		return false;
	}
	check_int(counts[0].state, TALLY_COUNT_EXACT);
	/* One after the other is started: they miss a bit of the kernel's work, which they do not count. */
	for (int i = 0; i < members; i++)
		check(counts[i].value > 0 &&
		      llabs((int64_t)(counts[i].value - counts[0].value)) < 1000);
	return true;
}

/* How many members a group of this event may have until there is one too many, which is told. */
static int limit_of(const char *event)
{
	int fit = 0;

	for (int members = 1; members <= 40; members++) {
		struct opened o;
		if (!open_group_of(&o, event, members)) {
			check_int(err.code, -EINVAL);
			check_int(err.cause, TALLY_CAUSE_LIMIT);
			check_has(err.text, "smaller group");
			break;
		}
		/* Long enough to be given a turn, some milliseconds at least. */
		bool ran = group_counts(&o, members, 5000000);
		close_all(&o);
		if (!ran)
			break;
		fit = members;
	}
	printf("# groups of up to %d %s\n", fit, event);
	return fit;
}

/*
 * x86 refuses one too many when it is opened, unless the counter that is missing is another's: that of the
 * NMI watchdog, which counts cycles.
 */
static void groups_fit_up_to_a_limit_that_is_told(void)
{
	static const char *const events[] = { "instructions", "cycles" };

	NEED_PMU();
	for (size_t i = 0; i < 2; i++) {
		int fit = limit_of(events[i]);
		check(fit >= 2 && fit < 40);
	}
}

/*
 * More events than counters: each is extrapolated from the time that it had, and says so. What is right is
 * known: the loop. The kernel gives turns of 4 ms, so that there are many in it.
 */
static void events_that_take_turns_are_scaled_within_one_percent(void)
{
	enum {
		EVENTS = 12
	};
	const uint64_t rounds = 100000000, right = rounds * LOOP_INSTRUCTIONS;
	struct opened o[EVENTS];
	struct tally_count count;
	int scaled = 0;

	NEED_LOOP();
	for (int i = 0; i < EVENTS; i++)
		require(open_counter(&o[i], "instructions:u", &self, 0, 0));
	check_int(tally_task_events_enable(), 0);
	loop(rounds);
	check_int(tally_task_events_disable(), 0);
	for (int i = 0; i < EVENTS; i++) {
		check_int(tally_counter_read(o[i].counter, &count), 0);
		scaled += count.state == TALLY_COUNT_SCALED;
		check(count.state == TALLY_COUNT_SCALED || count.state == TALLY_COUNT_EXACT);
		check((count.state == TALLY_COUNT_SCALED) == (count.running_ns < count.enabled_ns));
		if (!check(count.value > right / 100 * 99 && count.value < right / 100 * 101))
			printf("# %" PRIu64 " instead of %" PRIu64 " (%" PRIu64 " in %" PRIu64
			       " of %" PRIu64 " ns)\n",
			       count.value, right, count.raw, count.running_ns, count.enabled_ns);
		close_all(&o[i]);
	}
	if (!scaled)
		tap_skip("this PMU has a counter for each of 12 events");
}

/* It holds a counter until others that are pinned, and were there before, want them all. */
static void a_pinned_event_that_loses_its_counter_is_an_error(void)
{
	enum {
		EVENTS = 40
	};
	struct opened o[EVENTS];
	struct tally_count count;
	int lost = 0, kept = 0;

	NEED_PMU();
	for (int i = 0; i < EVENTS; i++)
		require(open_counter(&o[i], "instructions:u", &self, TALLY_COUNTER_PINNED, 0));
	/* The last one is alone at first, and counts. */
	check_int(tally_counter_enable(o[EVENTS - 1].counter), 0);
	loop(1000);
	check_int(tally_counter_read(o[EVENTS - 1].counter, &count), 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	check(count.value > 0);
	for (int i = 0; i < EVENTS - 1; i++)
		check_int(tally_counter_enable(o[i].counter), 0);
	loop(1000000);
	for (int i = 0; i < EVENTS; i++) {
		check_int(tally_counter_read(o[i].counter, &count), 0);
		kept += count.state == TALLY_COUNT_EXACT;
		if (count.state != TALLY_COUNT_ERROR)
			continue;
		lost++;
		check_u64(count.value, 0);
		check_int(count.error, -EBUSY);
		check(tally_counter_explain(o[i].counter, &count, &err) < 0);
		check_has(err.text, "pinned");
	}
	for (int i = 0; i < EVENTS; i++)
		close_all(&o[i]);
	check(lost > 0 && kept > 0);
	check_int(lost + kept, EVENTS);
}

int main(void)
{
	probe_pmu();
	tap_run(instructions_of_a_loop_are_exact);
	tap_run(conditional_branches_of_a_loop_are_exact);
	tap_run(all_branches_of_a_loop_are_exact);
	tap_run(modes_are_filtered);
	tap_run(groups_fit_up_to_a_limit_that_is_told);
	tap_run(events_that_take_turns_are_scaled_within_one_percent);
	tap_run(a_pinned_event_that_loses_its_counter_is_an_error);
	return tap_end();
}
