/* SPDX-License-Identifier: MIT */
/* The life of a tracee: taken, resumed, waited for, let go. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/sys.h"
#include "count/launch.h"
#include "exact/tracee.h"

#define NS_PER_MS 1000000u

/* How often a thread is looked at that may not be waited for otherwise. */
#define LOOK_MIN_NS 5000u
#define LOOK_MAX_NS 5000000u
#define LOOK_SHARE  8u

#define FLAGS_LAUNCH (TALLY_TRACEE_NO_RANDOM | TALLY_TRACEE_PIN)
#define FLAGS_OTHERS                                                                      \
	(TALLY_TRACEE_FOLLOW_THREADS | TALLY_TRACEE_FOLLOW_FORKS | TALLY_TRACEE_NO_KILL | \
	 TALLY_TRACEE_SECCOMP | TALLY_TRACEE_TRAP_CPUID | TALLY_TRACEE_TRAP_TSC)

static unsigned long options_of(uint32_t flags)
{
	static const struct {
		uint32_t flag;
		unsigned long options;
	} rows[] = {
		{ TALLY_TRACEE_FOLLOW_THREADS, PTRACE_O_TRACECLONE },
		{ TALLY_TRACEE_FOLLOW_FORKS, PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
						     PTRACE_O_TRACECLONE |
						     PTRACE_O_TRACEVFORKDONE },
		{ TALLY_TRACEE_SECCOMP, PTRACE_O_TRACESECCOMP },
	};
	unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;

	if (!(flags & TALLY_TRACEE_NO_KILL))
		options |= PTRACE_O_EXITKILL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (flags & rows[i].flag)
			options |= rows[i].options;
	return options;
}

int tracee_open_files(struct tally_tracee *t)
{
	char path[64];

	if (t->mem >= 0)
		sys()->close(t->mem);
	snprintf(path, sizeof(path), "/proc/%d/mem", t->tid);
	t->mem = sys()->open(path, O_RDWR, 0);
	return t->mem < 0 ? t->mem : 0;
}

/* The process of a thread: the kernel says so in /proc/TID/status. */
static int read_pid(int32_t tid, int32_t *pid)
{
	char path[64], line[128];
	int found = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	FILE *file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? -ESRCH : -errno;
	while (found < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %" SCNd32, pid) == 1)
			found = 0;
	fclose(file);
	return found;
}

static struct tally_tracee *alloc(int32_t tid, uint32_t flags)
{
	struct tally_tracee *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->tid = t->pid = tid;
	t->flags = flags;
	t->mem = -1;
	t->next = t->previous = t;
	return t;
}

static int take_error(int32_t tid, int code, struct tally_error *err)
{
	if (code == -ESRCH)
		return error_set(err, code, TALLY_CAUSE_NO_PROCESS, "there is no thread %d", tid);
	if (code == -ENOMEM)
		return error_nomem(err, "a thread to be traced");
	if (code == -EPERM || code == -EACCES)
		return error_set(
			err, code, TALLY_CAUSE_PERMISSION,
			"ptrace of thread %d is refused: a debugger has it, it is another user's "
			"(cap_sys_ptrace is needed), or kernel.yama.ptrace_scope forbids it",
			tid);
	return error_set(err, code, TALLY_CAUSE_IO, "cannot trace thread %d: %s", tid,
			 strerror(-code));
}

static int read_opts(struct tally_tracee_opts *out, uint32_t known,
		     const struct tally_tracee_opts *opts, struct tally_error *err)
{
	int r = opts_read(out, sizeof(*out), known, opts, err);

	return r < 0 ? r : traps_check(out->flags, err);
}

int tally_tracee_seize(struct tally_tracee **out, int32_t tid, const struct tally_tracee_opts *opts,
		       struct tally_error *err)
{
	struct tally_tracee_opts o;
	int r = read_opts(&o, FLAGS_OTHERS, opts, err);

	if (r < 0)
		return r;
	if (o.flags & (TALLY_TRACEE_TRAP_CPUID | TALLY_TRACEE_TRAP_TSC))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "instructions are trapped from a program's start on: launch it");
	struct tally_tracee *t = alloc(tid, o.flags);
	if (!t)
		return take_error(tid, -ENOMEM, err);
	r = read_pid(tid, &t->pid);
	if (r == 0)
		r = (int)sys()->ptrace(PTRACE_SEIZE, tid, 0, options_of(o.flags));
	if (r < 0)
		goto fail;
	t->state = TRACEE_RUNS;
	t->losses++;
	sys()->ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	r = tracee_open_files(t);
	if (r < 0)
		goto fail;
	*out = t;
	return 0;
fail:
	tally_tracee_free(t);
	return take_error(tid, r, err);
}

