/* SPDX-License-Identifier: MIT */
/*
 * A program that does all that lies in a timer's way, and the same in each run: work between signals with a
 * handler, system calls, a child by fork, a thread of its memory that it waits for, and an exec of itself.
 */
#include "guest.h"

#define ROUNDS 10

#define SIGNAL_USR1   10
#define SIGNAL_STKFLT 16 /* by which a clock of the PMU interrupts: this one is the program's own */
#define SIGNAL_CHLD   17

#define SA_SIGINFO_BIT  4ul
#define SA_RESTORER_BIT 0x04000000ul

#define CLONE_SHARED 0x4700 /* VM, FS, FILES, VFORK: who starts it waits until it has ended */

static char stack[4096] __attribute__((aligned(16)));
static volatile int handled, shared;

static void work(int times)
{
	for (volatile int i = 0; i < times; i++)
		if (i % 7 == 3)
			handled += 0;
}

static void on_signal(int signal, int *info, void *context)
{
	handled++;
	work(20);
}

static void signals(void)
{
	struct {
		uintptr_t handler;
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { (uintptr_t)on_signal, SA_SIGINFO_BIT | SA_RESTORER_BIT, guest_restore, 0 };

	guest_call(SYS_rt_sigaction, SIGNAL_USR1, (long)&action, 0, 8, 0, 0);
	guest_call(SYS_rt_sigaction, SIGNAL_STKFLT, (long)&action, 0, 8, 0, 0);
	for (int i = 0; i < 6; i++) {
		work(200 + 30 * i);
		guest_call3(SYS_tgkill, guest_call0(SYS_getpid), guest_call0(SYS_gettid),
			    i % 2 ? SIGNAL_STKFLT : SIGNAL_USR1);
	}
}

static void in_thread(void)
{
	work(100);
	shared++;
}

static void children(void)
{
	int status = -1;
	long child = guest_call(SYS_clone, SIGNAL_CHLD, 0, 0, 0, 0, 0);

	if (child == 0) {
		work(100);
		guest_call3(SYS_exit_group, 7, 0, 0);
	}
	guest_call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
	work(300);
	child = guest_clone(CLONE_SHARED | SIGNAL_CHLD, stack + sizeof(stack), in_thread);
	guest_call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
	work(300);
}

int guest_main(int argc, char **argv)
{
	static char again[] = "again";
	char *words[] = { argv[0], again, 0 }, *none[] = { 0 };

	if (argc > 1) {
		work(500);
		return 0;
	}
	for (int i = 0; i < ROUNDS; i++) {
		signals();
		children();
	}
	if (handled != 6 * ROUNDS || shared != ROUNDS)
		return 1;
	guest_call3(SYS_execve, (long)argv[0], (long)words, (long)none);
	return 2;
}
