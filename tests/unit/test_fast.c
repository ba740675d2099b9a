/* SPDX-License-Identifier: MIT */
/*
 * fast: pages made by hand after linux/perf_event.h, read with a CPU made by hand; and which way a
 * counter's fast read takes.
 */
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/counter.h>
#include <tally/fast.h>
#include <tally/group.h>

#include "count/fast.h"
#include "fakeperf.h"
#include "tap.h"

static struct perf_event_mmap_page page;

/* The CPU: one counter and a clock, and what happens to the page while the counter is read. */
static struct {
	uint32_t asked; /* which counter */
	int reads;
	uint64_t counter, clock;
	bool lacks_counter, lacks_clock;
	void (*meanwhile)(void);
} cpu;

static bool read_counter(uint32_t n, uint64_t *value)
{
	cpu.asked = n;
	cpu.reads++;
	if (cpu.lacks_counter)
		return false;
	*value = cpu.counter;
	if (cpu.meanwhile)
		cpu.meanwhile();
	return true;
}

static bool read_clock(uint64_t *cycles)
{
	*cycles = cpu.clock;
	return !cpu.lacks_clock;
}

/* An event on hardware counter 3, whose page was written when it had counted 1000 in 500 ns. */
static void make_page(void)
{
	memset(&page, 0, sizeof(page));
	memset(&cpu, 0, sizeof(cpu));
	page.lock = 4;
	page.index = 4;
	page.cap_bit0_is_deprecated = 1;
	page.cap_user_rdpmc = 1;
	page.cap_user_time = 1;
	page.pmc_width = 48;
	page.offset = 1000;
	page.time_enabled = 800;
	page.time_running = 500;
	page.time_shift = 10;
	page.time_mult = 512; /* 2 cycles a ns */
}

static bool look(struct tally_fast_now_ *now)
{
	memset(now, 0xff, sizeof(*now));
	return tally_fast_from_page_(&page, read_counter, read_clock, now);
}

static uint64_t value_of(uint64_t counter, uint16_t width, int64_t offset)
{
	struct tally_fast_now_ now;

	make_page();
	cpu.counter = counter;
	page.pmc_width = width;
	page.offset = offset;
	return look(&now) ? now.value : UINT64_MAX;
}

#define SAME(field)                                         \
	check_u64(offsetof(struct tally_fast_page_, field), \
		  offsetof(struct perf_event_mmap_page, field))

static void the_page_is_the_kernels(void)
{
	SAME(version);
	SAME(compat_version);
	SAME(lock);
	SAME(index);
	SAME(offset);
	SAME(time_enabled);
	SAME(time_running);
	SAME(capabilities);
	SAME(pmc_width);
	SAME(time_shift);
	SAME(time_mult);
	SAME(time_offset);
	SAME(time_zero);
	SAME(size);
	SAME(time_cycles);
	SAME(time_mask);
	memset(&page, 0, sizeof(page));
	page.cap_user_rdpmc = 1;
	check_u64(page.capabilities, TALLY_FAST_USER_RDPMC_);
	page.capabilities = 0;
	page.cap_user_time = 1;
	check_u64(page.capabilities, TALLY_FAST_USER_TIME_);
	page.capabilities = 0;
	page.cap_user_time_zero = 1;
	check_u64(page.capabilities, TALLY_FAST_USER_TIME_ZERO_);
	page.capabilities = 0;
	page.cap_user_time_short = 1;
	check_u64(page.capabilities, TALLY_FAST_USER_TIME_SHORT_);
}

/*
 * The kernel starts a counter below 0 and puts its negative into offset; see the header's comment.
 */
static void the_counter_is_sign_extended_to_its_width(void)
{
	check_u64(value_of(5, 48, 1000), 1005);
	check_u64(value_of(0xfffffffffffe, 48, 1000), 998);
	check_u64(value_of(0x800000000000, 48, INT64_C(1) << 47), 0);
	check_u64(value_of(0x7fffffffffff, 48, 0), 0x7fffffffffff);
	check_u64(value_of(0xffffffffff, 40, 10), 9);
	check_u64(value_of(0x7fffffffff, 40, 0), 0x7fffffffff);
	check_u64(value_of(0xffffffff, 32, 10), 9);
	check_u64(value_of(UINT64_MAX - 1, 64, 10), 8);
	check_u64(value_of(1, 1, 10), 9);
	/* What stands above the width is not the counter's. */
	check_u64(value_of(0xabcd000000000007, 48, 0), 7);
	/* The jump of 2^48 that reads without the extension make. */
	check_u64(value_of(0xffffffffffff, 48, 0x7fff00000001), 0x7fff00000000);
	/* A sum beyond 2^48 is not cut. */
	check_u64(value_of(1, 48, INT64_C(1) << 50), (UINT64_C(1) << 50) + 1);
}

