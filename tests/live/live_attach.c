/* SPDX-License-Identifier: MIT */
/*
 * Attaching on the real kernel: what is counted of processes that run, of threads and children, of
 * cgroups, and what being held does to a process. The program `churn` keeps books of what it triggers;
 * counts must agree with them to the last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#include "churning.h"
#include "tap.h"
#include "tracefs.h"

#define TRIGGER "syscalls:sys_enter_getppid"

/* Linux 5.13; the C library may be older. */
#define SI_CODE_PERF 6

#define BATCH 16 /* churn's */

static struct tally_error err;
static const char *no_tracepoint; /* why there is none, NULL */

static struct tally_counter *open_one(const char *name, const struct tally_target *target,
				      struct tally_counter_opts opts, struct tally_events **events)
{
	struct tally_counter *counter = NULL;

	opts.size = sizeof(opts);
	if (tally_events_parse(events, name, NULL, &err) < 0)
		return NULL;
	if (tally_counter_open(&counter, tally_events_at(*events, 0), target, &opts, &err) < 0) {
		printf("# %s\n", err.text);
		tally_events_free(*events);
		return NULL;
	}
	return counter;
}

static void close_one(struct tally_counter *counter, struct tally_events *events)
{
	tally_counter_close(counter);
	tally_events_free(events);
}

#define OPTS(...) ((struct tally_counter_opts){ __VA_ARGS__ })

static uint64_t value_of(struct tally_counter *counter)
{
	struct tally_count count = { 0 };

	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.state, TALLY_COUNT_EXACT);
	return count.value;
}

static void trigger(int times)
{
	for (int i = 0; i < times; i++)
		syscall(SYS_getppid);
}

/* -- threads and children ---------------------------------------------------------------------- */

#define TIMES 200

static void *trigger_in_thread(void *arg)
{
	trigger(TIMES);
	return arg;
}

static void trigger_in_threads(int count)
{
	pthread_t ids[8];

	for (int i = 0; i < count; i++)
		check_int(pthread_create(&ids[i], NULL, trigger_in_thread, NULL), 0);
	for (int i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
}

static void trigger_in_children(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			trigger(TIMES);
			_exit(0);
		}
		check_int(waitpid(pid, NULL, 0), pid);
	}
}

/* TIMES triggers here, in 8 threads and 8 children; how many are counted. */
static uint64_t count_triggers(uint32_t flags)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_counter *counter = open_one(TRIGGER, &self, OPTS(.flags = flags), &events);

	if (!check(counter != NULL))
		return UINT64_MAX;
	check_int(tally_counter_enable(counter), 0);
	trigger(TIMES);
	trigger_in_threads(8);
	trigger_in_children(8);
	check_int(tally_counter_disable(counter), 0);
	uint64_t value = value_of(counter);
	close_one(counter, events);
	return value;
}

static void a_trigger_is_counted_once_wherever_it_happens(void)
{
	if (no_tracepoint)
		tap_skip(no_tracepoint);
	check_u64(count_triggers(0), TIMES);
	check_u64(count_triggers(TALLY_COUNTER_INHERIT), 17 * TIMES);
	check_u64(count_triggers(TALLY_COUNTER_INHERIT_THREAD), 9 * TIMES);
}

static void members_of_a_group_count_each_trigger(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_count counts[3];
	struct tally_events *events;
	struct tally_group *group;

	if (no_tracepoint)
		tap_skip(no_tracepoint);
	require(tally_events_parse(&events, "{" TRIGGER ",dummy," TRIGGER "}", NULL, &err) == 0);
	require(tally_group_open(&group, events, 0, &self,
				 TALLY_OPTS(counter, .flags = TALLY_COUNTER_INHERIT), &err) == 0);
	check_int(tally_group_enable(group), 0);
	trigger(TIMES);
	trigger_in_threads(8);
	trigger_in_children(8);
	check_int(tally_group_disable(group), 0);
	check_int(tally_group_read(group, counts, 3), 0);
	check_u64(counts[0].value, 17 * TIMES);
	check_u64(counts[2].value, 17 * TIMES);
	tally_group_close(group);
	tally_events_free(events);
}

