/* SPDX-License-Identifier: MIT */
/*
 * Waiting for many rings. The kernel wakes all events that write to a ring, so that one of them is
 * enough to poll.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/sys.h"
#include "sample/sampler-inside.h"

/*
 * When the task of a polled event and all that inherited from it have ended, the kernel answers POLLHUP
 * for ever and tells no more of the ring; then the next one is watched.
 */
static void watch_next(struct tally_sampler *s, uint32_t ring)
{
	struct shared_ring *shared = &s->rings[ring];
	size_t end = sampler_slots(s);

	do
		shared->watched++;
	while (shared->watched < end &&
	       (s->fds[shared->watched] < 0 ||
		s->place_ring[shared->watched / s->plan.streams_count] != ring));
	if (shared->watched < end) {
		s->polled[ring].fd = s->fds[shared->watched];
		return;
	}
	s->polled[ring].fd = -1;
	s->alive--;
}

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* What poll(2) found: 1 when a ring has data, else 0; `*moved`: another event is now watched. */
static int take_polled(struct tally_sampler *s, bool *moved)
{
	int ready = 0;

	for (uint32_t i = 0; i < s->rings_count; i++) {
		short got = s->polled[i].fd < 0 ? 0 : s->polled[i].revents;
		if (got & POLLIN)
			ready = 1;
		/* POLLERR: a pinned event that found no counter, or one that was revoked. */
		if (got & (POLLHUP | POLLERR | POLLNVAL)) {
			watch_next(s, i);
			*moved = true;
		}
	}
	return ready;
}

int tally_sampler_wait(struct tally_sampler *s, int timeout_ms)
{
	int64_t deadline = timeout_ms > 0 ? now_ms() + timeout_ms : 0;
	nfds_t polled = s->rings_count + (s->cancel.fd >= 0);

	if (cancel_taken(&s->cancel))
		return -ECANCELED;
	while (s->alive) {
		bool moved = false;
		int r = sys()->poll(s->polled, polled, timeout_ms);
		if (cancel_taken(&s->cancel))
			return -ECANCELED;
		if (r <= 0)
			return r;
		if (take_polled(s, &moved))
			return 1;
		if (!moved)
			return 0;
		if (timeout_ms > 0) {
			int64_t left = deadline - now_ms();
			timeout_ms = left > 0 ? (int)left : 0;
		}
	}
	return -EPIPE;
}

int tally_sampler_cancel(struct tally_sampler *s)
{
	return cancel_send(&s->cancel);
}
