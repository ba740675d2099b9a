/* SPDX-License-Identifier: MIT */
/* The program `churn` (programs/churn.c), started and spoken to by live tests. */
#ifndef TESTS_CHURNING_H
#define TESTS_CHURNING_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

struct churn {
	pid_t pid;
	int to, from;
};

static inline bool churn_start(struct churn *c, const char *threads, const char *what)
{
	const char *program = getenv("CHURN");
	int down[2], up[2];

	if (!program || pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		return false;
	c->pid = fork();
	if (c->pid == 0) {
		dup2(down[0], 0);
		dup2(up[1], 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, threads, what, NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	c->to = down[1];
	c->from = up[0];
	return c->pid > 0;
}

/* What it has triggered in all; it triggers no more until churn_go(). */
static inline uint64_t churn_pause(struct churn *c)
{
	uint64_t total = UINT64_MAX;

	check_int(write(c->to, "p", 1), 1);
	check_int(read(c->from, &total, sizeof(total)), sizeof(total));
	return total;
}

static inline void churn_go(struct churn *c)
{
	char byte;

	check_int(write(c->to, "g", 1), 1);
	check_int(read(c->from, &byte, 1), 1);
}

static inline void churn_end(struct churn *c)
{
	int status = -1;

	close(c->to);
	check_int(waitpid(c->pid, &status, 0), c->pid);
	check_int(status, 0);
	close(c->from);
}

/* Lets it trigger that often more at least. */
static inline uint64_t churn_some(struct churn *c, uint64_t before, uint64_t more)
{
	uint64_t now = before;

	while (now < before + more) {
		churn_go(c);
		usleep(2000);
		now = churn_pause(c);
	}
	return now;
}

#endif