static void the_index_is_one_more_than_the_counter(void)
{
	struct tally_fast_now_ now;

	make_page();
	check(look(&now));
	check_int(cpu.asked, 3);
	check_int(cpu.reads, 1);
	page.index = (1u << 30) + 1; /* x86: the first fixed counter */
	check(look(&now));
	check_u64(cpu.asked, 1u << 30);
}

static void what_cannot_be_read_is_left_to_the_kernel(void)
{
	struct tally_fast_now_ now;

	make_page();
	page.index = 0;
	check(!look(&now));
	make_page();
	page.pmc_width = 0;
	check(!look(&now));
	make_page();
	page.pmc_width = 65;
	check(!look(&now));
	make_page();
	page.cap_user_rdpmc = 0;
	check(!look(&now));
	/* A software event's page, as measured on Linux 6.18. */
	make_page();
	page.index = 0;
	page.pmc_width = 0;
	page.capabilities = 0;
	page.cap_bit0_is_deprecated = 1;
	check(!look(&now));
	/* Linux 3.4 to 3.11 had both capabilities in bit 0, and meant either. */
	make_page();
	page.capabilities = 0;
	page.cap_bit0 = 1;
	check(!look(&now));
	check_int(cpu.reads, 0);
	make_page();
	cpu.lacks_counter = true;
	check(!look(&now));
}

static void times_go_on_by_the_clock(void)
{
	struct tally_fast_now_ now;

	make_page();
	cpu.clock = 2000 * 1024 + 2000;
	page.time_offset = (uint64_t)-1000000;
	require(look(&now));
	check_u64(now.enabled, 800 - 1000000 + 1024000 + 1000);
	check_u64(now.running, 500 - 1000000 + 1024000 + 1000);
	/* Far beyond where cycles * mult has 64 bits: 2^63 cycles at 2 a ns. */
	make_page();
	cpu.clock = UINT64_C(1) << 63;
	page.time_offset = (uint64_t) - (INT64_C(1) << 62);
	page.time_shift = 31;
	page.time_mult = 1u << 30;
	require(look(&now));
	check_u64(now.enabled, 800);
	check_u64(now.running, 500);
}

static void a_short_clock_may_have_wrapped(void)
{
	struct tally_fast_now_ now;

	make_page();
	page.cap_user_time_short = 1;
	page.time_mask = (UINT64_C(1) << 56) - 1;
	page.time_cycles = (UINT64_C(3) << 56) - 10; /* 10 before the clock's third wrap */
	page.time_offset = (uint64_t) - (INT64_C(3) << 55);
	cpu.clock = 10;
	require(look(&now));
	check_u64(now.enabled, 805);
	check_u64(now.running, 505);
	/* Without the wrap. */
	cpu.clock = (UINT64_C(1) << 56) - 6;
	require(look(&now));
	check_u64(now.enabled, 800 - 3);
}

static void without_times_only_the_value_is_read(void)
{
	struct tally_fast_now_ now;

	for (int i = 0; i < 3; i++) {
		make_page();
		cpu.counter = 7;
		page.cap_user_time = i != 0;
		page.time_shift = i == 1 ? 64 : 10;
		cpu.lacks_clock = i == 2;
		check(!look(&now));
		require(tally_fast_from_page_(&page, read_counter, NULL, &now));
		check_u64(now.value, 1007);
	}
}

static void change_once(void)
{
	page.lock += 2;
	page.offset = 2000;
	cpu.counter = 1;
	cpu.meanwhile = NULL;
}

static void vanish(void)
{
	page.lock += 2;
	page.index = 0;
	cpu.meanwhile = NULL;
}

