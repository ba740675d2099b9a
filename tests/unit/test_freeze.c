/* SPDX-License-Identifier: MIT */
/* freeze: a made-up process whose threads stop, refuse to, end and start others as a test says. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "count/freeze.h"
#include "fakeroot.h"
#include "tap.h"

#define PID   100
#define FIRST 100
#define MAX   16

enum thread_kind {
	NONE,
	STOPS,       /* by the interrupt */
	GROUP_STOP,  /* it was stopped by SIGSTOP */
	ON_SIGNAL,   /* about to receive SIGUSR1 */
	STUCK,       /* in an uninterruptible wait */
	LATE,        /* runnable, and stops when it has been looked at 50 times */
	ENDS,        /* before it stops */
	VANISHES,    /* an exec of another thread takes it away */
	TRACED,      /* by a debugger */
	LEADER_GONE, /* the first thread has ended: it is listed, and tells nobody */
};

static struct {
	enum thread_kind kind[MAX];
	unsigned looked[MAX], seized[MAX], interrupted[MAX], detached[MAX];
	unsigned long signal[MAX];
	int starts; /* the thread FIRST starts so many more, one whenever a thread is seized */
	bool odd;   /* something was called that must not be */
	int ending; /* a thread that is listed, is ending, and hides the next one */
} fake;

static struct fakeroot root;
static struct tally_error err;

static void write_thread(int i, char state)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", PID, FIRST + i);
	snprintf(text, sizeof(text), "%d (a) b) %c 1 1", FIRST + i, state);
	fakeroot_file(&root, path, text);
}

static void drop_thread(int i)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/proc/%d/task/%d/stat", root.path, PID, FIRST + i);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void add_thread(int i, enum thread_kind kind)
{
	fake.kind[i] = kind;
	write_thread(i, kind == STUCK ? 'D' : kind == LEADER_GONE ? 'Z' : 'R');
}

/* A process of these threads; nobody else. */
static void make(const enum thread_kind *kinds, int count)
{
	for (int i = 0; i < MAX; i++)
		drop_thread(i);
	memset(&fake, 0, sizeof(fake));
	for (int i = 0; i < count; i++)
		add_thread(i, kinds[i]);
}

static void start_another(void)
{
	if (!fake.starts)
		return;
	fake.starts--;
	for (int i = 0; i < MAX; i++)
		if (fake.kind[i] == NONE) {
			add_thread(i, STOPS);
			return;
		}
}

static long fake_ptrace(int request, pid_t pid, unsigned long addr, unsigned long data)
{
	int i = pid - FIRST;

	if (i < 0 || i >= MAX || addr) {
		fake.odd = true;
		return -ESRCH;
	}
	switch (request) {
	case PTRACE_SEIZE:
		fake.odd |= data != 0 || fake.seized[i];
		start_another();
		if (fake.kind[i] == TRACED)
			return -EPERM;
		fake.seized[i]++;
		return 0;
	case PTRACE_INTERRUPT:
		fake.interrupted[i]++;
		return 0;
	case PTRACE_DETACH:
		fake.detached[i]++;
		fake.signal[i] = data;
		return 0;
	default:
		fake.odd = true;
		return -EIO;
	}
}

/* wait(2): si_status is the signal of the stop, below the event. */
static int fake_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	int i = (int)id - FIRST;

	memset(info, 0, sizeof(*info));
	/* Without WEXITED: the end of a child is not ours to take. */
	fake.odd |= type != P_PID || i < 0 || i >= MAX || !fake.interrupted[i] ||
		    options != (WSTOPPED | __WALL | WNOHANG);
	fake.looked[i]++;
	switch (fake.kind[i]) {
	case LATE:
	case STOPS:
		if (fake.kind[i] == LATE && fake.looked[i] < 50)
			return 0;
		info->si_status = PTRACE_EVENT_STOP << 8 | SIGTRAP;
		break;
	case GROUP_STOP:
		info->si_status = PTRACE_EVENT_STOP << 8 | SIGSTOP;
		break;
	case ON_SIGNAL:
		info->si_status = SIGUSR1;
		break;
	case ENDS: /* a zombie, since we trace it */
		write_thread(i, 'Z');
		return 0;
	case VANISHES:
		drop_thread(i);
		return -ECHILD;
	default:
		return 0;
	}
	info->si_pid = (pid_t)id;
	return 0;
}

