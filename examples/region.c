/* SPDX-License-Identifier: MIT */
/*
 * Regions of a program, counted when the environment asks for it:
 *
 *	cc region.c $(pkg-config --cflags --libs libtally)
 *	TALLY_REGIONS=1 ./a.out
 *	TALLY_REGIONS=page-faults:u,task-clock:u TALLY_REGIONS_FORMAT=json ./a.out
 *
 * Without TALLY_REGIONS the program runs as if there were none.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tally/tally.h>

#define THREADS 2
#define ROUNDS  4
#define NUMBERS (1u << 16)

/* The regions of this program, and a handle for each. */
TALLY_REGIONS(app);

static struct tally_region whole = TALLY_REGION("whole");
static struct tally_region fill_region = TALLY_REGION("fill");
static struct tally_region sort_region = TALLY_REGION("sort");

static int by_size(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

/* Fresh memory each time, which takes page faults. */
static unsigned *fill(void)
{
	unsigned seed = 1, *numbers = malloc(NUMBERS * sizeof(*numbers));

	TALLY_REGION_BEGIN(app, &fill_region);
	for (size_t i = 0; numbers && i < NUMBERS; i++) {
		seed = seed * 1664525u + 1013904223u;
		numbers[i] = seed;
	}
	TALLY_REGION_END(app, &fill_region);
	return numbers;
}

static void *work(void *arg)
{
	TALLY_REGION_BEGIN(app, &whole);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned *numbers = fill();
		if (!numbers)
			break;
		TALLY_REGION_BEGIN(app, &sort_region);
		qsort(numbers, NUMBERS, sizeof(*numbers), by_size);
		TALLY_REGION_END(app, &sort_region);
		free(numbers);
	}
	TALLY_REGION_END(app, &whole);
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];
	int started = 0;

	while (started < THREADS && !pthread_create(&threads[started], NULL, work, NULL))
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	return started == THREADS ? EXIT_SUCCESS : EXIT_FAILURE;
}