static void always_change(void)
{
	page.lock += 2;
}

static void a_page_that_changes_meanwhile_is_read_again(void)
{
	struct tally_fast_now_ now;

	make_page();
	cpu.counter = 500;
	cpu.meanwhile = change_once;
	require(look(&now));
	check_int(cpu.reads, 2);
	check_u64(now.value, 2001);
	/* The event left the PMU between the look and the read. */
	make_page();
	cpu.meanwhile = vanish;
	check(!look(&now));
	check_int(cpu.reads, 1);
}

static void a_page_that_never_rests_is_left_to_the_kernel(void)
{
	struct tally_fast_now_ now;

	make_page();
	cpu.meanwhile = always_change;
	check(!look(&now));
	check_int(cpu.reads, TALLY_FAST_TRIES_);
	make_page();
	page.lock = 5;
	check(!look(&now));
	check_int(cpu.reads, 0);
}

static struct tally_events *events; /* page-faults, {page-faults,minor-faults} */
static struct tally_error err;

static struct tally_counter *open_counter(uint32_t scope, int32_t id)
{
	struct tally_target target = { .scope = scope, .id = id };
	struct tally_counter *counter = NULL;

	return tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err) < 0
		       ? NULL
		       : counter;
}

static void a_counter_without_its_page_is_read_by_the_kernel(void)
{
	struct tally_fast fast;
	struct tally_count count;
	uint64_t value;

	for (int lost = 0; lost < 2; lost++) {
		fake_reset();
		fake.knows_lost = lost;
		fake.fail_mmap_code = -EPERM;
		struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
		require(counter != NULL);
		fake_nth(0)->value = 42;
		fake_nth(0)->enabled = 100;
		fake_nth(0)->running = 50;
		fake_nth(0)->lost = 3;
		check_int(tally_counter_fast(counter, &fast, &err), 0);
		check(fast.page == NULL);
		check(fast.owner == NULL);
		check(!tally_fast_is_user(&fast));
		check_int(tally_fast_read(&fast, &value), 0);
		check_u64(value, 42);
		check_int(tally_fast_get(&fast, &value), 0);
		check_u64(value, 42);
		check_int(tally_fast_read_count(&fast, &count), 0);
		check_u64(count.raw, 42);
		check_u64(count.value, 84);
		check_int(count.state, TALLY_COUNT_SCALED);
		check_u64(count.enabled_ns, 100);
		check_u64(count.running_ns, 50);
		check_u64(count.lost, lost ? 3 : 0);
		check_int(tally_fast_get_count(&fast, &count), 0);
		check_u64(count.value, 84);
		tally_counter_close(counter);
		check_int(fake.maps, 0);
	}
}

static void errors_of_the_kernel_are_told(void)
{
	struct tally_fast fast;
	struct tally_count count;
	uint64_t value = 9;

	fake_reset();
	fake.fail_mmap_code = -EPERM;
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	fake_nth(0)->end_of_file = true;
	check_int(tally_fast_read(&fast, &value), -EBUSY);
	check_int(tally_fast_read_count(&fast, &count), 0);
	check_int(count.state, TALLY_COUNT_ERROR);
	check_int(count.error, -EBUSY);
	fake_nth(0)->end_of_file = false;
	fake.cut_read = 24;
	check_int(tally_fast_read(&fast, &value), -EIO);
	check_int(tally_fast_read_count(&fast, &count), -EIO);
	fake.fail_read_code = -EFAULT;
	check_int(tally_fast_read(&fast, &value), -EFAULT);
	check_int(tally_fast_read_count(&fast, &count), -EFAULT);
	check_u64(value, 9);
	tally_counter_close(counter);
}

