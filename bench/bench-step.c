/* SPDX-License-Identifier: MIT */
/*
 * Steps, beside a bare loop of PTRACE_SINGLESTEP and waitpid(2) that looks at nothing: the first
 * instructions of the same program, tracer and program on one CPU, by turns. A step of ours looks at
 * what was executed and counts it. Also with a timer that asks for each step.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tally/tally.h>

#define STEPS  2000
#define ROUNDS 41
#define TARGET 0.9

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double bare(char *const argv[])
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
		die("waitpid");
	double start = now_us();
	for (int i = 0; i < STEPS; i++)
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0 ||
		    waitpid(child, &status, 0) < 0)
			die("step");
	double spent = now_us() - start;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return spent / STEPS;
}

static struct tally_tracee *launch(char *const argv[])
{
	struct tally_tracee *tracee;
	struct tally_error err;

	if (tally_tracee_launch(&tracee, argv, TALLY_OPTS(tracee, .flags = TALLY_TRACEE_NO_RANDOM),
				&err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	return tracee;
}

static double stepped(char *const argv[])
{
	struct tally_tracee *tracee = launch(argv);
	struct tally_stop stop;
	double start = now_us();

	for (int i = 0; i < STEPS; i++)
		if (tally_tracee_resume(tracee, TALLY_RESUME_STEP, 0) < 0 ||
		    tally_tracee_wait(tracee, -1, &stop) < 0)
			die("step");
	double spent = now_us() - start;
	tally_tracee_free(tracee);
	return spent / STEPS;
}

/* A timer that leads as far by the step clock. */
static double timed(char *const argv[])
{
	struct tally_timer_request request = { .size = sizeof(request),
					       .kind = TALLY_TIMER_EXACTLY,
					       .ticks = STEPS };
	struct tally_tracee *tracee = launch(argv);
	struct tally_timer_action action;
	struct tally_clock *clock;
	struct tally_timer *timer = NULL;
	struct tally_stop stop;

	if (tally_clock_open_step(&clock, tracee, TALLY_TICKS_INSTRUCTIONS, NULL) < 0 ||
	    tally_timer_new(&timer, clock, NULL, NULL) < 0 ||
	    tally_timer_request(timer, &request, NULL) < 0)
		die("timer");
	double start = now_us();
	while (tally_timer_next(timer, &action) == 0 && action.what == TALLY_TIMER_STEP)
		if (tally_tracee_resume(tracee, TALLY_RESUME_STEP, 0) < 0 ||
		    tally_tracee_wait(tracee, -1, &stop) < 0 ||
		    tally_timer_stopped(timer, &stop, NULL) < 0)
			die("step");
	double spent = now_us() - start;
	tally_timer_free(timer);
	tally_clock_free(clock);
	tally_tracee_free(tracee);
	return spent / STEPS;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(const double *values)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(*sorted), ascending);
	return sorted[ROUNDS / 2];
}

/* Each round by itself, since other work on the machine comes and goes. */
static int report(const char *what, const double *ours, const double *theirs)
{
	double rates[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		rates[i] = theirs[i] / ours[i];
	double rate = median(rates);
	printf("%s: %.1f us, bare loop %.1f us: %.3f of its rate, target %.2f%s\n", what,
	       median(ours), median(theirs), rate, TARGET, rate >= TARGET ? "" : "  MISSED");
	return rate >= TARGET;
}

int main(void)
{
	char program[] = "/bin/true";
	char *const argv[] = { program, NULL };
	double peers[ROUNDS], steps[ROUNDS], timers[ROUNDS];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < ROUNDS; i++) {
		peers[i] = bare(argv);
		steps[i] = stepped(argv);
		timers[i] = timed(argv);
	}
	int good = report("a step", steps, peers);
	good &= report("a step for a timer", timers, peers);
	return !good;
}
