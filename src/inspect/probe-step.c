/* SPDX-License-Identifier: MIT */
/*
 * Does stepping work, counted on a child? Some hypervisors accept PTRACE_SINGLEBLOCK and step by
 * instruction all the same, so the answer of ptrace(2) alone means nothing.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/probe.h"

/* From its stop to the straight line the child has a few dozen instructions to go; some builds,
 * those of sanitizers for one, a few hundred. */
#define MAX_STOPS 20000

/* Shared with the child: where it is. */
enum place {
	BEFORE,
	IN_LINE,
	BEHIND,
};

/* No sanitizer: its checks would bring branches into the line. */
__attribute__((noinline, no_sanitize("address", "undefined"))) static void
walk_line(volatile int *place)
{
	*place = IN_LINE;
	__asm__ volatile(".rept 64\n\tnop\n\t.endr" ::: "memory"); /* PROBE_LINE */
	*place = BEHIND;
}

/* Raw system calls: between the stop and the line there should be as little as possible. */
static _Noreturn void run_child(volatile int *place)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(errno & 0xff);
	syscall(SYS_kill, getpid(), SIGSTOP);
	walk_line(place);
	_exit(0);
}

/* Waits for the child's next stop. 0 or -errno: -ECHILD when it is gone. */
static int wait_stop(pid_t child)
{
	int status;
	pid_t r;

	do
		r = waitpid(child, &status, __WALL);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return -WEXITSTATUS(status); /* PTRACE_TRACEME was refused */
	return WIFSTOPPED(status) ? 0 : -ECHILD;
}

static int count_stops(pid_t child, enum probe_step request, const volatile int *place)
{
	int in_line = 0, r = wait_stop(child);

	for (int stops = 0; r == 0 && *place != BEHIND; stops++) {
		if (stops == MAX_STOPS)
			return -ETIME;
		if (ptrace((__typeof__(PTRACE_TRACEME))request, child, NULL, NULL) < 0)
			return -errno;
		r = wait_stop(child);
		in_line += r == 0 && *place == IN_LINE;
	}
	/* A child that ran to its end without a stop was not stepped in the line either. */
	return r == 0 || *place == BEHIND ? in_line : r;
}

int probe_steps(enum probe_step request)
{
	void *map = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);
	volatile int *place = map;
	int r;

	if (map == MAP_FAILED)
		return -errno;
	*place = BEFORE;
	pid_t child = fork();
	if (child < 0) {
		r = -errno;
	} else if (child == 0) {
		run_child(place);
	} else {
		r = count_stops(child, request, place);
		kill(child, SIGKILL);
		while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	munmap(map, sizeof(int));
	return r;
}