/* -- a process that runs ------------------------------------------------------------------------ */

/*
 * Attached while it triggers, or while it pauses and still starts and ends threads. Answers whether both
 * books agree.
 */
static bool counts_attached(const char *event, const char *threads, const char *what, bool paused)
{
	struct churn c;
	struct tally_events *events;
	uint64_t before, after, base, end;

	if (!check(churn_start(&c, threads, what)))
		return true;
	/* All its threads run, and have their stacks. */
	before = churn_some(&c, 0, 4000 * BATCH);
	if (!paused)
		churn_go(&c);
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = c.pid };
	struct tally_counter *counter = open_one(event, &target,
						 OPTS(.flags = TALLY_COUNTER_ENABLED), &events);
	if (!check(counter != NULL)) {
		churn_end(&c);
		return true;
	}
	check(tally_counter_start_exact(counter));
	before = paused ? before : churn_pause(&c);
	base = paused ? 0 : value_of(counter);
	after = churn_some(&c, before, 4000 * BATCH);
	end = value_of(counter);
	check(after > before);
	churn_end(&c);
	/* Threads that have ended go on being counted; an exit touches a few pages of its own. */
	uint64_t told = after - before, last = value_of(counter) - base;
	close_one(counter, events);
	if (end - base != told || last < told || last >= told + 64)
		printf("# counted %" PRIu64 ", and %" PRIu64 " at the end, of %" PRIu64 "\n",
		       end - base, last, told);
	return end - base == told && last >= told && last < told + 64;
}

/*
 * Once in some hundred times the counts of two or three threads are missing, of thousands that end (seen on
 * Linux 6.18; why is not known). Who was missed when it was attached is missed each time, with all that it
 * starts: then both times differ.
 */
static void check_attached(const char *event, const char *threads, const char *what, bool paused)
{
	check(counts_attached(event, threads, what, paused) ||
	      counts_attached(event, threads, what, paused));
}

static void an_attached_process_of_64_threads_that_start_and_end_counts_exactly(void)
{
	if (no_tracepoint)
		tap_skip(no_tracepoint);
	for (int i = 0; i < 3; i++)
		check_attached(TRIGGER, "64", "getppid", i % 2);
}

static void pages_of_an_attached_process_are_counted_exactly(void)
{
	check_attached("page-faults:u", "8", "touch", true);
	check_attached("page-faults:u", "8", "touch", false);
}

static void several_events_are_attached_in_one_stop(void)
{
	struct churn c;
	struct tally_freeze *freeze;
	struct tally_events *events[3];
	struct tally_counter *counters[3] = { NULL };
	uint64_t before, after;

	if (no_tracepoint)
		tap_skip(no_tracepoint);
	require(churn_start(&c, "8", "getppid"));
	before = churn_some(&c, 0, 1000);
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = c.pid };
	require(tally_freeze_open(&freeze, c.pid, NULL, &err) == 0);
	if (!check(tally_freeze_holds(freeze)))
		printf("# %s\n", tally_freeze_reason(freeze));
	check(tally_freeze_threads(freeze) >= 9);
	for (int i = 0; i < 3; i++) {
		counters[i] = open_one(TRIGGER, &target, OPTS(.freeze = freeze), &events[i]);
		require(counters[i] != NULL);
		check_int(tally_counter_enable(counters[i]), 0);
		check(tally_counter_start_exact(counters[i]));
	}
	tally_freeze_close(freeze);
	after = churn_some(&c, before, 1000);
	for (int i = 0; i < 3; i++) {
		check_u64(value_of(counters[i]), after - before);
		close_one(counters[i], events[i]);
	}
	churn_end(&c);
}

