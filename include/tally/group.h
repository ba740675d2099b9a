/* SPDX-License-Identifier: MIT */
/*
 * tally_group: events that the kernel schedules together, so that their counts belong to the same
 * stretch of time, unless it is split (tally_group_is_split). Its verbs always act on all members.
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
 * member that failed. -E2BIG is a group with more members than the kernel answers for in one read(2)
 * (16 KiB: about 680).
 *
 * Where members have several parts, each part makes a group of its own: events of the same PMU go
 * together, and one that counts everywhere (a software event) goes with each of them. Errors: -EINVAL
 * when a part finds no leader on its PMU, or events of packages and of CPUs are mixed. Since: 0.1
 */
TALLY_API int tally_group_open(struct tally_group **out, struct tally_events *events,
			       uint32_t leader, const struct tally_target *target,
			       const struct tally_counter_opts *opts, struct tally_error *err);

/* How many members it has. Since: 0.1 */
TALLY_API uint32_t tally_group_size(const struct tally_group *group);

/*
 * The i-th member as a counter, for all that acts on one event: read, fd, id, period, filter,
 * output, BPF, signals. NULL beyond the members. It is borrowed and lives as long as the group;
 * closing it does nothing. What acts on a whole counter (enable, disable, reset) answers -EINVAL:
 * a group is switched as a whole. Since: 0.1
 */
TALLY_API struct tally_counter *tally_group_member(struct tally_group *group, uint32_t i);

/*
 * Starts, stops counting of all members, at once on each place. All places are tried; the first
 * error is told. Errors: -errno of ioctl(2). Since: 0.1
 */
TALLY_API int tally_group_enable(struct tally_group *group);
TALLY_API int tally_group_disable(struct tally_group *group);

/* Makes now the zero of later readings, as tally_counter_reset; its errors. Since: 0.1 */
TALLY_API int tally_group_reset(struct tally_group *group);

/*
 * Reads all members, counts[i] being the i-th member's; one read(2) a place, matched by id.
 * `room` must be at least the group's size, else -ENOSPC. Errors: -errno of read(2). Since: 0.1
 */
TALLY_API int tally_group_read(struct tally_group *group, struct tally_count *counts,
			       uint32_t room);

/*
 * The places, as tally_counter_places; of a group that is split those of its first piece. Borrowed.
 * Since: 0.1
 */
TALLY_API uint32_t tally_group_places(const struct tally_group *group,
				      const struct tally_place **places);

/*
 * Reads all members at one place alone, as tally_counter_read_place. A member that is not counted
 * there (its PMU is another part's) reads 0 of no time. Members of further pieces of a split group,
 * which may have other places, are told whole at the first place of each thread and CPU. Errors:
 * -EINVAL (no such place), those of tally_group_read. Since: 0.1
 */
TALLY_API int tally_group_read_place(struct tally_group *group, uint32_t place,
				     struct tally_count *counts, uint32_t room);

/* As tally_counter_start_exact. Since: 0.1 */
TALLY_API bool tally_group_start_exact(const struct tally_group *group);

/*
 * Opens it anew as smaller groups of at most `members_each`, each scheduled and read by itself, in
 * the order of the members; a number of members or more makes it whole again. The interface stays
 * the same. Members of different parts then count different stretches of time, each with its own
 * times, and it is enabled part by part. What was counted so far stays in the counts, as the time
 * in which it never ran stays in their times: reset it to begin anew. See
 * tally_counter_generation() for what has to be set up again; breakpoints need a debug register
 * each for old and new.
 * Errors: -EINVAL for 0; -EBUSY once it has counted and follows threads or children, which would
 * be lost; those of opening it. The group is as it was then. Since: 0.1
 */
TALLY_API int tally_group_split(struct tally_group *group, uint32_t members_each,
				struct tally_error *err);

/*
 * Whether it is more than one of the kernel's groups, by tally_group_split() or because it is weak
 * (TALLY_COUNTER_WEAK) and the kernel refused the whole; and how many. Since: 0.1
 */
TALLY_API bool tally_group_is_split(const struct tally_group *group);
TALLY_API uint32_t tally_group_pieces(const struct tally_group *group);

/*
 * Why the first of the readings that is NEVER_RAN or ERROR is so; as tally_counter_explain.
 * `counts` has a reading for each member. Since: 0.1
 */
TALLY_API int tally_group_explain(const struct tally_group *group, const struct tally_count *counts,
				  struct tally_error *err);

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