/* Time passes: a thread that was ending is gone, and the listing goes on behind it. */
static int no_sleep(uint64_t ns)
{
	(void)ns;
	if (fake.ending) {
		drop_thread(fake.ending);
		add_thread(fake.ending + 1, STOPS);
		fake.ending = 0;
	}
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	if (!table.read) {
		table = sys_kernel;
		table.ptrace = fake_ptrace;
		table.waitid = fake_waitid;
		table.sleep_ns = no_sleep;
	}
	return &table;
}

static struct tally_freeze *open_it(void)
{
	struct tally_freeze *freeze = NULL;

	return tally_freeze_open(&freeze, PID, TALLY_OPTS(freeze, .root = root.path, .wait_ms = 5),
				 &err) < 0
		       ? NULL
		       : freeze;
}

static void all_threads_are_seized_and_let_go(void)
{
	static const enum thread_kind kinds[] = { STOPS, STOPS, LATE, STOPS };

	make(kinds, 4);
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(tally_freeze_holds(freeze));
	check(tally_freeze_reason(freeze) == NULL);
	check_int(tally_freeze_threads(freeze), 4);
	check_int(freeze_pid(freeze), PID);
	for (int i = 0; i < 4; i++) {
		check_int(fake.seized[i], 1);
		check_int(fake.interrupted[i], 1);
		check_int(fake.detached[i], 0);
	}
	tally_freeze_close(freeze);
	for (int i = 0; i < 4; i++) {
		check_int(fake.detached[i], 1);
		check_u64(fake.signal[i], 0);
	}
	check(!fake.odd);
}

static void threads_that_are_started_meanwhile_are_held_too(void)
{
	static const enum thread_kind kinds[] = { STOPS, STOPS };

	make(kinds, 2);
	fake.starts = 7;
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(tally_freeze_holds(freeze));
	check_int(tally_freeze_threads(freeze), 9);
	tally_freeze_close(freeze);
	for (int i = 0; i < 9; i++)
		check_int(fake.detached[i], 1);
	check(!fake.odd);
}

static void signals_are_given_back_and_stops_kept(void)
{
	static const enum thread_kind kinds[] = { ON_SIGNAL, GROUP_STOP };

	make(kinds, 2);
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(tally_freeze_holds(freeze));
	tally_freeze_close(freeze);
	check_u64(fake.signal[0], SIGUSR1);
	/* ptrace(2): a detached thread returns to its group-stop by itself; SIGSTOP would be a second one. */
	check_u64(fake.signal[1], 0);
}

static void what_ends_meanwhile_is_no_failure(void)
{
	static const enum thread_kind kinds[] = { LEADER_GONE, STOPS, ENDS, VANISHES };

	make(kinds, 4);
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(tally_freeze_holds(freeze));
	check_int(tally_freeze_threads(freeze), 1);
	tally_freeze_close(freeze);
	check_int(fake.seized[0], 0);
	check_int(fake.detached[1], 1);
	check_int(fake.detached[2] + fake.detached[3], 0);
}

static void a_scan_that_met_an_ending_thread_is_made_again(void)
{
	static const enum thread_kind kinds[] = { STOPS };

	make(kinds, 1);
	write_thread(1, 'Z');
	fake.ending = 1;
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(tally_freeze_holds(freeze));
	check_int(tally_freeze_threads(freeze), 2);
	check_int(fake.seized[2], 1);
	tally_freeze_close(freeze);
	check_int(fake.detached[2], 1);
}

