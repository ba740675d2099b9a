/* SPDX-License-Identifier: MIT */
/* Ending the signals of an event. */
#ifndef COUNT_SIGNAL_H
#define COUNT_SIGNAL_H

#include "count/opened.h"

/* No more signals of a member, at all places; the first error of fcntl(2), having tried all. */
int signal_stop(const struct opened *o, uint32_t member);

#endif
