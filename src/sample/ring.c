/* SPDX-License-Identifier: MIT */
/*
 * The memory that the kernel shares: a page of metadata (struct perf_event_mmap_page) and a power
 * of two of bytes that it writes round and round. `data_head` and `data_tail` only grow; modulo the
 * size they are places. Records are padded to 8 bytes, so that a header never wraps; a record that
 * does is put together in a buffer of its own, since the ring cannot be mapped twice in a row.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/page.h"
#include "base/sys.h"
#include "event/explain.h"
#include "sample/ring-inside.h"

#define DEFAULT_BYTES  (512u * 1024)
#define LARGEST_BYTES  (1ull << 40) /* far beyond what the kernel maps (1 GiB); keeps sums small */
#define LONGEST_RECORD 65536u       /* header.size has 16 bits */
#define RECORD_ALIGN   8u           /* perf_prepare_sample() and perf_event_header__init_id() */

#define KNOWN_FLAGS ((uint32_t)(TALLY_RING_OVERWRITE | TALLY_RING_CANCELLABLE | TALLY_RING_SHRINK))

static int ring_new(struct tally_ring **out, int fd, uint32_t flags, struct tally_error *err)
{
	struct tally_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return error_nomem(err, "a ring");
	ring->fd = fd;
	ring->cancel = CANCEL_NONE;
	ring->wrapped = malloc(LONGEST_RECORD);
	ring->overwrite = flags & TALLY_RING_OVERWRITE;
	if (!ring->wrapped) {
		free(ring);
		return error_nomem(err, "a ring");
	}
	if (flags & TALLY_RING_CANCELLABLE) {
		int r = cancel_open(&ring->cancel, err);
		if (r < 0) {
			tally_ring_close(ring);
			return r;
		}
	}
	*out = ring;
	return 0;
}

/* Kernels before 4.1 do not say where the data area is: it follows the page. */
static int find_data(struct tally_ring *ring, uint64_t bytes, struct tally_error *err)
{
	uint64_t offset = ring->page->data_offset, size = ring->page->data_size;

	if (!offset)
		offset = page_size();
	if (!size)
		size = bytes;
	if (!is_power_of_two(size) || size > bytes || offset > ring->map_len - size)
		return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
				 "the ring's first page puts %" PRIu64 " bytes of data at %" PRIu64
				 ", outside its %zu bytes",
				 size, offset, ring->map_len);
	ring->data = (const unsigned char *)ring->page + offset;
	ring->size = size;
	return 0;
}

/* An overwrite ring has no tail, and nothing to read before its first snapshot. */
static void start(struct tally_ring *ring)
{
	if (!ring->overwrite)
		ring->position = ring->head = ring->page->data_tail;
}

/* Nothing is given back to an overwrite ring, whose page cannot be written. */
static void give_back(struct tally_ring *ring)
{
	if (!ring->overwrite)
		ring_store_release(&ring->page->data_tail, ring->position);
}

uint64_t ring_round_up(uint64_t wanted)
{
	uint64_t bytes = page_size();

	if (wanted > LARGEST_BYTES)
		return 0;
	while (bytes < wanted)
		bytes *= 2;
	return bytes;
}

/* An overwrite ring is mapped read-only: that is how the kernel knows (perf_mmap()). */
static int map_bytes(struct tally_ring *ring, uint64_t bytes)
{
	int prot = PROT_READ | (ring->overwrite ? 0 : PROT_WRITE);
	size_t len = page_size() + (size_t)bytes;
	void *memory = NULL;
	int r = sys()->mmap(&memory, len, prot, MAP_SHARED, ring->fd, 0);

	if (r < 0)
		return r;
	ring->page = memory;
	ring->map_len = len;
	return 0;
}

static bool may_shrink(const struct tally_ring_opts *o, int code, uint64_t bytes)
{
	return o->flags & TALLY_RING_SHRINK && (code == -EPERM || code == -ENOMEM) &&
	       bytes > page_size();
}

