/* SPDX-License-Identifier: MIT */
/* launch: real commands that wait, run, fail to run, and end in every way. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tally/launch.h>

#include "tap.h"

static struct tally_error err;
static struct tally_exit end;

static struct tally_launch *start(const char *a, const char *b, const char *c)
{
	char *argv[] = { strdup(a), b ? strdup(b) : NULL, c ? strdup(c) : NULL, NULL };
	struct tally_launch *launch = NULL;
	int r = tally_launch_start(&launch, argv, &err);

	/* The child has its own copy. */
	free(argv[0]);
	free(argv[1]);
	free(argv[2]);
	return r < 0 ? NULL : launch;
}

/* The exit status of a shell command, -1 when it did not run. */
static int shell(const char *script)
{
	struct tally_launch *launch = start("sh", "-c", script);

	end = (struct tally_exit){ 0 };
	int r = launch ? tally_launch_go(launch, &err) : -1;
	if (r == 0)
		r = tally_launch_wait(launch, -1, &end, &err);
	tally_launch_close(launch);
	return r == 1 ? end.status : -1;
}

static bool have_children(void)
{
	return !(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void a_status_is_passed_on(void)
{
	check_int(shell("exit 0"), 0);
	check_int(end.signal, 0);
	check_int(shell("exit 41"), 41);
	check(!have_children());
}

static void a_signal_is_128_and_its_number(void)
{
	check_int(shell("kill -TERM $$"), 128 + SIGTERM);
	check_int(end.signal, SIGTERM);
}

static void nothing_runs_before_go(void)
{
	char path[] = "/tmp/tally-launch-XXXXXX";
	int fd = mkstemp(path);

	require(fd >= 0);
	close(fd);
	unlink(path);
	struct tally_launch *launch = start("touch", path, NULL);
	require(launch != NULL);
	struct timespec pause = { 0, 30000000 };
	nanosleep(&pause, NULL);
	check(access(path, F_OK) < 0);
	check_int(kill(tally_launch_pid(launch), 0), 0);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check(access(path, F_OK) == 0);
	unlink(path);
	tally_launch_close(launch);
}

static void a_missing_command_is_enoent(void)
{
	struct tally_launch *launch = start("no-such-command-anywhere", NULL, NULL);

	require(launch != NULL);
	check_int(tally_launch_go(launch, &err), -ENOENT);
	check_int(err.code, -ENOENT);
	check_int(err.cause, TALLY_CAUSE_EXEC);
	check_has(err.text, "no-such-command-anywhere");
	check_has(err.text, "PATH");
	check(!have_children());
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check_int(end.status, 127);
	check_int(tally_launch_kill(launch, SIGTERM), -ESRCH);
	tally_launch_close(launch);
	launch = start("/no/such/file", NULL, NULL);
	check_int(tally_launch_go(launch, &err), -ENOENT);
	check_has(err.text, "there is no such file");
	tally_launch_close(launch);
}

/*
 * execvp(3) says EACCES for a folder of that name, as for a folder of PATH that may not be
 * searched; to a shell the command is not found either way.
 */
static void what_path_does_not_have_is_enoent(void)
{
	char folder[] = "/tmp/tally-launch-XXXXXX", inside[64], path[128];
	const char *before = getenv("PATH");
	char *kept = strdup(before ? before : "/bin:/usr/bin");

	require(kept && mkdtemp(folder));
	snprintf(inside, sizeof(inside), "%s/no-such-command", folder);
	snprintf(path, sizeof(path), "/no/such/folder:%s", folder);
	check_int(mkdir(inside, 0700), 0);
	check_int(setenv("PATH", path, 1), 0);
	/* A folder, then a file that nobody may execute, not even root. */
	for (int is_file = 0; is_file < 2; is_file++) {
		struct tally_launch *launch = start("no-such-command", NULL, NULL);
		check_int(tally_launch_go(launch, &err), is_file ? -EACCES : -ENOENT);
		check_has(err.text, is_file ? "not executable" : "no folder of PATH");
		check_int(tally_launch_wait(launch, -1, &end, &err), 1);
		check_int(end.status, is_file ? 126 : 127);
		tally_launch_close(launch);
		check_int(is_file ? unlink(inside) : rmdir(inside), 0);
		if (!is_file)
			close(creat(inside, 0600));
	}
	setenv("PATH", kept, 1);
	free(kept);
	rmdir(folder);
}

static void a_folder_is_eacces(void)
{
	struct tally_launch *launch = start("/tmp", NULL, NULL);

	require(launch != NULL);
	check_int(tally_launch_go(launch, &err), -EACCES);
	check_int(err.cause, TALLY_CAUSE_EXEC);
	check_has(err.text, "it is a folder");
	check_int(tally_launch_wait(launch, 0, &end, &err), 1);
	check_int(end.status, 126);
	tally_launch_close(launch);
	check(!have_children());
}

/* Runs a file of that content and mode; answers what go answered. */
static int run_file(const char *content, mode_t mode)
{
	char path[] = "/tmp/tally-launch-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, content, strlen(content)) < 0 || fchmod(fd, mode) < 0)
		return -EIO;
	close(fd);
	struct tally_launch *launch = start(path, NULL, NULL);
	int r = launch ? tally_launch_go(launch, &err) : -EIO;
	if (launch)
		tally_launch_wait(launch, -1, &end, &err);
	tally_launch_close(launch);
	unlink(path);
	return r;
}

static void a_file_without_x_and_one_without_interpreter_are_told_apart(void)
{
	check_int(run_file("#!/bin/sh\n", 0600), -EACCES);
	check_int(end.status, 126);
	check_has(err.text, "chmod +x");
	check_int(run_file("#!/no/such/interpreter\n", 0700), -ENOENT);
	check_has(err.text, "interpreter");
	/* Text without #! is run by sh, execvp(3). */
	check_int(run_file("exit 7\n", 0700), 0);
	check_int(end.status, 7);
}

static void closing_while_it_waits_leaves_no_child(void)
{
	struct tally_launch *launch = start("true", NULL, NULL);

	require(launch != NULL);
	pid_t pid = tally_launch_pid(launch);
	tally_launch_close(launch);
	check(!have_children());
	check_int(kill(pid, 0), -1);
}

static void closing_while_it_runs_lets_it_run(void)
{
	struct tally_launch *launch = start("sleep", "60", NULL);

	require(launch != NULL);
	pid_t pid = tally_launch_pid(launch);
	check_int(tally_launch_go(launch, &err), 0);
	tally_launch_close(launch);
	check_int(kill(pid, SIGKILL), 0);
	check_int(waitpid(pid, NULL, 0), pid);
}

static void it_dies_with_a_caller_that_dies(void)
{
	int ends[2];
	char byte;

	require(pipe(ends) == 0);
	/* The middle process starts a command and is killed; who waits holds `ends[1]` open. */
	pid_t middle = fork();
	if (middle == 0) {
		struct tally_launch *launch = start("true", NULL, NULL);
		dprintf(ends[1], "%d\n", launch ? tally_launch_pid(launch) : -1);
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	check_int(waitpid(middle, NULL, 0), middle);
	while (read(ends[0], &byte, 1) > 0)
		;
	/* End-of-file: nobody holds the pipe any more. Without it the test would time out. */
	check(true);
	close(ends[0]);
}

static void waiting_times_out(void)
{
	struct tally_launch *launch = start("sleep", "60", NULL);

	require(launch != NULL);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_wait(launch, 0, &end, &err), 0);
	check_int(tally_launch_wait(launch, 10, &end, &err), 0);
	check_int(tally_launch_kill(launch, SIGKILL), 0);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check_int(end.signal, SIGKILL);
	check_int(end.status, 128 + SIGKILL);
	/* Once ended it stays ended. */
	end = (struct tally_exit){ 0 };
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check_int(end.signal, SIGKILL);
	tally_launch_close(launch);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	alarms += sig == SIGALRM;
}

static void a_signal_interrupts_waiting(void)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, old;
	struct tally_launch *launch = start("sleep", "60", NULL);

	require(launch != NULL);
	sigaction(SIGALRM, &act, &old);
	check_int(tally_launch_go(launch, &err), 0);
	alarm(1);
	check_int(tally_launch_wait(launch, -1, &end, &err), -EINTR);
	check_int(alarms, 1);
	sigaction(SIGALRM, &old, NULL);
	tally_launch_kill(launch, SIGKILL);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	tally_launch_close(launch);
}

static void the_pidfd_tells_the_end(void)
{
	struct tally_launch *launch = start("true", NULL, NULL);

	require(launch != NULL);
	struct pollfd fd = { .fd = tally_launch_fd(launch), .events = POLLIN };
	if (fd.fd >= 0) {
		check(fcntl(fd.fd, F_GETFD) & FD_CLOEXEC);
		check_int(poll(&fd, 1, 0), 0);
	}
	check_int(tally_launch_go(launch, &err), 0);
	if (fd.fd >= 0)
		check_int(poll(&fd, 1, 10000), 1);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	tally_launch_close(launch);
	if (fd.fd < 0)
		tap_skip("this kernel has no pidfd_open");
}

static void the_child_has_default_handlers_and_our_mask(void)
{
	struct sigaction act = { .sa_handler = on_alarm }, old;
	sigset_t mask, before;

	/* A handler becomes the default, an ignored signal stays ignored. */
	sigaction(SIGALRM, &act, &old);
	signal(SIGUSR2, SIG_IGN);
	check_int(shell("kill -ALRM $$"), 128 + SIGALRM);
	check_int(shell("kill -USR2 $$; exit 3"), 3);
	sigaction(SIGALRM, &old, NULL);
	signal(SIGUSR2, SIG_DFL);
	/* SIGUSR1 is bit 9 of /proc/PID/status' SigBlk, in hex. */
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mask, &before);
	check_int(shell("exec grep -q 'SigBlk:.*0000000000000200' /proc/self/status"), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	check_int(shell("exec grep -q 'SigBlk:.*0000000000000000' /proc/self/status"), 0);
}

static void the_child_sees_no_descriptor_of_ours(void)
{
	char script[96];
	int kept = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);
		kept += flags >= 0 && !(flags & FD_CLOEXEC);
	}
	/* One more is what ls reads the folder with. */
	snprintf(script, sizeof(script), "test $(ls /proc/self/fd | wc -l) -eq %d", kept + 1);
	check_int(shell(script), 0);
}

