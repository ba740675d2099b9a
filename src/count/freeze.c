/* SPDX-License-Identifier: MIT */
/*
 * Stopping all threads of a process, and letting them go. A scan of /proc/PID/task that finds nobody
 * new while everybody stands still has found all: who stands still starts nobody. It must not meet a
 * thread that is ending, either, since the kernel ends a listing there (next_tid(), fs/proc/base.c).
 *
 * The tracer is a thread of its own. PTRACE_DETACH works on stopped threads alone, so one that waits
 * uninterruptibly could not be let go and would stop some time later, for ever; but the end of a tracer
 * detaches all that it has (exit_ptrace(), kernel/ptrace.c), stopped or not.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/sys.h"
#include "base/vec.h"
#include "count/freeze.h"

#define DEFAULT_WAIT_MS 200u
#define NS_PER_MS       1000000u

/* One that is runnable stops as soon as a CPU takes it, which may last where many want to run. */
#define RUNNABLE_WAITS 25u

/* After so long a process that goes on showing new threads is let be: each round stops all there are. */
#define LONGEST_NS 2000000000u

#define LOOK_NS        50000u /* how often a thread is looked at while it stops */
#define LOOKS_AT_STATE 8u     /* and how many looks later whether it still lives */

enum hold_state {
	HOLD_ASKED, /* seized, has not stopped yet */
	HOLD_STOPPED,
	HOLD_ENDED,   /* a zombie as long as it is traced */
	HOLD_GONE,    /* there is no such thread any more */
	HOLD_REFUSED, /* it runs, and nothing can be done about it */
};

struct hold {
	int32_t tid;
	enum hold_state state;
	int signal; /* that it was about to receive when it stopped, 0: none */
};

struct tally_freeze {
	int32_t pid;
	uint64_t wait_ns;
	const char *root; /* while it is being opened */
	VEC(struct hold) holds;
	uint32_t held;
	char reason[200];
	int code; /* a failure of the tracer's */
	bool traced;
	pthread_t tracer;
	pid_t tracer_tid;
	sem_t ready, release;
};

int32_t freeze_pid(const struct tally_freeze *freeze)
{
	return freeze->pid;
}

static int refuse(const char *whose, const char *text, struct tally_error *err)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "options of %s: %s", whose, text);
}

int freeze_check(const struct tally_freeze *freeze, const struct tally_target *target, bool no_stop,
		 const char *whose, struct tally_error *err)
{
	if (!freeze)
		return 0;
	if (target->scope != TALLY_SCOPE_PROCESS)
		return refuse(whose, "a freeze is of a process, and the target is none", err);
	if (freeze->pid != target->id)
		return error_set(
			err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			"options of %s: the freeze holds process %d, and the target is process %d",
			whose, freeze->pid, target->id);
	if (no_stop)
		return refuse(whose, "NO_STOP and a freeze contradict each other", err);
	return 0;
}

TALLY_PRINTF(2, 3) static void blame(struct tally_freeze *f, const char *fmt, ...)
{
	va_list ap;

	if (f->reason[0])
		return;
	va_start(ap, fmt);
	vsnprintf(f->reason, sizeof(f->reason), fmt, ap);
	va_end(ap);
}

static bool has_ended(const struct tally_freeze *f, int32_t tid)
{
	char state = proc_thread_state(f->root, f->pid, tid);

	return state == 'X' || state == 'Z';
}

static struct hold *find(struct tally_freeze *f, int32_t tid)
{
	vec_each (&f->holds, h)
		if (h->tid == tid && h->state != HOLD_GONE)
			return h;
	return NULL;
}

/* What a thread that was seized and does not stop has become. */
static enum hold_state ended_as(const struct tally_freeze *f, const struct hold *h)
{
	switch (proc_thread_state(f->root, f->pid, h->tid)) {
	case 'Z':
		return HOLD_ENDED;
	case 'X':
		return HOLD_GONE;
	default:
		return h->state;
	}
}

/* Takes a thread and asks it to stop. The kernel says EPERM of one that is ending, too. */
static void seize(struct tally_freeze *f, struct hold *h)
{
	long r = sys()->ptrace(PTRACE_SEIZE, h->tid, 0, 0);

	if (r == 0) {
		/* One that ends before this is a zombie of ours, which await_all() sees. */
		sys()->ptrace(PTRACE_INTERRUPT, h->tid, 0, 0);
		h->state = HOLD_ASKED;
	} else if (r == -ESRCH || has_ended(f, h->tid))
		h->state = HOLD_GONE;
	else {
		h->state = HOLD_REFUSED;
		blame(f,
		      "ptrace of thread %d is refused (%s): a debugger has it, or "
		      "kernel.yama.ptrace_scope or a missing cap_sys_ptrace forbids it",
		      h->tid, strerror((int)-r));
	}
}

