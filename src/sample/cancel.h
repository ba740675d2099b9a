/* SPDX-License-Identifier: MIT */
/* Ending a poll(2) from another thread or a signal handler. */
#ifndef SAMPLE_CANCEL_H
#define SAMPLE_CANCEL_H

#include <stdbool.h>
#include <tally/error.h>

struct cancel {
	int fd;    /* an eventfd, to poll; -1: none */
	bool sent; /* atomic: not yet seen by a wait */
};

/* Nobody can cancel. */
#define CANCEL_NONE ((struct cancel){ .fd = -1 })

/* Errors: those of eventfd(2), explained. */
int cancel_open(struct cancel *c, struct tally_error *err);
void cancel_close(struct cancel *c);

/* Ends the wait that is going on, or else the next one. Async-signal-safe. -EINVAL: there is none. */
int cancel_send(struct cancel *c);

/* Whether it was cancelled since the last time; for the thread that waits. */
bool cancel_taken(struct cancel *c);

#endif
