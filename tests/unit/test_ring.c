/* SPDX-License-Identifier: MIT */
/* The ring over memory that this test writes as the kernel would, and as it never would. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tally/ring.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "tap.h"

#define SIZE 4096u

/* A kernel of our own: a page of metadata, SIZE bytes, and where it writes next. */
struct kernel {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	uint64_t head;
	struct tally_ring *ring;
};

static void kernel_open(struct kernel *k, uint64_t start)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	k->page = aligned_alloc(page, page + SIZE);
	memset(k->page, 0, page + SIZE);
	k->data = (unsigned char *)k->page + page;
	k->page->data_head = k->page->data_tail = k->head = start;
	check_int(tally_ring_attach(&k->ring, k->page, SIZE, NULL, NULL), 0);
}

static void kernel_close(struct kernel *k)
{
	tally_ring_close(k->ring);
	free(k->page);
}

static void put_byte(struct kernel *k, unsigned char byte)
{
	k->data[k->head++ % SIZE] = byte;
}

/* A record of `size` bytes whose body counts up from `seed`. */
static void kernel_put(struct kernel *k, uint16_t size, unsigned char seed)
{
	struct tally_record_header h = { .type = seed, .size = size };
	unsigned char bytes[sizeof(h)];

	memcpy(bytes, &h, sizeof(h));
	for (size_t i = 0; i < sizeof(h); i++)
		put_byte(k, bytes[i]);
	for (size_t i = sizeof(h); i < size; i++)
		put_byte(k, (unsigned char)(seed + i));
	k->page->data_head = k->head;
}

static bool record_is(const struct tally_record_header *h, uint16_t size, unsigned char seed)
{
	const unsigned char *bytes = (const void *)h;

	if (!check_int(h->size, size) || !check_int(h->type, seed))
		return false;
	for (size_t i = sizeof(*h); i < size; i++)
		if (!check_int(bytes[i], (unsigned char)(seed + i)))
			return false;
	return true;
}

static void an_empty_ring_says_so(void)
{
	const struct tally_record_header *h = NULL;
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, 0);
	check_int(tally_ring_next(k.ring, &h), 0);
	check(h == NULL);
	check_int(tally_ring_peek(k.ring, spans), 0);
	check_u64(tally_ring_size(k.ring), SIZE);
	check_int(tally_ring_fd(k.ring), -1);
	kernel_close(&k);
	tally_ring_close(NULL);
}

static void records_are_pointers_into_the_ring(void)
{
	const struct tally_record_header *h;
	struct kernel k;

	kernel_open(&k, 0);
	kernel_put(&k, 24, 1);
	kernel_put(&k, 8, 2);
	require(check_int(tally_ring_next(k.ring, &h), 1));
	check((const void *)h == k.data);
	record_is(h, 24, 1);
	check_int(tally_ring_next(k.ring, &h), 1);
	check((const void *)h == k.data + 24);
	record_is(h, 8, 2);
	check_u64(k.page->data_tail, 0);
	check_int(tally_ring_next(k.ring, &h), 0);
	tally_ring_release(k.ring);
	check_u64(k.page->data_tail, 32);
	kernel_close(&k);
}

/* Every place that a record of several sizes can have around the end, and every kind of start. */
static void records_wrap_at_every_place(void)
{
	static const uint64_t laps[] = { 0, 1ull << 32, (uint64_t)0 - SIZE,
					 (uint64_t)0 - 2 * SIZE };
	const struct tally_record_header *h;
	struct kernel k;

	for (size_t lap = 0; lap < ARRAY_SIZE(laps); lap++)
		for (uint64_t offset = SIZE - 128; offset < SIZE; offset += 8) {
			kernel_open(&k, laps[lap] + offset);
			kernel_put(&k, 120, 7);
			kernel_put(&k, SIZE - 128, 9);
			kernel_put(&k, 8, 11); /* the ring is full to the last byte */
			bool ok = check_int(tally_ring_next(k.ring, &h), 1) &&
				  record_is(h, 120, 7) &&
				  check_int(tally_ring_next(k.ring, &h), 1) &&
				  record_is(h, SIZE - 128, 9) &&
				  check_int(tally_ring_next(k.ring, &h), 1) &&
				  record_is(h, 8, 11) && check_int(tally_ring_next(k.ring, &h), 0);
			tally_ring_release(k.ring);
			ok = ok && check_u64(k.page->data_tail, laps[lap] + offset + SIZE);
			kernel_close(&k);
			if (!ok)
				return;
		}
}

