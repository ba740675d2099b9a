/* SPDX-License-Identifier: MIT */
/* What the options of a counter ask for, checked against each other and against the target. */
#ifndef COUNT_OPTIONS_H
#define COUNT_OPTIONS_H

#include <tally/attr.h>
#include <tally/counter.h>
#include <tally/error.h>
#include <tally/target.h>

/*
 * Copies and checks them; flags that others imply are set in the copy. What the kernel would refuse
 * with a bare EINVAL, or would take and not do, is refused here. Errors: -EINVAL, -E2BIG, explained.
 */
int options_read(struct tally_counter_opts *out, const struct tally_counter_opts *opts,
		 const struct tally_target *target, struct tally_error *err);

/* Writes what they ask of the event into its attr. `leads`: it is alone or leads its group. */
void options_apply(const struct tally_counter_opts *opts, const struct tally_target *target,
		   bool leads, struct tally_attr *attr);

#endif
