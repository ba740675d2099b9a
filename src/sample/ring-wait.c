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
	const uint64_t one = 1;

	if (ring->cancel_fd < 0)
		return -EINVAL;
	/* Release: pairs with the exchange of the waiting thread. */
	__atomic_store_n(&ring->cancelled, true, __ATOMIC_RELEASE);
	ssize_t n = sys()->write(ring->cancel_fd, &one, sizeof(one));
	return n == -EAGAIN || n > 0 ? 0 : (int)n; /* EAGAIN: it is as full as can be */
}

/* Whether it was cancelled since the last time; the flag is looked at so that data cannot hide it. */
static bool take_cancel(struct tally_ring *ring)
{
	uint64_t count;

	if (ring->cancel_fd < 0 || !__atomic_load_n(&ring->cancelled, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&ring->cancelled, false, __ATOMIC_ACQ_REL))
		return false;
	(void)sys()->read(ring->cancel_fd, &count, sizeof(count));
	return true;
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
	struct pollfd fds[2] = { { ring->fd, POLLIN, 0 }, { ring->cancel_fd, POLLIN, 0 } };
	int r = sys()->poll(fds, 2, timeout_ms);

	if (r < 0)
		return r;
	if (take_cancel(ring))
		return -ECANCELED;
	if (ring_look(ring))
		return 1;
	/* POLLERR: the event was revoked, or is pinned and found no counter. */
	return fds[0].revents & (POLLHUP | POLLERR | POLLNVAL) ? -EPIPE : 0;
}

int tally_ring_wait(struct tally_ring *ring, int timeout_ms)
{
	uint64_t deadline = 0;

	if (take_cancel(ring))
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
	if (take_cancel(ring))
		return -ECANCELED;
	int r = tally_ring_next(ring, header);
	if (r)
		return r;
	tally_ring_release(ring);
	r = tally_ring_wait(ring, timeout_ms);
	return r > 0 ? tally_ring_next(ring, header) : r;
}
