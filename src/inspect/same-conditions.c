/* SPDX-License-Identifier: MIT */
/* The conditions that are the same for all runs, and a run's start under them. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "inspect/same.h"

/* Words of a program's first stack: arguments, environment, auxiliary vector. More is not looked at. */
#define STACK_WORDS_MAX (1u << 20)

static const struct {
	const char *name, *help;
} conditions[TALLY_SAME_CONDITIONS] = {
	{ "aslr", "addresses are not randomised" },
	{ "random", "AT_RANDOM, getrandom and random instructions follow a fixed sequence" },
	{ "pid", "each run has a pid namespace of its own" },
	{ "time", "clocks that system calls read go by ticks" },
	{ "tsc", "the time-stamp counter goes by ticks" },
	{ "vdso", "the vDSO is hidden, so that clocks are read by system calls" },
	{ "cpu", "all runs are on one CPU" },
	{ "io", "input is read once, output is written once, by the first run" },
};

const char *tally_same_condition_name(uint32_t index)
{
	return index < TALLY_SAME_CONDITIONS ? conditions[index].name : NULL;
}

const char *tally_same_condition_help(uint32_t index)
{
	return index < TALLY_SAME_CONDITIONS ? conditions[index].help : NULL;
}

bool same_fixes(const struct tally_same *same, uint32_t condition)
{
	return !(same->opts.leave & condition);
}

