/* SPDX-License-Identifier: MIT */
/*
 * The answer of read(2) on events of this library, in words of 64 bits. The read format is fixed,
 * perf_event_open(2) "Reading results":
 *
 *	one event	value, time_enabled, time_running, id, [lost]
 *	a group		nr, time_enabled, time_running, {value, id, [lost]} x nr
 *
 * `lost` is there where the kernel tells it (6.0).
 */
#ifndef COUNT_READ_FORMAT_H
#define COUNT_READ_FORMAT_H

#include <tally/attr.h>

#define READ_FORMAT \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_LOST)

/* The most words of an event that is read alone, the words before the members of a group, and the
 * most words of a member. */
#define READ_ALONE_WORDS  5
#define READ_GROUP_HEAD   3
#define READ_MEMBER_WORDS 3

/* Room for an answer about so many members, in whichever of the two ways they are read. */
#define READ_WORDS(members) (READ_GROUP_HEAD + READ_MEMBER_WORDS * (size_t)(members))

#endif
