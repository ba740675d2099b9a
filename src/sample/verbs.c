/* SPDX-License-Identifier: MIT */
/* What can be done to open events that sample: switching, reading, changing the rate. */
#include <errno.h>
#include <linux/perf_event.h>

#include "base/sys.h"
#include "count/target.h"
#include "sample/sampler-inside.h"

/* Where a lost count stands in a reading of one event, and in that of a group's leader. */
#define LOST_OF_ONE   4
#define LOST_OF_GROUP (HEAD_WORDS + MEMBER_WORDS - 1)

#define ALL_EVENTS UINT32_MAX

/* All descriptors of an event, or of all, even when one fails; the first error. */
static int switch_event(struct tally_sampler *s, uint32_t event, unsigned long request)
{
	size_t slots = sampler_slots(s);
	int first = 0;

	for (size_t i = 0; i < slots; i++) {
		bool other = event != ALL_EVENTS && sampler_stream(s, i)->event != event;
		int r = other || s->fds[i] < 0 ? 0 : sys()->ioctl(s->fds[i], request, 0);
		if (r < 0 && first == 0)
			first = r;
	}
	return first;
}

int tally_sampler_enable(struct tally_sampler *s)
{
	s->stopped = false;
	return switch_event(s, ALL_EVENTS, PERF_EVENT_IOC_ENABLE);
}

int tally_sampler_disable(struct tally_sampler *s)
{
	int r = switch_event(s, ALL_EVENTS, PERF_EVENT_IOC_DISABLE);

	s->stopped = r == 0;
	return r;
}

int tally_sampler_enable_event(struct tally_sampler *s, uint32_t event)
{
	if (!tally_sampler_attr(s, event))
		return -EINVAL;
	s->stopped = false;
	return switch_event(s, event, PERF_EVENT_IOC_ENABLE);
}

int tally_sampler_disable_event(struct tally_sampler *s, uint32_t event)
{
	if (!tally_sampler_attr(s, event))
		return -EINVAL;
	return switch_event(s, event, PERF_EVENT_IOC_DISABLE);
}

/* All descriptors of an event; the first error, having tried all. */
static int set_rate(struct tally_sampler *s, uint32_t event, uint64_t rate)
{
	size_t slots = sampler_slots(s);
	int first = 0;

	for (size_t i = 0; i < slots; i++) {
		if (s->fds[i] < 0 || sampler_stream(s, i)->event != event)
			continue;
		int r = sys()->ioctl(s->fds[i], PERF_EVENT_IOC_PERIOD, (unsigned long)&rate);
		if (r < 0 && first == 0)
			first = r;
	}
	for (uint32_t i = 0; first == 0 && i < s->plan.streams_count; i++)
		if (s->plan.streams[i].event == event)
			s->plan.streams[i].attr.sample_period = rate;
	return first;
}

/* One that only counts, behind the leader of its group, has no rate. */
static int change_rate(struct tally_sampler *s, uint32_t event, uint64_t rate, uint64_t freq_flag)
{
	const struct tally_attr *attr = tally_sampler_attr(s, event);

	if (!attr || !attr->sample_period || (attr->flags & TALLY_ATTR_FREQ) != freq_flag ||
	    !rate || rate >> 63)
		return -EINVAL;
	struct tally_attr wanted = *attr;
	wanted.sample_period = rate;
	plan_clamp(&s->plan, &wanted);
	return set_rate(s, event, wanted.sample_period);
}

int tally_sampler_set_period(struct tally_sampler *s, uint32_t event, uint64_t period)
{
	const struct tally_attr *attr = tally_sampler_attr(s, event);

	if (attr && attr->sample_period && !(attr->flags & TALLY_ATTR_FREQ) &&
	    attr->sample_type & TALLY_SAMPLE_PERIOD && plan_is_by_hits(s->plan.events[event], attr))
		return -EOPNOTSUPP;
	return change_rate(s, event, period, 0);
}

int tally_sampler_set_freq(struct tally_sampler *s, uint32_t event, uint64_t freq)
{
	return change_rate(s, event, freq, TALLY_ATTR_FREQ);
}

/* Reads what is open in a slot; -EBUSY in `error`: a pinned event that found no counter. */
static int read_slot(struct tally_sampler *s, size_t slot, struct tally_count *out)
{
	size_t room = HEAD_WORDS + MEMBER_WORDS * (size_t)s->plan.count;
	uint64_t format = sampler_stream(s, slot)->attr.read_format;
	bool group = format & TALLY_READ_GROUP;
	size_t lost_at = group ? LOST_OF_GROUP : LOST_OF_ONE;
	ssize_t n = sys()->read(s->fds[slot], s->words, room * sizeof(*s->words));

	if (n < 0)
		return (int)n;
	*out = (struct tally_count){ .error = n ? 0 : -EBUSY };
	size_t words = (size_t)n / sizeof(*s->words);
	if (!n)
		return 0;
	if (words < 4)
		return -EIO;
	out->raw = s->words[group ? HEAD_WORDS : 0];
	out->enabled_ns = s->words[1];
	out->running_ns = s->words[2];
	if (format & TALLY_READ_LOST && words > lost_at)
		out->lost = s->words[lost_at];
	return 0;
}

/*
 * Adds what a thread counted on one of its CPUs. Its events on all CPUs are enabled all the time and
 * take turns in counting; `enabled` is how long that was. They were enabled one after the other: the
 * shortest time is when all of them were.
 */
static void add_slot(struct tally_count *sum, const struct tally_count *more, uint64_t *enabled)
{
	sum->raw += more->raw;
	sum->running_ns += more->running_ns;
	sum->lost += more->lost;
	if (!sum->error)
		sum->error = more->error;
	if (more->enabled_ns < *enabled)
		*enabled = more->enabled_ns;
}

static bool same_thread(const struct tally_sampler *s, uint32_t place, uint32_t before)
{
	return s->places[place].tid >= 0 && s->places[place].tid == s->places[before].tid;
}

int tally_sampler_read(struct tally_sampler *s, uint32_t event, struct tally_count *out)
{
	struct tally_count sum = { 0 }, now;
	uint64_t enabled = UINT64_MAX;
	uint32_t before = 0;

	if (event >= s->plan.count)
		return -EINVAL;
	for (size_t i = 0; i < sampler_slots(s); i++) {
		uint32_t place = (uint32_t)(i / s->plan.streams_count);
		if (s->fds[i] < 0 || sampler_stream(s, i)->event != event)
			continue;
		int r = read_slot(s, i, &now);
		if (r < 0)
			return r;
		if (enabled != UINT64_MAX && !same_thread(s, place, before)) {
			sum.enabled_ns += enabled;
			enabled = UINT64_MAX;
		}
		add_slot(&sum, &now, &enabled);
		before = place;
	}
	sum.enabled_ns += enabled != UINT64_MAX ? enabled : 0;
	tally_count_settle(&sum);
	if (s->start_inexact)
		sum.flags |= TALLY_COUNT_START_INEXACT;
	*out = sum;
	return 0;
}

int tally_sampler_lost(struct tally_sampler *s, uint64_t *lost)
{
	struct tally_count now;
	uint64_t sum = 0;

	for (size_t i = 0; i < sampler_slots(s); i++) {
		if (s->fds[i] < 0 || !(sampler_stream(s, i)->attr.read_format & TALLY_READ_LOST))
			continue;
		int r = read_slot(s, i, &now);
		if (r < 0)
			return r;
		sum += now.lost;
	}
	*lost = sum;
	return 0;
}