static int map_ring(struct tally_ring *ring, const struct tally_ring_opts *o,
		    struct tally_error *err)
{
	uint64_t wanted = ring_round_up(o->bytes ? o->bytes : DEFAULT_BYTES), bytes = wanted;
	int r = map_bytes(ring, bytes), first = r;

	while (may_shrink(o, r, bytes)) {
		bytes /= 2;
		r = map_bytes(ring, bytes);
	}
	if (r < 0)
		return explain_mmap(err, r, bytes, NULL);
	if (bytes < wanted)
		snprintf(ring->shrunk, sizeof(ring->shrunk),
			 "%" PRIu64 " instead of %" PRIu64 " KiB of ring: %s", bytes / 1024,
			 wanted / 1024,
			 first == -EPERM ? "more may not be locked in memory "
					   "(kernel.perf_event_mlock_kb, ulimit -l)"
					 : "there is no memory for more");
	return find_data(ring, bytes, err);
}

int tally_ring_open(struct tally_ring **out, int fd, const struct tally_ring_opts *opts,
		    struct tally_error *err)
{
	struct tally_ring_opts o;
	struct tally_ring *ring;

	int r = opts_read(&o, sizeof(o), KNOWN_FLAGS, opts, err);
	if (r < 0)
		return r;
	if (o.bytes > LARGEST_BYTES)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a ring of %" PRIu64 " bytes is larger than any machine maps",
				 o.bytes);
	r = ring_new(&ring, fd, o.flags, err);
	if (r < 0)
		return r;
	r = map_ring(ring, &o, err);
	if (r < 0)
		goto fail;
	start(ring);
	*out = ring;
	return 0;
fail:
	tally_ring_close(ring);
	return r;
}

int tally_ring_attach(struct tally_ring **out, void *memory, uint64_t bytes,
		      const struct tally_ring_opts *opts, struct tally_error *err)
{
	struct tally_ring_opts o;
	struct tally_ring *ring;
	int r = opts_read(&o, sizeof(o), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	if (!memory || (uintptr_t)memory % RECORD_ALIGN || !is_power_of_two(bytes) ||
	    bytes < RECORD_ALIGN || bytes > LARGEST_BYTES)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a ring needs memory aligned to %u and a power of two of bytes "
				 "behind its first page, not %" PRIu64,
				 RECORD_ALIGN, bytes);
	r = ring_new(&ring, -1, o.flags, err);
	if (r < 0)
		return r;
	ring->page = memory;
	ring->data = (unsigned char *)memory + page_size();
	ring->size = bytes;
	start(ring);
	*out = ring;
	return 0;
}

/* Gives up all that is in the ring: nothing tells where in it the next record begins. */
static int resynchronise(struct tally_ring *ring)
{
	ring->position = ring->head;
	give_back(ring);
	return -EBADMSG;
}

/* A snapshot's head stands still. */
uint64_t ring_look(struct tally_ring *ring)
{
	if (!ring->overwrite)
		ring->head = ring_load_acquire(&ring->page->data_head);
	return ring->head - ring->position;
}

/* Puts together a record that goes around the end; its header as it was checked. */
static const void *unwrap(struct tally_ring *ring, uint64_t offset, uint64_t header, size_t size)
{
	size_t first = (size_t)(ring->size - offset);

	memcpy(ring->wrapped, ring->data + offset, first);
	memcpy((unsigned char *)ring->wrapped + first, ring->data, size - first);
	memcpy(ring->wrapped, &header, sizeof(header));
	return ring->wrapped;
}

/* The header at `position`, of which `available` bytes are there; false: it cannot be one. */
static bool header_at(const struct tally_ring *ring, uint64_t position, uint64_t available,
		      struct tally_record_header *h, uint64_t *word)
{
	memcpy(word, ring->data + (position & (ring->size - 1)), sizeof(*word));
	memcpy(h, word, sizeof(*h));
	return h->size >= sizeof(*h) && h->size % RECORD_ALIGN == 0 && h->size <= available;
}

