/* SPDX-License-Identifier: MIT */
/* What the room asks of a freeze. */
#ifndef COUNT_FREEZE_H
#define COUNT_FREEZE_H

#include <stdbool.h>
#include <tally/freeze.h>
#include <tally/target.h>

/* The process that it holds. */
int32_t freeze_pid(const struct tally_freeze *freeze);

/*
 * Whether a freeze in the options of `whose` ("a counter") fits the target, and no flag that forbids to
 * stop it; NULL does. -EINVAL.
 */
int freeze_check(const struct tally_freeze *freeze, const struct tally_target *target, bool no_stop,
		 const char *whose, struct tally_error *err);

#endif