static void being_killed_while_it_waits_is_seen(void)
{
	struct tally_launch *launch = start("true", NULL, NULL);

	require(launch != NULL);
	check_int(tally_launch_kill(launch, SIGKILL), 0);
	/* Until it is dead; then its end of the pipe is closed and writing must not kill us. */
	siginfo_t info;
	check_int(waitid(P_PID, (id_t)tally_launch_pid(launch), &info, WEXITED | WNOWAIT), 0);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	check_int(end.signal, SIGKILL);
	tally_launch_close(launch);
}

static uint64_t micros(struct timeval after, struct timeval before)
{
	return (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + after.tv_usec -
			  before.tv_usec);
}

/* With SIGCHLD ignored the kernel reaps children itself: the end is seen, the status is lost. */
static void reaped_by_somebody_else_is_echild(void)
{
	struct sigaction before, ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGCHLD, &ignore, &before);
	struct tally_launch *launch = start("true", NULL, NULL);
	if (check(launch != NULL)) {
		check_int(tally_launch_go(launch, &err), 0);
		check_int(tally_launch_wait(launch, -1, &end, &err), -ECHILD);
		check_has(err.text, "SIGCHLD");
		check_int(tally_launch_wait(launch, 0, &end, &err), -ECHILD);
		check_int(tally_launch_kill(launch, SIGKILL), -ESRCH);
		tally_launch_close(launch);
	}
	sigaction(SIGCHLD, &before, NULL);
}

