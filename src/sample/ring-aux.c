/* SPDX-License-Identifier: MIT */
/*
 * The AUX area, perf_event_open(2) "aux_offset": memory behind the ring that hardware writes its own
 * stream into. Where it shall be is told to the kernel through the ring's first page.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "event/explain.h"
#include "sample/ring-inside.h"

#define DEFAULT_BYTES (4u << 20)

static int read_opts(struct tally_aux_opts *out, const struct tally_aux_opts *opts,
		     const struct tally_ring *ring, struct tally_error *err)
{
	int r = opts_read(out, sizeof(*out), TALLY_AUX_SNAPSHOT, opts, err);

	if (r < 0)
		return r;
	if (ring->aux.data)
		return error_set(err, -EBUSY, TALLY_CAUSE_BUSY, "the ring has an AUX area already");
	return 0;
}

static int explain_aux(int code, uint64_t bytes, struct tally_error *err)
{
	if (code == -EOPNOTSUPP || code == -EINVAL)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "this event has no AUX area: only those of instruction tracing "
				 "(intel_pt, arm_spe, cs_etm ...) have");
	if (code == -EBUSY)
		return error_set(err, code, TALLY_CAUSE_BUSY,
				 "the event has an AUX area of another size already");
	return explain_mmap(err, code, bytes, NULL);
}

int tally_ring_aux_open(struct tally_ring *ring, const struct tally_aux_opts *opts,
			struct tally_error *err)
{
	struct tally_aux_opts o;
	void *memory = NULL;
	int r = read_opts(&o, opts, ring, err);

	if (r < 0)
		return r;
	uint64_t bytes = ring_round_up(o.bytes ? o.bytes : DEFAULT_BYTES);
	if (ring->fd < 0 || ring->overwrite || !bytes)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an AUX area needs a forward ring of an event, and a size that a "
				 "machine can map");
	bool snapshot = o.flags & TALLY_AUX_SNAPSHOT;
	ring->page->aux_offset = ring->map_len;
	ring->page->aux_size = bytes;
	/* Read-only is how the kernel knows that it may be overwritten (rb_alloc_aux()). */
	r = sys()->mmap(&memory, (size_t)bytes, PROT_READ | (snapshot ? 0 : PROT_WRITE), MAP_SHARED,
			ring->fd, (off_t)ring->map_len);
	if (r < 0)
		return explain_aux(r, bytes, err);
	ring->aux = (struct aux_area){ memory, bytes, snapshot, true };
	return 0;
}

int tally_ring_aux_attach(struct tally_ring *ring, void *memory, uint64_t bytes,
			  const struct tally_aux_opts *opts, struct tally_error *err)
{
	struct tally_aux_opts o;
	int r = read_opts(&o, opts, ring, err);

	if (r < 0)
		return r;
	if (ring->fd >= 0 || !memory || !is_power_of_two(bytes))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an AUX area is attached to an attached ring, and has a power of "
				 "two of bytes, not %" PRIu64,
				 bytes);
	ring->aux = (struct aux_area){ memory, bytes, o.flags & TALLY_AUX_SNAPSHOT, false };
	return 0;
}

int tally_ring_aux_peek(struct tally_ring *ring, struct iovec spans[2])
{
	const struct aux_area *aux = &ring->aux;

	if (!aux->data || aux->snapshot)
		return -EINVAL;
	uint64_t head = ring_load_acquire(&ring->page->aux_head), tail = ring->page->aux_tail;
	if (head - tail > aux->size) {
		ring_store_release(&ring->page->aux_tail, head);
		return -EBADMSG;
	}
	return ring_spans(aux->data, aux->size, tail, head - tail, spans);
}

void tally_ring_aux_advance(struct tally_ring *ring, uint64_t bytes)
{
	if (!ring->aux.data || ring->aux.snapshot)
		return;
	uint64_t head = ring_load_acquire(&ring->page->aux_head), tail = ring->page->aux_tail;
	ring_store_release(&ring->page->aux_tail,
			   tail + (bytes < head - tail ? bytes : head - tail));
}

/*
 * Drivers give the head of a snapshot as a place in the area or as an ever growing count
 * (intel_pt_snapshot_start(), arm_spe): modulo the size both are where the next byte goes.
 */
int tally_ring_aux_snapshot(struct tally_ring *ring, uint64_t most, struct iovec spans[2])
{
	const struct aux_area *aux = &ring->aux;

	if (!aux->data || !aux->snapshot)
		return -EINVAL;
	uint64_t head = ring_load_acquire(&ring->page->aux_head);
	uint64_t bytes = most < aux->size ? most : aux->size;
	return ring_spans(aux->data, aux->size, head - bytes, bytes, spans);
}
