/* SPDX-License-Identifier: MIT */
/* What the room asks of a freeze. */
#ifndef COUNT_FREEZE_H
#define COUNT_FREEZE_H

#include <tally/freeze.h>

/* The process that it holds. */
int32_t freeze_pid(const struct tally_freeze *freeze);

#endif
