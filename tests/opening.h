/* SPDX-License-Identifier: MIT */
/* Opening counters and groups by name, for live tests. */
#ifndef TESTS_OPENING_H
#define TESTS_OPENING_H

#include <tally/tally.h>

static struct tally_error err;
static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

/* Events and what was opened of them. */
struct opened {
	struct tally_events *events;
	struct tally_counter *counter;
	struct tally_group *group;
};

static inline void close_all(struct opened *o)
{
	tally_counter_close(o->counter);
	tally_group_close(o->group);
	tally_events_free(o->events);
	*o = (struct opened){ 0 };
}

static inline bool open_counter(struct opened *o, const char *name,
				const struct tally_target *target, uint32_t flags, uint64_t period)
{
	*o = (struct opened){ 0 };
	int r = tally_events_parse(&o->events, name, NULL, &err);
	if (r == 0)
		r = tally_counter_open(&o->counter, tally_events_at(o->events, 0), target,
				       TALLY_OPTS(counter, .flags = flags, .period = period), &err);
	if (r < 0)
		close_all(o);
	return r == 0;
}

static inline bool open_group(struct opened *o, const char *list, uint32_t flags)
{
	*o = (struct opened){ 0 };
	int r = tally_events_parse(&o->events, list, NULL, &err);
	if (r == 0)
		r = tally_group_open(&o->group, o->events, 0, &self,
				     TALLY_OPTS(counter, .flags = flags), &err);
	if (r < 0)
		close_all(o);
	return r == 0;
}

static inline uint64_t value_of(struct tally_counter *counter)
{
	struct tally_count count;

	return tally_counter_read(counter, &count) == 0 ? count.value : UINT64_MAX;
}

#endif
