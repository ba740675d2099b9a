/* SPDX-License-Identifier: MIT */
/* What a counter is made of: one event of a set, which is its own or that of its group. */
#ifndef COUNT_COUNTER_H
#define COUNT_COUNTER_H

#include <errno.h>

#include "base/sys.h"
#include "count/set.h"

struct tally_counter {
	struct set own;
	struct set *set; /* its own, or its group's when it is the view of a member */
	uint32_t member;
};

static inline bool counter_is_view(const struct tally_counter *c)
{
	return c->set != &c->own;
}

static inline struct opened *counter_piece(const struct tally_counter *c, uint32_t *index)
{
	return set_piece(c->set, c->member, index);
}

static inline struct tally_event *counter_event(const struct tally_counter *c)
{
	return c->set->events[c->member];
}

/* Calls ioctl(2) at all places; the first error, having tried all. */
static inline int counter_ioctl(const struct tally_counter *c, unsigned long request,
				unsigned long arg)
{
	uint32_t index;
	const struct opened *o = counter_piece(c, &index);
	int first = 0;

	for (uint32_t p = 0; p < o->places_count; p++) {
		int fd = opened_fd(o, p, index);
		int r = fd < 0 ? 0 : sys()->ioctl(fd, request, arg);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

#endif
