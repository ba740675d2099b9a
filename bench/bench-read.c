/* SPDX-License-Identifier: MIT */
/*
 * What reading costs, beside the bare system calls that it is made of. All of it is measured in one
 * run, in turns, so that a busy machine hits all alike; each line is the median of the rounds and
 * the median of the rounds' ratios.
 *
 *	bench-read [ROUNDS]
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#define ROUNDS 201
#define READS  500
#define OPENS  50

static struct {
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_fast fast;
	struct tally_attr attr;
	int fd;
	int rounds;
} bench;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench-read: %s failed\n", what);
	exit(EXIT_FAILURE);
}

static void bare_read(void)
{
	uint64_t words[5];

	must(read(bench.fd, words, sizeof(words)) > 0, "read");
}

static void counter_read(void)
{
	struct tally_count count;

	must(tally_counter_read(bench.counter, &count) == 0, "tally_counter_read");
}

static void fast_read(void)
{
	uint64_t value;

	must(tally_fast_read(&bench.fast, &value) == 0, "tally_fast_read");
}

static void fast_read_count(void)
{
	struct tally_count count;

	must(tally_fast_read_count(&bench.fast, &count) == 0, "tally_fast_read_count");
}

static int bare_open(void)
{
	return (int)syscall(SYS_perf_event_open, &bench.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void bare_cycle(void)
{
	uint64_t words[5];
	int fd = bare_open();

	must(fd >= 0, "perf_event_open");
	must(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0, "ioctl");
	must(read(fd, words, sizeof(words)) > 0, "read");
	close(fd);
}

static void counter_cycle(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter *counter;
	struct tally_count count;

	must(tally_counter_open(&counter, tally_events_at(bench.events, 0), &target, NULL, NULL) ==
		     0,
	     "tally_counter_open");
	must(tally_counter_enable(counter) == 0, "tally_counter_enable");
	must(tally_counter_read(counter, &count) == 0, "tally_counter_read");
	tally_counter_close(counter);
}

static double time_of(void (*fn)(void), int times)
{
	uint64_t start = now_ns();

	for (int i = 0; i < times; i++)
		fn();
	return (double)(now_ns() - start) / times;
}

/* Regions: this program's own, off at first; see main(). */
static struct tally_regions set;
static struct tally_region region = TALLY_REGION("empty");
static int group_fd; /* page faults and task clock, as in the region */

static void region_begin_end(void)
{
	TALLY_REGION_BEGIN(set, &region);
	TALLY_REGION_END(set, &region);
}

/* What a region is off: two loads, each with a branch. */
static const uint32_t off;

static void two_branches(void)
{
	for (int i = 0; i < 2; i++)
		if (__builtin_expect(__atomic_load_n(&off, __ATOMIC_RELAXED), 0))
			bare_read();
}

static void two_group_reads(void)
{
	uint64_t words[3 + 2 * 3];

	must(read(group_fd, words, sizeof(words)) > 0, "read");
	must(read(group_fd, words, sizeof(words)) > 0, "read");
}

static void open_bare_group(void)
{
	struct tally_attr attr = bench.attr;

	attr.flags &= ~TALLY_ATTR_DISABLED;
	attr.read_format |= PERF_FORMAT_GROUP;
	group_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	must(group_fd >= 0, "perf_event_open");
	attr.config = TALLY_SW_TASK_CLOCK;
	must(syscall(SYS_perf_event_open, &attr, 0, -1, group_fd, PERF_FLAG_FD_CLOEXEC) >= 0,
	     "perf_event_open");
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), by_size);
	return values[count / 2];
}

/* Both in turns; which one goes first changes. */
static bool compare(const char *what, void (*ours)(void), const char *peer, void (*theirs)(void),
		    int times, double target)
{
	double *a = calloc(3 * (size_t)bench.rounds, sizeof(*a));

	must(a != NULL, "calloc");
	double *b = a + bench.rounds, *ratio = b + bench.rounds;
	for (int i = 0; i < bench.rounds; i++) {
		if (i & 1)
			b[i] = time_of(theirs, times);
		a[i] = time_of(ours, times);
		if (!(i & 1))
			b[i] = time_of(theirs, times);
		ratio[i] = a[i] / b[i];
	}
	double r = median(ratio, bench.rounds);
	printf("%s: %.4g ns, %s %.4g ns: %.3f of it, target %.3g%s\n", what,
	       median(a, bench.rounds), peer, median(b, bench.rounds), r, target,
	       r <= target ? "" : "  MISSED");
	free(a);
	return r <= target;
}

static void open_all(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_error err = { .text = "" };

	if (tally_events_parse(&bench.events, "page-faults:u", NULL, &err) < 0 ||
	    tally_counter_open(&bench.counter, tally_events_at(bench.events, 0), &target,
			       TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED), &err) < 0 ||
	    tally_counter_fast(bench.counter, &bench.fast, &err) < 0) {
		printf("bench-read: skipped, %s\n", err.text);
		exit(EXIT_SUCCESS);
	}
	/* The peer is asked for the same. */
	bench.attr = *tally_event_granted(tally_events_at(bench.events, 0));
	bench.fd = bare_open();
	must(bench.fd >= 0, "perf_event_open");
	bench.attr.flags |= TALLY_ATTR_DISABLED;
}

/* Off, and then as the environment asks for it; its output is not wanted. */
static bool compare_regions(void)
{
	bool met = compare("a region that is off", region_begin_end, "two loads and branches",
			   two_branches, 100 * READS, 1.1);

	open_bare_group();
	setenv("TALLY_REGIONS", "page-faults:u,task-clock:u", 1);
	setenv("TALLY_REGIONS_OUTPUT", "/dev/null", 1);
	tally_regions_start(&set);
	must(set.on, "tally_regions_start");
	met &= compare("a region that is on", region_begin_end, "two read(2) of a group",
		       two_group_reads, READS, 1.2);
	tally_regions_stop(&set);
	close(group_fd);
	return met;
}

int main(int argc, char **argv)
{
	bool met = true;

	bench.rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	if (bench.rounds < 1)
		bench.rounds = ROUNDS;
	open_all();
	met &= compare("tally_counter_read", counter_read, "read(2)", bare_read, READS, 1.05);
	met &= compare("tally_fast_read, a software event", fast_read, "read(2)", bare_read, READS,
		       1.1);
	met &= compare("tally_fast_read_count, a software event", fast_read_count, "read(2)",
		       bare_read, READS, 1.1);
	met &= compare("open, enable, read, close", counter_cycle, "the system calls", bare_cycle,
		       OPENS, 1.1);
	met &= compare_regions();
	close(bench.fd);
	tally_counter_close(bench.counter);
	tally_events_free(bench.events);
	return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
