/* SPDX-License-Identifier: MIT */
/*
 * churn THREADS WHAT: keeps THREADS threads busy with triggering events and keeps the books of how often
 * they did. WHAT is "getppid", a system call each; each of the threads then starts short-lived ones all
 * the time, which trigger too. Or it is "touch", a fresh page each; then no thread is started any more,
 * since stacks would fault as well.
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

static atomic_bool paused, ending;
static atomic_int active; /* threads that are between looks */
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

static void *short_lived(void *arg)
{
	batch();
	return arg;
}

static void *long_lived(void *arg)
{
	while (!atomic_load(&ending)) {
		pthread_t t;
		batch();
		if (touches)
			continue;
		/* While it pauses, too. */
		if (pthread_create(&t, NULL, short_lived, NULL) == 0)
			pthread_join(t, NULL);
	}
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
	pthread_t ids[MAX_THREADS];
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	char command;

	if (argc < 3 || threads > MAX_THREADS)
		return 98;
	touches = strcmp(argv[2], "touch") == 0;
	page = (size_t)sysconf(_SC_PAGESIZE);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, long_lived, NULL))
			return 99;
	while (read(STDIN_FILENO, &command, 1) == 1)
		serve(command);
	atomic_store(&ending, true);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
