/* SPDX-License-Identifier: MIT */
/*
 * Events on the kernel that runs. event_open() is hidden, so a counter stands for it: it opens the
 * event at one place.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/tally.h>

#include "tap.h"

static struct tally_error err;

/* perf_event_open(2) itself: whether this kernel and user can have it, as the referee. */
static int raw_open(const struct tally_attr *attr)
{
	struct tally_attr copy = *attr;

	copy.size = tally_attr_size(attr);
	copy.flags |= TALLY_ATTR_DISABLED;
	int fd = (int)syscall(SYS_perf_event_open, &copy, 0, -1, -1, 8ul);
	int r = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static bool may_open_events(void)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_DUMMY);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	return raw_open(&attr) == 0;
}

static int check_listed(const struct tally_event_info *info, void *arg)
{
	struct tally_events *events;
	int *seen = arg;

	if (info->kind == TALLY_EVENT_TRACEPOINT || strchr(info->name, '?'))
		return 0;
	*seen |= 1 << info->kind;
	if (!check(tally_events_parse(&events, info->name, NULL, &err) == 0))
		return 0;
	struct tally_attr attr = *tally_event_attr(tally_events_at(events, 0));
	struct tally_event_part part;
	tally_event_part(tally_events_at(events, 0), 0, &part);
	int r = part.per_cpu ? 1 : raw_open(&attr);
	if (r == -EACCES) {
		attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		if (attr.type != TALLY_TYPE_SOFTWARE || attr.config == TALLY_SW_PAGE_FAULTS)
			r = raw_open(&attr);
		else
			r = 1; /* whether user mode alone is an answer depends on the event */
	}
	if (r == -EINVAL && info->kind == TALLY_EVENT_PMU)
		r = 1; /* it may count CPUs only */
	if (r <= 0 && info->openable != (r == 0))
		printf("# %s: openable %u, the kernel answers %d\n", info->name, info->openable, r);
	check(r > 0 || info->openable == (r == 0));
	tally_events_free(events);
	return 0;
}

static void listed_as_openable_means_that_it_opens(void)
{
	int seen = 0;

	check_int(tally_event_each(NULL, NULL, check_listed, &seen, &err), 0);
	check_int(seen & ~(1 << TALLY_EVENT_PMU),
		  1 << TALLY_EVENT_HARDWARE | 1 << TALLY_EVENT_SOFTWARE | 1 << TALLY_EVENT_CACHE);
}

/* The time stamp counter never stands still, so that it has gone on between two readings. */
static void an_event_of_a_pmu_counts(void)
{
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_count before, after;
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

	if (access("/sys/bus/event_source/devices/msr/events/tsc", R_OK) < 0)
		tap_skip("this machine has no PMU msr with an event tsc");
	require(tally_events_parse(&events, "msr/tsc/", NULL, &err) == 0);
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);
	if (r == -EACCES || r == -EPERM) {
		tally_events_free(events);
		tap_skip("this user may not count with a PMU that counts the kernel too");
	}
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	check_int(tally_counter_enable(counter), 0);
	check_int(tally_counter_read(counter, &before), 0);
	check_int(tally_counter_read(counter, &after), 0);
	check_int(after.state, TALLY_COUNT_EXACT);
	check(after.value > before.value);
	check_str(tally_event_compromise(tally_events_at(events, 0)), NULL);
	tally_counter_close(counter);
	tally_events_free(events);
}

/* Each page of a fresh private map faults once, in user mode. */
static void page_faults_are_those_of_the_program(void)
{
	enum {
		PAGES = 200
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = PAGES * page;
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_count count;
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

	if (!may_open_events())
		tap_skip("this user may not open events here");
	check_int(tally_events_parse(&events, "page-faults:u", NULL, &err), 0);
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	check_u64(tally_event_granted(tally_events_at(events, 0))->size, TALLY_ATTR_SIZE_MIN);
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(map != MAP_FAILED);
	madvise(map, len, MADV_NOHUGEPAGE);
	check_int(tally_counter_enable(counter), 0);
	for (size_t i = 0; i < PAGES; i++)
		map[i * page] = 1;
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	/* AddressSanitizer touches a byte of its own for 8 of ours; some are of stack and libc. */
	check(count.value >= PAGES);
	check(count.value <= PAGES + PAGES / 8 + 16);
	munmap(map, len);
	tally_counter_close(counter);
	tally_events_free(events);
}

/* Either the CPU's cycles, or the clock with a word about it; never nothing. */
static void cycles_or_the_clock(void)
{
	const struct tally_events_opts opts = {
		.size = sizeof(opts),
		.fallback = TALLY_FALLBACK_PRECISE | TALLY_FALLBACK_NEWER_BITS |
			    TALLY_FALLBACK_USER_ONLY | TALLY_FALLBACK_CPU_CLOCK,
	};
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_count count;

	if (!may_open_events())
		tap_skip("this user may not open events here");
	check_int(tally_events_parse(&events, "cycles:P", &opts, &err), 0);
	struct tally_event *e = tally_events_at(events, 0);
	int r = tally_counter_open(&counter, e, &self, NULL, &err);
	if (r < 0)
		printf("# %s\n", err.text);
	require(r == 0);
	const struct tally_attr *granted = tally_event_granted(e);
	bool clock = granted->type == TALLY_TYPE_SOFTWARE;
	if (clock)
		check_has(tally_event_compromise(e), "cpu-clock instead of cycles");
	check_str(tally_event_unit(e), clock ? "ns" : "");
	check_int(tally_counter_enable(counter), 0);
	for (volatile int i = 0; i < 1000000; i++)
		;
	check_int(tally_counter_disable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check(count.value > 0);
	tally_counter_close(counter);
	tally_events_free(events);
}

static void hardware_counts_or_says_why_not(void)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_HARDWARE, TALLY_HW_INSTRUCTIONS);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	int real = raw_open(&attr);
	check_int(tally_events_parse(&events, "instructions:u", NULL, &err), 0);
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);
	check_int(r, real);
	if (r < 0) {
		check(strlen(err.text) > 20);
		tally_events_free(events);
		tap_skip("no hardware counters here: its refusal was checked");
	}
	tally_counter_close(counter);
	tally_events_free(events);
}

/* Measured on Linux 6.18, and so in all since 2.6.31. */
static void errnos_of_the_kernel(void)
{
	const int32_t far_cpu = 9999;
	const struct tally_target nobody = { .scope = TALLY_SCOPE_THREAD, .id = 0x3fffff };
	const struct tally_target nowhere = { .scope = TALLY_SCOPE_CPUS,
					      .cpus = &far_cpu,
					      .cpu_count = 1 };
	struct tally_events *events;
	struct tally_counter *counter;

	if (!may_open_events())
		tap_skip("this user may not open events here");
	check_int(tally_events_parse(&events, "page-faults:u", NULL, &err), 0);
	struct tally_event *e = tally_events_at(events, 0);
	check_int(tally_counter_open(&counter, e, &nobody, NULL, &err), -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check(tally_counter_open(&counter, e, &nowhere, NULL, &err) < 0);
	check(strlen(err.text) > 20);
	tally_events_free(events);
}

int main(void)
{
	tap_run(listed_as_openable_means_that_it_opens);
	tap_run(an_event_of_a_pmu_counts);
	tap_run(page_faults_are_those_of_the_program);
	tap_run(cycles_or_the_clock);
	tap_run(hardware_counts_or_says_why_not);
	tap_run(errnos_of_the_kernel);
	return tap_end();
}
