/* SPDX-License-Identifier: MIT */
/*
 * From a target to the places where its events are opened. The rooms count and sample open by this
 * list:
 *
 *	do {
 *		target_places(target, ...);
 *		... open at each place; forget one that answers -ESRCH where target_may_shrink() ...
 *	} while (target_grew(target, root, places, count) && tries are left && close all);
 */
#ifndef COUNT_TARGET_H
#define COUNT_TARGET_H

#include <tally/error.h>
#include <tally/target.h>

/* How often a process that starts threads all the time is opened anew before it is taken as is. */
#define TARGET_TRIES 8

/*
 * Lists the places of a target; `*places` is malloc'ed and has at least one entry.
 *   per_cpu  PROCESS, COMMAND: one place a thread and online CPU, thread by thread, instead of one
 *            a thread on any CPU. An event that is inherited can be mapped only where it is bound
 *            to a CPU.
 *   root     folder above /proc and /sys, or NULL.
 * SELF is tid 0. Errors: -EINVAL (no such scope, id not positive, a CPU listed twice), -ESRCH,
 * -ENODEV (a CPU that is not online), -ENOMEM, those of reading /proc and /sys; explained.
 */
int target_places(const struct tally_target *target, bool per_cpu, const char *root,
		  struct tally_place **places, uint32_t *count, struct tally_error *err);

/* Whether it is what runs on CPUs, rather than tasks. */
bool target_is_cpus(const struct tally_target *target);

/* Whether the kernel should pass its events on to new threads and children. */
bool target_inherits(const struct tally_target *target);

/* Whether its places may end one by one, so that -ESRCH at one of them is no failure. */
bool target_may_shrink(const struct tally_target *target);

/*
 * Whether a thread lives that has no place in the list of target_places(), which is passed as it
 * was, with those that could not be opened: 1 or 0. Called when all are open. Such a thread
 * was started while they were being opened, and nothing tells whether its parent passed the events
 * on to it: opening it may count it twice, leaving it out may not count it.
 */
int target_grew(const struct tally_target *target, const char *root,
		const struct tally_place *places, uint32_t count);

#endif