/* Whether a pid namespace can be had, by trying. */
static const char *try_namespace(struct tally_same *same)
{
	same->namespace = open("/proc/thread-self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (same->namespace < 0)
		return "this kernel has no pid namespaces";
	if (unshare(CLONE_NEWPID) < 0)
		return errno == EPERM ? "a pid namespace takes root (CAP_SYS_ADMIN)"
				      : strerror(errno);
	return setns(same->namespace, CLONE_NEWPID) < 0 ? strerror(errno) : NULL;
}

int same_prepare(struct tally_same *same, struct tally_error *err)
{
	same->cpu = sched_getcpu();
	if (same->cpu < 0 || sched_getaffinity(0, sizeof(same->cpus), &same->cpus) < 0)
		return error_set(err, -errno, TALLY_CAUSE_IO, "the CPU cannot be told: %s",
				 strerror(errno));
	for (int i = 0; i < SAME_CLOCKS; i++) {
		struct timespec t = { 0 };
		bool runs = i != CLOCK_PROCESS_CPUTIME_ID && i != CLOCK_THREAD_CPUTIME_ID;
		if (runs && clock_gettime(i, &t) == 0)
			same->clocks[i] = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	/* Any start will do; one like a machine's that has been up for as long as this one. */
	same->tsc = same->clocks[CLOCK_MONOTONIC];
	if (!same_fixes(same, TALLY_SAME_PID))
		return 0;
	const char *why = try_namespace(same);
	if (why) {
		same->opts.leave |= TALLY_SAME_PID;
		same->tells_pids = true;
		same->missing[__builtin_ctz(TALLY_SAME_PID)] = same_text(
			same, "%s; a program is only told the same numbers of its own threads",
			why);
	}
	return 0;
}

/* The first process of a namespace: the others end with it, and it takes in orphans. */
_Noreturn static void be_init(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);
	syscall(SYS_close_range, 0, ~0u, 0);
	for (;;)
		pause();
}

/* Children of this thread are in a new namespace from here to leave_namespace(). */
static int enter_namespace(struct tally_same *same, struct same_run *run)
{
	sigset_t all, mask;

	if (!same_fixes(same, TALLY_SAME_PID))
		return 0;
	if (unshare(CLONE_NEWPID) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid_t pid = fork();
	if (pid == 0)
		be_init();
	int code = errno;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	run->init = pid > 0 ? pid : 0;
	return pid < 0 ? -code : 0;
}

static void leave_namespace(struct tally_same *same)
{
	if (same_fixes(same, TALLY_SAME_PID))
		setns(same->namespace, CLONE_NEWPID);
}

/* One entry of the auxiliary vector, at `at`. */
static int fix_entry(struct same_run *run, struct tally_tracee *t, uint64_t at,
		     const uint64_t entry[2])
{
	const uint64_t ignore = AT_IGNORE;
	uint64_t bytes[SAME_RANDOM_BYTES / sizeof(uint64_t)];

	if (entry[0] == AT_RANDOM) {
		run->at_random = entry[1];
		for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
			bytes[i] = same_number(run);
		if (same_fixes(run->same, TALLY_SAME_RANDOM))
			return tally_tracee_poke(t, entry[1], bytes, sizeof(bytes));
	}
	if (entry[0] != AT_SYSINFO_EHDR)
		return 0;
	run->vdso = entry[1];
	return same_fixes(run->same, TALLY_SAME_VDSO)
		       ? tally_tracee_poke(t, at, &ignore, sizeof(ignore))
		       : 0;
}

/* Behind execve(2) the stack has argc, argv, NULL, the environment, NULL, and the vector. */
int same_fix_stack(struct same_run *run, struct same_thread *t)
{
	uint64_t at = tally_tracee_regs_sp(&t->regs), word, entry[2];
	unsigned nulls = 0;
	int r = 0;

	at += sizeof(word);
	for (unsigned i = 0; i < STACK_WORDS_MAX && nulls < 2 && r == 0; i++) {
		r = tally_tracee_peek(t->tracee, at, &word, sizeof(word));
		nulls += word == 0;
		at += sizeof(word);
	}
	for (unsigned i = 0; i < STACK_WORDS_MAX && r == 0; i++, at += sizeof(entry)) {
		r = tally_tracee_peek(t->tracee, at, entry, sizeof(entry));
		if (r < 0 || entry[0] == AT_NULL)
			break;
		r = fix_entry(run, t->tracee, at, entry);
	}
	return r;
}

/*
 * Each tracee remembers the CPUs that its program would have without a tracer, from what this thread
 * has at its launch.
 */
static int launch(struct tally_same *same, struct tally_tracee **tracee, struct tally_error *err)
{
	uint32_t flags = TALLY_TRACEE_FOLLOW_THREADS | TALLY_TRACEE_FOLLOW_FORKS;
	cpu_set_t one;

	flags |= same_fixes(same, TALLY_SAME_ASLR) ? TALLY_TRACEE_NO_RANDOM : 0;
	flags |= same_fixes(same, TALLY_SAME_CPU) ? TALLY_TRACEE_PIN : 0;
	sched_setaffinity(0, sizeof(same->cpus), &same->cpus);
	int r = tally_tracee_launch(tracee, same->argv,
				    TALLY_OPTS(tracee, .flags = flags, .envp = same->opts.envp),
				    err);
	if (r < 0 || !same_fixes(same, TALLY_SAME_CPU))
		return r;
	CPU_ZERO(&one);
	CPU_SET(same->cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	sched_setaffinity(tally_tracee_tid(*tracee), sizeof(one), &one);
	return 0;
}

int same_start(struct tally_same *same, struct same_run *run, struct tally_error *err)
{
	struct tally_tracee *tracee;
	struct same_thread *t;
	int r = enter_namespace(same, run);

	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "a pid namespace cannot be made: %s",
				 strerror(-r));
	r = launch(same, &tracee, err);
	leave_namespace(same);
	if (r < 0)
		return r;
	t = same_turn_add(run, tracee);
	if (!t) {
		tally_tracee_free(tracee);
		return error_nomem(err, "a run");
	}
	r = tally_tracee_regs(tracee, &t->regs);
	if (r == 0 && !same_machine(t->regs.machine))
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "system calls of this machine are not known");
	same->machine = same_machine(t->regs.machine);
	if (r == 0)
		r = same_fix_stack(run, t);
	if (r == 0)
		r = same_fds_start(run);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_IO, "the command cannot be set up: %s",
				 strerror(-r))
		     : 0;
}

void same_stop(struct tally_same *same, struct same_run *run)
{
	/* The first one last: it ends them all, and the others were adopted from it. */
	for (size_t i = run->threads.count; i-- > 0;) {
		tally_tracee_free(run->threads.at[i]->tracee);
		free(run->threads.at[i]);
	}
	vec_done(&run->threads);
	if (run->init) {
		kill(run->init, SIGKILL);
		while (waitpid(run->init, NULL, 0) < 0 && errno == EINTR)
			;
	}
	vec_done(&run->signals);
	vec_done(&run->pages);
	buf_done(&run->data);
	free(run);
}