/* Takes a thread that a scan shows: 0 when it is settled, 1 when another scan is needed. */
static int meet(struct tally_freeze *f, int32_t tid)
{
	if (find(f, tid))
		return 0;
	/* The first thread of a process stays listed as a zombie; others are gone in a moment. */
	if (has_ended(f, tid))
		return tid != f->pid;
	struct hold *h = vec_push(&f->holds);
	if (!h)
		return -ENOMEM;
	h->tid = tid;
	seize(f, h);
	return 1;
}

/* Seizes those that are not known yet. 0: a scan found all settled; 1: not yet; or -errno. */
static int seize_new(struct tally_freeze *f)
{
	int32_t *tids;
	size_t count;
	int unsettled = 0, r = proc_threads(&tids, &count, f->root, f->pid);

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < count; i++) {
		r = meet(f, tids[i]);
		unsettled |= r;
	}
	free(tids);
	return r < 0 ? r : unsettled;
}

/*
 * Looks at those that were asked; how many still run. `*moved`: some stopped meanwhile. Stops alone are
 * waited for: the end of a process is for its parent to see, who may be the caller.
 *
 * A stop at a signal's delivery holds the thread as well; the signal is given back when it is let go.
 * Stops by the interrupt and by job control have PTRACE_EVENT_STOP above the signal.
 */
static unsigned look(struct tally_freeze *f, bool *moved)
{
	unsigned missing = 0;

	vec_each (&f->holds, h) {
		siginfo_t info;
		if (h->state != HOLD_ASKED)
			continue;
		int r = sys()->waitid(P_PID, (id_t)h->tid, &info, WSTOPPED | __WALL | WNOHANG);
		if (r == 0 && info.si_pid) {
			h->state = HOLD_STOPPED;
			h->signal = info.si_status >> 8 ? 0 : info.si_status;
		} else if (r < 0 && r != -EINTR) {
			/* It has ended, or an exec of another thread took it away. */
			h->state = ended_as(f, h);
		}
		*moved |= h->state != HOLD_ASKED;
		missing += h->state == HOLD_ASKED;
	}
	return missing;
}

/* Nobody is told when a thread that was asked to stop ends instead. */
static void forget_ended(struct tally_freeze *f, bool *moved)
{
	vec_each (&f->holds, h) {
		if (h->state != HOLD_ASKED)
			continue;
		h->state = ended_as(f, h);
		*moved |= h->state != HOLD_ASKED;
	}
}

/* Gives up those in an uninterruptible wait, where they may stay for ever; or all. */
static void give_up(struct tally_freeze *f, bool on_all)
{
	vec_each (&f->holds, h) {
		if (h->state != HOLD_ASKED)
			continue;
		char state = proc_thread_state(f->root, f->pid, h->tid);
		if (state != 'D' && !on_all)
			continue;
		h->state = HOLD_REFUSED;
		blame(f, "thread %d did not stop (its state is %c): %s", h->tid, state,
		      state == 'D' ? "it waits in the kernel" : "it gets no CPU");
	}
}

/* Waits until all that were asked have stopped, have ended or are given up. */
static void await_all(struct tally_freeze *f)
{
	uint64_t last = clock_ns(CLOCK_MONOTONIC);
	bool moved = false;

	for (unsigned looks = 1, waits = 0; look(f, &moved); looks++) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		if (looks % LOOKS_AT_STATE == 0)
			forget_ended(f, &moved);
		if (moved) {
			last = now;
			waits = 0;
			moved = false;
		} else if (now - last >= f->wait_ns) {
			last = now;
			give_up(f, ++waits >= RUNNABLE_WAITS);
		}
		sys()->sleep_ns(LOOK_NS);
	}
}

/* Nobody may trace his own threads. Alone, the caller is here and starts none. */
static int hold_oneself(struct tally_freeze *f)
{
	int32_t *tids;
	size_t count;
	int r = proc_threads(&tids, &count, f->root, f->pid);

	if (r < 0)
		return r;
	free(tids);
	f->held = count == 1;
	if (count > 1)
		blame(f,
		      "process %d is the caller's own, with %zu threads, and a process cannot stop its "
		      "own",
		      f->pid, count);
	return 0;
}