int tally_ring_next(struct tally_ring *ring, const struct tally_record_header **header)
{
	uint64_t available = ring->head - ring->position, word;
	struct tally_record_header h;

	if (!available)
		available = ring_look(ring);
	if (!available)
		return 0;
	if (available > ring->size || (available | ring->position) % RECORD_ALIGN)
		return resynchronise(ring);
	if (!header_at(ring, ring->position, available, &h, &word)) {
		/* The oldest record of a snapshot, which the newest has overwritten in part. */
		int r = resynchronise(ring);
		return ring->overwrite ? 0 : r;
	}
	uint64_t offset = ring->position & (ring->size - 1);
	ring->position += h.size;
	*header = offset + h.size <= ring->size ? (const void *)(ring->data + offset)
						: unwrap(ring, offset, word, h.size);
	return 1;
}

int ring_next_to(struct tally_ring *ring, uint64_t head, const struct tally_record_header **header)
{
	if (head == ring->position)
		return 0;
	ring->head = head;
	return tally_ring_next(ring, header);
}

void ring_release_to(struct tally_ring *ring, uint64_t position)
{
	ring_store_release(&ring->page->data_tail, position);
}

void tally_ring_release(struct tally_ring *ring)
{
	give_back(ring);
}

int ring_spans(const unsigned char *data, uint64_t size, uint64_t position, uint64_t bytes,
	       struct iovec spans[2])
{
	uint64_t offset = position & (size - 1), first = size - offset;
	unsigned char *at = (unsigned char *)(uintptr_t)data;

	if (!bytes)
		return 0;
	spans[0] = (struct iovec){ at + offset, bytes < first ? bytes : first };
	if (bytes <= first)
		return 1;
	spans[1] = (struct iovec){ at, bytes - first };
	return 2;
}

static int spans_of(const struct tally_ring *ring, uint64_t bytes, struct iovec spans[2])
{
	return ring_spans(ring->data, ring->size, ring->position, bytes, spans);
}

/* How much of a snapshot is whole records. */
static uint64_t whole_bytes(const struct tally_ring *ring, uint64_t available)
{
	struct tally_record_header h;
	uint64_t whole = 0, word;

	while (available > whole &&
	       header_at(ring, ring->position + whole, available - whole, &h, &word))
		whole += h.size;
	return whole;
}

int tally_ring_peek(struct tally_ring *ring, struct iovec spans[2])
{
	uint64_t available = ring_look(ring);

	if (ring->overwrite && (available | ring->position) % RECORD_ALIGN == 0)
		available = whole_bytes(ring, available);

	return available > ring->size ? resynchronise(ring) : spans_of(ring, available, spans);
}

uint64_t tally_ring_head(const struct tally_ring *ring)
{
	return ring_load_acquire(&ring->page->data_head);
}

int tally_ring_peek_to(struct tally_ring *ring, uint64_t head, struct iovec spans[2])
{
	uint64_t available = ring_look(ring);
	uint64_t wanted = head - ring->position;

	if (available > ring->size)
		return resynchronise(ring);
	if (wanted > ring->size) /* a head from before the last advance, or from nowhere */
		return 0;
	return spans_of(ring, wanted < available ? wanted : available, spans);
}

void tally_ring_advance(struct tally_ring *ring, uint64_t bytes)
{
	uint64_t shown = ring->head - ring->position;

	ring->position += bytes < shown ? bytes : shown;
	give_back(ring);
}

uint64_t tally_ring_size(const struct tally_ring *ring)
{
	return ring->size;
}

int tally_ring_fd(const struct tally_ring *ring)
{
	return ring->fd;
}

const char *tally_ring_shrunk(const struct tally_ring *ring)
{
	return ring->shrunk[0] ? ring->shrunk : NULL;
}

void tally_ring_close(struct tally_ring *ring)
{
	if (!ring)
		return;
	if (ring->aux.mapped)
		sys()->munmap((void *)(uintptr_t)ring->aux.data, ring->aux.size);
	if (ring->map_len)
		sys()->munmap(ring->page, ring->map_len);
	cancel_close(&ring->cancel);
	free(ring->wrapped);
	free(ring);
}
