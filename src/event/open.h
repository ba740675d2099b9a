/* SPDX-License-Identifier: MIT */
/*
 * Opening an event at a place, giving up what its policy allows when the kernel refuses. The rooms
 * count and sample open by this alone.
 */
#ifndef EVENT_OPEN_H
#define EVENT_OPEN_H

#include <tally/event.h>

/* Where an event is opened. */
struct event_at {
	int32_t tid; /* a thread, -1: any, 0: the caller; or the descriptor of a cgroup's folder */
	int32_t cpu; /* -1: any */
	bool cgroup; /* `tid` is such a descriptor */
	/* Another part of the event is open: what that one was granted goes on standing for it. */
	bool further_part;
};

/*
 * Opens `event` at a place.
 *   attr      what is wanted, complete: a copy of tally_event_attr(), or of a part's, with sampling,
 *             read format and flags added. What had to be given up is given up in it, so that the
 *             next place begins where this one ended. Its size field is set here.
 *   group_fd  the leader's descriptor at the same place, or -1.
 *   root      folder above /proc and /sys for explanations, or NULL.
 * Returns a close-on-exec descriptor; tally_event_granted() and _compromise() then tell what was
 * granted. A soft RLIMIT_NOFILE below the hard one is raised once when descriptors run out.
 * The event's filter is set before it counts anything.
 * Errors: -errno of perf_event_open(2), and of setting the filter, explained.
 */
int event_open_at(struct tally_event *event, struct tally_attr *attr, const struct event_at *at,
		  int group_fd, const char *root, struct tally_error *err);

/* event_open_at() for a thread and a CPU. */
int event_open(struct tally_event *event, struct tally_attr *attr, int32_t tid, int32_t cpu,
	       int group_fd, const char *root, struct tally_error *err);

/*
 * Whether new threads and children can inherit the event. Those of probes cannot, and TALLY_ATTR_INHERIT
 * would harm: the kernel reads the path or name of a probe again while the watched process forks, from
 * that process's memory, so that its fork(2) fails with EFAULT; and where it succeeds, the end of the
 * new thread takes the breakpoint away from the others (measured on Linux 6.18).
 *
 * event_open() leaves the flag out for such an event and says so as a compromise. Whoever opens a group
 * has to ask beforehand, as the kernel wants all of a group to agree: it opens all without the flag, and
 * calls event_stays_alone() for each, so that their compromise says it too.
 */
bool event_can_follow(struct tally_event *event, const char *root);
void event_stays_alone(struct tally_event *event);

#endif
