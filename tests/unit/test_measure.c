/* SPDX-License-Identifier: MIT */
/* measure: differences, errors, what is enabled when, and the overhead. */
#include <stdlib.h>

#include <tally/measure.h>

#include "fakeperf.h"
#include "tap.h"

static struct tally_events *events; /* {page-faults,task-clock}:u */
static struct tally_error err;
static int calls;

static struct tally_group *open_group(uint32_t flags)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_group *group;

	fake_reset();
	calls = 0;
	return tally_group_open(&group, events, 0, &target, TALLY_OPTS(counter, .flags = flags),
				&err) < 0
		       ? NULL
		       : group;
}

static void step(uint64_t faults, uint64_t ns)
{
	for (int i = 0; i < 2; i++) {
		fake_nth(i)->enabled += ns;
		fake_nth(i)->running += ns;
	}
	fake_nth(0)->value += faults;
	fake_nth(1)->value += ns;
}

static void work(void *arg)
{
	calls++;
	step(*(uint64_t *)arg, 100);
}

static void each_measurement_starts_from_0(void)
{
	struct tally_group *group = open_group(0);
	struct tally_result results[2];
	uint64_t faults = 7;

	require(group != NULL);
	for (unsigned i = 1; i <= 3; i++) {
		check_int(tally_measure(group, work, &faults, results, 2), 0);
		check_u64(results[0].count.value, 7);
		check_u64(results[1].count.value, 100);
		check_u64(results[0].count.enabled_ns, 100);
		check_int(results[0].count.state, TALLY_COUNT_EXACT);
		check_int(fake_nth(0)->enables, i);
		check_int(fake_nth(0)->disables, i);
	}
	check_int(calls, 3);
	check_int(fake_nth(0)->group_verbs, 6);
	check_str(results[0].label, "page-faults:u");
	check_str(results[0].unit, "");
	check_str(results[1].label, "task-clock:u");
	check_str(results[1].unit, "ns");
	check(results[0].scale == 1.0);
	tally_group_close(group);
	check_int(fake.open, 0);
}

static void an_enabled_group_goes_on(void)
{
	struct tally_group *group = open_group(TALLY_COUNTER_ENABLED);
	struct tally_result results[2];
	uint64_t faults = 7;

	require(group != NULL);
	step(50, 1000);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.value, 7);
	check_int(fake_nth(0)->enables, 0);
	check_int(fake_nth(0)->disables, 0);
	check_int(tally_group_disable(group), 0);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_int(fake_nth(0)->enables, 1);
	check_int(fake_nth(0)->disables, 2);
	check_int(tally_group_enable(group), 0);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_int(fake_nth(0)->enables, 2);
	check_int(fake_nth(0)->disables, 2);
	tally_group_close(group);
}

static void the_baseline_stays(void)
{
	struct tally_group *group = open_group(TALLY_COUNTER_ENABLED);
	struct tally_result results[2];
	struct tally_count counts[2];
	uint64_t faults = 7;

	require(group != NULL);
	step(50, 1000);
	check_int(tally_group_reset(group), 0);
	step(1, 10);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.value, 7);
	check_int(tally_group_read(group, counts, 2), 0);
	check_u64(counts[0].value, 8);
	tally_group_close(group);
}

static void a_shared_pmu_is_told(void)
{
	struct tally_group *group = open_group(TALLY_COUNTER_ENABLED);
	struct tally_result results[2];
	uint64_t faults = 8;

	require(group != NULL);
	fake_nth(0)->enabled = 300; /* 200 of them without a counter, before */
	fake_nth(0)->running = 100;
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_int(results[0].count.state, TALLY_COUNT_EXACT);
	check_u64(results[0].count.value, 8);
	tally_group_close(group);
}