static void join_family(struct tally_tracee *t, struct tally_tracee *from)
{
	t->next = from->next;
	t->previous = from;
	from->next->previous = t;
	from->next = t;
}

int tally_tracee_adopt(struct tally_tracee **out, int32_t tid, struct tally_tracee *from,
		       const struct tally_tracee_opts *opts, struct tally_error *err)
{
	struct tally_tracee_opts o;
	int r = read_opts(&o, FLAGS_OTHERS, opts, err);

	if (r < 0)
		return r;
	if (from && opts)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a tracee that is adopted from another has its options");
	struct tally_tracee *t = alloc(tid, from ? from->flags : o.flags);
	if (!t)
		return take_error(tid, -ENOMEM, err);
	if (from)
		join_family(t, from);
	t->state = TRACEE_RUNS;
	r = read_pid(tid, &t->pid);
	if (r == 0)
		r = tracee_open_files(t);
	if (r == 0 && from)
		r = pin_share(t, from);
	if (r < 0)
		goto fail;
	*out = t;
	return 0;
fail:
	tally_tracee_free(t);
	return take_error(tid, r, err);
}

/* The next status until the exec has gone one way or the other. */
static int await_exec(struct tally_tracee *t)
{
	struct tally_stop stop;
	int status, r;

	for (;;) {
		do
			r = tracee_await(t, -1, &status);
		while (r == -EINTR);
		if (r == 1)
			r = stop_read(t, status, &stop);
		if (r < 0 || t->state == TRACEE_GONE || stop.kind == TALLY_STOP_EXEC)
			return r;
		int signal = stop.kind == TALLY_STOP_SIGNAL ? stop.signal : 0;
		r = tracee_continue(t, PTRACE_CONT, signal);
		if (r < 0)
			return r;
	}
}

/* From the stop in its execve to the stop behind it. */
static int finish_exec(struct tally_tracee *t)
{
	struct tally_stop stop;

	t->in_call = t->starts = true;
	t->plan = PLAN_CALL;
	t->how = TALLY_RESUME_STEP;
	int r = (int)sys()->ptrace(PTRACE_SETOPTIONS, t->tid, 0, options_of(t->flags));
	if (r == 0)
		r = tracee_continue(t, PTRACE_SYSCALL, 0);
	if (r == 0)
		r = tally_tracee_wait(t, -1, &stop);
	if (r < 0)
		return r;
	memset(&t->total, 0, sizeof(t->total));
	t->losses = 0;
	t->stop.kind = TALLY_STOP_NONE;
	return stop.kind == TALLY_STOP_STEP ? 0 : -ESRCH;
}

