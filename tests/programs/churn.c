/* SPDX-License-Identifier: MIT */
/*
 * churn THREADS WHAT: keeps THREADS threads busy with triggering events and keeps the books of how often
 * they did. WHAT is "getppid", a system call each; each thread then soon starts its successor and ends,
 * so that whoever is counted twice, or not, hands that on. Or it is "touch", a fresh page each; then no
 * thread is started any more, since stacks would fault as well.
 *
 * It reads commands of one byte: 'p' pauses all threads, waits until none is between a trigger and its
 * book, and answers the total as eight bytes; 'g' lets them go on, and answers one byte; the end of file
 * ends it. While they pause they trigger nothing, so that a total is that of a moment.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 256
#define BATCH       16 /* triggers between two looks at the pause */
#define BATCHES     4  /* and how many of these a thread lives */

static atomic_bool paused, ending;
static atomic_int active; /* threads that are between looks */
static atomic_int chains; /* of threads, that go on */
static atomic_uint_least64_t total;
static bool touches;
static size_t page;

static void trigger(void)
{
	if (!touches) {
		for (int i = 0; i < BATCH; i++)
			syscall(SYS_getppid);
		return;
	}
	volatile char *at = mmap(NULL, BATCH * page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		_exit(99);
	/* A huge page would be one fault for 512 pages. */
	madvise((void *)(uintptr_t)at, BATCH * page, MADV_NOHUGEPAGE);
	for (int i = 0; i < BATCH; i++)
		at[(size_t)i * page] = 1;
	munmap((void *)(uintptr_t)at, BATCH * page);
}

/* One batch, unless it pauses. The counter of the active ones is raised first, and looked at again. */
static void batch(void)
{
	if (atomic_load(&paused)) {
		usleep(500); /* lest those that must see the pause get no CPU */
		return;
	}
	atomic_fetch_add(&active, 1);
	if (!atomic_load(&paused)) {
		trigger();
		atomic_fetch_add(&total, BATCH);
	}
	atomic_fetch_sub(&active, 1);
}

static void *chain(void *arg);

/* Detached, and started anew where the limit of threads is reached for a moment. */
static void start_link(void)
{
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	while (pthread_create(&id, &attr, chain, NULL))
		usleep(1000);
	pthread_attr_destroy(&attr);
}

static void *chain(void *arg)
{
	for (int i = 0; i < BATCHES || touches; i++) {
		batch();
		if (atomic_load(&ending)) {
			atomic_fetch_sub(&chains, 1);
			return arg;
		}
	}
	start_link();
	return arg;
}

static void answer(const void *bytes, size_t len)
{
	if (write(STDOUT_FILENO, bytes, len) != (ssize_t)len)
		_exit(99);
}

static void serve(char command)
{
	if (command == 'p') {
		atomic_store(&paused, true);
		while (atomic_load(&active))
			usleep(100);
		uint64_t now = atomic_load(&total);
		answer(&now, sizeof(now));
	} else {
		atomic_store(&paused, false);
		answer(&command, 1);
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	char command;

	if (argc < 3 || threads > MAX_THREADS)
		return 98;
	touches = strcmp(argv[2], "touch") == 0;
	page = (size_t)sysconf(_SC_PAGESIZE);
	atomic_store(&chains, threads);
	for (int i = 0; i < threads; i++)
		start_link();
	while (read(STDIN_FILENO, &command, 1) == 1)
		serve(command);
	atomic_store(&ending, true);
	while (atomic_load(&chains))
		usleep(1000);
	return 0;
}
