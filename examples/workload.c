/* SPDX-License-Identifier: MIT */
/*
 * A program to look at: four threads, each with its own kind of work, under names that are easy to
 * find again in a report. Its output is the same every time. `make demo` profiles it. An argument
 * says how much to do, in percent of about two seconds on two CPUs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* A small linear congruential generator (Knuth's MMIX): the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static NOINLINE void fill_numbers(uint64_t *numbers, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = next_random(&seed);
}

/* Restores the heap below `at`, whose parent may be smaller than a child. */
static NOINLINE void sift_down(uint64_t *heap, size_t at, size_t count)
{
	uint64_t number = heap[at];

	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= number)
			break;
		heap[at] = heap[child];
	}
	heap[at] = number;
}

static NOINLINE void heap_sort(uint64_t *numbers, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sift_down(numbers, i, count);
	for (size_t end = count; end-- > 1;) {
		uint64_t largest = numbers[0];
		numbers[0] = numbers[end];
		numbers[end] = largest;
		sift_down(numbers, 0, end);
	}
}

static NOINLINE uint64_t sort_numbers(unsigned rounds)
{
	enum {
		COUNT = 50000
	};
	uint64_t *numbers = calloc(COUNT, sizeof(*numbers)), sum = 0;

	for (unsigned round = 0; numbers && round < rounds; round++) {
		fill_numbers(numbers, COUNT, round);
		heap_sort(numbers, COUNT);
		sum += numbers[COUNT / 2];
	}
	free(numbers);
	return sum;
}

/* FNV-1a, 64 bits. */
static NOINLINE uint64_t hash_block(const unsigned char *bytes, size_t len, uint64_t hash)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

static NOINLINE uint64_t hash_blocks(unsigned rounds)
{
	static unsigned char block[65536];
	uint64_t hash = 0xcbf29ce484222325u;

	for (unsigned round = 0; round < rounds; round++) {
		block[round % sizeof(block)]++;
		hash = hash_block(block, sizeof(block), hash);
	}
	return hash;
}

enum {
	SIDE = 192
};

static NOINLINE void multiply_matrices(double (*out)[SIDE], double (*a)[SIDE], double (*b)[SIDE])
{
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			double sum = 0;
			for (int k = 0; k < SIDE; k++)
				sum += a[i][k] * b[k][j];
			out[i][j] = sum / SIDE;
		}
}

static NOINLINE uint64_t multiply_often(unsigned rounds)
{
	static double left[SIDE][SIDE], right[SIDE][SIDE], product[SIDE][SIDE];
	double sum = 0;

	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++)
			left[i][j] = right[j][i] = i * j % 7;
	for (unsigned round = 0; round < rounds; round++) {
		left[round % SIDE][round % 7] += 1;
		multiply_matrices(product, left, right);
		sum += product[round % SIDE][round % SIDE];
	}
	return (uint64_t)sum;
}

static NOINLINE uint64_t copy_zeros(unsigned rounds)
{
	static char page[65536];
	int from = open("/dev/zero", O_RDONLY | O_CLOEXEC),
	    to = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t bytes = 0;

	for (unsigned round = 0; round < rounds; round++) {
		ssize_t n = read(from, page, sizeof(page));
		if (n > 0 && write(to, page, (size_t)n) == n)
			bytes += (uint64_t)n;
	}
	close(from);
	close(to);
	return bytes;
}

struct work {
	const char *name;
	uint64_t (*run)(unsigned rounds);
	unsigned rounds;
	uint64_t result;
	pthread_t thread;
};

static void *work_thread(void *arg)
{
	struct work *work = arg;

	pthread_setname_np(pthread_self(), work->name);
	work->result = work->run(work->rounds);
	return NULL;
}

int main(int argc, char **argv)
{
	struct work works[] = {
		{ "sorter", sort_numbers, 300 },
		{ "hasher", hash_blocks, 14000 },
		{ "matrix", multiply_often, 200 },
		{ "copier", copy_zeros, 150000 },
	};
	unsigned percent = argc > 1 ? (unsigned)atoi(argv[1]) : 100;

	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
		works[i].rounds = works[i].rounds / 100 * percent;
		if (pthread_create(&works[i].thread, NULL, work_thread, &works[i]))
			return 1;
	}
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
		pthread_join(works[i].thread, NULL);
		printf("%s %" PRIu64 "\n", works[i].name, works[i].result);
	}
	return 0;
}