static void only_its_own_thread_gets_the_page(void)
{
	struct tally_fast fast, again;

	fake_reset();
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	check_int(fast.fd, FAKE_FIRST);
	check_u64(fast.id, 0);
	if (!tally_fast_thread_()) {
		check(fast.page == NULL);
		tally_counter_close(counter);
		tap_skip("no counter can be read in user space on this kind of CPU");
	}
	check(fast.page == fake_nth(0)->page);
	require(fast.page != NULL);
	check(*fast.owner == tally_fast_thread_());
	check_int(fake.maps, 2);
	check_int(tally_counter_fast(counter, &again, &err), 0);
	check(again.page == fast.page);
	check_int(fake.maps, 2);
	tally_counter_close(counter);
	check_int(fake.maps, 0);
	/* A thread by its number is left alone, though it may be this one. */
	counter = open_counter(TALLY_SCOPE_THREAD, getpid());
	require(counter != NULL);
	check_int(tally_counter_fast(counter, &fast, &err), 0);
	check(fast.page == NULL);
	tally_counter_close(counter);
	/* Without memory that fork wipes there is no page. */
	fake.fail_madvise_code = -EINVAL;
	counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	check_int(tally_counter_fast(counter, &fast, &err), 0);
	check(fast.page == NULL);
	tally_counter_close(counter);
	check_int(fake.maps, 0);
}

/* Software events have index 0, and their page's offset is no count. */
static void a_page_off_the_pmu_is_not_believed(void)
{
	struct perf_event_mmap_page *kernel;
	struct tally_fast fast;
	uint64_t value;

	fake_reset();
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	kernel = fake_nth(0)->page;
	if (kernel)
		kernel->offset = 1234;
	fake_nth(0)->value = 42;
	check(!tally_fast_is_user(&fast));
	check_int(tally_fast_read(&fast, &value), 0);
	check_u64(value, 42);
	tally_counter_close(counter);
}

static void a_forked_child_asks_the_kernel(void)
{
	struct tally_fast fast;
	uint64_t value = 0;
	int status = -1;

	fake_reset();
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	require(tally_counter_fast(counter, &fast, &err) == 0);
	fake_nth(0)->value = 42;
	/* The kernel does not copy the page of an event to a child. */
	if (fast.page)
		madvise((void *)(uintptr_t)fast.page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTFORK);
	pid_t pid = fork();
	if (pid == 0)
		_exit(tally_fast_read(&fast, &value) == 0 && value == 42 &&
				      (!fast.page || *fast.owner == 0)
			      ? 0
			      : 1);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	tally_counter_close(counter);
}

/* It has its parent's thread pointer, and a page of its parent's event would tell of the parent. */
static void a_forked_child_that_asks_first_gets_no_page(void)
{
	struct tally_fast fast;
	uint64_t value = 0;
	int status = -1;

	fake_reset();
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF, 0);
	require(counter != NULL);
	fake_nth(0)->value = 42;
	pid_t pid = fork();
	if (pid == 0)
		_exit(tally_counter_fast(counter, &fast, &err) == 0 && !fast.page &&
				      tally_fast_read(&fast, &value) == 0 && value == 42
			      ? 0
			      : 1);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	tally_counter_close(counter);
}

static void several_places_are_refused(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_CPUS,
				       .cpus = (int32_t[]){ 0, 1 },
				       .cpu_count = 2 };
	struct tally_fast fast = { .fd = 77 };
	struct tally_counter *counter;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_skip("one CPU alone");
	fake_reset();
	if (tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err) < 0)
		tap_skip("CPUs 0 and 1 are not both online");
	check_int(tally_counter_fast(counter, &fast, &err), -EINVAL);
	check_int(err.code, -EINVAL);
	check_has(err.text, "2 places");
	check_int(fast.fd, 77);
	tally_counter_close(counter);
}

static void a_member_is_found_by_its_id(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_group *group;
	struct tally_fast fast[2], none;
	struct tally_count count;
	uint64_t value;

	for (int i = 0; i < 4; i++) {
		fake_reset();
		fake.knows_lost = i & 1;
		fake.reversed = i & 2;
		require(tally_group_open(&group, events, 1, &target, NULL, &err) == 0);
		for (int m = 0; m < 2; m++) {
			fake_nth(m)->value = 40 + (unsigned)m;
			fake_nth(m)->enabled = fake_nth(m)->running = 9;
			fake_nth(m)->lost = 5 + (unsigned)m;
			check_int(tally_group_fast(group, (uint32_t)m, &fast[m], &err), 0);
		}
		for (int m = 0; m < 2; m++) {
			check_int(tally_fast_read(&fast[m], &value), 0);
			check_u64(value, 40 + (unsigned)m);
			check_int(tally_fast_read_count(&fast[m], &count), 0);
			check_u64(count.value, 40 + (unsigned)m);
			check_u64(count.enabled_ns, 9);
			check_u64(count.lost, i & 1 ? 5 + (unsigned)m : 0);
		}
		check_int(tally_group_fast(group, 2, &none, &err), -EINVAL);
		/* A pinned leader that lost its place speaks for all. */
		fake_nth(0)->end_of_file = true;
		check_int(tally_fast_read(&fast[1], &value), -EBUSY);
		fake_nth(0)->end_of_file = false;
		fake.drops_last = true;
		check_int(tally_fast_read(&fast[1], &value), -EIO);
		check_int(tally_fast_read(&fast[0], &value), 0);
		tally_group_close(group);
		check_int(fake.maps, 0);
	}
}

