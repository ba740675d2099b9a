/* SPDX-License-Identifier: MIT */
/*
 * The memory that the kernel shares: a page of metadata (struct perf_event_mmap_page) and a power
 * of two of bytes that it writes round and round. `data_head` and `data_tail` only grow; modulo the
 * size they are places. Records are padded to 8 bytes, so that a header never wraps; a record that
 * does is put together in a buffer of its own, since the ring cannot be mapped twice in a row.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tally/ring.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "event/explain.h"

#define DEFAULT_BYTES  (512u * 1024)
#define LARGEST_BYTES  (1ull << 40) /* far beyond what the kernel maps (1 GiB); keeps sums small */
#define LONGEST_RECORD 65536u       /* header.size has 16 bits */
#define RECORD_ALIGN   8u           /* perf_prepare_sample() and perf_event_header__init_id() */

struct tally_ring {
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size;
	uint64_t position; /* how far it has been read; ahead of data_tail until released */
	uint64_t head;     /* data_head as it was last looked at */
	void *wrapped;     /* a record that goes around the end, whole */
	size_t map_len;    /* 0: memory of the caller's */
	int fd;
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int ring_new(struct tally_ring **out, int fd, struct tally_error *err)
{
	struct tally_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return error_nomem(err, "a ring");
	ring->fd = fd;
	ring->wrapped = malloc(LONGEST_RECORD);
	if (!ring->wrapped) {
		free(ring);
		return error_nomem(err, "a ring");
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

static void start_at_tail(struct tally_ring *ring)
{
	ring->position = ring->head = ring->page->data_tail;
}

/* A power of two of pages; 0 when there is none. */
static uint64_t ring_bytes(uint64_t wanted)
{
	uint64_t bytes = page_size();

	if (!wanted)
		wanted = DEFAULT_BYTES;
	if (wanted > LARGEST_BYTES)
		return 0;
	while (bytes < wanted)
		bytes *= 2;
	return bytes;
}

int tally_ring_open(struct tally_ring **out, int fd, const struct tally_ring_opts *opts,
		    struct tally_error *err)
{
	struct tally_ring_opts o;
	struct tally_ring *ring;
	void *memory = NULL;

	int r = opts_read(&o, sizeof(o), 0, opts, err);
	if (r < 0)
		return r;
	uint64_t bytes = ring_bytes(o.bytes);
	if (!bytes)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a ring of %" PRIu64 " bytes is larger than any machine maps",
				 o.bytes);
	r = ring_new(&ring, fd, err);
	if (r < 0)
		return r;
	size_t len = page_size() + (size_t)bytes;
	r = sys()->mmap(&memory, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r < 0) {
		explain_mmap(err, r, bytes, NULL);
		goto fail;
	}
	ring->page = memory;
	ring->map_len = len;
	r = find_data(ring, bytes, err);
	if (r < 0)
		goto fail;
	start_at_tail(ring);
	*out = ring;
	return 0;
fail:
	tally_ring_close(ring);
	return r;
}

int tally_ring_attach(struct tally_ring **out, void *memory, uint64_t bytes,
		      struct tally_error *err)
{
	struct tally_ring *ring;

	if (!memory || (uintptr_t)memory % RECORD_ALIGN || !is_power_of_two(bytes) ||
	    bytes < RECORD_ALIGN || bytes > LARGEST_BYTES)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a ring needs memory aligned to %u and a power of two of bytes "
				 "behind its first page, not %" PRIu64,
				 RECORD_ALIGN, bytes);
	int r = ring_new(&ring, -1, err);
	if (r < 0)
		return r;
	ring->page = memory;
	ring->data = (unsigned char *)memory + page_size();
	ring->size = bytes;
	start_at_tail(ring);
	*out = ring;
	return 0;
}

/*
 * Acquire: pairs with the smp_wmb() between the kernel's stores of records and of data_head
 * (perf_output_put_handle(), kernel/events/ring_buffer.c), so that what stands before the head is
 * whole.
 */
static uint64_t load_head(const struct tally_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

/*
 * Release: our loads from the records come before it. Pairs with the kernel's load of data_tail
 * before it writes over them (__perf_output_begin(), by its control dependency).
 */
static void store_tail(struct tally_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->position, __ATOMIC_RELEASE);
}

/* Gives up all that is in the ring: nothing tells where in it the next record begins. */
static int resynchronise(struct tally_ring *ring)
{
	ring->position = ring->head;
	store_tail(ring);
	return -EBADMSG;
}

/* Looks at the head. How many bytes there are to read, or more than the size: a head that lies. */
static uint64_t look(struct tally_ring *ring)
{
	ring->head = load_head(ring);
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

int tally_ring_next(struct tally_ring *ring, const struct tally_record_header **header)
{
	uint64_t available = ring->head - ring->position, word;
	struct tally_record_header h;

	if (!available)
		available = look(ring);
	if (!available)
		return 0;
	if (available > ring->size || (available | ring->position) % RECORD_ALIGN)
		return resynchronise(ring);
	uint64_t offset = ring->position & (ring->size - 1);
	memcpy(&word, ring->data + offset, sizeof(word));
	memcpy(&h, &word, sizeof(h));
	if (h.size < sizeof(h) || h.size % RECORD_ALIGN || h.size > available)
		return resynchronise(ring);
	ring->position += h.size;
	*header = offset + h.size <= ring->size ? (const void *)(ring->data + offset)
						: unwrap(ring, offset, word, h.size);
	return 1;
}

void tally_ring_release(struct tally_ring *ring)
{
	store_tail(ring);
}

static int spans_of(const struct tally_ring *ring, uint64_t bytes, struct iovec spans[2])
{
	uint64_t offset = ring->position & (ring->size - 1);
	uint64_t first = ring->size - offset;
	unsigned char *data = (unsigned char *)(uintptr_t)ring->data;

	if (!bytes)
		return 0;
	spans[0] = (struct iovec){ data + offset, bytes < first ? bytes : first };
	if (bytes <= first)
		return 1;
	spans[1] = (struct iovec){ data, bytes - first };
	return 2;
}

int tally_ring_peek(struct tally_ring *ring, struct iovec spans[2])
{
	uint64_t available = look(ring);

	return available > ring->size ? resynchronise(ring) : spans_of(ring, available, spans);
}

uint64_t tally_ring_head(const struct tally_ring *ring)
{
	return load_head(ring);
}

int tally_ring_peek_to(struct tally_ring *ring, uint64_t head, struct iovec spans[2])
{
	uint64_t available = look(ring);
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
	store_tail(ring);
}

uint64_t tally_ring_size(const struct tally_ring *ring)
{
	return ring->size;
}

int tally_ring_fd(const struct tally_ring *ring)
{
	return ring->fd;
}

void tally_ring_close(struct tally_ring *ring)
{
	if (!ring)
		return;
	if (ring->map_len)
		sys()->munmap(ring->page, ring->map_len);
	free(ring->wrapped);
	free(ring);
}
