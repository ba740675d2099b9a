/* SPDX-License-Identifier: MIT */
/*
 * Opening an event at a place, giving up what its policy allows when the kernel refuses. The rooms
 * count and sample open by this alone.
 */
#ifndef EVENT_OPEN_H
#define EVENT_OPEN_H

#include <tally/event.h>

/*
 * Opens `event` for the thread `tid` (-1: any, 0: the caller) on `cpu` (-1: any).
 *   attr      what is wanted, complete: a copy of tally_event_attr() with sampling, read format and
 *             flags added. What had to be given up is given up in it, so that the next place begins
 *             where this one ended. Its size field is set here.
 *   group_fd  the leader's descriptor at the same place, or -1.
 *   root      folder above /proc and /sys for explanations, or NULL.
 * Returns a close-on-exec descriptor; tally_event_granted() and _compromise() then tell what was
 * granted. A soft RLIMIT_NOFILE below the hard one is raised once when descriptors run out.
 * Errors: -errno of perf_event_open(2), explained.
 */
int event_open(struct tally_event *event, struct tally_attr *attr, int32_t tid, int32_t cpu,
	       int group_fd, const char *root, struct tally_error *err);

#endif
