/* SPDX-License-Identifier: MIT */
/* Records by time, held for two rounds. */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/error.h"
#include "profile/rounds.h"

#define HEADER 8 /* of a record */

uint64_t rounds_time(const struct tally_reader_record *item)
{
	const uint64_t before = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID;
	const struct tally_layout *layout = item->layout;
	struct tally_record rec;

	if (!(layout->sample_type & TALLY_SAMPLE_TIME))
		return 0;
	if (item->type != TALLY_RECORD_SAMPLE)
		return tally_record_decode(layout, item->bytes, item->len, &rec, sizeof(rec)) > 0 &&
				       rec.id.has & TALLY_SAMPLE_TIME
			       ? rec.id.time
			       : 0;
	size_t at = HEADER +
		    sizeof(uint64_t) * (size_t)__builtin_popcountll(layout->sample_type & before);
	if (at + sizeof(uint64_t) > item->len)
		return 0;
	return load_u64((const char *)item->bytes + at, layout->swapped);
}

static int compare_times(const void *left, const void *right)
{
	const struct held *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* All held records up to a time are due. */
static void release(struct rounds *o, uint64_t limit)
{
	if (o->held.count)
		qsort(o->held.at, o->held.count, sizeof(*o->held.at), compare_times);
	while (o->ready < o->held.count && o->held.at[o->ready].time <= limit)
		o->ready++;
}

static int hold(struct rounds *o, const struct tally_reader_record *item, uint64_t time)
{
	struct held *held = vec_push(&o->held);

	if (!held)
		return -ENOMEM;
	*held = (struct held){
		.time = time,
		.offset = item->offset,
		.at = o->bytes.len,
		.layout = item->layout,
		.len = item->len,
		.type = item->type,
		.event = item->event,
	};
	buf_add(&o->bytes, item->bytes, item->len);
	if (time > o->newest)
		o->newest = time;
	return o->bytes.failed ? -ENOMEM : 0;
}

/* Drops what was delivered. The rest is copied by its time, so equal times stay in their order. */
static int compact(struct rounds *o)
{
	struct buf rest = { 0 };
	size_t kept = 0;

	for (size_t i = o->ready; i < o->held.count; i++, kept++) {
		struct held held = o->held.at[i];
		size_t at = rest.len;
		buf_add(&rest, o->bytes.at + held.at, held.len);
		held.at = at;
		o->held.at[kept] = held;
	}
	o->held.count = kept;
	o->next = o->ready = 0;
	if (!kept) {
		buf_reset(&o->bytes);
		return 0;
	}
	buf_done(&o->bytes);
	o->bytes = rest;
	return rest.failed ? -ENOMEM : 0;
}

/* Reads until something is due: 1 with a record that has no time, else 0. */
static int read_on(struct rounds *o, struct tally_reader_record *out)
{
	int r;

	while ((r = tally_reader_next(o->reader, out, &o->err)) > 0) {
		if (out->type == TALLY_FILE_FINISHED_ROUND && !o->in_order) {
			release(o, o->promised);
			o->promised = o->newest;
			if (o->ready)
				return 0;
			continue;
		}
		if (!o->wanted(out->type, o->arg))
			continue;
		uint64_t time = o->in_order ? 0 : rounds_time(out);
		if (!time || time == UINT64_MAX)
			return 1;
		r = hold(o, out, time);
		if (r < 0)
			return r;
	}
	o->ended = true;
	o->status = r;
	release(o, UINT64_MAX);
	return 0;
}

int rounds_next(struct rounds *o, struct tally_reader_record *out, struct tally_error *err)
{
	while (o->next == o->ready) {
		if (o->ended && err)
			*err = o->err;
		if (o->ended)
			return o->status;
		int r = o->ready ? compact(o) : 0;
		if (r == 0)
			r = read_on(o, out);
		if (r < 0)
			return error_nomem(err, "records that are to be sorted");
		if (r > 0)
			return 1;
	}
	const struct held *held = &o->held.at[o->next++];
	*out = (struct tally_reader_record){
		.bytes = o->bytes.at + held->at,
		.len = held->len,
		.type = held->type,
		.offset = held->offset,
		.layout = held->layout,
		.event = held->event,
	};
	return 1;
}

void rounds_done(struct rounds *o)
{
	vec_done(&o->held);
	buf_done(&o->bytes);
}