static void not_stopped_it_says_that_its_start_is_not_exact(void)
{
	struct churn c;
	struct tally_events *events;
	struct tally_count count;

	require(churn_start(&c, "4", "touch"));
	churn_some(&c, 0, 100);
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = c.pid };
	struct tally_counter *counter = open_one("page-faults:u", &target,
						 OPTS(.flags = TALLY_COUNTER_NO_STOP), &events);
	require(counter != NULL);
	check(!tally_counter_start_exact(counter));
	check_int(tally_counter_read(counter, &count), 0);
	check(count.flags & TALLY_COUNT_START_INEXACT);
	close_one(counter, events);
	churn_end(&c);
}

/* -- what being held does ----------------------------------------------------------------------- */

static char state_of(pid_t pid)
{
	char path[64], line[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	close(fd);
	const char *end = strrchr(line, ')');
	return end ? end[2] : '?';
}

static bool await_state(pid_t pid, char wanted)
{
	for (int i = 0; i < 10000 && state_of(pid) != wanted; i++)
		usleep(1000);
	return state_of(pid) == wanted;
}

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
}

/* A child that waits for SIGUSR1 and then exits with 7. */
static pid_t start_waiter(void)
{
	/* Before the fork, so that it is never without. */
	signal(SIGUSR1, on_signal);
	pid_t pid = fork();
	if (pid == 0) {
		while (!got_signal)
			usleep(1000);
		_exit(7);
	}
	signal(SIGUSR1, SIG_DFL);
	return pid;
}