static void a_header_at_the_end_does_not_wrap(void)
{
	const struct tally_record_header *h;
	struct kernel k;

	kernel_open(&k, SIZE - 8);
	kernel_put(&k, 8, 1);
	kernel_put(&k, 16, 2);
	check_int(tally_ring_next(k.ring, &h), 1);
	check((const void *)h == k.data + SIZE - 8);
	check_int(tally_ring_next(k.ring, &h), 1);
	check((const void *)h == k.data);
	record_is(h, 16, 2);
	kernel_close(&k);
}

static void a_long_record_wraps_whole(void)
{
	/* 8 KiB of stack in a sample: longer than perf's own union perf_event. */
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 131072;
	struct perf_event_mmap_page *meta = aligned_alloc(page, page + size);
	unsigned char *data = (unsigned char *)meta + page;
	struct tally_record_header wide = { .type = 9, .size = 65528 };
	const struct tally_record_header *h;
	struct tally_ring *ring;

	memset(meta, 0, page);
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)(i * 7);
	memcpy(data + size - 8, &wide, sizeof(wide));
	meta->data_tail = size - 8;
	meta->data_head = size - 8 + 65528;
	require(check_int(tally_ring_attach(&ring, meta, size, NULL, NULL), 0));
	check_int(tally_ring_next(ring, &h), 1);
	check_int(h->size, 65528);
	check_mem((const unsigned char *)h + 8, data, 65520);
	tally_ring_close(ring);
	free(meta);
}

/* After `next` has refused something, the ring must be empty, released and usable. */
static void refuses_and_goes_on(struct kernel *k)
{
	const struct tally_record_header *h;
	uint64_t head = k->page->data_head;

	check_int(tally_ring_next(k->ring, &h), -EBADMSG);
	check_int(tally_ring_next(k->ring, &h), 0);
	check_u64(k->page->data_tail, head);
	k->head = align_up(head, 8);
	if (k->head != head) {
		k->page->data_head = k->head;
		check_int(tally_ring_next(k->ring, &h), -EBADMSG);
	}
	kernel_put(k, 16, 5);
	if (check_int(tally_ring_next(k->ring, &h), 1))
		record_is(h, 16, 5);
	kernel_close(k);
}

static void sizes_that_cannot_be_are_refused(void)
{
	static const uint16_t sizes[] = { 0, 4, 7, 9, 12, 20, 40, 65528, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct tally_record_header lie = { .type = 9, .size = sizes[i] };
		struct kernel k;
		kernel_open(&k, 0);
		kernel_put(&k, 32, 1);
		memcpy(k.data, &lie, sizeof(lie));
		refuses_and_goes_on(&k);
	}
}

static void a_lie_behind_good_records_is_found_in_its_turn(void)
{
	const struct tally_record_header *h;
	struct kernel k;

	kernel_open(&k, 0);
	kernel_put(&k, 16, 1);
	kernel_put(&k, 16, 2);
	k.data[16 + 6] = 24; /* one word more than was written */
	check_int(tally_ring_next(k.ring, &h), 1);
	refuses_and_goes_on(&k);
}

static void heads_that_lie_are_refused(void)
{
	static const uint64_t heads[] = {
		SIZE + 8, 4, 12, (uint64_t)0 - 8, 1ull << 63, UINT64_MAX
	};
	struct iovec spans[2];
	struct kernel k;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		kernel_open(&k, 0);
		kernel_put(&k, 32, 1);
		k.page->data_head = heads[i];
		refuses_and_goes_on(&k);
	}
	/* Behind the tail: what has been read is taken back. */
	kernel_open(&k, 4096);
	k.page->data_head = 4088;
	refuses_and_goes_on(&k);
	kernel_open(&k, 4096);
	k.page->data_head = 4088;
	check_int(tally_ring_peek(k.ring, spans), -EBADMSG);
	check_int(tally_ring_peek(k.ring, spans), 0);
	kernel_close(&k);
	kernel_open(&k, 0);
	k.page->data_head = SIZE + 8;
	check_int(tally_ring_peek_to(k.ring, 8, spans), -EBADMSG);
	check_u64(k.page->data_tail, SIZE + 8);
	kernel_close(&k);
}

