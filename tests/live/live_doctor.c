/* SPDX-License-Identifier: MIT */
/*
 * The doctor against this machine: what it says of settings is compared with the files, what it
 * says works or does not is tried again here, with the kernel's own interface.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/profiling.h>

#include "tap.h"

#define NOBODY 65534

struct found {
	const char *name;
	uint32_t state;
	char value[256];
};

static int take(const struct tally_finding *finding, void *arg)
{
	struct found *found = arg;

	if (!strcmp(finding->name, found->name)) {
		found->state = finding->state;
		snprintf(found->value, sizeof(found->value), "%s", finding->value);
	}
	return 0;
}

static struct found look(const char *name)
{
	struct found found = { .name = name, .state = UINT32_MAX };
	struct tally_error err = { 0 };

	check_int(tally_doctor_run(NULL, take, &found, &err), 0);
	return found;
}

static int raw_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool works(uint32_t state)
{
	return state == TALLY_FINDING_OK;
}

static void paranoid_is_what_the_file_says(void)
{
	char line[32] = "";
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");

	if (!f)
		tap_skip("this kernel has no performance events");
	check(fgets(line, sizeof(line), f) != NULL);
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	check_str(look("paranoid").value, line);
}

static void counting_works_where_the_kernel_opens_a_software_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = raw_open(&attr, 0, -1);

	check_int(works(look("count").state), fd >= 0);
	if (fd >= 0)
		close(fd);
}

static void the_pmu_works_where_cycles_move(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	uint64_t value = 0;
	int fd = raw_open(&attr, 0, -1);

	for (volatile int i = 0; i < 1000000; i++)
		;
	if (fd >= 0) {
		check_int(read(fd, &value, sizeof(value)), sizeof(value));
		close(fd);
	}
	check_int(works(look("pmu").state), value > 0);
}

static void breakpoints_work_where_a_write_is_counted(void)
{
	volatile int variable = 0;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)&variable,
		.bp_len = HW_BREAKPOINT_LEN_4,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	uint64_t value = 0;
	int fd = raw_open(&attr, 0, -1);

	for (int i = 0; i < 3; i++)
		variable = i;
	if (fd >= 0) {
		check_int(read(fd, &value, sizeof(value)), sizeof(value));
		close(fd);
	}
	check_int(works(look("breakpoints").state), value == 3);
}

/* What a user without capabilities is told, at the level that this machine has. */
static int plain_user(void)
{
	struct tally_system system;
	struct found found = { .name = "count-kernel" };

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return 77;
	tally_system_read(&system, sizeof(system), NULL, NULL);
	if (tally_doctor_run(NULL, take, &found, NULL) != 0)
		return 1;
	/* Kernel mode is open to all up to level 1. */
	if ((found.state == TALLY_FINDING_OK) != (system.paranoid <= 1))
		return 2;
	found.name = "capabilities";
	tally_doctor_run(NULL, take, &found, NULL);
	return found.state == TALLY_FINDING_LIMITED || system.paranoid < 0 ? 0 : 3;
}

/* Runs `fn` in a child, which answers 0, or 77 when this cannot be tried here. */
static int in_child(int (*fn)(void))
{
	int status = 0;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(fn());
	check_int(waitpid(child, &status, 0), child);
	check(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_plain_user_is_told_what_the_level_leaves(void)
{
	if (geteuid() != 0)
		tap_skip("only root can become another user");
	int status = in_child(plain_user);
	if (status == 77)
		tap_skip("this sandbox does not let root become another user");
	check_int(status, 0);
}

/* seccomp(2), as containers do: this system call ends in `action`. */
static bool filter_perf_events(uint32_t action)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(lines) / sizeof(*lines), lines };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int filtered(uint32_t action)
{
	struct found events = { .name = "perf-events" }, filter = { .name = "seccomp" };

	if (!filter_perf_events(action))
		return 77;
	if (tally_doctor_run(NULL, take, &events, NULL) != 0 ||
	    tally_doctor_run(NULL, take, &filter, NULL) != 0)
		return 1;
	return events.state == TALLY_FINDING_FAILS && filter.state == TALLY_FINDING_FAILS ? 0 : 2;
}

static int refused(void)
{
	return filtered(SECCOMP_RET_ERRNO | EPERM);
}

static int killed(void)
{
	return filtered(SECCOMP_RET_KILL_PROCESS);
}

static void a_filter_that_refuses_is_seen(void)
{
	int status = in_child(refused);
	if (status == 77)
		tap_skip("no seccomp filter can be set here");
	check_int(status, 0);
}

static void a_filter_that_kills_is_survived(void)
{
	int status = in_child(killed);
	if (status == 77)
		tap_skip("no seccomp filter can be set here");
	check_int(status, 0);
}

/* ptrace(2) by hand: whether a child can be seized. */
static void attaching_works_where_a_child_can_be_seized(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	bool seized = ptrace(PTRACE_SEIZE, child, 0, 0) == 0;
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	check_int(works(look("attach").state), seized);
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void nothing_is_left_behind(void)
{
	int before = open_descriptors();

	look("single-block");
	look("attach");
	check_int(open_descriptors(), before);
	check_int(waitpid(-1, NULL, WNOHANG), -1);
	check_int(errno, ECHILD);
}

/* A parent that ignores SIGCHLD cannot wait for exits; the answers must be the same. */
static void ignored_children_change_no_answer(void)
{
	static const char *const names[] = { "perf-events", "single-step", "single-block" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct found usual = look(names[i]);
		signal(SIGCHLD, SIG_IGN);
		struct found ignoring = look(names[i]);
		signal(SIGCHLD, SIG_DFL);
		check_int(ignoring.state, usual.state);
		check_str(ignoring.value, usual.value);
	}
}

int main(void)
{
	tap_run(paranoid_is_what_the_file_says);
	tap_run(counting_works_where_the_kernel_opens_a_software_event);
	tap_run(the_pmu_works_where_cycles_move);
	tap_run(breakpoints_work_where_a_write_is_counted);
	tap_run(a_plain_user_is_told_what_the_level_leaves);
	tap_run(a_filter_that_refuses_is_seen);
	tap_run(a_filter_that_kills_is_survived);
	tap_run(attaching_works_where_a_child_can_be_seized);
	tap_run(nothing_is_left_behind);
	tap_run(ignored_children_change_no_answer);
	return tap_end();
}