static void members_that_are_read_one_by_one_have_times_of_their_own(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_group *group;
	struct tally_fast fast;
	struct tally_count count;
	uint64_t value;

	for (int lost = 0; lost < 2; lost++) {
		fake_reset();
		fake.knows_lost = lost;
		require(tally_group_open(&group, events, 1, &target,
					 TALLY_OPTS(counter, .flags = TALLY_COUNTER_MEMBER_TIMES),
					 &err) == 0);
		for (unsigned m = 0; m < 2; m++) {
			fake_nth((int)m)->value = m;
			fake_nth((int)m)->enabled = fake_nth((int)m)->running = 9 + m;
			fake_nth((int)m)->lost = 5 + m;
			check_int(tally_group_fast(group, m, &fast, &err), 0);
			check_int(fast.fd, FAKE_FIRST + (int)m);
			check_u64(fast.id, 0);
			value = 77;
			check_int(tally_fast_value_kernel(&fast, &value), 0);
			check_u64(value, m);
			check_int(tally_fast_read_kernel(&fast, &count), 0);
			check_u64(count.value, m);
			check_u64(count.enabled_ns, 9 + m);
			check_u64(count.lost, lost ? 5 + m : 0);
		}
		tally_group_close(group);
	}
}

static void reads_are_asked_for_in_hardware_events_alone(void)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_HARDWARE, 0);
	fast_ask(&attr, 0);
	check_u64(attr.config1, 0);
	check(!fast_give_up(&attr, 0));
	fast_ask(&attr, 2);
	check_u64(attr.config1, 2);
	attr.config1 |= 1;
	check(fast_give_up(&attr, 2));
	check_u64(attr.config1, 1);
	check(!fast_give_up(&attr, 2));
	tally_attr_init(&attr, TALLY_TYPE_BREAKPOINT, 0);
	attr.config1 = 0x1002; /* an address */
	fast_ask(&attr, 1);
	check_u64(attr.config1, 0x1002);
	check(!fast_give_up(&attr, 2));
	check_u64(attr.config1, 0x1002);
}

int main(void)
{
	if (tally_events_parse(&events, "page-faults,{page-faults,minor-faults}", NULL, &err) < 0) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	tap_run(the_page_is_the_kernels);
	tap_run(the_counter_is_sign_extended_to_its_width);
	tap_run(the_index_is_one_more_than_the_counter);
	tap_run(what_cannot_be_read_is_left_to_the_kernel);
	tap_run(times_go_on_by_the_clock);
	tap_run(a_short_clock_may_have_wrapped);
	tap_run(without_times_only_the_value_is_read);
	tap_run(a_page_that_changes_meanwhile_is_read_again);
	tap_run(a_page_that_never_rests_is_left_to_the_kernel);
	tap_run(a_counter_without_its_page_is_read_by_the_kernel);
	tap_run(errors_of_the_kernel_are_told);
	tap_run(only_its_own_thread_gets_the_page);
	tap_run(a_page_off_the_pmu_is_not_believed);
	tap_run(a_forked_child_asks_the_kernel);
	tap_run(a_forked_child_that_asks_first_gets_no_page);
	tap_run(several_places_are_refused);
	tap_run(a_member_is_found_by_its_id);
	tap_run(members_that_are_read_one_by_one_have_times_of_their_own);
	tap_run(reads_are_asked_for_in_hardware_events_alone);
	tally_events_free(events);
	return tap_end();
}