int tally_tracee_launch(struct tally_tracee **out, char *const argv[],
			const struct tally_tracee_opts *opts, struct tally_error *err)
{
	struct tally_tracee_opts o;
	int r = read_opts(&o, FLAGS_OTHERS | FLAGS_LAUNCH, opts, err);

	if (r < 0)
		return r;
	struct tally_tracee *t = alloc(0, o.flags);
	if (!t)
		return error_nomem(err, "a thread to be traced");
	if (o.flags & TALLY_TRACEE_PIN)
		r = pin_take(t);
	if (r < 0) {
		tally_tracee_free(t);
		return error_set(err, r, TALLY_CAUSE_IO, "cannot be bound to one CPU: %s",
				 strerror(-r));
	}
	const struct launch_command command = {
		.argv = argv,
		.envp = o.envp,
		.fixed_addresses = o.flags & TALLY_TRACEE_NO_RANDOM,
	};
	r = launch_start(&t->launch, &command, err);
	if (r < 0)
		goto fail;
	t->tid = t->pid = tally_launch_pid(t->launch);
	/* Of its end nothing more is asked than a child tells, until it has become the command. */
	r = (int)sys()->ptrace(PTRACE_SEIZE, t->tid, 0,
			       PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
	if (r < 0) {
		take_error(t->tid, r, err);
		goto fail;
	}
	int released = launch_release(t->launch);
	r = await_exec(t);
	if (r == 0)
		r = launch_result(t->launch, released, err);
	else
		take_error(t->tid, r, err);
	if (r == 0) {
		r = finish_exec(t);
		if (r < 0)
			error_set(err, r, TALLY_CAUSE_NO_PROCESS,
				  "'%s' was ended before its first instruction", argv[0]);
	}
	if (r < 0)
		goto fail;
	*out = t;
	return 0;
fail:
	tally_tracee_free(t);
	return r;
}

int tracee_continue(struct tally_tracee *t, int request, int signal)
{
	long r = sys()->ptrace(request, t->tid, 0, (unsigned long)signal);

	if (r < 0 && r != -ESRCH)
		return (int)r;
	t->state = TRACEE_RUNS;
	t->regs_known = t->pc_known = false;
	return 0;
}

static int listen(struct tally_tracee *t)
{
	if (t->stop.kind != TALLY_STOP_GROUP)
		return -EINVAL;
	int r = trap_return(t);
	t->plan = PLAN_RUN;
	return r < 0 ? r : tracee_continue(t, PTRACE_LISTEN, 0);
}

/*
 * A signal whose stop has been left by a call that was made for the caller, or has to be for the one
 * that has SIGTRAP ignored again, is sent anew instead of delivered.
 */
static int leave_signal(struct tally_tracee *t, int *signal)
{
	struct held *held = &t->redeliver;
	int r = 0;

	if (*signal && t->owes_ignore && held->state == HELD_NONE) {
		r = held_take(t);
		if (r == 0)
			r = trap_return(t);
	}
	if (r < 0 || held->state != HELD_TAKEN)
		return r;
	bool wanted = *signal == held->info.si_signo;
	held->state = HELD_NONE;
	*signal = wanted ? 0 : *signal;
	return wanted ? held_send(t) : 0;
}

int tally_tracee_resume(struct tally_tracee *tracee, uint32_t how, int signal)
{
	struct tally_tracee *t = tracee;
	int r;

	if (t->state != TRACEE_STOPPED || how > TALLY_RESUME_LISTEN)
		return -EINVAL;
	if (t->has_status) { /* it ended while a call of its was being made */
		t->state = TRACEE_RUNS;
		return 0;
	}
	t->how = how;
	t->step_over = t->run_behind = false;
	if (t->again) {
		t->again = false;
		sys()->ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
	}
	if (how == TALLY_RESUME_LISTEN)
		return listen(t);
	r = leave_signal(t, &signal);
	/* One that was sent again stops it before anything is executed, and is passed on then. */
	if (r == 0)
		r = t->redeliver.state == HELD_SENT ? tracee_continue(t, PTRACE_CONT, 0)
						    : resume_begin(t, signal);
	if (r == -ESRCH)
		t->state = TRACEE_RUNS;
	return r == -ESRCH ? 0 : r;
}

bool tracee_exists(const struct tally_tracee *t)
{
	return syscall(SYS_tgkill, t->pid, t->tid, 0) == 0 || errno != ESRCH;
}

static int status_of(const siginfo_t *info)
{
	switch (info->si_code) {
	case CLD_EXITED:
		return (info->si_status & 0xff) << 8;
	case CLD_KILLED:
		return info->si_status;
	case CLD_DUMPED:
		return info->si_status | 0x80;
	default:
		return info->si_status << 8 | 0x7f;
	}
}

/*
 * A thread that calls execve takes over the number of its process's first thread; who waits for its
 * old number is not told (waitid() in the kernel looks at the thread's number when it is woken). So
 * that wait must not be for ever.
 */
static bool may_block(const struct tally_tracee *t)
{
	return t->tid == t->pid || (t->plan != PLAN_RUN && t->plan != PLAN_CALL);
}

int tracee_await(struct tally_tracee *t, int timeout_ms, int *wait_status)
{
	uint64_t start = 0, passed = 0;
	bool block = timeout_ms < 0 && may_block(t);
	siginfo_t info;
	int r;

	for (;;) {
		r = sys()->waitid(P_PID, (id_t)t->tid, &info,
				  WEXITED | WSTOPPED | __WALL | (block ? 0 : WNOHANG));
		if (r < 0 || info.si_pid || timeout_ms == 0)
			break;
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		start = start ? start : now;
		passed = now - start;
		if (timeout_ms > 0 && passed >= (uint64_t)timeout_ms * NS_PER_MS)
			break;
		uint64_t pause = passed / LOOK_SHARE;
		pause = pause < LOOK_MIN_NS ? LOOK_MIN_NS : pause;
		r = sys()->sleep_ns(pause > LOOK_MAX_NS ? LOOK_MAX_NS : pause);
		if (r < 0)
			break;
	}
	if (r < 0 || !info.si_pid)
		return r < 0 ? r : 0;
	*wait_status = status_of(&info);
	return 1;
}

int tally_tracee_stopped(struct tally_tracee *tracee, int wait_status, struct tally_stop *stop)
{
	struct tally_stop now;
	int r = stop_read(tracee, wait_status, &now);

	if (r == 0)
		r = step_stopped(tracee, &now);
	if (r == -ESRCH) {
		/* It was killed meanwhile, whatever it had stopped for. */
		tracee->state = TRACEE_RUNS;
		return 0;
	}
	if (r != 1)
		return r;
	if (now.kind == TALLY_STOP_INTERRUPT)
		atomic_store_explicit(&tracee->interrupted, false, memory_order_relaxed);
	if (tracee->state == TRACEE_GONE && tracee->launch)
		launch_reaped(tracee->launch);
	tracee->stop = now;
	*stop = now;
	return 1;
}

static int told_nothing(struct tally_tracee *t, uint32_t kind, struct tally_stop *stop)
{
	memset(stop, 0, sizeof(*stop));
	stop->kind = kind;
	stop->tid = t->tid;
	stop->fd = -1;
	stop->repeats = 1;
	return 0;
}

int tally_tracee_wait(struct tally_tracee *tracee, int timeout_ms, struct tally_stop *stop)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) +
		       (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NS_PER_MS;
	int left = timeout_ms, status, r;

	for (;;) {
		if (tracee->state != TRACEE_RUNS)
			return -EINVAL;
		r = tracee->has_status ? 1 : tracee_await(tracee, left, &status);
		if (tracee->has_status)
			status = tracee->wait_status;
		tracee->has_status = false;
		if (r == -ECHILD && !tracee_exists(tracee)) {
			tracee->state = TRACEE_GONE;
			return told_nothing(tracee, TALLY_STOP_GONE, stop);
		}
		if (r <= 0)
			return r < 0 ? r : told_nothing(tracee, TALLY_STOP_NONE, stop);
		r = tally_tracee_stopped(tracee, status, stop);
		if (r != 0)
			return r < 0 ? r : 0;
		if (timeout_ms <= 0)
			continue;
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		left = now < end ? (int)((end - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
	}
}

int tally_tracee_interrupt(struct tally_tracee *tracee)
{
	atomic_store_explicit(&tracee->interrupted, true, memory_order_relaxed);
	return (int)sys()->ptrace(PTRACE_INTERRUPT, tracee->tid, 0, 0);
}

int32_t tally_tracee_tid(const struct tally_tracee *tracee)
{
	return tracee->tid;
}

int32_t tally_tracee_pid(const struct tally_tracee *tracee)
{
	return tracee->pid;
}

void tally_tracee_retired(const struct tally_tracee *tracee, struct tally_retired_total *out,
			  bool *exact)
{
	*out = tracee->total;
	*exact = tracee->losses == 0;
}

int tally_tracee_detach(struct tally_tracee *tracee, int signal)
{
	struct tally_tracee *t = tracee;
	int r;

	if (t->state != TRACEE_STOPPED)
		return -EINVAL;
	r = trap_return(t);
	/* At most stops a signal is not taken from PTRACE_DETACH; a pending one always is. */
	if (r == 0 && signal && syscall(SYS_tgkill, t->pid, t->tid, signal) < 0)
		r = -errno;
	pin_unbind(t);
	if (r == 0)
		r = (int)sys()->ptrace(PTRACE_DETACH, t->tid, 0, 0);
	if (r < 0 && r != -ESRCH)
		return r;
	t->state = TRACEE_GONE;
	t->detached = true;
	return 0;
}

/* 1: it has ended, and was waited for; 0: not yet. */
static int reap(int32_t tid)
{
	siginfo_t info;
	int r = sys()->waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | __WALL | WNOHANG);

	if (r < 0 || !info.si_pid)
		return r == -ECHILD;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
		return 1;
	sys()->ptrace(PTRACE_CONT, tid, 0, 0);
	return 0;
}

/*
 * One of ours is ended with all its threads, and waited for: the first thread's end is told when those
 * of the others have been taken.
 */
static void end_launched(struct tally_tracee *t)
{
	int32_t *tids;
	size_t count;

	kill(t->pid, SIGKILL);
	/* One that stands in its end is not woken by that. */
	if (t->state == TRACEE_STOPPED)
		sys()->ptrace(PTRACE_CONT, t->tid, 0, 0);
	while (!reap(t->pid)) {
		if (proc_threads(&tids, &count, NULL, t->pid) == 0) {
			for (size_t i = 0; i < count; i++)
				if (tids[i] != t->pid)
					reap(tids[i]);
			free(tids);
		}
		sys()->sleep_ns(LOOK_MIN_NS);
	}
	launch_reaped(t->launch);
}

void tally_tracee_free(struct tally_tracee *tracee)
{
	struct tally_tracee *t = tracee;

	if (!t)
		return;
	if (t->state != TRACEE_GONE && t->launch && t->tid)
		end_launched(t);
	else if (t->state == TRACEE_STOPPED)
		tally_tracee_detach(t, 0);
	t->next->previous = t->previous;
	t->previous->next = t->next;
	pin_release(t);
	if (t->launch && t->detached)
		launch_reaped(t->launch);
	tally_launch_close(t->launch);
	if (t->mem >= 0)
		sys()->close(t->mem);
	buf_done(&t->text);
	free(t->code);
	free(t);
}
