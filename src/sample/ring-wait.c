/* SPDX-License-Identifier: MIT */
/* Waiting for a ring: by poll(2) on the event, whose hang-up is not the end of what can be read. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "base/sys.h"
#include "sample/ring-inside.h"

#define NS_PER_MS 1000000u

int tally_ring_cancel(struct tally_ring *ring)
{
	return cancel_send(&ring->cancel);
}

/* What is left until the deadline, rounded up, for poll(2). */
static int left_ms(uint64_t deadline)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return now >= deadline ? 0 : (int)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* One poll(2). 0: look again, or the time is up. */
static int wait_once(struct tally_ring *ring, int timeout_ms)
{
	struct pollfd fds[2] = { { ring->fd, POLLIN, 0 }, { ring->cancel.fd, POLLIN, 0 } };
	int r = sys()->poll(fds, 2, timeout_ms);

	if (r < 0)
		return r;
	if (cancel_taken(&ring->cancel))
		return -ECANCELED;
	if (ring_look(ring))
		return 1;
	/* POLLERR: the event was revoked, or is pinned and found no counter. */
	return fds[0].revents & (POLLHUP | POLLERR | POLLNVAL) ? -EPIPE : 0;
}

int tally_ring_wait(struct tally_ring *ring, int timeout_ms)
{
	uint64_t deadline = 0;

	if (cancel_taken(&ring->cancel))
		return -ECANCELED;
	if (ring_look(ring))
		return 1;
	if (timeout_ms > 0)
		deadline = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NS_PER_MS;
	for (;;) {
		int wait_ms = timeout_ms > 0 ? left_ms(deadline) : timeout_ms;
		int r = wait_once(ring, wait_ms);
		if (r || !wait_ms)
			return r;
	}
}

int tally_ring_next_wait(struct tally_ring *ring, int timeout_ms,
			 const struct tally_record_header **header)
{
	if (cancel_taken(&ring->cancel))
		return -ECANCELED;
	int r = tally_ring_next(ring, header);
	if (r)
		return r;
	tally_ring_release(ring);
	r = tally_ring_wait(ring, timeout_ms);
	return r > 0 ? tally_ring_next(ring, header) : r;
}