static void one_that_waits_in_the_kernel_is_not_waited_for_for_ever(void)
{
	static const enum thread_kind kinds[] = { STOPS, STUCK, STOPS };

	make(kinds, 3);
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(!tally_freeze_holds(freeze));
	check_has(tally_freeze_reason(freeze), "thread 101 did not stop");
	check_has(tally_freeze_reason(freeze), "D");
	check_int(tally_freeze_threads(freeze), 2);
	tally_freeze_close(freeze);
	/* It is not stopped, so that only the end of the tracer lets go of it. */
	check_int(fake.detached[1], 0);
	check_int(fake.detached[0] + fake.detached[2], 2);
}

static void a_debugger_s_thread_is_told(void)
{
	static const enum thread_kind kinds[] = { STOPS, TRACED };

	make(kinds, 2);
	struct tally_freeze *freeze = open_it();
	require(freeze != NULL);
	check(!tally_freeze_holds(freeze));
	check_has(tally_freeze_reason(freeze), "thread 101");
	check_has(tally_freeze_reason(freeze), "debugger");
	check_int(tally_freeze_threads(freeze), 1);
	tally_freeze_close(freeze);
	check_int(fake.detached[0], 1);
	check_int(fake.detached[1], 0);
}

static void no_process_and_no_pid_are_errors(void)
{
	struct tally_freeze *freeze = NULL;
	struct tally_freeze_opts flags = { .size = sizeof(flags), .flags = 1 };
	struct tally_freeze_opts reserved = { .size = sizeof(reserved), .reserved = 1 };

	make(NULL, 0);
	check(open_it() == NULL);
	check_int(err.code, -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check_has(err.text, "100");
	check_int(tally_freeze_open(&freeze, 0, NULL, &err), -EINVAL);
	check_int(tally_freeze_open(&freeze, -5, NULL, &err), -EINVAL);
	check_int(tally_freeze_open(&freeze, PID, &flags, &err), -EINVAL);
	check_int(tally_freeze_open(&freeze, PID, &reserved, &err), -EINVAL);
	check(freeze == NULL);
	tally_freeze_close(NULL);
}

/* The caller's own: held when it is alone, and nobody is traced in either case. */
static void oneself_is_never_traced(void)
{
	struct tally_freeze *freeze = NULL;
	struct tally_freeze_opts opts = { .size = sizeof(opts), .root = root.path };
	char path[64];

	make(NULL, 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid());
	fakeroot_file(&root, path, "1 (a) R 1");
	require(tally_freeze_open(&freeze, getpid(), &opts, &err) == 0);
	check(tally_freeze_holds(freeze));
	check_int(tally_freeze_threads(freeze), 1);
	tally_freeze_close(freeze);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", getpid(), getpid() + 1);
	fakeroot_file(&root, path, "1 (a) R 1");
	require(tally_freeze_open(&freeze, getpid(), &opts, &err) == 0);
	check(!tally_freeze_holds(freeze));
	check_int(tally_freeze_threads(freeze), 0);
	check_has(tally_freeze_reason(freeze), "the caller's own");
	tally_freeze_close(freeze);
	check(!fake.odd);
}

int main(void)
{
	if (!fakeroot_make(&root)) {
		printf("Bail out! no made-up machine\n");
		return 1;
	}
	tap_run(all_threads_are_seized_and_let_go);
	tap_run(threads_that_are_started_meanwhile_are_held_too);
	tap_run(signals_are_given_back_and_stops_kept);
	tap_run(what_ends_meanwhile_is_no_failure);
	tap_run(a_scan_that_met_an_ending_thread_is_made_again);
	tap_run(one_that_waits_in_the_kernel_is_not_waited_for_for_ever);
	tap_run(a_debugger_s_thread_is_told);
	tap_run(no_process_and_no_pid_are_errors);
	tap_run(oneself_is_never_traced);
	fakeroot_remove(&root);
	return tap_end();
}
