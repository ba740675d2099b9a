/* SPDX-License-Identifier: MIT */
/*
 * Accounts. The kernel tells of losses in four ways: LOST, of records that found no room in a ring,
 * told by whichever event writes to it next; the count of each event that did not find room
 * (PERF_FORMAT_LOST); LOST_SAMPLES, of samples that hardware could not keep; and THROTTLE, of an event
 * that is stopped until the next tick.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/sampler-inside.h"

int account_init(struct account *account, uint32_t events, size_t slots, struct tally_error *err)
{
	account->events = calloc(events, sizeof(*account->events));
	account->throttled_since = calloc(slots, sizeof(*account->throttled_since));
	return account->events && account->throttled_since ? 0 : error_nomem(err, "what was lost");
}

void account_done(struct account *account)
{
	free(account->events);
	free(account->throttled_since);
}

/*
 * How long an event was held. Children of the target have the ids of its event: of several that are held
 * at once the time from the first on is taken until one goes on.
 */
static uint64_t held(struct tally_sampler *s, const struct tally_record *rec)
{
	size_t slot = sampler_slot_of(s, rec->throttle.id);
	uint64_t *since = slot == SIZE_MAX ? NULL : &s->account.throttled_since[slot];
	uint64_t time = rec->throttle.time, ns = 0;

	if (!since)
		return 0;
	if (rec->type == TALLY_RECORD_THROTTLE) {
		*since = *since ? *since : time;
	} else {
		ns = *since && time > *since ? time - *since : 0;
		*since = 0;
	}
	return ns;
}

static void add(struct tally_sampler_account *a, const struct tally_record *rec, uint64_t held_ns)
{
	a->records++;
	a->samples += rec->type == TALLY_RECORD_SAMPLE;
	a->lost_records += rec->type == TALLY_RECORD_LOST ? rec->lost.lost : 0;
	a->lost_samples += rec->type == TALLY_RECORD_LOST_SAMPLES ? rec->lost.lost : 0;
	a->throttled += rec->type == TALLY_RECORD_THROTTLE;
	a->throttled_ns += held_ns;
}

static bool is_throttling(const struct tally_record *rec)
{
	return rec->type == TALLY_RECORD_THROTTLE || rec->type == TALLY_RECORD_UNTHROTTLE;
}

void account_add(struct tally_sampler *s, uint32_t event, const struct tally_record *rec)
{
	uint64_t ns = is_throttling(rec) ? held(s, rec) : 0;

	add(&s->account.all, rec, ns);
	if (event < s->plan.count)
		add(&s->account.events[event], rec, ns);
}

int tally_sampler_note(struct tally_sampler *s, const void *bytes, size_t len)
{
	struct tally_record rec;
	uint32_t event = sampler_event_of(s, bytes, len);
	const struct tally_layout *layout = &s->layouts[event < s->plan.count ? event : 0];
	int r = tally_record_decode(layout, bytes, len, &rec, sizeof(rec));

	if (r > 0)
		account_add(s, event, &rec);
	return r;
}

/* What the events themselves know, read now. */
static int read_lost(struct tally_sampler *s, uint32_t event, uint64_t *lost)
{
	struct tally_count count;

	if (event == UINT32_MAX)
		return tally_sampler_lost(s, lost);
	int r = tally_sampler_read(s, event, &count);
	if (r == 0)
		*lost = count.lost;
	return r;
}

int tally_sampler_account(struct tally_sampler *s, uint32_t event,
			  struct tally_sampler_account *out, size_t out_size)
{
	struct tally_sampler_account a;

	if (event != UINT32_MAX && event >= s->plan.count)
		return -EINVAL;
	a = event == UINT32_MAX ? s->account.all : s->account.events[event];
	int r = read_lost(s, event, &a.lost_format);
	if (r < 0)
		return r;
	/* LOST tells of the past, the events of now: of the same losses. */
	a.lost = (a.lost_records > a.lost_format ? a.lost_records : a.lost_format) + a.lost_samples;
	memset(out, 0, out_size);
	memcpy(out, &a, out_size < sizeof(a) ? out_size : sizeof(a));
	return 0;
}