static void times_and_memory_are_those_of_the_command(void)
{
	struct rusage before, after;

	/* The kernel adds the times of each child that is reaped to these. */
	getrusage(RUSAGE_CHILDREN, &before);
	check_int(shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), 0);
	getrusage(RUSAGE_CHILDREN, &after);
	/* It sums nanoseconds, and cuts both figures to microseconds. */
	check(micros(after.ru_utime, before.ru_utime) - end.user_ns / 1000 <= 1);
	check(micros(after.ru_stime, before.ru_stime) - end.sys_ns / 1000 <= 1);
	check(end.user_ns + end.sys_ns > 0);
	check(end.wall_ns > 0);
	check(end.max_rss_bytes > 65536);
	check(end.max_rss_bytes <= (uint64_t)after.ru_maxrss * 1024);
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void without_descriptors_nothing_starts_and_nothing_leaks(void)
{
	struct rlimit limit, low;
	char *argv[] = { strdup("true"), NULL };
	int before = open_descriptors(), failed = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	for (low = limit, low.rlim_cur = 0; low.rlim_cur < 64; low.rlim_cur++) {
		struct tally_launch *launch = NULL;
		setrlimit(RLIMIT_NOFILE, &low);
		int r = tally_launch_start(&launch, argv, &err);
		setrlimit(RLIMIT_NOFILE, &limit);
		if (r == 0) {
			tally_launch_close(launch);
			break;
		}
		failed++;
		check_int(r, -EMFILE);
		check_int(err.cause, TALLY_CAUSE_FD_LIMIT);
		check(launch == NULL);
	}
	/* Once for no pipe at all, once for half of them. */
	check(failed >= 2);
	check(low.rlim_cur < 64);
	check_int(open_descriptors(), before);
	check(!have_children());
	free(argv[0]);
}

