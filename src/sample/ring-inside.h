/* SPDX-License-Identifier: MIT */
/* What a ring is made of, for its files: ring.c, ring-wait.c, ring-snapshot.c, ring-aux.c. */
#ifndef SAMPLE_RING_INSIDE_H
#define SAMPLE_RING_INSIDE_H

#include <linux/perf_event.h>
#include <tally/ring.h>

#include "sample/cancel.h"

/* The AUX area, which has places of its own in the first page. */
struct aux_area {
	const unsigned char *data; /* NULL: none */
	uint64_t size;
	bool snapshot, mapped;
};

struct tally_ring {
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size;
	uint64_t position; /* how far it has been read; ahead of data_tail until released */
	uint64_t head;     /* data_head as it was last looked at */
	void *wrapped;     /* a record that goes around the end, whole */
	size_t map_len;    /* 0: memory of the caller's */
	int fd;
	struct cancel cancel;
	bool overwrite; /* position and head then are those of the snapshot: [position, head) is read */
	uint64_t newest; /* the head of the last snapshot */
	struct aux_area aux;
	char shrunk[160];
};

/* A power of two of pages; 0 when there is none. */
uint64_t ring_round_up(uint64_t bytes);

/* The spans of `bytes` at `position` of a ring's or an area's data. Returns how many. */
int ring_spans(const unsigned char *data, uint64_t size, uint64_t position, uint64_t bytes,
	       struct iovec spans[2]);

/* Looks at the head. How many bytes there are to read, or more than the size: a head that lies. */
uint64_t ring_look(struct tally_ring *ring);

/* tally_ring_next() up to a head that was taken before. */
int ring_next_to(struct tally_ring *ring, uint64_t head, const struct tally_record_header **header);

/* Gives the space before `position` back to the kernel. */
void ring_release_to(struct tally_ring *ring, uint64_t position);

/*
 * Acquire: pairs with the smp_wmb() between the kernel's stores of records and of data_head
 * (perf_output_put_handle(), kernel/events/ring_buffer.c), so that what stands before the head is
 * whole. aux_head likewise (perf_aux_output_end()).
 */
static inline uint64_t ring_load_acquire(const __u64 *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* Release: our loads from the records come before it (kernel: __perf_output_begin()). */
static inline void ring_store_release(__u64 *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

#endif
