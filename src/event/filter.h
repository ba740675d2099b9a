/* SPDX-License-Identifier: MIT */
/* The filters of tracepoints, set between the opening of an event and its first count. */
#ifndef EVENT_FILTER_H
#define EVENT_FILTER_H

#include "event/event.h"

/*
 * Before an event with a filter is opened: refuses it where the kernel has no filters, with -EINVAL,
 * and has it opened disabled. Answers 1 when filter_set() is to enable it then, else 0.
 */
int filter_prepare(const struct tally_event *event, struct tally_attr *attr,
		   struct tally_error *err);

/*
 * Sets the filter of the event that is open as `fd`, if it has one, and enables it when `enable`.
 * Errors: those of the kernel (-EINVAL: a filter that it does not take), explained by the fields that
 * the tracepoint has.
 */
int filter_set(const struct tally_event *event, int fd, bool enable, const char *root,
	       struct tally_error *err);

#endif