static int stop_all(struct tally_freeze *f)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int r;

	while ((r = seize_new(f)) > 0) {
		await_all(f);
		if (clock_ns(CLOCK_MONOTONIC) - start > LONGEST_NS) {
			blame(f, "process %d starts threads faster than they can be stopped",
			      f->pid);
			break;
		}
		sys()->sleep_ns(LOOK_NS); /* for those that are ending */
	}
	vec_each (&f->holds, h)
		f->held += h->state == HOLD_STOPPED;
	return r < 0 ? r : 0;
}

/* Only what is stopped can be let go one by one; the end of the tracer does the rest. */
static void let_go(struct tally_freeze *f)
{
	vec_each (&f->holds, h)
		if (h->state == HOLD_STOPPED)
			sys()->ptrace(PTRACE_DETACH, h->tid, 0, (unsigned long)h->signal);
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) < 0 && errno == EINTR)
		;
}

static void *trace(void *arg)
{
	struct tally_freeze *f = arg;

	f->tracer_tid = (pid_t)syscall(SYS_gettid);
	f->code = stop_all(f);
	sem_post(&f->ready);
	await(&f->release);
	let_go(f);
	return NULL;
}

/*
 * pthread_join() is woken by exit_mm(), before exit_notify() lets go what the thread traced; a tracee that
 * stops in between would show its stop to the caller's waitpid(2). Once the thread is not found by its
 * id any more it has let go.
 */
static void join_tracer(struct tally_freeze *f)
{
	pthread_join(f->tracer, NULL);
	for (uint64_t ns = 0; ns < LONGEST_NS; ns += LOOK_NS) {
		if (syscall(SYS_tgkill, getpid(), f->tracer_tid, 0) < 0)
			break;
		sys()->sleep_ns(LOOK_NS);
	}
}

/* With all signals blocked: the caller's handlers are for the caller's threads. */
static int start_tracer(struct tally_freeze *f)
{
	sigset_t all, mask;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int r = -pthread_create(&f->tracer, NULL, trace, f);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	f->traced = r == 0;
	return r;
}

static int hold_other(struct tally_freeze *f)
{
	int r = start_tracer(f);

	if (r < 0) {
		blame(f, "no thread can be started to hold process %d: %s", f->pid, strerror(-r));
		return 0;
	}
	await(&f->ready);
	return f->code;
}

static int explain(const struct tally_freeze *f, int code, struct tally_error *err)
{
	if (code == -ESRCH)
		return error_set(err, code, TALLY_CAUSE_NO_PROCESS,
				 "there is no process %d; it may have ended", f->pid);
	if (code == -ENOMEM)
		return error_nomem(err, "the threads of a process");
	return error_set(err, code, code == -EACCES ? TALLY_CAUSE_PERMISSION : TALLY_CAUSE_IO,
			 "cannot list the threads of process %d in %s/proc/%d/task: %s", f->pid,
			 f->root ? f->root : "", f->pid, strerror(-code));
}

int tally_freeze_open(struct tally_freeze **out, int32_t pid, const struct tally_freeze_opts *opts,
		      struct tally_error *err)
{
	struct tally_freeze_opts o;
	int r = opts_read(&o, sizeof(o), 0, opts, err);

	if (r < 0)
		return r;
	if (o.reserved)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the reserved field of a freeze's options is not 0");
	if (pid <= 0)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "%d is not a process id: it must be positive", pid);
	struct tally_freeze *f = calloc(1, sizeof(*f));
	if (!f)
		return error_nomem(err, "the threads of a process");
	f->pid = pid;
	f->root = o.root;
	f->wait_ns = (uint64_t)(o.wait_ms ? o.wait_ms : DEFAULT_WAIT_MS) * NS_PER_MS;
	sem_init(&f->ready, 0, 0);
	sem_init(&f->release, 0, 0);
	r = pid == getpid() ? hold_oneself(f) : hold_other(f);
	if (r < 0) {
		explain(f, r, err);
		goto fail;
	}
	f->root = NULL;
	*out = f;
	return 0;
fail:
	tally_freeze_close(f);
	return r;
}

bool tally_freeze_holds(const struct tally_freeze *freeze)
{
	return !freeze->reason[0];
}

uint32_t tally_freeze_threads(const struct tally_freeze *freeze)
{
	return freeze->held;
}

const char *tally_freeze_reason(const struct tally_freeze *freeze)
{
	return freeze->reason[0] ? freeze->reason : NULL;
}

void tally_freeze_close(struct tally_freeze *freeze)
{
	if (!freeze)
		return;
	if (freeze->traced) {
		sem_post(&freeze->release);
		join_tracer(freeze);
	}
	sem_destroy(&freeze->ready);
	sem_destroy(&freeze->release);
	vec_done(&freeze->holds);
	free(freeze);
}
