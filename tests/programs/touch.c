/* SPDX-License-Identifier: MIT */
/*
 * touch PAGES [THREADS [CHILDREN [STATUS]]]: touches exactly PAGES fresh pages in the main thread,
 * in each of THREADS threads and in each of CHILDREN children, one page fault each, and exits with
 * STATUS. With 0 pages it does all but the touching: the twin to subtract.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t pages;

/*
 * All threads are there before one goes on: else the stack of one that has ended may serve the next,
 * whose faults are fewer then.
 */
static pthread_barrier_t all_there;

static void touch(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = pages ? pages : 1;
	void *fresh = mmap(NULL, room * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	volatile char *at = fresh;

	if (fresh == MAP_FAILED)
		_exit(99);
	/* A huge page would be one fault for 512 pages. */
	madvise(fresh, room * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		at[i * page] = 1;
}

static void *thread(void *arg)
{
	pthread_barrier_wait(&all_there);
	touch();
	return arg;
}

static void run_threads(int count)
{
	pthread_t ids[64];

	pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&ids[i], NULL, thread, NULL))
			_exit(99);
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
}

static void run_children(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			touch();
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			_exit(99);
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0, children = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 2 || threads > 64)
		return 98;
	pages = strtoul(argv[1], NULL, 10);
	touch();
	run_threads(threads);
	run_children(children);
	return argc > 4 ? atoi(argv[4]) : 0;
}
