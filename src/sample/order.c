/* SPDX-License-Identifier: MIT */
/*
 * Merging rings by time, round by round. A round takes the heads of all rings and gives what is older
 * than HOLD_NS, which by then lies in its ring for all CPUs; what is younger stays there until the next
 * round, so that a record that another CPU is just writing is not overtaken. Within a ring the order is
 * that of the kernel's writing: an interrupt between the time stamp of a record and its place in the
 * ring puts its own records first (perf_prepare_sample() and perf_output_begin()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "sample/ring-inside.h"
#include "sample/sampler-inside.h"

/* Far more than writing a record takes, and a small part of a ring at the highest rates. */
#define HOLD_NS 1000000u

#define ROUND_NS  (250 * 1000000ull) /* rings are looked at so often though none passed its mark */
#define NS_PER_MS 1000000u

#define NONE UINT32_MAX

/* Bits of fields before TIME in a sample, and behind it in a sample_id; perf_event_open(2). */
static const uint64_t before_time[] = { TALLY_SAMPLE_IDENTIFIER, TALLY_SAMPLE_IP,
					TALLY_SAMPLE_TID };
static const uint64_t behind_time[] = { TALLY_SAMPLE_ID, TALLY_SAMPLE_STREAM_ID, TALLY_SAMPLE_CPU,
					TALLY_SAMPLE_IDENTIFIER };

int order_init(struct order *order, uint32_t rings, const struct tally_layout *layout,
	       struct tally_error *err)
{
	order->cursors = calloc(rings, sizeof(*order->cursors));
	order->heap = calloc(rings, sizeof(*order->heap));
	order->given = NONE;
	order->sample_time = sizeof(struct tally_record_header);
	for (size_t i = 0; i < sizeof(before_time) / sizeof(*before_time); i++)
		order->sample_time += layout->sample_type & before_time[i] ? 8 : 0;
	order->tail_time = 8;
	for (size_t i = 0; i < sizeof(behind_time) / sizeof(*behind_time); i++)
		order->tail_time += layout->sample_type & behind_time[i] ? 8 : 0;
	return order->cursors && order->heap ? 0 : error_nomem(err, "the order of records");
}

void order_done(struct order *order)
{
	free(order->cursors);
	free(order->heap);
}

/* Of one that is too short for a time it is 0: it is due at once. */
static uint64_t time_of(const struct order *order, const struct tally_record_header *h)
{
	bool sample = h->type == TALLY_RECORD_SAMPLE;
	size_t need = sample ? order->sample_time + 8 : sizeof(*h) + order->tail_time;
	uint64_t time;

	if (h->size < need)
		return 0;
	memcpy(&time, (const char *)h + (sample ? order->sample_time : h->size - order->tail_time),
	       sizeof(time));
	return time;
}

/* -- The heap of rings, by the time of what they have next ------------------------------------- */

static bool is_before(const struct order *order, uint32_t a, uint32_t b)
{
	uint64_t one = order->cursors[a].time, other = order->cursors[b].time;

	return one < other || (one == other && a < b);
}

static void swap(struct order *order, uint32_t i, uint32_t j)
{
	uint32_t ring = order->heap[i];

	order->heap[i] = order->heap[j];
	order->heap[j] = ring;
}

static void sift_down(struct order *order, uint32_t i)
{
	for (;;) {
		uint32_t least = i;
		for (uint32_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < order->heap_count &&
			    is_before(order, order->heap[child], order->heap[least]))
				least = child;
		if (least == i)
			return;
		swap(order, i, least);
		i = least;
	}
}

