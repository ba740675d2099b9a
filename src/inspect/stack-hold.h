/* SPDX-License-Identifier: MIT */
/* Threads that are stopped and unwound. */
#ifndef INSPECT_STACK_HOLD_H
#define INSPECT_STACK_HOLD_H

#include <tally/unwinder.h>

#include "base/vec.h"

struct held_thread {
	int32_t tid;
	bool seized, stopped;
	int signal; /* that it was about to receive when it stopped, 0: none */
	int code;   /* why it could not be unwound, -errno; 0: it was */
	VEC(uint64_t) addresses;
	struct tally_unwound how;
};

struct hold {
	int32_t pid;
	uint32_t wait_ms, max_frames;
	struct tally_unwinder *unwinder;
	VEC(struct held_thread) threads; /* tids are the caller's */
};

/*
 * Stops all threads of the list, unwinds them and lets them go. By a thread of its own, whose end
 * lets go what does not stop. -ENOMEM, -EAGAIN.
 */
int hold_and_unwind(struct hold *hold);

void hold_done(struct hold *hold);

#endif
