/* SPDX-License-Identifier: MIT */
/*
 * What could show a program that it is traced, or lead a tracer astray. `hazards NAME` does it, tells
 * what it saw, and ends with 0 when that is what it sees without a tracer.
 */
#include "guest.h"

#define SIGNAL_TRAP   5
#define SIGNAL_USR1   10
#define SIGNAL_USR2   12
#define SIGNAL_CHLD   17
#define SIGNAL_STKFLT 16

#define SA_SIGINFO_BIT  4ul
#define SA_RESTORER_BIT 0x04000000ul
#define IGNORED         ((uintptr_t)1)

struct action {
	uintptr_t handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static long handle(int signal, uintptr_t handler, unsigned long flags)
{
	struct action action = { handler, flags | SA_RESTORER_BIT, guest_restore, 0 };

	return guest_call(SYS_rt_sigaction, signal, (long)&action, 0, 8, 0, 0);
}

static uintptr_t handler_of(int signal)
{
	struct action action = { 0 };

	guest_call(SYS_rt_sigaction, signal, 0, (long)&action, 8, 0, 0);
	return action.handler;
}

static uint64_t mask_of(void)
{
	uint64_t mask = 0;

	guest_call(SYS_rt_sigprocmask, 0, 0, (long)&mask, 8, 0, 0);
	return mask;
}

static void set_mask(uint64_t mask)
{
	guest_call(SYS_rt_sigprocmask, 2, (long)&mask, 0, 8, 0, 0);
}

static void send_self(int signal)
{
	guest_call3(SYS_tgkill, guest_call0(SYS_getpid), guest_call0(SYS_gettid), signal);
}

static void spin(int times)
{
	for (volatile int i = 0; i < times; i++)
		;
}

#if defined(__x86_64__)
#include "hazards-x86.h"
#elif defined(__aarch64__)
#include "hazards-arm64.h"
#endif

static volatile int handled;
static volatile int handled_code;

static void on_signal(int signal, int *info, void *context)
{
	handled++;
	handled_code = info[2];
	spin(5);
}

static int hazard_handler(void)
{
	handle(SIGNAL_USR1, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	for (int i = 0; i < 3; i++)
		send_self(SIGNAL_USR1);
	guest_say_hex("handled ", (uint64_t)handled);
	guest_say_hex("code ", (uint64_t)(uint32_t)handled_code);
	return handled != 3 || handled_code != -6; /* SI_TKILL */
}

static int hazard_blocked_trap(void)
{
	handle(SIGNAL_TRAP, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	set_mask(~0ull);
	spin(20);
	uint64_t mask = mask_of();
	int kept = handler_of(SIGNAL_TRAP) == (uintptr_t)on_signal;
	guest_say_hex("mask ", mask);
	guest_say(kept ? "handler kept\n" : "handler lost\n");
	return !kept || !(mask >> (SIGNAL_TRAP - 1) & 1);
}

/* Sent while it is blocked, it comes when it is no longer, and with what it was sent. */
static int hazard_pending_trap(void)
{
	handle(SIGNAL_TRAP, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	set_mask(1ull << (SIGNAL_TRAP - 1));
	send_self(SIGNAL_TRAP);
	spin(20);
	int before = handled;
	set_mask(0);
	spin(5);
	guest_say_hex("before ", (uint64_t)before);
	guest_say_hex("after ", (uint64_t)handled);
	guest_say_hex("code ", (uint64_t)(uint32_t)handled_code);
	return before != 0 || handled != 1;
}

static int hazard_ignored_trap(void)
{
	handle(SIGNAL_TRAP, IGNORED, 0);
	spin(20);
	int kept = handler_of(SIGNAL_TRAP) == IGNORED;
	send_self(SIGNAL_TRAP);
	guest_say(kept ? "still ignored\n" : "no longer ignored\n");
	return !kept;
}

static void on_breakpoint(int signal, int *info, void *context)
{
	handled++;
	handled_code = info[2];
	skip_breakpoint(context);
}

static int hazard_breakpoint(void)
{
	handle(SIGNAL_TRAP, (uintptr_t)on_breakpoint, SA_SIGINFO_BIT);
	GUEST_BREAKPOINT();
	GUEST_BREAKPOINT();
	guest_say_hex("breakpoints ", (uint64_t)handled);
	guest_say_hex("code ", (uint64_t)(uint32_t)handled_code);
	return handled != 2;
}

static int hazard_marker_signal(void)
{
	handle(SIGNAL_STKFLT, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	send_self(SIGNAL_STKFLT);
	guest_say_hex("handled ", (uint64_t)handled);
	return handled != 1;
}

/* Blocked, it waits; and a handler during which it is blocked is not interrupted by it. */
static int hazard_blocked_marker(void)
{
	handle(SIGNAL_STKFLT, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	set_mask(~0ull);
	send_self(SIGNAL_STKFLT);
	spin(20);
	guest_say_hex("mask ", mask_of());
	int before = handled;
	send_self(SIGNAL_STKFLT);
	set_mask(0);
	spin(20);
	guest_say_hex("before ", (uint64_t)before);
	guest_say_hex("after ", (uint64_t)handled);
	guest_say_hex("code ", (uint64_t)(uint32_t)handled_code);
	return before != 0 || handled != 1;
}

/* With all signals blocked, until it is ended or something happens to it. */
static int hazard_deaf(void)
{
	set_mask(~0ull);
	guest_say("deaf\n");
	spin(2000000000);
	return 0;
}

static char stack[16384] __attribute__((aligned(64)));
static volatile int child_ran;

static void in_child(void)
{
	child_ran = 1;
}

/* clone(2) with CLONE_VM and CLONE_VFORK, on another stack: vfork as C libraries make it. */
static int hazard_vfork(void)
{
	int status = -1;
	long child = guest_clone(0x100 | 0x4000 | SIGNAL_CHLD, stack + sizeof(stack), in_child);

	guest_call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
	guest_say_hex("child ran ", (uint64_t)child_ran);
	guest_say_hex("status ", (uint64_t)(uint32_t)status);
	return child_ran != 1 || status != 0;
}

static int hazard_fork(void)
{
	int status = -1;
	long child = guest_call(SYS_clone, SIGNAL_CHLD, 0, 0, 0, 0, 0);

	if (child == 0) {
		spin(10);
		guest_call3(SYS_exit_group, 7, 0, 0);
	}
	guest_call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
	guest_say_hex("status ", (uint64_t)(uint32_t)status);
	return status != 7 << 8;
}

static char *self;

static void exec_self(void)
{
	static char name[] = "after-exec";
	char *argv[] = { self, name, 0 }, *envp[] = { 0 };

	spin(10);
	guest_call3(SYS_execve, (long)self, (long)argv, (long)envp);
}

static int hazard_exec(void)
{
	exec_self();
	return 1;
}

/* The first thread waits for what never comes; the other one's program replaces both. */
static int hazard_exec_thread(void)
{
	guest_clone(0x10f00, stack + sizeof(stack), exec_self); /* VM FS FILES SIGHAND THREAD */
	guest_call(SYS_ppoll, 0, 0, 0, 0, 0, 0);
	return 1;
}

static int hazard_after_exec(void)
{
	guest_say("another program\n");
	return 0;
}

static int hazard_killed(void)
{
	guest_say("before\n");
	send_self(9);
	return 1;
}

static int hazard_fault(void)
{
	guest_say("before\n");
	*(volatile int *)8 = 1;
	return 1;
}

/* Interrupted by a signal with a handler, and started again or not, whenever that comes. */
static int hazard_restart(void)
{
	struct {
		long seconds, nanoseconds;
	} pause = { 0, 5000000 };
	const uint64_t none = 0;
	int pipes[2] = { -1, -1 };
	char byte = 0;
	long parent = guest_call0(SYS_getpid);

	handle(SIGNAL_USR1, (uintptr_t)on_signal, SA_SIGINFO_BIT);
	handle(SIGNAL_USR2, (uintptr_t)on_signal, SA_SIGINFO_BIT | 0x10000000ul); /* SA_RESTART */
	set_mask(1ull << (SIGNAL_USR1 - 1));
	guest_call3(SYS_pipe2, (long)pipes, 0, 0);
	if (guest_call(SYS_clone, 0, 0, 0, 0, 0, 0) == 0) { /* its end is told by no signal */
		guest_call3(SYS_kill, parent, SIGNAL_USR1, 0);
		guest_call3(SYS_nanosleep, (long)&pause, 0, 0);
		guest_call3(SYS_kill, parent, SIGNAL_USR2, 0);
		guest_call3(SYS_nanosleep, (long)&pause, 0, 0);
		guest_call3(SYS_write, pipes[1], (long)&byte, 1);
		guest_call3(SYS_exit_group, 0, 0, 0);
	}
	long polled = guest_call(SYS_ppoll, 0, 0, 0, (long)&none, 8, 0);
	long got = guest_call3(SYS_read, pipes[0], (long)&byte, 1);
	guest_say_hex("polled ", (uint64_t)polled);
	guest_say_hex("read ", (uint64_t)got);
	guest_say_hex("handled ", (uint64_t)handled);
	return polled != -4 || got != 1 || handled != 2;
}

#define THREADS 16

static char stacks[THREADS][4096] __attribute__((aligned(64)));
static int threads_done;

static void in_thread(void)
{
	spin(30);
	__atomic_fetch_add(&threads_done, 1, __ATOMIC_SEQ_CST);
}

static int hazard_threads(void)
{
	struct {
		long seconds, nanoseconds;
	} pause = { 0, 1000000 };

	for (int i = 0; i < THREADS; i++) /* VM FS FILES SIGHAND THREAD */
		guest_clone(0x10f00, stacks[i] + sizeof(stacks[i]), in_thread);
	while (__atomic_load_n(&threads_done, __ATOMIC_SEQ_CST) < THREADS)
		guest_call3(SYS_nanosleep, (long)&pause, 0, 0);
	guest_say_hex("threads ", (uint64_t)threads_done);
	return 0;
}

/* All threads go through the same code, which a step over it marks with a breakpoint. */
static uint64_t together_sum;

static void together(void)
{
	for (int i = 0; i < 200; i++)
		__atomic_fetch_add(&together_sum, careful_one(), __ATOMIC_SEQ_CST);
}

static void in_thread_together(void)
{
	together();
	__atomic_fetch_add(&threads_done, 1, __ATOMIC_SEQ_CST);
}

static int hazard_together(void)
{
	for (int i = 0; i < 3; i++)
		guest_clone(0x10f00, stacks[i] + sizeof(stacks[i]), in_thread_together);
	together();
	while (__atomic_load_n(&threads_done, __ATOMIC_SEQ_CST) < 3)
		guest_call0(SYS_sched_yield);
	guest_say_hex("together ", together_sum);
	return together_sum != 4 * 200;
}

static void say_cpus(void)
{
	uint64_t cpus[16] = { 0 };

	guest_say_hex("bytes ",
		      (uint64_t)guest_call3(SYS_sched_getaffinity, 0, sizeof(cpus), (long)cpus));
	guest_say_hex("cpus ", cpus[0]);
}

/* What it is told of its CPUs, and asks for, is as without a tracer. */
static int hazard_cpus(void)
{
	uint64_t first[16] = { 1 }, none[16] = { 0 };

	say_cpus();
	guest_say_hex("set ",
		      (uint64_t)guest_call3(SYS_sched_setaffinity, 0, sizeof(first), (long)first));
	say_cpus();
	guest_say_hex("none ",
		      (uint64_t)guest_call3(SYS_sched_setaffinity, 0, sizeof(none), (long)none));
	guest_say_hex("fault ", (uint64_t)guest_call3(SYS_sched_setaffinity, 0, sizeof(none), 8));
	return 0;
}

/* A child that nobody traces, which has had time. */
static int hazard_child_cpus(void)
{
	struct {
		long seconds, nanoseconds;
	} pause = { 0, 20000000 };
	int status = -1;
	long child = guest_call(SYS_clone, SIGNAL_CHLD, 0, 0, 0, 0, 0);

	if (child == 0) {
		guest_call3(SYS_nanosleep, (long)&pause, 0, 0);
		say_cpus();
		guest_call3(SYS_exit_group, 0, 0, 0);
	}
	guest_call(SYS_wait4, child, (long)&status, 0, 0, 0, 0);
	return status;
}

#ifdef hazard_of_two
static void in_thread_asleep(void)
{
	guest_call(SYS_ppoll, 0, 0, 0, 0, 0, 0);
}

/* Beside a thread that waits for ever. */
static int hazard_shadowed(void)
{
	guest_clone(0x10f00, stacks[0] + sizeof(stacks[0]), in_thread_asleep);
	return hazard_of_two();
}
#endif

struct hazard {
	const char *name;
	int (*run)(void);
};

/* For tests of their own. */
static const struct hazard others[] = {
	OTHERS_OF_MACHINE //
	{ "deaf", hazard_deaf },
};

static const struct hazard hazards[] = {
	HAZARDS_OF_MACHINE //
	{ "handler", hazard_handler },
	{ "blocked-trap", hazard_blocked_trap },
	{ "pending-trap", hazard_pending_trap },
	{ "ignored-trap", hazard_ignored_trap },
	{ "breakpoint", hazard_breakpoint },
	{ "marker-signal", hazard_marker_signal },
	{ "blocked-marker", hazard_blocked_marker },
	{ "vfork", hazard_vfork },
	{ "fork", hazard_fork },
	{ "exec", hazard_exec },
	{ "exec-thread", hazard_exec_thread },
	{ "after-exec", hazard_after_exec },
	{ "restart", hazard_restart },
	{ "threads", hazard_threads },
	{ "together", hazard_together },
	{ "cpus", hazard_cpus },
	{ "child-cpus", hazard_child_cpus },
	{ "killed", hazard_killed },
	{ "fault", hazard_fault },
};

#define HAZARDS (sizeof(hazards) / sizeof(*hazards))

/* Without a name: lists them. */
int guest_main(int argc, char **argv)
{
	self = argv[0];
	for (unsigned long i = 0; argc > 1 && i < sizeof(others) / sizeof(*others); i++)
		if (guest_same(argv[1], others[i].name))
			return others[i].run();
	for (unsigned long i = 0; i < HAZARDS; i++) {
		if (argc > 1 && guest_same(argv[1], hazards[i].name))
			return hazards[i].run();
		if (argc == 1) {
			guest_say(hazards[i].name);
			guest_say("\n");
		}
	}
	return argc > 1 ? 99 : 0;
}
