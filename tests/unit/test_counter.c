/* SPDX-License-Identifier: MIT */
/* counter: what it asks the kernel for, and what it makes of the kernel's answers. */
#include <stdlib.h>

#include <tally/counter.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

#define READ_FORMAT \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_LOST)

static struct tally_events *events;
static struct tally_error err;
static struct fakeroot root;

/* Opens page-faults on a scope over the made-up machine. */
static struct tally_counter *open_on(uint32_t scope, int32_t id, uint32_t flags)
{
	struct tally_target target = { .scope = scope, .id = id };
	struct tally_counter_opts opts = { sizeof(opts), flags, root.path };
	struct tally_counter *counter = NULL;
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &target, &opts, &err);

	return r < 0 ? NULL : counter;
}

static void it_asks_for_one_read_format(void)
{
	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(counter != NULL);
	const struct fake_event *e = fake_nth(0);
	check_int(fake.opened, 1);
	check_u64(e->attr.read_format, READ_FORMAT);
	check_u64(e->attr.type, TALLY_TYPE_SOFTWARE);
	check_u64(e->attr.config, TALLY_SW_PAGE_FAULTS);
	check_int(e->pid, 0);
	check_int(e->cpu, -1);
	check_int(e->leader, -1);
	check(e->flags & PERF_FLAG_FD_CLOEXEC);
	tally_counter_close(counter);
	check_int(fake.open, 0);
}

/* The three bits that decide when and whom an event counts. */
static uint64_t scope_flags(uint32_t scope, int32_t id, uint32_t flags)
{
	fake_reset();
	struct tally_counter *counter = open_on(scope, id, flags);
	uint64_t got = fake_nth(0)->attr.flags;

	tally_counter_close(counter);
	return counter ? got & (TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT |
				TALLY_ATTR_ENABLE_ON_EXEC)
		       : UINT64_MAX;
}

static void each_scope_has_its_flags(void)
{
	const uint64_t off = TALLY_ATTR_DISABLED, inherit = TALLY_ATTR_INHERIT;

	check_u64(scope_flags(TALLY_SCOPE_SELF, 0, 0), off);
	check_u64(scope_flags(TALLY_SCOPE_THREAD, 100, 0), off);
	check_u64(scope_flags(TALLY_SCOPE_CPUS, 0, 0), off);
	check_u64(scope_flags(TALLY_SCOPE_PROCESS, 100, 0), off | inherit);
	check_u64(scope_flags(TALLY_SCOPE_COMMAND, 100, 0),
		  off | inherit | TALLY_ATTR_ENABLE_ON_EXEC);
	check_u64(scope_flags(TALLY_SCOPE_PROCESS, 100, TALLY_COUNTER_NO_INHERIT), off);
	check_u64(scope_flags(TALLY_SCOPE_COMMAND, 100, TALLY_COUNTER_NO_INHERIT),
		  off | TALLY_ATTR_ENABLE_ON_EXEC);
	check_u64(scope_flags(TALLY_SCOPE_SELF, 0, TALLY_COUNTER_ENABLED), 0);
	check_u64(scope_flags(TALLY_SCOPE_PROCESS, 100, TALLY_COUNTER_ENABLED), inherit);
}

static void a_process_is_opened_thread_by_thread(void)
{
	const struct tally_place *places;

	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	check_int(tally_counter_places(counter, &places), 3);
	for (int i = 0; i < 3; i++) {
		check_int(places[i].tid, 100 + i);
		check_int(fake_nth(i)->pid, 100 + i);
		check_int(fake_nth(i)->cpu, -1);
		check_int(tally_counter_fd(counter, (uint32_t)i), FAKE_FIRST + i);
	}
	check_int(tally_counter_fd(counter, 3), -EINVAL);
	check_int(tally_counter_places(counter, NULL), 3);
	tally_counter_close(counter);
	check_int(fake.open, 0);
}

static void places_are_summed(void)
{
	struct tally_count count;

	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	for (unsigned i = 0; i < 3; i++) {
		fake_nth((int)i)->value = 10 + i;
		fake_nth((int)i)->enabled = fake_nth((int)i)->running = 100;
		fake_nth((int)i)->lost = i;
	}
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	check_u64(count.value, 33);
	check_u64(count.raw, 33);
	check_u64(count.enabled_ns, 300);
	check_u64(count.running_ns, 300);
	check_u64(count.lost, 3);
	/* One of them shared the PMU for half its time. */
	fake_nth(2)->running = 50;
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_SCALED);
	check_u64(count.raw, 33);
	check_u64(count.value, 33 * 300 / 250);
	tally_counter_close(counter);
}

static void a_thread_that_ends_meanwhile_is_left_out(void)
{
	const struct tally_place *places;
	struct tally_count count;

	fake_reset();
	fake.missing_pid = 101;
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	check_int(tally_counter_places(counter, &places), 2);
	check_int(places[0].tid, 100);
	check_int(places[1].tid, 102);
	fake_nth(1)->value = 5;
	fake_nth(1)->enabled = fake_nth(1)->running = 1;
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 5);
	tally_counter_close(counter);
	check_int(fake.open, 0);
	/* A single thread is missed. */
	fake_reset();
	fake.missing_pid = 100;
	check(open_on(TALLY_SCOPE_THREAD, 100, 0) == NULL);
	check_int(err.code, -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
}

static void a_failure_at_the_third_place_closes_all(void)
{
	fake_reset();
	fake.fail_open_at = 3;
	fake.fail_open_code = -EMFILE;
	check(open_on(TALLY_SCOPE_PROCESS, 100, 0) == NULL);
	check_int(fake.opened, 2);
	check_int(fake.open, 0);
	check_int(err.code, -EMFILE);
	check_int(err.cause, TALLY_CAUSE_FD_LIMIT);
	check_has(err.text, "page-faults");
}

