/* SPDX-License-Identifier: MIT */
/*
 * tally_ring: the memory that the kernel writes an event's records into.
 *
 * Reading copies nothing: a record is a pointer into the ring until it is released; only one that
 * wraps around the ring's end is copied, once. What the kernel lost is told by LOST records.
 *
 *	while (tally_ring_next(ring, &header) > 0)
 *		consume(header, header->size);
 *	tally_ring_release(ring);
 *
 * Bytes are never trusted: a record whose size is below 8, not a multiple of 8 or beyond what the
 * kernel has written ends in -EBADMSG, and the ring is set past all that is in it.
 * One thread reads a ring at a time.
 */
#ifndef TALLY_RING_H
#define TALLY_RING_H

#include <sys/uio.h>
#include <tally/api.h>
#include <tally/error.h>
#include <tally/record.h>

TALLY_BEGIN_DECLS

struct tally_ring;

struct tally_ring_opts {
	uint32_t size, flags;
	uint64_t bytes; /* of the data area; rounded up to a power of two pages; 0: 512 KiB */
};

/*
 * Maps a ring for an event's descriptor, which stays the caller's and must outlive it.
 * Errors: -EPERM with the mlock limits and what is needed (TALLY_CAUSE_MLOCK_LIMIT); -EINVAL for an
 * inherited event that is not bound to a CPU; -EBUSY when its output goes to another ring; -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_ring_open(struct tally_ring **out, int fd, const struct tally_ring_opts *opts,
			      struct tally_error *err);

/*
 * A ring over memory of the caller's: a metadata page as the kernel lays it out (struct
 * perf_event_mmap_page) and then `bytes` of data, a power of two. For tests and for producers that
 * are not the kernel. Errors: -EINVAL, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_ring_attach(struct tally_ring **out, void *memory, uint64_t bytes,
				struct tally_error *err);

/*
 * The next record. Returns 1 with `*header`, valid until the next call on this ring; 0 when the
 * ring is empty; -EBADMSG for bytes that cannot be a record. Since: 0.1
 */
TALLY_API int tally_ring_next(struct tally_ring *ring, const struct tally_record_header **header);

/* Gives the space of all records that `next` has returned back to the kernel. Since: 0.1 */
TALLY_API void tally_ring_release(struct tally_ring *ring);

/*
 * What is in the ring now as one or two stretches of raw bytes, for writing them out untouched.
 * Returns 0, 1 or 2; -EBADMSG when the head is further ahead than the ring is long, which is then
 * set past all that is in it. Not to be mixed with next. Since: 0.1
 */
TALLY_API int tally_ring_peek(struct tally_ring *ring, struct iovec spans[2]);

/*
 * Where the kernel writes next; an ever growing count of bytes. tally_ring_peek_to gives the spans
 * up to such a head only: take the heads of all rings first, then drain each up to its own, and no
 * record in them is newer than the heads. Since: 0.1
 */
TALLY_API uint64_t tally_ring_head(const struct tally_ring *ring);
TALLY_API int tally_ring_peek_to(struct tally_ring *ring, uint64_t head, struct iovec spans[2]);

/* Gives the first `bytes` of what peek showed back to the kernel. Since: 0.1 */
TALLY_API void tally_ring_advance(struct tally_ring *ring, uint64_t bytes);

/* The size of the data area in bytes, and the descriptor (-1: attached), to poll. Since: 0.1 */
TALLY_API uint64_t tally_ring_size(const struct tally_ring *ring);
TALLY_API int tally_ring_fd(const struct tally_ring *ring);

/* Unmaps it. NULL is fine. Since: 0.1 */
TALLY_API void tally_ring_close(struct tally_ring *ring);

TALLY_END_DECLS

#endif
