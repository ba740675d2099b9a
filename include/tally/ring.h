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
 * Three kinds of ring:
 *  - forward: the kernel stops when it is full, and tells what it lost;
 *  - overwrite (TALLY_RING_OVERWRITE): a flight recorder, in which the newest records replace the
 *    oldest; it is read by tally_ring_snapshot(), from the newest back to the oldest;
 *  - beside either the AUX area, into which hardware writes its own stream.
 *
 * Bytes are never trusted: a record whose size is below 8, not a multiple of 8 or beyond what the
 * kernel has written ends in -EBADMSG, and the ring is set past all that is in it.
 * One thread reads a ring at a time; tally_ring_cancel() is for the others.
 */
#ifndef TALLY_RING_H
#define TALLY_RING_H

#include <sys/uio.h>
#include <tally/api.h>
#include <tally/error.h>
#include <tally/record.h>

TALLY_BEGIN_DECLS

struct tally_ring;

enum tally_ring_flags {
	/* The event was opened with TALLY_ATTR_WRITE_BACKWARD [4.7]: newest records first. */
	TALLY_RING_OVERWRITE = 1u << 0,
	TALLY_RING_CANCELLABLE = 1u
				 << 1, /* tally_ring_cancel() may end its waits; takes an eventfd */
	/* Half the size, again and again down to a page, while the kernel refuses it for want of memory
	 * or of what may be locked; tally_ring_shrunk() then says why. */
	TALLY_RING_SHRINK = 1u << 2,
};

struct tally_ring_opts {
	uint32_t size, flags; /* enum tally_ring_flags */
	uint64_t bytes;       /* of the data area; rounded up to a power of two pages; 0: 512 KiB */
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
 * are not the kernel. opts->bytes is not looked at. Errors: -EINVAL, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_ring_attach(struct tally_ring **out, void *memory, uint64_t bytes,
				const struct tally_ring_opts *opts, struct tally_error *err);

/*
 * The next record. Returns 1 with `*header`, valid until the next call on this ring; 0 when the
 * ring is empty; -EBADMSG for bytes that cannot be a record. Since: 0.1
 */
TALLY_API int tally_ring_next(struct tally_ring *ring, const struct tally_record_header **header);

/*
 * Waits until there is something to read, for `timeout_ms` at most; negative: for ever. The kernel
 * wakes by the event's watermark, so that records below it are seen when the time is up; then a ring
 * with something in it answers 1, too. Returns 1; 0 at the time-out; -EPIPE when all tasks that the
 * event counts have ended and nothing is left to read; -ECANCELED after tally_ring_cancel(); -EINTR
 * when a signal came. Allocates nothing. Since: 0.1
 */
TALLY_API int tally_ring_wait(struct tally_ring *ring, int timeout_ms);

/*
 * The next record, waiting for it: what tally_ring_next() and tally_ring_wait() answer. What earlier
 * calls have returned is released before it waits. Since: 0.1
 */
TALLY_API int tally_ring_next_wait(struct tally_ring *ring, int timeout_ms,
				   const struct tally_record_header **header);

/*
 * Ends the wait that is going on in another thread, or else the next one. Async-signal-safe. Errors:
 * -EINVAL without TALLY_RING_CANCELLABLE. Since: 0.1
 */
TALLY_API int tally_ring_cancel(struct tally_ring *ring);

/* Why it is smaller than was asked for, as a phrase; NULL when it is not. Since: 0.1 */
TALLY_API const char *tally_ring_shrunk(const struct tally_ring *ring);

/*
 * Stops or resumes the kernel's writing; meanwhile what it would have written is lost and counted as
 * such [4.7]. Errors: -errno of ioctl(2); -EINVAL for an attached ring. Since: 0.1
 */
TALLY_API int tally_ring_pause(struct tally_ring *ring, bool paused);

/*
 * Takes a snapshot of an overwrite ring: its output is paused, and next and peek give what has come
 * since the snapshot before, as far as it has not been overwritten, newest first. The oldest record
 * is left out when the newest has overwritten a part of it. resume lets the kernel go on. For an
 * attached ring only what is read changes. Errors: -EINVAL for a forward ring; of tally_ring_pause.
 * Since: 0.1
 */
TALLY_API int tally_ring_snapshot(struct tally_ring *ring);
TALLY_API int tally_ring_resume(struct tally_ring *ring);

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

struct tally_aux_opts {
	uint32_t size, flags; /* enum tally_aux_flags */
	uint64_t bytes;       /* rounded up to a power of two of pages; 0: 4 MiB */
};

enum tally_aux_flags {
	/* Hardware overwrites what is old; tally_ring_aux_snapshot() gives the newest. */
	TALLY_AUX_SNAPSHOT = 1u << 0,
};

/*
 * Maps the AUX area of a ring whose event has one (Intel PT, Arm SPE and CoreSight) [4.1]. AUX
 * records in the ring tell what came. Errors: -EOPNOTSUPP for events without one; -EPERM by the
 * mlock limits; -EBUSY when it has one already; -EINVAL for an attached ring; -ENOMEM. Since: 0.1
 */
TALLY_API int tally_ring_aux_open(struct tally_ring *ring, const struct tally_aux_opts *opts,
				  struct tally_error *err);

/* An AUX area over memory of the caller's, for an attached ring. Errors: -EINVAL. Since: 0.1 */
TALLY_API int tally_ring_aux_attach(struct tally_ring *ring, void *memory, uint64_t bytes,
				    const struct tally_aux_opts *opts, struct tally_error *err);

/*
 * What is in the AUX area, as tally_ring_peek; and giving its first `bytes` back. With
 * TALLY_AUX_SNAPSHOT nothing is given back. Errors: -EINVAL without an area; -EBADMSG when its head
 * is further ahead than it is long. Since: 0.1
 */
TALLY_API int tally_ring_aux_peek(struct tally_ring *ring, struct iovec spans[2]);
TALLY_API void tally_ring_aux_advance(struct tally_ring *ring, uint64_t bytes);

/*
 * The newest bytes of a snapshot area, at most `most`, oldest first, as spans. Hardware must have
 * been stopped (the event disabled) or they change meanwhile. Since: 0.1
 */
TALLY_API int tally_ring_aux_snapshot(struct tally_ring *ring, uint64_t most,
				      struct iovec spans[2]);

/* Unmaps it. NULL is fine. Since: 0.1 */
TALLY_API void tally_ring_close(struct tally_ring *ring);

TALLY_END_DECLS

#endif