static void end_waiter(pid_t pid)
{
	int status = -1;

	check_int(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void signals_that_arrive_meanwhile_come_afterwards(void)
{
	struct tally_freeze *freeze;
	pid_t pid = start_waiter();

	require(pid > 0 && tally_freeze_open(&freeze, pid, NULL, &err) == 0);
	check(tally_freeze_holds(freeze));
	check_int(state_of(pid), 't');
	check_int(kill(pid, SIGUSR1), 0);
	usleep(10000);
	check_int(state_of(pid), 't');
	tally_freeze_close(freeze);
	end_waiter(pid);
	/* Many of them while it is stopped again and again: none is lost, none kills. */
	for (int i = 0; i < 50; i++) {
		pid = start_waiter();
		usleep(2000);
		kill(pid, SIGUSR1);
		if (check_int(tally_freeze_open(&freeze, pid, NULL, &err), 0))
			tally_freeze_close(freeze);
		end_waiter(pid);
	}
}

static void a_stopped_process_stays_stopped(void)
{
	struct tally_freeze *freeze;
	pid_t pid = start_waiter();

	require(pid > 0);
	kill(pid, SIGSTOP);
	check(await_state(pid, 'T'));
	require(tally_freeze_open(&freeze, pid, NULL, &err) == 0);
	check(tally_freeze_holds(freeze));
	tally_freeze_close(freeze);
	check(await_state(pid, 'T'));
	usleep(10000);
	check_int(state_of(pid), 'T');
	kill(pid, SIGUSR1);
	kill(pid, SIGCONT);
	end_waiter(pid);
}

static void a_process_that_dies_while_it_is_held_does_no_harm(void)
{
	struct tally_freeze *freeze;
	pid_t pid = start_waiter();
	int status;

	require(pid > 0 && tally_freeze_open(&freeze, pid, NULL, &err) == 0);
	kill(pid, SIGKILL);
	check(await_state(pid, 'Z'));
	tally_freeze_close(freeze);
	check_int(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status));
	/* And of one that is gone, but not yet waited for, nobody is held. */
	pid = fork();
	if (pid == 0)
		_exit(0);
	check(await_state(pid, 'Z'));
	if (check_int(tally_freeze_open(&freeze, pid, NULL, &err), 0)) {
		check_int(tally_freeze_threads(freeze), 0);
		tally_freeze_close(freeze);
	}
	check_int(waitpid(pid, NULL, 0), pid);
	check_int(tally_freeze_open(&freeze, pid, NULL, &err), -ESRCH);
}

/* In vfork(2) a thread waits uninterruptibly for its child. It must neither hang us nor stop later. */
static void one_that_waits_in_the_kernel_goes_on_afterwards(void)
{
	struct tally_freeze *freeze;
	int down[2];
	char byte = 0;

	require(pipe2(down, O_CLOEXEC) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(down[1]);
		/* By number: vfork() may be a fork where a sanitizer is in between. */
		pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
		if (child == 0)
			_exit(read(down[0], &byte, 1) == 1 ? 3 : 4);
		int status = 0;
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	close(down[0]);
	check(await_state(pid, 'D'));
	require(tally_freeze_open(&freeze, pid, TALLY_OPTS(freeze, .wait_ms = 20), &err) == 0);
	check(!tally_freeze_holds(freeze));
	check_has(tally_freeze_reason(freeze), "did not stop");
	tally_freeze_close(freeze);
	check_int(write(down[1], &byte, 1), 1);
	int status = -1;
	check_int(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	close(down[1]);
}

static void a_debugger_s_process_is_attached_to_as_it_runs(void)
{
	struct tally_events *events;
	pid_t pid = start_waiter();

	require(pid > 0);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		tap_skip("ptrace is not allowed here");
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = pid };
	struct tally_counter *counter = open_one("task-clock:u", &target, OPTS(.flags = 0),
						 &events);
	require(counter != NULL);
	check(!tally_counter_start_exact(counter));
	close_one(counter, events);
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, NULL, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	kill(pid, SIGUSR1);
	end_waiter(pid);
}

static int count_threads(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) == 0 ? (int)st.st_nlink - 2 : -1;
}

static void oneself_is_exact_when_alone(void)
{
	struct tally_target me = { .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
	struct tally_events *events;
	pid_t pid = fork();

	/* In a child, which has one thread unless a sanitizer starts its own. */
	if (pid == 0) {
		me.id = getpid();
		struct tally_counter *counter = open_one("page-faults:u", &me, OPTS(.flags = 0),
							 &events);
		bool exact = counter && tally_counter_start_exact(counter);
		_exit(exact == (count_threads(getpid()) == 1) ? 0 : 1);
	}
	int status = -1;
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
}

/* -- execs and signals --------------------------------------------------------------------------- */

/* A child that triggers TIMES when told, then execs itself into `touch 50`. */
static uint64_t count_over_exec(uint32_t flags)
{
	struct tally_events *events;
	const char *program = getenv("TOUCH");
	int down[2], up[2];
	char byte = 0;

	if (!program || pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		return UINT64_MAX;
	pid_t pid = fork();
	if (pid == 0) {
		if (read(down[0], &byte, 1) == 1) {
			trigger(TIMES);
			execl(program, program, "50", NULL);
		}
		_exit(127);
	}
	struct tally_target target = { .scope = TALLY_SCOPE_THREAD, .id = pid };
	struct tally_counter *counter = open_one(TRIGGER, &target, OPTS(.flags = flags), &events);
	check_int(write(down[1], &byte, 1), 1);
	check_int(waitpid(pid, NULL, 0), pid);
	close(down[0]);
	close(down[1]);
	close(up[0]);
	close(up[1]);
	if (!check(counter != NULL))
		return UINT64_MAX;
	struct tally_count count;
	check_int(tally_counter_read(counter, &count), 0);
	close_one(counter, events);
	/* touch does not call it. */
	return flags & TALLY_COUNTER_ENABLE_ON_EXEC ? count.enabled_ns : count.value;
}

static void an_exec_enables_or_ends(void)
{
	if (no_tracepoint)
		tap_skip(no_tracepoint);
	check_u64(count_over_exec(TALLY_COUNTER_ENABLED), TIMES);
	check_u64(count_over_exec(TALLY_COUNTER_ENABLED | TALLY_COUNTER_REMOVE_ON_EXEC), TIMES);
	check(count_over_exec(TALLY_COUNTER_ENABLE_ON_EXEC) > 0);
	check_u64(count_over_exec(0), 0);
}

static volatile sig_atomic_t traps, wrong_traps;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	uint64_t data;

	(void)sig, (void)context;
	traps++;
	/* si_perf_data lies behind si_addr, siginfo_t of Linux 5.13. */
	memcpy(&data, (char *)info + offsetof(siginfo_t, si_addr) + sizeof(void *), sizeof(data));
	if (info->si_code != SI_CODE_PERF || (unsigned long)data != (unsigned long)0x7e57da7a)
		wrong_traps++;
}

static void the_period_brings_a_trap(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, before;
	struct tally_events *events;

	if (no_tracepoint)
		tap_skip(no_tracepoint);
	sigaction(SIGTRAP, &action, &before);
	struct tally_counter *counter = open_one(
		TRIGGER, &self,
		OPTS(.flags = TALLY_COUNTER_SIGTRAP, .period = 50, .sig_data = 0x7e57da7a),
		&events);
	if (!counter && err.cause == TALLY_CAUSE_UNSUPPORTED)
		tap_skip("this kernel has no sigtrap");
	require(counter != NULL);
	check_int(tally_counter_enable(counter), 0);
	trigger(TIMES);
	check_int(tally_counter_disable(counter), 0);
	check_u64(value_of(counter), TIMES);
	check_int(traps, TIMES / 50);
	check_int(wrong_traps, 0);
	close_one(counter, events);
	sigaction(SIGTRAP, &before, NULL);
}

/* -- cgroups ------------------------------------------------------------------------------------ */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

/* Where groups that perf can count are made, "": nowhere. */
static const char *find_cgroups(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified",
					      "/sys/fs/cgroup" };
	char file[128];

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		snprintf(file, sizeof(file), "%s/cgroup.procs", mounts[i]);
		if (access(file, W_OK) == 0)
			return mounts[i];
	}
	return "";
}

