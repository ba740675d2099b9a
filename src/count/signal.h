/* SPDX-License-Identifier: MIT */
/* Beginning and ending the signals of an event. */
#ifndef COUNT_SIGNAL_H
#define COUNT_SIGNAL_H

#include "count/opened.h"

/* Has an event's descriptor send `signo` to a thread at each overflow. 0 or -errno of fcntl(2). */
int signal_send(int fd, int signo, int32_t tid);

/* No more signals of a member, at all places; the first error of fcntl(2), having tried all. */
int signal_stop(const struct opened *o, uint32_t member);

#endif
