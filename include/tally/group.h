/* SPDX-License-Identifier: MIT */
/*
 * tally_group: events that the kernel schedules together, so that their counts belong to the same
 * stretch of time. Its verbs always act on all members.
 */
#ifndef TALLY_GROUP_H
#define TALLY_GROUP_H

#include <tally/api.h>
#include <tally/counter.h>

TALLY_BEGIN_DECLS

struct tally_group;

/*
 * Opens the group of which `leader` is the leader (see tally_event_leader) on every place of the
 * target, or nothing. Options, states and errors as for tally_counter_open; the error names the
 * member that failed. Since: 0.1
 */
TALLY_API int tally_group_open(struct tally_group **out, struct tally_events *events,
			       uint32_t leader, const struct tally_target *target,
			       const struct tally_counter_opts *opts, struct tally_error *err);

/* How many members it has. Since: 0.1 */
TALLY_API uint32_t tally_group_size(const struct tally_group *group);

/* Starts, stops counting of all members, at once on each place. Since: 0.1 */
TALLY_API int tally_group_enable(struct tally_group *group);
TALLY_API int tally_group_disable(struct tally_group *group);

/* Makes now the zero of later readings, as tally_counter_reset. Since: 0.1 */
TALLY_API int tally_group_reset(struct tally_group *group);

/*
 * Reads all members, counts[i] being the i-th member's; one read(2) a place, matched by id.
 * `room` must be at least the group's size, else -ENOSPC. Errors: -errno of read(2). Since: 0.1
 */
TALLY_API int tally_group_read(struct tally_group *group, struct tally_count *counts,
			       uint32_t room);

/*
 * As tally_counter_fast(), for the i-th member. Errors: -EINVAL for a group of several places, a
 * `member` that there is not, a group of more than 64 members. Since: 0.1
 */
TALLY_API int tally_group_fast(struct tally_group *group, uint32_t member, struct tally_fast *out,
			       struct tally_error *err);

/* Closes all descriptors. NULL is fine. Since: 0.1 */
TALLY_API void tally_group_close(struct tally_group *group);

TALLY_END_DECLS

#endif
