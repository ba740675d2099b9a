/* SPDX-License-Identifier: MIT */
/*
 * What makes two runs of a program differ, one at a time: `inputs NAME`. Each input comes in by ask_NAME(),
 * and use() is the first to look at it.
 */
#include <linux/fcntl.h>
#include <linux/time.h>

#include "guest.h"

#define ROUNDS 300

/* SA_RESTORER is in no header for programs without a C library. */
#define RESTORER 0x04000000

struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

static volatile uint64_t taken[2];
static volatile int signals;

/* Its steps are what a run consists of besides. */
GUEST_USED static uint64_t work(uint64_t x)
{
	for (int i = 0; i < ROUNDS; i++)
		x = x * 3 + 1;
	return x;
}

GUEST_USED static uint64_t use(void)
{
	return taken[0] ^ taken[1];
}

GUEST_USED static void ask_random(void)
{
	guest_call3(SYS_getrandom, (long)taken, sizeof(taken), 0);
}

GUEST_USED static void ask_time(void)
{
	guest_call3(SYS_clock_gettime, CLOCK_REALTIME, (long)taken, 0);
}

GUEST_USED static void ask_pid(void)
{
	taken[0] = (uint64_t)guest_call0(SYS_getpid);
}

GUEST_USED static void ask_tsc(void)
{
#ifdef __x86_64__
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	taken[0] = (uint64_t)high << 32 | low;
#else
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(taken[0]));
#endif
}

GUEST_USED static void ask_address(void)
{
	taken[0] = (uint64_t)&signals;
}

GUEST_USED static void ask_file(void)
{
	static const char path[] = "/dev/urandom";
	long fd = guest_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0);

	guest_call3(SYS_read, fd, (long)taken, sizeof(taken));
}

/* What it has read it forgets, or never looks at. */
GUEST_USED static void ask_and_forget(void)
{
	ask_file();
	taken[0] = taken[1] = 0;
}

static uint8_t unseen[64];

GUEST_USED static void ask_unseen(void)
{
	static const char path[] = "/dev/urandom";
	long fd = guest_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0);

	guest_call3(SYS_read, fd, (long)unseen, sizeof(unseen));
}

/* It goes through a vector register, and is gone from memory when that is looked at. */
GUEST_USED static void ask_vector(void)
{
	ask_unseen();
#ifdef __x86_64__
	__asm__ volatile("movdqu %0, %%xmm5" : : "m"(unseen[0]) : "memory");
#else
	__asm__ volatile("ldr q5, [%0]" : : "r"(unseen) : "memory");
#endif
	memset(unseen, 0, sizeof(unseen));
}

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void handle(int number)
{
	struct action action = { count_signal, RESTORER, guest_restore, 0 };

	guest_call(SYS_rt_sigaction, number, (long)&action, 0, sizeof(action.mask), 0, 0);
}

GUEST_USED static void ask_raise(void)
{
	handle(10);
	guest_call3(SYS_kill, guest_call0(SYS_getpid), 10, 0);
	taken[0] = (uint64_t)signals;
}

/* A timer of the kernel's comes between two instructions or other two. */
GUEST_USED static void ask_timer(void)
{
	const long timer[4] = { 0, 0, 0, 20000 };

	handle(14);
	guest_call3(SYS_setitimer, 0, (long)timer, 0);
	while (!signals)
		taken[0]++;
}

GUEST_USED static void ask_sleep(void)
{
	const long time[2] = { 0, 1000000 };
	long before[2], after[2];

	guest_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)before, 0);
	guest_call3(SYS_nanosleep, (long)time, 0, 0);
	guest_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)after, 0);
	taken[0] = (uint64_t)((after[0] - before[0]) * 1000000000 + after[1] - before[1] >=
			      time[1]);
	guest_say(taken[0] ? "slept\n" : "not slept\n");
}

GUEST_USED static void ask_child(void)
{
	const long child = guest_call(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0, 0);

	if (child == 0) {
		guest_say("child\n");
		guest_call3(SYS_exit_group, 0, 0, 0);
	}
	guest_call(SYS_wait4, child, 0, 0, 0, 0, 0);
}

static char stack[8192] __attribute__((aligned(16)));

static void in_thread(void)
{
	const long time[2] = { 0, 1000000 };

	guest_call3(SYS_nanosleep, (long)time, 0, 0);
	guest_say("last\n");
}

/* The first thread ends before the other one. */
GUEST_USED static void ask_first_to_leave(void)
{
	guest_clone(0x10f00, stack + sizeof(stack), in_thread); /* VM FS FILES SIGHAND THREAD */
	guest_call3(SYS_exit, 0, 0, 0);
}

static int ends[2];

static void read_pipe(void)
{
	guest_call3(SYS_read, ends[0], (long)taken, 1);
	guest_say("read\n");
	guest_call3(SYS_exit_group, 3, 0, 0);
}

/* A thread waits in the kernel, for one that sleeps. */
GUEST_USED static void ask_pipe(void)
{
	const long time[2] = { 0, 1000000 };

	guest_call3(SYS_pipe2, (long)ends, 0, 0);
	guest_clone(0x10f00, stack + sizeof(stack), read_pipe);
	guest_call3(SYS_nanosleep, (long)time, 0, 0);
	guest_call3(SYS_write, ends[1], (long)ends, 1);
	for (;;)
		guest_call3(SYS_nanosleep, (long)time, 0, 0);
}

GUEST_USED static void ask_standard_input(void)
{
	long got;

	while ((got = guest_call3(SYS_read, 0, (long)taken, sizeof(taken))) > 0)
		guest_call3(SYS_write, 1, (long)taken, got);
}

GUEST_USED static void ask_nothing(void)
{
	taken[0] = work(taken[0]);
}

static const struct {
	const char *name;
	void (*ask)(void);
} inputs[] = {
	{ "nothing", ask_nothing },
	{ "random", ask_random },
	{ "time", ask_time },
	{ "pid", ask_pid },
	{ "tsc", ask_tsc },
	{ "address", ask_address },
	{ "file", ask_file },
	{ "forget", ask_and_forget },
	{ "unseen", ask_unseen },
	{ "vector", ask_vector },
	{ "raise", ask_raise },
	{ "timer", ask_timer },
	{ "sleep", ask_sleep },
	{ "child", ask_child },
	{ "first", ask_first_to_leave },
	{ "pipe", ask_pipe },
	{ "stdin", ask_standard_input },
};

int guest_main(int argc, char **argv)
{
	uint64_t x = work(1);

	for (unsigned long i = 0; argc > 1 && i < sizeof(inputs) / sizeof(*inputs); i++)
		if (guest_same(argv[1], inputs[i].name))
			inputs[i].ask();
	x ^= use();
	taken[1] = work(x);
	guest_say("done\n");
	return 7;
}
