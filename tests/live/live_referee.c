/* SPDX-License-Identifier: MIT */
/*
 * Work of all sorts, counted: each time it is the same. What is printed in lines of "# counted" is compared,
 * where this runs in the lab, with what the emulator itself has seen between the marks (tests/lab/referee.c),
 * in the same order; what lies between a mark and the counter's start and stop is what `nothing` counts.
 */
#include <stdlib.h>

#include "pmu.h"

#define TIMES 3

static int numbers[4096];
static char text[8192];
static volatile uint64_t sink;

static void nothing(void)
{
}

static void rounds(void)
{
	loop(12345);
}

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort(void)
{
	unsigned int seed = 1;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		seed = seed * 1103515245u + 12345u;
		numbers[i] = (int)(seed >> 8);
	}
	qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), compare);
}

static void format(void)
{
	size_t at = 0;

	for (int i = 0; i < 500; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d:%d,", i * 37, i);
	sink = at;
}

static uint64_t fibonacci(uint64_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void recurse(void)
{
	sink = fibonacci(20);
}

static const struct {
	const char *name;
	void (*run)(void);
} works[] = {
	{ "nothing", nothing }, { "rounds", rounds },   { "sort", sort },
	{ "format", format },   { "recurse", recurse },
};

/* Neither inlined nor cloned: what is around the work is the same for all. */
static __attribute__((noinline)) void count_work(struct tally_group *group, void (*work)(void))
{
	tally_group_enable(group);
	mark_begin();
	work();
	mark_end();
	tally_group_disable(group);
}

static void tell(const char *name, bool last, const struct tally_count *counts, size_t members)
{
	printf("# counted %s%s: instructions=%" PRIu64, name, last ? "" : " to warm up",
	       counts[0].value);
	if (members == 2)
		printf(" branches=%" PRIu64, counts[1].value);
	printf("\n");
}

/* Counts it several times; the first time it may fault, and takes other ways then. */
static void repeat(struct opened *o, size_t members, size_t w)
{
	struct tally_count counts[2];
	uint64_t before[2] = { 0 }, so_far = interrupts();

	for (int i = 0; i < TIMES; i++) {
		check_int(tally_group_reset(o->group), 0);
		count_work(o->group, works[w].run);
		check_int(tally_group_read(o->group, counts, 2), 0);
		tell(works[w].name, i + 1 == TIMES, counts, members);
		uint64_t allowed = interrupts() - so_far;
		for (size_t m = 0; m < members; m++) {
			int64_t difference = (int64_t)(counts[m].value - before[m]);
			check(i < 2 || (uint64_t)llabs(difference) <= allowed);
			before[m] = counts[m].value;
		}
	}
}

/* But for interrupts, which CPUs of x86 are known to count. */
static void the_same_work_counts_the_same(void)
{
	struct opened branches, o;
	char list[64] = "{instructions:u}";
	size_t members = 1;

	NEED_PMU();
	if (open_moving(&branches, loop_branches(), 0, 0)) {
		snprintf(list, sizeof(list), "{instructions:u,%s}", loop_branches());
		members = 2;
		close_all(&branches);
	}
	require(open_group(&o, list, 0));
	for (size_t w = 0; w < sizeof(works) / sizeof(*works); w++)
		repeat(&o, members, w);
	close_all(&o);
}

int main(void)
{
	probe_pmu();
	tap_run(the_same_work_counts_the_same);
	return tap_end();
}