static void a_cgroup_counts_those_in_it(void)
{
	char folder[160], name[64], procs[200], pid_text[32];
	struct tally_events *events;
	const char *mount = find_cgroups();
	int down[2];
	char byte = 0;

	if (no_tracepoint)
		tap_skip(no_tracepoint);
	snprintf(name, sizeof(name), "tally-test-%d", getpid());
	snprintf(folder, sizeof(folder), "%s/%s", mount, name);
	if (!mount[0] || mkdir(folder, 0755) < 0)
		tap_skip("no cgroup can be made here");
	require(pipe2(down, O_CLOEXEC) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (read(down[0], &byte, 1) == 1) {
			trigger(TIMES);
			trigger_in_threads(2);
			trigger_in_children(1);
		}
		_exit(0);
	}
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", folder);
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	check(write_text(procs, pid_text));
	struct tally_target target = { .scope = TALLY_SCOPE_CGROUP, .cgroup = name };
	struct tally_counter *counter = open_one(TRIGGER, &target,
						 OPTS(.flags = TALLY_COUNTER_ENABLED), &events);
	target.cgroup = "/tmp";
	struct tally_counter *none = NULL;
	check(tally_counter_open(&none, tally_events_at(events, 0), &target, NULL, &err) == -EBADF);
	check_has(err.text, "no cgroup");
	trigger(TIMES); /* not in the group */
	check_int(write(down[1], &byte, 1), 1);
	check_int(waitpid(pid, NULL, 0), pid);
	if (check(counter != NULL)) {
		check_int(tally_counter_places(counter, NULL), sysconf(_SC_NPROCESSORS_ONLN));
		check_u64(value_of(counter), 4 * TIMES);
		close_one(counter, events);
	}
	close(down[0]);
	close(down[1]);
	check_int(rmdir(folder), 0);
}