static void push(struct order *order, uint32_t ring)
{
	uint32_t i = order->heap_count++;

	order->heap[i] = ring;
	for (; i && is_before(order, order->heap[i], order->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(order, i, (i - 1) / 2);
}

static void pop(struct order *order)
{
	order->heap[0] = order->heap[--order->heap_count];
	sift_down(order, 0);
}

/* -- Cursors ------------------------------------------------------------------------------------ */

static bool is_due(const struct order *order, const struct cursor *c)
{
	/* Both grow for ever; the difference tells which is ahead. */
	return c->next && (c->time <= order->bound || (int64_t)(c->start - c->due) < 0);
}

/* Gives the kernel back what has been given to the caller. */
static void release(struct cursor *c, struct tally_ring *ring)
{
	c->released = c->next ? c->start : c->after;
	ring_release_to(ring, c->released);
}

/* Finds the next record of a ring within this round. 1, 0: none; -EBADMSG. */
static int advance(struct order *order, uint32_t i, struct tally_ring *ring)
{
	struct cursor *c = &order->cursors[i];

	c->next = NULL;
	c->start = ring->position;
	int r = ring_next_to(ring, c->end, &c->next);
	c->after = ring->position;
	if (r > 0)
		c->time = time_of(order, c->next);
	/* Early, so that the kernel does not run out of room meanwhile. */
	if (c->start - c->released >= ring->size / 4)
		release(c, ring);
	return r;
}

/* -- Rounds ------------------------------------------------------------------------------------- */

/* Until when all records are there. The perf clock cannot be read here, and all is due by it. */
static uint64_t settled_time(const struct tally_sampler *s)
{
	const struct tally_attr *attr = &s->plan.streams[0].attr;

	if (s->stopped || !s->alive || !(attr->flags & TALLY_ATTR_USE_CLOCKID))
		return UINT64_MAX;
	return clock_ns(attr->clockid) - HOLD_NS;
}

/*
 * Has what was seen a while ago given whatever its time: a clock that is set back, as CLOCK_REALTIME can
 * be, is not to hold records for ever.
 */
static void mark(struct tally_sampler *s)
{
	struct order *order = &s->order;

	if (order->looked_ns - order->marked_ns < ROUND_NS)
		return;
	order->marked_ns = order->looked_ns;
	for (uint32_t i = 0; i < s->rings_count; i++) {
		order->cursors[i].due = order->cursors[i].marked;
		order->cursors[i].marked = order->cursors[i].end;
	}
}

/* Begins a round: the time first, then the heads. The first error, having begun at all rings. */
static int begin_round(struct tally_sampler *s)
{
	struct order *order = &s->order;
	int first = 0;

	order->bound = settled_time(s);
	order->looked_ns = clock_ns(CLOCK_MONOTONIC);
	order->looked = true;
	mark(s);
	for (uint32_t i = 0; i < s->rings_count; i++)
		order->cursors[i].end = tally_ring_head(s->rings[i].ring);
	for (uint32_t i = 0; i < s->rings_count; i++) {
		struct cursor *c = &order->cursors[i];
		int r = c->next ? 1 : advance(order, i, s->rings[i].ring);
		if (r < 0 && first == 0)
			first = r;
		if (is_due(order, c))
			push(order, i);
	}
	return first;
}

static void end_round(struct tally_sampler *s)
{
	bool kept = false;

	for (uint32_t i = 0; i < s->rings_count; i++) {
		kept |= s->order.cursors[i].next != NULL;
		release(&s->order.cursors[i], s->rings[i].ring);
	}
	s->order.kept = kept && s->order.woken;
}

/* Goes on behind the record that the caller has had. 0 or -EBADMSG. */
static int go_on(struct tally_sampler *s)
{
	struct order *order = &s->order;
	uint32_t ring = order->given;

	if (ring == NONE)
		return 0;
	order->given = NONE;
	int r = advance(order, ring, s->rings[ring].ring);
	if (is_due(order, &order->cursors[ring]))
		sift_down(order, 0);
	else
		pop(order);
	if (!order->heap_count)
		end_round(s);
	return r < 0 ? r : 0;
}

/* A period that samples do not tell is the attr's. */
static void fill_period(struct tally_sampler *s, uint32_t event)
{
	const struct tally_attr *attr = tally_sampler_attr(s, event);

	if (attr && s->order.record.type == TALLY_RECORD_SAMPLE &&
	    !(attr->sample_type & TALLY_SAMPLE_PERIOD))
		s->order.record.sample.period = attr->sample_period;
}

/* Gives the oldest record that is due. 1; 0: none is; -EBADMSG. */
static int give(struct tally_sampler *s, const struct tally_sampled **out)
{
	struct order *order = &s->order;

	if (!order->heap_count)
		return 0;
	uint32_t ring = order->given = order->heap[0];
	const struct cursor *c = &order->cursors[ring];
	uint32_t event = sampler_event_of(s, c->next, c->next->size);
	const struct tally_layout *layout = &s->layouts[event < s->plan.count ? event : 0];
	int r = tally_record_decode(layout, c->next, c->next->size, &order->record,
				    sizeof(order->record));
	if (r < 0)
		return -EBADMSG;
	fill_period(s, event);
	account_add(s, event, &order->record);
	if (c->time < order->last_time)
		s->account.all.disordered++;
	else
		order->last_time = c->time;
	order->out = (struct tally_sampled){
		.record = &order->record,
		.event = event,
		.ring = ring,
		.cpu = s->rings[ring].cpu,
	};
	*out = &order->out;
	return 1;
}

/*
 * How long may be waited, in ms: until the caller's deadline or the next look at all rings. What a
 * round had to keep back is looked for soon, but once only: while records come without end, rings
 * are to fill up to their watermarks.
 */
static int wait_ms(const struct order *order, int timeout_ms, uint64_t deadline)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t until = order->looked ? order->looked_ns : now;

	if (order->looked)
		until += order->kept ? HOLD_NS : ROUND_NS;

	if (timeout_ms >= 0 && deadline < until)
		until = deadline;
	return until <= now ? 0 : (int)((until - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* Waits and begins a round. 1: look what is due; 0: time-out; -EPIPE: the end; or -errno. */
static int next_round(struct tally_sampler *s, int timeout_ms, uint64_t deadline)
{
	int waited = tally_sampler_wait(s, wait_ms(&s->order, timeout_ms, deadline));

	if (waited < 0 && waited != -EPIPE)
		return waited;
	s->order.woken = waited == 1;
	int r = begin_round(s);
	if (r < 0 || s->order.heap_count)
		return r < 0 ? r : 1;
	end_round(s);
	if (waited == -EPIPE)
		return -EPIPE;
	return timeout_ms < 0 || clock_ns(CLOCK_MONOTONIC) < deadline;
}

int tally_sampler_next(struct tally_sampler *s, int timeout_ms, const struct tally_sampled **out)
{
	uint64_t deadline = 0;

	if (s->plan.opts.flags & TALLY_SAMPLER_OVERWRITE)
		return -EINVAL;
	int r = go_on(s);
	if (r == 0)
		r = give(s, out);
	if (r)
		return r;
	if (timeout_ms > 0)
		deadline = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NS_PER_MS;
	for (;;) {
		r = next_round(s, timeout_ms, deadline);
		if (r <= 0)
			return r;
		r = give(s, out);
		if (r)
			return r;
	}
}
