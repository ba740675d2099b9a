/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a command, for processes, for a time, or for the user to stop it, without a race
 * between looking and sleeping. The signals that stop are SIGINT, SIGTERM and SIGHUP.
 */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <tally/tally.h>

#include "targets.h"

/* What a tick answers to end the waiting. */
#define TICK_STOP (-1.0)

struct watch {
	int signals;     /* a signalfd */
	sigset_t before; /* the mask before watch_start */
	bool stopped;    /* a signal came */
	int signal;      /* which one */
	/*
	 * Called while it is waited, when CLOCK_MONOTONIC shows tick_at (seconds; 0: never). It
	 * answers when it is next to be called: a time, 0 or TICK_STOP. A command that runs is waited
	 * for none the less.
	 */
	double tick_at;
	double (*tick)(void *arg, double now);
	void *tick_arg;
};

/* CLOCK_MONOTONIC in seconds. */
double watch_now(void);

/* Holds back the signals that stop. false, with a complaint, when the kernel refuses. */
bool watch_start(struct watch *watch, const char *command);
/* Lets signals act as before; one that was held back acts now, unless it was taken. */
void watch_stop(struct watch *watch);

/*
 * tally_launch_start() with the signal mask that we were started with. -EINTR, with `stopped` set and
 * nothing said, when a signal came before.
 */
int watch_launch(struct watch *watch, struct tally_launch **launch, char *const argv[],
		 struct tally_error *err);

/*
 * Waits for the end of a command. A signal that only we got is passed on to it; those of a terminal
 * go to it anyway. After `seconds` (0: never) it gets SIGTERM. Answers as tally_launch_wait.
 */
int watch_command(struct watch *watch, struct tally_launch *launch, double seconds,
		  struct tally_exit *end, struct tally_error *err);

/* Waits until all targets have ended, `seconds` are over (0: never), or a signal comes. */
void watch_targets(struct watch *watch, const struct targets *targets, double seconds);

#endif