static void errors_are_reported(void)
{
	struct tally_group *group = open_group(0);
	struct tally_result results[2] = { { .label = "before" } };
	uint64_t faults = 7;

	require(group != NULL);
	check_int(tally_measure(group, work, &faults, results, 1), -ENOSPC);
	fake.fail_ioctl_fd = FAKE_FIRST;
	fake.fail_ioctl_code = -EPERM;
	check_int(tally_measure(group, work, &faults, results, 2), -EPERM);
	fake.fail_ioctl_fd = 0;
	fake.fail_read_code = -EFAULT;
	check_int(tally_measure(group, work, &faults, results, 2), -EFAULT);
	check_int(calls, 0);
	check_str(results[0].label, "before");
	check_int(fake_nth(0)->enables, 0);
	tally_group_close(group);
}

static void break_disabling(void *arg)
{
	calls++;
	fake.fail_ioctl_fd = FAKE_FIRST;
	fake.fail_ioctl_code = *(int *)arg;
}

static void break_reading(void *arg)
{
	calls++;
	fake.fail_read_code = *(int *)arg;
}

static void errors_after_the_call_are_reported_too(void)
{
	struct tally_group *group = open_group(0);
	struct tally_result results[2];
	int code = -EIO;

	require(group != NULL);
	check_int(tally_measure(group, break_reading, &code, results, 2), -EIO);
	check_int(fake_nth(0)->disables, 1);
	fake.fail_read_code = 0;
	check_int(tally_measure(group, break_disabling, &code, results, 2), -EIO);
	check_int(calls, 2);
	tally_group_close(group);
}

static void a_lost_place_is_a_state(void)
{
	struct tally_group *group = open_group(0);
	struct tally_result results[2];
	uint64_t faults = 7;

	require(group != NULL);
	fake_nth(0)->end_of_file = true;
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_int(results[0].count.state, TALLY_COUNT_ERROR);
	check_int(results[0].count.error, -EBUSY);
	tally_group_close(group);
}

/* What enabling counts by itself: each time one less, at least 3. */
static int slow_ioctl(int fd, unsigned long request, unsigned long arg)
{
	static uint64_t extra = 10;

	if (request == PERF_EVENT_IOC_ENABLE) {
		step(extra, 5);
		extra = extra > 3 ? extra - 1 : 3;
	}
	return fake_ioctl(fd, request, arg);
}

static void the_least_of_empty_runs_is_the_overhead(void)
{
	struct tally_group *group = open_group(0);
	struct tally_result results[2];
	uint64_t values[2] = { 99, 99 }, faults = 0;
	struct sys_table *table = (struct sys_table *)(uintptr_t)sys();

	require(group != NULL);
	table->ioctl = slow_ioctl;
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.value, 10);
	check_u64(results[0].count.flags, 0);
	check_int(tally_count_overhead(group, values, 1), -ENOSPC);
	check_int(tally_count_overhead(group, values, 2), 0);
	check_u64(values[0], 3);
	check_u64(values[1], 5);
	/* Remembered. */
	unsigned enables = fake_nth(0)->enables;
	check_int(tally_count_overhead(group, values, 2), 0);
	check_int(fake_nth(0)->enables, enables);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.value, 3);
	check_u64(results[0].count.flags, TALLY_COUNT_BELOW_OVERHEAD);
	check_u64(results[1].count.value, 105);
	check_u64(results[1].count.flags, 0);
	faults = 1;
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.flags, 0);
	/* Enabled all the time it costs nothing, which is another way to measure. */
	check_int(tally_group_enable(group), 0);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.value, 1);
	check_u64(results[0].count.flags, 0);
	check_int(tally_count_overhead(group, values, 2), 0);
	check_u64(values[0], 0);
	check_int(tally_measure(group, work, &faults, results, 2), 0);
	check_u64(results[0].count.flags, 0);
	table->ioctl = fake_ioctl;
	tally_group_close(group);
}

int main(void)
{
	if (tally_events_parse(&events, "{page-faults,task-clock}:u", NULL, &err) < 0) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	tap_run(each_measurement_starts_from_0);
	tap_run(an_enabled_group_goes_on);
	tap_run(the_baseline_stays);
	tap_run(a_shared_pmu_is_told);
	tap_run(errors_are_reported);
	tap_run(errors_after_the_call_are_reported_too);
	tap_run(a_lost_place_is_a_state);
	tap_run(the_least_of_empty_runs_is_the_overhead);
	tally_events_free(events);
	return tap_end();
}