static void a_tail_that_lies_is_refused(void)
{
	struct kernel k;

	kernel_open(&k, 3);
	k.page->data_head = 35;
	refuses_and_goes_on(&k);
}

static void peek_shows_raw_bytes_in_two_stretches(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, (uint64_t)0 - 16);
	kernel_put(&k, 16, 1);
	kernel_put(&k, 24, 2);
	check_u64(tally_ring_head(k.ring), 24);
	require(check_int(tally_ring_peek(k.ring, spans), 2));
	check(spans[0].iov_base == k.data + SIZE - 16);
	check_int(spans[0].iov_len, 16);
	check(spans[1].iov_base == k.data);
	check_int(spans[1].iov_len, 24);
	tally_ring_advance(k.ring, 16);
	check_u64(k.page->data_tail, 0);
	require(check_int(tally_ring_peek(k.ring, spans), 1));
	check(spans[0].iov_base == k.data);
	check_int(spans[0].iov_len, 24);
	/* Advancing beyond what was shown would give away what was not read. */
	tally_ring_advance(k.ring, 1000);
	check_u64(k.page->data_tail, 24);
	check_int(tally_ring_peek(k.ring, spans), 0);
	kernel_close(&k);
}

static void peek_to_stops_at_an_earlier_head(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, (uint64_t)0 - 32);
	kernel_put(&k, 16, 1);
	uint64_t first = tally_ring_head(k.ring);
	kernel_put(&k, 40, 2);
	require(check_int(tally_ring_peek_to(k.ring, first, spans), 1));
	check_int(spans[0].iov_len, 16);
	tally_ring_advance(k.ring, 16);
	check_int(tally_ring_peek_to(k.ring, first, spans), 0);
	check_int(tally_ring_peek_to(k.ring, first - 8, spans), 0);
	require(check_int(tally_ring_peek_to(k.ring, first + 24, spans), 2));
	check_int(spans[0].iov_len, 16);
	check_int(spans[1].iov_len, 8);
	/* A head that is not there yet shows what is there. */
	require(check_int(tally_ring_peek_to(k.ring, first + 80, spans), 2));
	check_int(spans[1].iov_len, 24);
	kernel_close(&k);
}

static void a_full_ring_is_one_or_two_stretches(void)
{
	struct iovec spans[2];
	struct kernel k;

	kernel_open(&k, 0);
	kernel_put(&k, SIZE, 1);
	check_int(tally_ring_peek(k.ring, spans), 1);
	check_int(spans[0].iov_len, SIZE);
	kernel_close(&k);
	kernel_open(&k, 8);
	kernel_put(&k, SIZE, 1);
	check_int(tally_ring_peek(k.ring, spans), 2);
	check_int(spans[0].iov_len, SIZE - 8);
	check_int(spans[1].iov_len, 8);
	kernel_close(&k);
}

static void attach_checks_its_arguments(void)
{
	struct tally_error err;
	struct tally_ring *ring = NULL;
	static uint64_t page[2048];

	check_int(tally_ring_attach(&ring, NULL, SIZE, NULL, &err), -EINVAL);
	check_int(tally_ring_attach(&ring, page, 0, NULL, &err), -EINVAL);
	check_int(tally_ring_attach(&ring, page, 3 * 4096, NULL, &err), -EINVAL);
	check_int(tally_ring_attach(&ring, (char *)page + 4, SIZE, NULL, &err), -EINVAL);
	check_int(tally_ring_attach(&ring, page, 1ull << 63, NULL, &err), -EINVAL);
	check_has(err.text, "power of two");
	check(ring == NULL);
}

/* What the replaced mmap was asked for, and what it answers. */
static struct {
	int fail;
	size_t len, unmapped;
	uint64_t offset, size;
	void *memory;
} fake;

