/* SPDX-License-Identifier: MIT */
/*
 * refuse ERRNO COMMAND [ARG...]: runs a command to which a seccomp filter answers ERRNO (EPERM,
 * EACCES, ENOSYS) when it calls perf_event_open(2), as the profiles of containers do. All other calls
 * are let through.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned code;
} answers[] = { { "EPERM", EPERM }, { "EACCES", EACCES }, { "ENOSYS", ENOSYS } };

static unsigned answer(const char *name)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (!strcmp(answers[i].name, name))
			return answers[i].code;
	return 0;
}

/* One architecture is enough: the command is built as this program is. */
static int filter(unsigned code)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (code & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = { .len = sizeof(steps) / sizeof(*steps), .filter = steps };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

int main(int argc, char **argv)
{
	unsigned code = argc > 2 ? answer(argv[1]) : 0;

	if (!code) {
		fprintf(stderr, "Usage: refuse EPERM|EACCES|ENOSYS COMMAND [ARG...]\n");
		return 2;
	}
	if (filter(code) < 0) {
		perror("refuse: cannot install a filter");
		return 125;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
