/* SPDX-License-Identifier: MIT */
/*
 * Overwrite rings and AUX areas over memory that this test writes as the kernel and hardware would:
 * backward from 0 on, and forward, by __perf_output_begin() and perf_event_open(2) "aux_head".
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <tally/ring.h>
#include <unistd.h>

#include "base/bytes.h"
#include "tap.h"

#define SIZE 4096u
#define AUX  256u

struct kernel {
	struct perf_event_mmap_page *page;
	unsigned char *data, aux[AUX];
	uint64_t head;
	struct tally_ring *ring;
};

static void kernel_open(struct kernel *k, uint32_t flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	*k = (struct kernel){ .page = aligned_alloc(page, page + SIZE) };
	memset(k->page, 0, page + SIZE);
	k->data = (unsigned char *)k->page + page;
	check_int(
		tally_ring_attach(&k->ring, k->page, SIZE, TALLY_OPTS(ring, .flags = flags), NULL),
		0);
}

static void kernel_close(struct kernel *k)
{
	tally_ring_close(k->ring);
	free(k->page);
}

/* A record below the head, whose type is its number. */
static void put_backward(struct kernel *k, uint16_t size, uint32_t number)
{
	struct tally_record_header h = { .type = number, .size = size };
	unsigned char bytes[SIZE] = { 0 };

	memcpy(bytes, &h, sizeof(h));
	k->head -= size;
	for (size_t i = 0; i < size; i++)
		k->data[(k->head + i) % SIZE] = bytes[i];
	k->page->data_head = k->head;
}

/* Reads `count` records, numbered from `newest` downward, and no more. */
static void reads(struct kernel *k, uint32_t newest, size_t count)
{
	const struct tally_record_header *h;

	for (size_t i = 0; i < count; i++) {
		if (!check_int(tally_ring_next(k->ring, &h), 1))
			return;
		check_int(h->type, newest - i);
	}
	check_int(tally_ring_next(k->ring, &h), 0);
	tally_ring_release(k->ring);
}

static void a_snapshot_is_read_from_the_newest_on(void)
{
	struct kernel k;

	kernel_open(&k, TALLY_RING_OVERWRITE);
	check_int(tally_ring_snapshot(k.ring), 0);
	reads(&k, 0, 0);
	for (uint32_t n = 1; n <= 3; n++)
		put_backward(&k, 24, n);
	reads(&k, 0, 0); /* not before it is asked for */
	check_int(tally_ring_snapshot(k.ring), 0);
	reads(&k, 3, 3);
	check_int(tally_ring_resume(k.ring), 0);
	/* The next has what is new alone. */
	put_backward(&k, 16, 4);
	check_int(tally_ring_snapshot(k.ring), 0);
	reads(&k, 4, 1);
	check_u64(k.page->data_tail, 0);
	kernel_close(&k);
}

static void the_oldest_record_may_be_cut(void)
{
	struct kernel k;

	/* 40 does not divide the size: at each lap another part of a record remains. */
	kernel_open(&k, TALLY_RING_OVERWRITE);
	for (uint32_t n = 1; n <= 500; n++) {
		put_backward(&k, 40, n);
		if (n < 200 || n % 7)
			continue;
		k.page->data_head = k.head;
		struct kernel fresh = k; /* as one that has not looked yet */
		require(tally_ring_attach(&fresh.ring, k.page, SIZE,
					  TALLY_OPTS(ring, .flags = TALLY_RING_OVERWRITE),
					  NULL) == 0);
		check_int(tally_ring_snapshot(fresh.ring), 0);
		reads(&fresh, n, SIZE / 40);
		tally_ring_close(fresh.ring);
	}
	kernel_close(&k);
}

static void spans_end_with_the_last_whole_record(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, TALLY_RING_OVERWRITE);
	for (uint32_t n = 1; n <= 150; n++)
		put_backward(&k, 40, n);
	check_int(tally_ring_snapshot(k.ring), 0);
	int count = tally_ring_peek(k.ring, spans);
	check_int(count, 2);
	check_u64(spans[0].iov_len + spans[1].iov_len, SIZE / 40 * 40);
	check(spans[0].iov_base == k.data + k.head % SIZE);
	check(spans[1].iov_base == k.data);
	kernel_close(&k);
}

static void hostile_bytes_end_a_snapshot(void)
{
	static const uint16_t sizes[] = { 0, 4, 7, 12, 4104, 65528 };
	const struct tally_record_header *h;
	struct kernel k;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		kernel_open(&k, TALLY_RING_OVERWRITE);
		put_backward(&k, 24, 1);
		put_backward(&k, 24, 2);
		/* The older one's header. */
		memcpy(k.data + (k.head + 24) % SIZE + 6, &sizes[i], 2);
		check_int(tally_ring_snapshot(k.ring), 0);
		reads(&k, 2, 1);
		kernel_close(&k);
	}
	/* A head that is no record's place. */
	kernel_open(&k, TALLY_RING_OVERWRITE);
	k.page->data_head = (uint64_t)-13;
	check_int(tally_ring_snapshot(k.ring), 0);
	check_int(tally_ring_next(k.ring, &h), -EBADMSG);
	check_int(tally_ring_next(k.ring, &h), 0);
	kernel_close(&k);
}

