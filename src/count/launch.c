/* SPDX-License-Identifier: MIT */
/*
 * A command that waits between fork and exec. Two pipes: `go` lets it continue, and `status`
 * carries the errno of an exec that failed; both close by themselves at an exec that succeeds.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tally/launch.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "count/launch.h"
#include "event/explain.h"

/* Since Linux 5.3; older headers lack it. The number is the same on all architectures. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
/* Since Linux 5.1. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* How often a child is looked at where there is no pidfd to wait for. */
#define LOOK_NS 2000000

/* What a shell answers for a command that it cannot run, POSIX "Exit Status for Commands". */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND  127

/* Two pipes, and the pidfd. */
#define LAUNCH_FDS 5

enum stage {
	STAGE_NEW,
	STAGE_WAITING,
	STAGE_RUNNING,
	STAGE_ENDED,
	STAGE_LOST, /* gone, reaped by somebody else */
};

struct tally_launch {
	enum stage stage;
	pid_t pid;
	int pidfd;      /* -1: none */
	int go, status; /* our ends of the pipes, -1 when closed */
	int go_read;    /* the child's end of `go`, kept so that writing is never SIGPIPE */
	char *name;     /* argv[0], for messages */
	uint64_t started_ns;
	struct tally_exit end;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		sys()->close(*fd);
	*fd = -1;
}

static void close_pipes(struct tally_launch *launch)
{
	close_fd(&launch->go);
	close_fd(&launch->go_read);
	close_fd(&launch->status);
}

/* Signals that the caller handles go back to their default; ignored ones stay so, as nohup needs. */
static void reset_handlers(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction old;
		if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_DFL &&
		    old.sa_handler != SIG_IGN)
			signal(sig, SIG_DFL);
	}
}

/* Whether a folder, whose path has `len` bytes, has such a file, and it can be seen. */
static bool has_file(const char *folder, size_t len, const char *name)
{
	char path[PATH_MAX];
	size_t rest = strlen(name) + 1;
	struct stat st;

	if (len + 1 + rest > sizeof(path))
		return false;
	memcpy(path, folder, len);
	path[len] = '/';
	memcpy(path + len + 1, name, rest);
	return stat(len ? path : name, &st) == 0 && !S_ISDIR(st.st_mode);
}

/*
 * The C library says EACCES as well when it may not search a folder of PATH, where nobody can tell
 * what is in it; to a shell the command is then not found. Async-signal-safe.
 */
static bool path_has(const char *name)
{
	const char *path = getenv("PATH");

	for (path = path ? path : "/bin:/usr/bin";;) {
		size_t len = strcspn(path, ":");
		if (has_file(path, len, name))
			return true;
		if (!path[len])
			return false;
		path += len + 1;
	}
}

/*
 * The child between fork and exec: async-signal-safe calls only, since the caller may have threads.
 * The death signal covers a caller that ends while other processes hold its end of the pipe; it
 * would outlive the exec, hence the second prctl.
 */
