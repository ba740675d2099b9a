/* SPDX-License-Identifier: MIT */
/* A launch in pieces, for who has to do something while the command is being exec'ed: trace it. */
#ifndef COUNT_LAUNCH_H
#define COUNT_LAUNCH_H

#include <tally/launch.h>

struct launch_command {
	char *const *argv;
	char *const *envp;    /* NULL: the caller's */
	bool fixed_addresses; /* not randomised, personality(2) */
};

/* As tally_launch_start(). */
int launch_start(struct tally_launch **out, const struct launch_command *command,
		 struct tally_error *err);
/* The two halves of tally_launch_go(): lets it exec; waits for how that went. */
int launch_release(struct tally_launch *launch);
int launch_result(struct tally_launch *launch, int released, struct tally_error *err);
/* It has been waited for by other means. */
void launch_reaped(struct tally_launch *launch);

#endif
