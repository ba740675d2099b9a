/* SPDX-License-Identifier: MIT */
/*
 * The self-test on this machine: what it says of the counters is what the kernel shows of them, and the
 * event that it adopts counts a loop of ours exactly.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <tally/tally.h>

#include "tap.h"

#define MOST 32

static struct {
	char name[32], value[200];
	uint32_t state;
	bool mend;
} all[MOST];
static size_t told;
static struct tally_selftest out;

static int take(const struct tally_selftest_finding *f, void *arg)
{
	static const char *const states[] = { "ok", "limited", "fails", "unknown" };

	if (told == MOST || f->state >= 4)
		return -E2BIG;
	printf("# %s: %s, %s: %s%s%s\n", f->name, states[f->state], f->value, f->meaning,
	       f->mend ? "; " : "", f->mend ? f->mend : "");
	snprintf(all[told].name, sizeof(all[told].name), "%s", f->name);
	snprintf(all[told].value, sizeof(all[told].value), "%s", f->value);
	all[told].mend = f->mend;
	all[told++].state = f->state;
	return 0;
}

static void runs_and_gives_remedies(void)
{
	struct tally_error err = { 0 };

	if (!check_int(tally_selftest_run(NULL, take, NULL, &out, &err), 0))
		printf("# %s\n", err.text);
	check(told > 0);
	for (size_t i = 0; i < told; i++)
		check(all[i].state == TALLY_SELFTEST_OK || all[i].mend);
}

/* The kernel's generic event of branches, which exists where a PMU does. */
static bool has_counters(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void knows_whether_there_are_counters(void)
{
	require(told);
	check_str(all[0].name, "clock-event");
	if (has_counters())
		check(told > 1 || all[0].state != TALLY_SELFTEST_OK);
	else
		check(told == 1 && all[0].state != TALLY_SELFTEST_OK && !out.ticks);
}

/* Two branches an iteration: one is taken as often as it is not, the other always. */
static void loop(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		if (i & 1)
			__asm__ volatile("");
}

static bool count_loop(int fd, uint64_t n, uint64_t *count)
{
	uint64_t before, after;

	if (read(fd, &before, sizeof(before)) != sizeof(before))
		return false;
	loop(n);
	if (read(fd, &after, sizeof(after)) != sizeof(after))
		return false;
	*count = after - before;
	return true;
}

static void the_event_counts_exactly(void)
{
	struct tally_attr attr = out.attr;
	uint64_t first[2] = { 0, 0 }, now[2] = { 0, 0 };

	if (!out.ticks)
		tap_skip("no event counts exactly here");
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	attr.size = TALLY_ATTR_SIZE_MIN;
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	require(fd >= 0);
	for (int i = 0; i < 50; i++) {
		require(count_loop(fd, 1000, &now[0]) && count_loop(fd, 21000, &now[1]));
		if (i == 0)
			memcpy(first, now, sizeof(first));
		check_u64(now[0], first[0]);
		check_u64(now[1], first[1]);
	}
	printf("# %u: %llu and %llu\n", out.ticks, (unsigned long long)now[0],
	       (unsigned long long)now[1]);
	/* A whole number of branches an iteration. */
	check_u64((now[1] - now[0]) % 10000, 0);
	check(now[1] - now[0] >= 20000);
	close(fd);
}

static void interrupts_come(void)
{
	if (!out.ticks)
		tap_skip("no event counts exactly here");
	check(out.interrupts > 0);
	check_u64(out.skids.count, out.interrupts - out.lost);
	check(out.min_period >= 1);
}

int main(void)
{
	tap_run(runs_and_gives_remedies);
	tap_run(knows_whether_there_are_counters);
	tap_run(the_event_counts_exactly);
	tap_run(interrupts_come);
	return tap_end();
}