static void misuse_is_einval(void)
{
	struct tally_launch *launch = NULL;
	char *none[] = { NULL };

	check_int(tally_launch_start(&launch, none, &err), -EINVAL);
	check(launch == NULL);
	launch = start("true", NULL, NULL);
	require(launch != NULL);
	check_int(tally_launch_wait(launch, -1, &end, &err), -EINVAL);
	check_int(tally_launch_go(launch, &err), 0);
	check_int(tally_launch_go(launch, &err), -EINVAL);
	check_int(tally_launch_wait(launch, -1, &end, &err), 1);
	tally_launch_close(launch);
	tally_launch_close(NULL);
}

int main(void)
{
	tap_run(a_status_is_passed_on);
	tap_run(a_signal_is_128_and_its_number);
	tap_run(nothing_runs_before_go);
	tap_run(a_missing_command_is_enoent);
	tap_run(what_path_does_not_have_is_enoent);
	tap_run(a_folder_is_eacces);
	tap_run(a_file_without_x_and_one_without_interpreter_are_told_apart);
	tap_run(closing_while_it_waits_leaves_no_child);
	tap_run(closing_while_it_runs_lets_it_run);
	tap_run(it_dies_with_a_caller_that_dies);
	tap_run(waiting_times_out);
	tap_run(a_signal_interrupts_waiting);
	tap_run(the_pidfd_tells_the_end);
	tap_run(the_child_has_default_handlers_and_our_mask);
	tap_run(the_child_sees_no_descriptor_of_ours);
	tap_run(being_killed_while_it_waits_is_seen);
	tap_run(reaped_by_somebody_else_is_echild);
	tap_run(times_and_memory_are_those_of_the_command);
	tap_run(without_descriptors_nothing_starts_and_nothing_leaks);
	tap_run(misuse_is_einval);
	return tap_end();
}