static void snapshots_are_for_overwrite_rings(void)
{
	struct kernel k;

	kernel_open(&k, 0);
	check_int(tally_ring_snapshot(k.ring), -EINVAL);
	check_int(tally_ring_resume(k.ring), -EINVAL);
	check_int(tally_ring_pause(k.ring, true), -EINVAL);
	check(!tally_ring_shrunk(k.ring));
	kernel_close(&k);
}

/* Without an event there is nothing to poll, but time and cancellation are. */
static void an_attached_ring_waits_as_well(void)
{
	const struct tally_record_header *h;
	struct kernel k;

	kernel_open(&k, TALLY_RING_CANCELLABLE);
	check_int(tally_ring_wait(k.ring, 1), 0);
	check_int(tally_ring_cancel(k.ring), 0);
	check_int(tally_ring_next_wait(k.ring, -1, &h), -ECANCELED);
	check_int(tally_ring_next_wait(k.ring, 0, &h), 0);
	kernel_close(&k);
}

static void aux_fill(struct kernel *k, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++, k->page->aux_head++)
		k->aux[k->page->aux_head % AUX] = (unsigned char)k->page->aux_head;
}

static bool spans_count_from(const struct iovec *spans, int n, uint64_t first, uint64_t bytes)
{
	uint64_t seen = 0;

	for (int s = 0; s < n; s++)
		for (size_t i = 0; i < spans[s].iov_len; i++, seen++)
			if (!check_int(((unsigned char *)spans[s].iov_base)[i],
				       (unsigned char)(first + seen)))
				return false;
	return check_u64(seen, bytes);
}

static void an_aux_area_is_read_forward(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, 0);
	check_int(tally_ring_aux_peek(k.ring, spans), -EINVAL);
	check_int(tally_ring_aux_attach(k.ring, k.aux, 100, NULL, NULL), -EINVAL);
	require(tally_ring_aux_attach(k.ring, k.aux, AUX, NULL, NULL) == 0);
	check_int(tally_ring_aux_attach(k.ring, k.aux, AUX, NULL, NULL), -EBUSY);
	check_int(tally_ring_aux_peek(k.ring, spans), 0);
	k.page->aux_head = k.page->aux_tail = (uint64_t)-100; /* it wraps at the end of numbers */
	for (uint64_t at = (uint64_t)-100, n = 1; n <= AUX; at += n, n += 17) {
		aux_fill(&k, n);
		int count = tally_ring_aux_peek(k.ring, spans);
		check(spans_count_from(spans, count, at, n));
		tally_ring_aux_advance(k.ring, n);
		check_u64(k.page->aux_tail, at + n);
	}
	check_int(tally_ring_aux_snapshot(k.ring, 10, spans), -EINVAL);
	/* A head that lies, and giving back more than there is. */
	k.page->aux_head += AUX + 1;
	check_int(tally_ring_aux_peek(k.ring, spans), -EBADMSG);
	check_int(tally_ring_aux_peek(k.ring, spans), 0);
	tally_ring_aux_advance(k.ring, UINT64_MAX);
	check_u64(k.page->aux_tail, k.page->aux_head);
	kernel_close(&k);
}

static void an_aux_snapshot_has_the_newest_bytes(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, 0);
	require(tally_ring_aux_attach(k.ring, k.aux, AUX,
				      TALLY_OPTS(aux, .flags = TALLY_AUX_SNAPSHOT), NULL) == 0);
	aux_fill(&k, 1000);
	int n = tally_ring_aux_snapshot(k.ring, 60, spans);
	spans_count_from(spans, n, 940, 60);
	n = tally_ring_aux_snapshot(k.ring, UINT64_MAX, spans);
	spans_count_from(spans, n, 1000 - AUX, AUX);
	check_int(tally_ring_aux_snapshot(k.ring, 0, spans), 0);
	check_int(tally_ring_aux_peek(k.ring, spans), -EINVAL);
	kernel_close(&k);
}

int main(void)
{
	tap_run(a_snapshot_is_read_from_the_newest_on);
	tap_run(the_oldest_record_may_be_cut);
	tap_run(spans_end_with_the_last_whole_record);
	tap_run(hostile_bytes_end_a_snapshot);
	tap_run(snapshots_are_for_overwrite_rings);
	tap_run(an_attached_ring_waits_as_well);
	tap_run(an_aux_area_is_read_forward);
	tap_run(an_aux_snapshot_has_the_newest_bytes);
	return tap_end();
}