static int fake_mmap(void **addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (fake.fail)
		return fake.fail;
	check_int(prot, PROT_READ | PROT_WRITE);
	check_int(flags, MAP_SHARED);
	check_int(fd, 42);
	check_int(offset, 0);
	fake.len = len;
	*addr = fake.memory = calloc(1, len);
	struct perf_event_mmap_page *page = fake.memory;
	page->data_offset = fake.offset;
	page->data_size = fake.size;
	return 0;
}

static int fake_munmap(void *addr, size_t len)
{
	check(addr == fake.memory);
	fake.unmapped += len;
	free(addr);
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.mmap = fake_mmap;
	table.munmap = fake_munmap;
	return &table;
}

static void open_rounds_up_and_maps_one_page_more(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static const struct {
		uint64_t asked, got;
	} cases[] = { { 0, 512 * 1024 }, { 1, 4096 }, { 65536, 65536 }, { 65537, 131072 } };
	struct tally_ring *ring;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake.fail = 0;
		fake.unmapped = 0;
		fake.offset = fake.size = 0;
		require(check_int(
			tally_ring_open(&ring, 42, TALLY_OPTS(ring, .bytes = cases[i].asked), NULL),
			0));
		uint64_t want = cases[i].got < page ? page : cases[i].got;
		check_u64(tally_ring_size(ring), want);
		check_u64(fake.len, want + page);
		check_int(tally_ring_fd(ring), 42);
		tally_ring_close(ring);
		check_u64(fake.unmapped, fake.len);
	}
}

static void open_takes_the_kernels_word_for_the_data(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct tally_ring *ring;
	struct tally_error err;

	fake.fail = 0;
	fake.offset = page;
	fake.size = 65536;
	check_int(tally_ring_open(&ring, 42, TALLY_OPTS(ring, .bytes = 65536), &err), 0);
	check_u64(tally_ring_size(ring), 65536);
	tally_ring_close(ring);
	/* But not when that lies outside what was mapped. */
	const struct {
		uint64_t offset, size;
	} lies[] = { { page, 65535 },
		     { page, 131072 },
		     { 2 * page, 65536 },
		     { UINT64_MAX, 65536 },
		     { page, 1ull << 63 } };
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		fake.offset = lies[i].offset;
		fake.size = lies[i].size;
		fake.unmapped = 0;
		check_int(tally_ring_open(&ring, 42, TALLY_OPTS(ring, .bytes = 65536), &err),
			  -EBADMSG);
		check_u64(fake.unmapped, fake.len);
	}
}

static void open_fails_as_mmap_does(void)
{
	static const int codes[] = { -EPERM, -EINVAL, -EBUSY, -ENOMEM };
	struct tally_ring *ring = NULL;
	struct tally_error err;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		fake.fail = codes[i];
		check_int(tally_ring_open(&ring, 42, NULL, &err), codes[i]);
		check_int(err.code, codes[i]);
		check(ring == NULL);
	}
	check_int(tally_ring_open(&ring, 42, TALLY_OPTS(ring, .bytes = UINT64_MAX), &err), -EINVAL);
	struct tally_ring_opts none = { .size = 0 };
	check_int(tally_ring_open(&ring, 42, &none, &err), -EINVAL);
}

int main(void)
{
	tap_run(an_empty_ring_says_so);
	tap_run(records_are_pointers_into_the_ring);
	tap_run(records_wrap_at_every_place);
	tap_run(a_header_at_the_end_does_not_wrap);
	tap_run(a_long_record_wraps_whole);
	tap_run(sizes_that_cannot_be_are_refused);
	tap_run(a_lie_behind_good_records_is_found_in_its_turn);
	tap_run(heads_that_lie_are_refused);
	tap_run(a_tail_that_lies_is_refused);
	tap_run(peek_shows_raw_bytes_in_two_stretches);
	tap_run(peek_to_stops_at_an_earlier_head);
	tap_run(a_full_ring_is_one_or_two_stretches);
	tap_run(attach_checks_its_arguments);
	tap_run(open_rounds_up_and_maps_one_page_more);
	tap_run(open_takes_the_kernels_word_for_the_data);
	tap_run(open_fails_as_mmap_does);
	return tap_end();
}
