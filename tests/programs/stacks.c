/* SPDX-License-Identifier: MIT */
/*
 * A program with stacks that are hard to unwind: deep recursion, signal handlers on stacks of their
 * own and on the thread's, memory from alloca, a leaf, calls through the PLT, and threads.
 *
 *	stacks SECONDS
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static double seconds = 1;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) uint64_t leaf(uint64_t x)
{
	for (int i = 0; i < 200; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}

/* A frame of a size that only runs tell. */
static __attribute__((noinline)) uint64_t varied(uint64_t x)
{
	size_t size = 16 + x % 200;
	unsigned char *room = alloca(size);

	memset(room, (int)x, size);
	return leaf(x) + room[x % size];
}

static __attribute__((noinline)) uint64_t deep(unsigned depth, uint64_t x)
{
	if (!depth)
		return varied(x);
	uint64_t below = deep(depth - 1, x + depth);
	return below ^ leaf(below);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	sink += leaf(x);
	return x < y ? -1 : x > y;
}

/* Called by libc, which calls back. */
static __attribute__((noinline)) void sort(uint64_t x)
{
	uint64_t numbers[64];

	for (size_t i = 0; i < 64; i++)
		numbers[i] = x = leaf(x);
	qsort(numbers, 64, sizeof(*numbers), compare);
}

static void on_signal(int number)
{
	(void)number;
	for (int i = 0; i < 300; i++)
		sink += deep(3, sink);
}

static void *work(void *arg)
{
	double end = now() + seconds;
	uint64_t x = (uint64_t)(uintptr_t)arg;

	while (now() < end) {
		sink += deep((unsigned)(x % 60), x);
		sort(x);
		x = leaf(x);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char own_stack[65536];
	const stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction action = { .sa_handler = on_signal };
	const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	pthread_t thread;

	if (argc > 1)
		seconds = atof(argv[1]);
	sigaltstack(&stack, NULL);
	sigaction(SIGPROF, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_create(&thread, NULL, work, (void *)1);
	work((void *)2);
	pthread_join(thread, NULL);
	return 0;
}