_Noreturn static void run_child(const struct launch_command *command, int go, int status,
				pid_t parent, const sigset_t *mask)
{
	char *const *argv = command->argv;
	char byte;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Its number here; 0: it is in another pid namespace, where it has none. */
	pid_t now = getppid();
	if (now != parent && now != 0)
		_exit(STATUS_NOT_FOUND);
	reset_handlers();
	sigprocmask(SIG_SETMASK, mask, NULL);
	do {
		n = read(go, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(STATUS_NOT_FOUND);
	prctl(PR_SET_PDEATHSIG, 0);
	if (command->fixed_addresses)
		personality(PER_LINUX | ADDR_NO_RANDOMIZE);
	if (command->envp)
		execvpe(argv[0], argv, command->envp);
	else
		execvp(argv[0], argv);
	int code = errno;
	if (code == EACCES && !strchr(argv[0], '/') && !path_has(argv[0]))
		code = ENOENT;
	do {
		n = write(status, &code, sizeof(code));
	} while (n < 0 && errno == EINTR);
	_exit(code == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

static int open_pipe(int *ours, int *childs, bool we_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*ours = ends[we_write];
	*childs = ends[!we_write];
	return 0;
}

/* Forks with all signals blocked, so that no handler of the caller runs in the child. */
static int fork_child(struct tally_launch *launch, const struct launch_command *command, int status)
{
	pid_t parent = getpid();
	sigset_t all, mask;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid_t pid = fork();
	if (pid == 0) {
		/* Ours are the parent's: a copy of `go` here would keep the pipe open for ever. */
		close(launch->go);
		close(launch->status);
		run_child(command, launch->go_read, status, parent, &mask);
	}
	int r = pid < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	launch->pid = pid;
	return r;
}

static int start_error(int code, const char *name, struct tally_error *err)
{
	char what[160];

	snprintf(what, sizeof(what), "cannot start '%.120s'", name);
	if (code == -EMFILE || code == -ENFILE)
		return explain_fds(err, code, what, LAUNCH_FDS, false, NULL);
	if (code == -ENOMEM)
		return error_nomem(err, "a command to be started");
	return error_set(err, code, code == -EAGAIN ? TALLY_CAUSE_LIMIT : TALLY_CAUSE_IO,
			 "%s: %s%s", what, strerror(-code),
			 code == -EAGAIN ? "; the limit of processes is reached (ulimit -u)" : "");
}

int launch_start(struct tally_launch **out, const struct launch_command *command,
		 struct tally_error *err)
{
	char *const *argv = command->argv;
	int status = -1, r;

	if (!argv || !argv[0] || !*argv[0])
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "there is no command to run");
	struct tally_launch *launch = calloc(1, sizeof(*launch));
	if (!launch)
		return error_nomem(err, "a command to be started");
	launch->pidfd = launch->go = launch->go_read = launch->status = -1;
	launch->name = strdup(argv[0]);
	r = launch->name ? 0 : -ENOMEM;
	if (r == 0)
		r = open_pipe(&launch->go, &launch->go_read, true);
	if (r == 0)
		r = open_pipe(&launch->status, &status, false);
	if (r == 0)
		r = fork_child(launch, command, status);
	close_fd(&status);
	if (r < 0)
		goto fail;
	launch->stage = STAGE_WAITING;
	launch->pidfd = (int)syscall(SYS_pidfd_open, launch->pid, 0);
	*out = launch;
	return 0;
fail:
	tally_launch_close(launch);
	return start_error(r, argv[0], err);
}

int tally_launch_start(struct tally_launch **out, char *const argv[], struct tally_error *err)
{
	const struct launch_command command = { .argv = argv };

	return launch_start(out, &command, err);
}

int32_t tally_launch_pid(const struct tally_launch *launch)
{
	return launch->pid;
}

int tally_launch_fd(const struct tally_launch *launch)
{
	return launch->pidfd;
}

static void take_end(struct tally_launch *launch, int status, const struct rusage *usage)
{
	struct tally_exit *end = &launch->end;

	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	end->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	end->wall_ns = launch->started_ns ? clock_ns(CLOCK_MONOTONIC) - launch->started_ns : 0;
	end->user_ns = (uint64_t)usage->ru_utime.tv_sec * 1000000000u +
		       (uint64_t)usage->ru_utime.tv_usec * 1000u;
	end->sys_ns = (uint64_t)usage->ru_stime.tv_sec * 1000000000u +
		      (uint64_t)usage->ru_stime.tv_usec * 1000u;
	end->max_rss_bytes = (uint64_t)usage->ru_maxrss * 1024u;
	launch->stage = STAGE_ENDED;
}

/*
 * 1 when it has ended, 0 when it runs (WNOHANG). ECHILD: somebody else has reaped it, or SIGCHLD is
 * ignored; then how it ended is not to be known, and its pid may be another's by now.
 */
static int reap(struct tally_launch *launch, int flags)
{
	struct rusage usage;
	int status;
	pid_t pid = wait4(launch->pid, &status, flags, &usage);

	if (pid < 0 && errno == ECHILD) {
		launch->stage = STAGE_LOST;
		return -ECHILD;
	}
	if (pid < 0)
		return -errno;
	if (pid == 0)
		return 0;
	take_end(launch, status, &usage);
	return 1;
}

/* Reaps a child that is ending by itself, whatever signals come. */
static void reap_surely(struct tally_launch *launch)
{
	while (reap(launch, 0) == -EINTR)
		;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *exec_advice(int code, const char *name)
{
	bool path = strchr(name, '/') != NULL;

	switch (code) {
	case ENOENT:
		if (!path)
			return "no folder of PATH that this user may search has such a program";
		return access(name, F_OK) == 0
			       ? "the file exists, but its interpreter (#! line or ELF loader) does not"
			       : "there is no such file";
	case EACCES:
		if (path && is_directory(name))
			return "it is a folder";
		return path ? "it is not executable for this user (chmod +x makes it so), "
			      "or its file system is mounted noexec"
			    : "the file that PATH leads to is not executable for this user";
	case ENOEXEC:
		return "it is no program for this machine, or an empty or damaged one";
	case E2BIG:
		return "its arguments and environment are too long";
	case ETXTBSY:
		return "somebody is writing to it";
	default:
		return strerror(code);
	}
}

int launch_release(struct tally_launch *launch)
{
	launch->started_ns = clock_ns(CLOCK_MONOTONIC);
	launch->stage = STAGE_RUNNING;
	ssize_t n = sys()->write(launch->go, "", 1);
	return n < 0 ? (int)n : 0;
}

int launch_result(struct tally_launch *launch, int released, struct tally_error *err)
{
	int code = 0;
	/* A child that was killed while it waited reads as an exec that succeeded; wait tells. */
	ssize_t n = released < 0 ? released : sys()->read(launch->status, &code, sizeof(code));

	close_pipes(launch);
	if (n != sizeof(code))
		return n < 0 ? error_set(err, (int)n, TALLY_CAUSE_IO,
					 "cannot learn whether '%s' could be run: %s", launch->name,
					 strerror((int)-n))
			     : 0;
	reap_surely(launch);
	return error_set(err, -code, TALLY_CAUSE_EXEC, "cannot run '%s': %s", launch->name,
			 exec_advice(code, launch->name));
}

int tally_launch_go(struct tally_launch *launch, struct tally_error *err)
{
	if (launch->stage != STAGE_WAITING)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "'%s' has been let go before",
				 launch->name);
	return launch_result(launch, launch_release(launch), err);
}

void launch_reaped(struct tally_launch *launch)
{
	launch->stage = STAGE_LOST;
}

/* Waits for the end without reaping: 1, 0 on time-out, -EINTR. */
static int wait_pidfd(const struct tally_launch *launch, int timeout_ms)
{
	struct pollfd fd = { .fd = launch->pidfd, .events = POLLIN };
	int r = sys()->poll(&fd, 1, timeout_ms);

	return r > 0 ? 1 : r;
}

/* The same before pidfds (Linux 5.3): looks every few milliseconds. */
static int wait_looking(struct tally_launch *launch, int timeout_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) +
		       (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000u;
	struct timespec pause = { 0, LOOK_NS };
	int r;

	while ((r = reap(launch, WNOHANG)) == 0) {
		if (timeout_ms >= 0 && clock_ns(CLOCK_MONOTONIC) >= end)
			return 0;
		if (nanosleep(&pause, NULL) < 0)
			return -errno;
	}
	return r;
}

int tally_launch_wait(struct tally_launch *launch, int timeout_ms, struct tally_exit *end,
		      struct tally_error *err)
{
	int r = 1;

	if (launch->stage == STAGE_WAITING)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "'%s' has not been let go, so it would be waited for in vain",
				 launch->name);
	if (launch->stage == STAGE_LOST) {
		r = -ECHILD;
	} else if (launch->stage != STAGE_ENDED && launch->pidfd >= 0) {
		r = wait_pidfd(launch, timeout_ms);
		if (r > 0)
			r = reap(launch, 0);
	} else if (launch->stage != STAGE_ENDED) {
		r = wait_looking(launch, timeout_ms);
	}
	if (r > 0 && end)
		*end = launch->end;
	if (r == -EINTR)
		return error_set(err, r, TALLY_CAUSE_NONE,
				 "a signal came while '%s' was being waited for", launch->name);
	if (r == -ECHILD)
		return error_set(
			err, r, TALLY_CAUSE_NO_PROCESS,
			"'%s' has ended, but somebody else took its exit status: SIGCHLD is "
			"ignored, or another wait got it",
			launch->name);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_NO_PROCESS, "cannot wait for '%s': %s",
				 launch->name, strerror(-r))
		     : r;
}

int tally_launch_kill(struct tally_launch *launch, int sig)
{
	if (launch->stage == STAGE_ENDED || launch->stage == STAGE_LOST)
		return -ESRCH;
	/* By pidfd it cannot be another process, even where somebody else has reaped it. */
	if (launch->pidfd >= 0)
		return syscall(SYS_pidfd_send_signal, launch->pidfd, sig, NULL, 0) < 0 ? -errno : 0;
	return kill(launch->pid, sig) < 0 ? -errno : 0;
}

void tally_launch_close(struct tally_launch *launch)
{
	if (!launch)
		return;
	close_pipes(launch);
	if (launch->stage == STAGE_WAITING) {
		kill(launch->pid, SIGKILL);
		reap_surely(launch);
	} else if (launch->stage == STAGE_RUNNING) {
		reap(launch, WNOHANG);
	}
	close_fd(&launch->pidfd);
	free(launch->name);
	free(launch);
}
