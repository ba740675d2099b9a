/* SPDX-License-Identifier: MIT */
/*
 * Overwrite rings. The kernel writes them backward (__perf_output_begin() with write_backward): its
 * head starts at 0 and falls, so that the newest record begins at the head and the others follow it,
 * up to where the newest overwrites the oldest.
 */
#include <errno.h>

#include "base/sys.h"
#include "sample/ring-inside.h"

int tally_ring_pause(struct tally_ring *ring, bool paused)
{
	if (ring->fd < 0)
		return -EINVAL;
	return sys()->ioctl(ring->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, paused);
}

int tally_ring_snapshot(struct tally_ring *ring)
{
	if (!ring->overwrite)
		return -EINVAL;
	int r = ring->fd >= 0 ? tally_ring_pause(ring, true) : 0;
	if (r < 0)
		return r;
	uint64_t newest = ring_load_acquire(&ring->page->data_head);
	uint64_t since = ring->newest - newest;
	ring->position = newest;
	ring->head = newest + (since < ring->size ? since : ring->size);
	ring->newest = newest;
	return 0;
}

int tally_ring_resume(struct tally_ring *ring)
{
	if (!ring->overwrite)
		return -EINVAL;
	ring->position = ring->head;
	return ring->fd >= 0 ? tally_ring_pause(ring, false) : 0;
}
