/* SPDX-License-Identifier: MIT */
/*
 * The first program of a guest of the lab. It mounts what a system has, lets everybody measure, runs
 * the programs in /lab/tests one after the other, in the order of their names, and powers off. What
 * they print is the guest's console; around it stand
 *
 *	# lab: begin NAME
 *	# lab: end NAME exited STATUS	(or: killed SIGNAL)
 *	# lab: done
 *
 * without the last of which the run did not come to its end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/lab/tests"

static const struct {
	const char *type, *at;
} mounts[] = {
	{ "proc", "/proc" },
	{ "sysfs", "/sys" },
	{ "devtmpfs", "/dev" },
	{ "devpts", "/dev/pts" },
	{ "tmpfs", "/dev/shm" },
	{ "tracefs", "/sys/kernel/tracing" },
	{ "debugfs", "/sys/kernel/debug" },
	{ "cgroup2", "/sys/fs/cgroup" },
};

/* A machine for measuring, as its service manager sets it up. What a kernel lacks is not written. */
static const struct {
	const char *file, *value;
} settings[] = {
	{ "/proc/sys/kernel/perf_event_paranoid", "-1" },
	{ "/proc/sys/kernel/kptr_restrict", "0" },
	/* The emulated CPU is slow: the time that interrupts take must not lower the rate. */
	{ "/proc/sys/kernel/perf_cpu_time_max_percent", "0" },
	/* arm64 reads counters in user space when it is asked to; x86 does so by itself. */
	{ "/proc/sys/kernel/perf_user_access", "1" },
	/* Groups below the root have controllers, that of perf too, from the first one handed down. */
	{ "/sys/fs/cgroup/cgroup.subtree_control", "+pids" },
};

static void set_up(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].at, 0755);
		mount(mounts[i].type, mounts[i].at, mounts[i].type, 0, NULL);
	}
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		int fd = open(settings[i].file, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (write(fd, settings[i].value, strlen(settings[i].value)) < 0)
			printf("# lab: %s: %s\n", settings[i].file, strerror(errno));
		close(fd);
	}
	/* No mount: the programs may stand below it, as where they were built. */
	mkdir("/tmp", 01777);
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/tmp", 1);
}

/* Input from nowhere, output to the console. */
static void connect_to_console(void)
{
	int null = open("/dev/null", O_RDWR), console = open("/dev/console", O_RDWR);

	if (null >= 0)
		dup2(null, 0);
	if (console >= 0) {
		dup2(console, 1);
		dup2(console, 2);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Runs a program in a session of its own, and ends what it leaves behind. */
static int status_of(char *const argv[])
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		if (chdir("/tmp") == 0)
			execv(argv[0], argv);
		printf("# lab: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) != pid)
		;
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return status;
}

static void run_test(const char *name)
{
	char path[sizeof(FOLDER) + 256];

	snprintf(path, sizeof(path), FOLDER "/%s", name);
	printf("# lab: begin %s\n", name);
	int status = status_of((char *[]){ path, NULL });
	if (WIFEXITED(status))
		printf("# lab: end %s exited %d\n", name, WEXITSTATUS(status));
	else
		printf("# lab: end %s killed %d\n", name, WTERMSIG(status));
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(void)
{
	struct dirent **names = NULL;

	mkdir("/dev", 0755);
	set_up();
	connect_to_console();
	/* The links by which a shell and its tools have names. */
	status_of((char *[]){ (char[]){ "/bin/busybox" }, (char[]){ "--install" }, (char[]){ "-s" },
			      (char[]){ "/bin" }, NULL });
	int count = scandir(FOLDER, &names, is_visible, alphasort);
	for (int i = 0; i < count; i++)
		run_test(names[i]->d_name);
	printf("# lab: done\n");
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