static void old_kernels_tell_no_lost(void)
{
	struct tally_count count;

	fake_reset();
	fake.knows_lost = false;
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	for (int i = 0; i < 3; i++)
		check_u64(fake_nth(i)->attr.read_format, READ_FORMAT & ~TALLY_READ_LOST);
	fake_nth(0)->value = 9;
	fake_nth(0)->lost = 77;
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 9);
	check_u64(count.lost, 0);
	tally_counter_close(counter);
}

static void reset_is_a_baseline(void)
{
	struct tally_count count;

	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 0);
	struct fake_event *e = fake_nth(0);
	require(counter != NULL);
	*e = (struct fake_event){ true,          e->attr,       .value = 100,
				  .enabled = 50, .running = 40, .lost = 3 };
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 0);
	check_u64(count.enabled_ns, 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	e->value += 7;
	e->enabled += 10;
	e->running += 10;
	e->lost += 1;
	check_int(tally_counter_read(counter, &count), 0);
	/* What was shared before the reset does not matter any more. */
	check_int(count.state, TALLY_COUNT_EXACT);
	check_u64(count.value, 7);
	check_u64(count.enabled_ns, 10);
	check_u64(count.lost, 1);
	check_int(e->resets, 0);
	tally_counter_close(counter);
}

static void end_of_file_is_an_error_of_the_event(void)
{
	struct tally_count count;

	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	fake_nth(0)->value = 5;
	fake_nth(1)->end_of_file = true;
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_ERROR);
	check_u64(count.value, 0);
	check_int(count.error, -EBUSY);
	/* A reset then keeps the older zero. */
	check_int(tally_counter_reset(counter), 0);
	fake_nth(1)->end_of_file = false;
	fake_nth(1)->value = 2;
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 2);
	tally_counter_close(counter);
}

static void failed_and_short_reads_are_told(void)
{
	struct tally_count count = { .value = 1234 };

	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(counter != NULL);
	fake.fail_read_code = -EPERM;
	check_int(tally_counter_read(counter, &count), -EPERM);
	check_int(tally_counter_reset(counter), -EPERM);
	fake.fail_read_code = 0;
	for (size_t cut = 1; cut < 40; cut++) {
		fake.cut_read = cut;
		check_int(tally_counter_read(counter, &count), -EIO);
	}
	/* Written on success only. */
	check_u64(count.value, 1234);
	fake.cut_read = 40;
	check_int(tally_counter_read(counter, &count), 0);
	tally_counter_close(counter);
}

static void enable_and_disable_reach_all_places(void)
{
	fake_reset();
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(counter != NULL);
	check_int(tally_counter_enable(counter), 0);
	check_int(tally_counter_disable(counter), 0);
	/* One that fails is told and does not keep the others from it. */
	fake.fail_ioctl_fd = FAKE_FIRST + 1;
	fake.fail_ioctl_code = -EIO;
	check_int(tally_counter_disable(counter), -EIO);
	for (int i = 0; i < 3; i++) {
		check_int(fake_nth(i)->enables, 1);
		check_int(fake_nth(i)->disables, i == 1 ? 1 : 2);
	}
	tally_counter_close(counter);
}

static void wrong_options_are_refused(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct {
		struct tally_counter_opts opts;
		uint64_t newer;
	} longer = { { sizeof(longer), 0, NULL }, 1 };
	struct tally_counter_opts none = { 0 }, flags = { sizeof(flags), 1u << 31, NULL };
	struct tally_event *event = tally_events_at(events, 0);
	struct tally_counter *counter;

	fake_reset();
	check_int(tally_counter_open(&counter, event, &target, &none, &err), -EINVAL);
	check_int(tally_counter_open(&counter, event, &target, &flags, &err), -EINVAL);
	check_int(tally_counter_open(&counter, event, &target, &longer.opts, &err), -E2BIG);
	longer.newer = 0;
	check_int(tally_counter_open(&counter, event, &target, &longer.opts, &err), 0);
	tally_counter_close(counter);
	check_int(tally_counter_open(&counter, event, &target, NULL, NULL), 0);
	tally_counter_close(counter);
	target.scope = 99;
	check_int(tally_counter_open(&counter, event, &target, NULL, NULL), -EINVAL);
	check_int(fake.open, 0);
	tally_counter_close(NULL);
}

int main(void)
{
	fake_reset();
	if (!fakeroot_make(&root) ||
	    !fakeroot_file(&root, "/proc/100/task/100/stat", "100 (a) R 1") ||
	    !fakeroot_file(&root, "/proc/100/task/101/stat", "101 (a) R 1") ||
	    !fakeroot_file(&root, "/proc/100/task/102/stat", "102 (a) R 1") ||
	    !fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-2\n") ||
	    tally_events_parse(&events, "page-faults", NULL, &err) < 0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(it_asks_for_one_read_format);
	tap_run(each_scope_has_its_flags);
	tap_run(a_process_is_opened_thread_by_thread);
	tap_run(places_are_summed);
	tap_run(a_thread_that_ends_meanwhile_is_left_out);
	tap_run(a_failure_at_the_third_place_closes_all);
	tap_run(old_kernels_tell_no_lost);
	tap_run(reset_is_a_baseline);
	tap_run(end_of_file_is_an_error_of_the_event);
	tap_run(failed_and_short_reads_are_told);
	tap_run(enable_and_disable_reach_all_places);
	tap_run(wrong_options_are_refused);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
