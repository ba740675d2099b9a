/* SPDX-License-Identifier: MIT */
/*
 * The ring over hostile memory. An input is a size (a byte: the power of two, from 64 bytes), the
 * tail, and then the ring's bytes with the head in front, one lap after the other: each lap is what
 * the other side has written since. No lap makes the reader run on for ever or read outside.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <tally/ring.h>

#include "fuzz.h"

#define SMALLEST 64u

static uint64_t take_u64(const uint8_t **data, size_t *size)
{
	uint64_t v = 0;
	size_t n = *size < sizeof(v) ? *size : sizeof(v);

	memcpy(&v, *data, n);
	*data += n;
	*size -= n;
	return v;
}

/* All bytes of a record and of a span are there: the sanitizer reads them. */
static void touch(const void *at, size_t len)
{
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)at)[i]);
}

static void read_records(struct tally_ring *ring)
{
	const struct tally_record_header *header;
	uint64_t bytes = 0;
	int r;

	while ((r = tally_ring_next(ring, &header)) > 0) {
		must(header->size >= sizeof(*header) && header->size % 8 == 0);
		touch(header, header->size);
		bytes += header->size;
		must(bytes <= tally_ring_size(ring));
	}
	must(r == 0 || r == -EBADMSG);
	tally_ring_release(ring);
}

static void read_spans(struct tally_ring *ring, uint64_t to)
{
	struct iovec spans[2];
	int n = tally_ring_peek_to(ring, to, spans);

	must(n == -EBADMSG || (n >= 0 && n <= 2));
	for (int i = 0; i < n; i++)
		touch(spans[i].iov_base, spans[i].iov_len);
	n = tally_ring_peek(ring, spans);
	must(n == -EBADMSG || (n >= 0 && n <= 2));
	uint64_t bytes = 0;
	for (int i = 0; i < n; i++) {
		touch(spans[i].iov_base, spans[i].iov_len);
		bytes += spans[i].iov_len;
	}
	must(bytes <= tally_ring_size(ring));
	tally_ring_advance(ring, bytes);
	must(tally_ring_peek(ring, spans) == 0);
}

/* Snapshots end; an area beside them gives no more than it has. */
static void read_snapshot(struct tally_ring *ring)
{
	const struct tally_record_header *header;
	struct iovec spans[2];
	uint64_t bytes = 0;
	int r;

	must(tally_ring_snapshot(ring) == 0);
	int n = tally_ring_peek(ring, spans);
	must(n == -EBADMSG || (n >= 0 && n <= 2));
	for (int i = 0; i < n; i++)
		touch(spans[i].iov_base, spans[i].iov_len);
	while ((r = tally_ring_next(ring, &header)) > 0) {
		touch(header, header->size);
		bytes += header->size;
		must(bytes <= tally_ring_size(ring));
	}
	must(r == 0 || r == -EBADMSG);
	must(tally_ring_resume(ring) == 0);
}

static void read_aux(struct tally_ring *ring, uint64_t most)
{
	struct iovec spans[2];
	int n = tally_ring_aux_peek(ring, spans);

	must(n == -EBADMSG || (n >= 0 && n <= 2));
	for (int i = 0; i < n; i++)
		touch(spans[i].iov_base, spans[i].iov_len);
	tally_ring_aux_advance(ring, most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct tally_ring *ring;

	if (size < 2)
		return 0;
	size_t bytes = SMALLEST << (data[0] % 12);
	bool raw = data[1] & 1, overwrite = data[1] & 2, aux = data[1] & 4;
	data += 2;
	size -= 2;
	/* Just as long as it has to be: what is read behind it is seen. */
	unsigned char *memory = calloc(1, page + bytes);
	must(memory);
	struct perf_event_mmap_page *meta = (void *)memory;
	meta->data_tail = take_u64(&data, &size);
	unsigned char *area = calloc(1, SMALLEST);
	must(area);
	must(tally_ring_attach(&ring, memory, bytes,
			       TALLY_OPTS(ring, .flags = overwrite ? TALLY_RING_OVERWRITE : 0),
			       NULL) == 0);
	must(tally_ring_aux_attach(ring, area, SMALLEST, NULL, NULL) == 0);
	while (size) {
		meta->data_head = take_u64(&data, &size);
		size_t lap = size < bytes ? size : bytes;
		memcpy(memory + page, data, lap);
		data += lap;
		size -= lap;
		if (aux) {
			meta->aux_head = take_u64(&data, &size);
			read_aux(ring, meta->aux_head / 3);
		}
		if (overwrite) {
			read_snapshot(ring);
			continue;
		}
		if (raw)
			read_spans(ring, meta->data_head - lap / 2);
		else
			read_records(ring);
		must(meta->data_tail == meta->data_head);
	}
	tally_ring_close(ring);
	free(memory);
	free(area);
	return 0;
}
