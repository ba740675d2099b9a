/* SPDX-License-Identifier: MIT */
/*
 * tally_measure: counts what a function does.
 *
 *	tally_group_open(&group, events, 0, &self, NULL, &err);
 *	tally_count_overhead(group, overhead, 2);
 *	tally_measure(group, sort_it, &array, results, 2);
 *	printf("%s %" PRIu64 "\n", results[0].label, results[0].count.value);
 */
#ifndef TALLY_MEASURE_H
#define TALLY_MEASURE_H

#include <tally/api.h>
#include <tally/count.h>
#include <tally/group.h>

TALLY_BEGIN_DECLS

/*
 * Calls fn(arg), once, and tells what the group counted meanwhile: of a group on TALLY_SCOPE_SELF
 * that is what this thread did. results[i] is the i-th member's; `room` of them, at least the
 * group's size. Measuring again starts from 0 again.
 * A group that is disabled is enabled for the call and disabled again; one that is enabled (by
 * tally_group_enable() or TALLY_COUNTER_ENABLED) goes on counting, and is read before and after.
 * The group's baseline (tally_group_reset) is left as it is. Texts of results live as long as the
 * events. The first call for a group allocates.
 * Errors: -ENOSPC when `room` is too small, -ENOMEM, -errno of enabling and of the first read:
 * nothing was called then. -errno of disabling and of the second read: fn was called, and `results`
 * are not written; after a failure to disable the group is still enabled. Since: 0.1
 */
TALLY_API int tally_measure(struct tally_group *group, void (*fn)(void *arg), void *arg,
			    struct tally_result *results, uint32_t room);

/*
 * What measuring alone counts, by member: the least of several measurements of a function that does
 * nothing. They are made once, and once more when the group was enabled then and is not now, or the
 * other way round, since that is measured in another way. From then on a result of tally_measure()
 * that has a value, but none above this, carries TALLY_COUNT_BELOW_OVERHEAD. Call it in the thread
 * that measures. Errors: those of tally_measure(). Since: 0.1
 */
TALLY_API int tally_count_overhead(struct tally_group *group, uint64_t *values, uint32_t room);

TALLY_END_DECLS

#endif