/* -- leaks -------------------------------------------------------------------------------------- */

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void ten_thousand_openings_leave_nothing(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events, *keep_events;
	struct tally_counter *counter;
	struct tally_group *group;
	/* The first user of a software event costs the kernel half a millisecond, each time. */
	struct tally_counter *keeper = open_one("page-faults:u", &self, OPTS(.flags = 0),
						&keep_events);

	require(keeper != NULL);
	require(tally_events_parse(&events, "{page-faults,page-faults}:u", NULL, &err) == 0);
	int fds = count_fds();
	size_t memory = 0;
	for (int i = 0; i < 10000; i++) {
		if (i == 10)
			memory = mallinfo2().uordblks;
		if (i % 2) {
			if (!check_int(tally_group_open(&group, events, 0, &self, NULL, &err), 0))
				return;
			tally_group_close(group);
		} else {
			if (!check_int(tally_counter_open(&counter, tally_events_at(events, 0),
							  &self, NULL, &err),
				       0))
				return;
			tally_counter_close(counter);
		}
	}
	/* The allocator keeps a few freed pieces in hand; a leak would be 5000 pieces at least. */
	check(mallinfo2().uordblks < memory + 16384);
	check_int(count_fds(), fds);
	tally_events_free(events);
	close_one(keeper, keep_events);
}

static void a_thousand_attachments_leave_nothing(void)
{
	struct tally_events *events, *keep_events;
	struct tally_counter *counter;
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter *keeper = open_one("page-faults:u", &self, OPTS(.flags = 0),
						&keep_events);
	pid_t pid = start_waiter();
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = pid };

	require(keeper != NULL && pid > 0);
	require(tally_events_parse(&events, "page-faults:u", NULL, &err) == 0);
	int fds = count_fds(), threads = count_threads(getpid());
	for (int i = 0; i < 1000; i++) {
		if (!check_int(tally_counter_open(&counter, tally_events_at(events, 0), &target,
						  NULL, &err),
			       0))
			break;
		check(tally_counter_start_exact(counter));
		tally_counter_close(counter);
	}
	check_int(count_fds(), fds);
	/* The last tracer may be on its way out. */
	for (int i = 0; i < 1000 && count_threads(getpid()) > threads; i++)
		usleep(1000);
	check_int(count_threads(getpid()), threads);
	kill(pid, SIGUSR1);
	end_waiter(pid);
	tally_events_free(events);
	close_one(keeper, keep_events);
}

int main(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	bool has_tracefs = tracefs_ready();
	struct tally_counter *probe = open_one("page-faults:u", &self, OPTS(.flags = 0), &events);

	if (!probe) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_one(probe, events);
	probe = has_tracefs ? open_one(TRIGGER, &self, OPTS(.flags = 0), &events) : NULL;
	if (probe)
		close_one(probe, events);
	else
		no_tracepoint = "tracepoints of system calls cannot be counted here";
	tap_run(a_trigger_is_counted_once_wherever_it_happens);
	tap_run(members_of_a_group_count_each_trigger);
	tap_run(an_attached_process_of_64_threads_that_start_and_end_counts_exactly);
	tap_run(pages_of_an_attached_process_are_counted_exactly);
	tap_run(several_events_are_attached_in_one_stop);
	tap_run(not_stopped_it_says_that_its_start_is_not_exact);
	tap_run(signals_that_arrive_meanwhile_come_afterwards);
	tap_run(a_stopped_process_stays_stopped);
	tap_run(a_process_that_dies_while_it_is_held_does_no_harm);
	tap_run(one_that_waits_in_the_kernel_goes_on_afterwards);
	tap_run(a_debugger_s_process_is_attached_to_as_it_runs);
	tap_run(oneself_is_exact_when_alone);
	tap_run(an_exec_enables_or_ends);
	tap_run(the_period_brings_a_trap);
	tap_run(a_cgroup_counts_those_in_it);
	tap_run(ten_thousand_openings_leave_nothing);
	tap_run(a_thousand_attachments_leave_nothing);
	return tap_end();
}
