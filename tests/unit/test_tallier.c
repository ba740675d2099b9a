/* SPDX-License-Identifier: MIT */
/* recorder/tallier: counting records in raw ring bytes, whole or in two stretches. */
#include <stdlib.h>

#include "base/buf.h"
#include "recorder/tallier.h"
#include "tap.h"

/* A record of `words` 8-byte words behind its header. */
static void record(struct buf *b, uint32_t type, const uint64_t *words, uint16_t count)
{
	buf_u32(b, type);
	buf_u16(b, 0);
	buf_u16(b, (uint16_t)(8 + 8 * count));
	buf_add(b, words, (size_t)count * 8);
}

static struct buf some_records(void)
{
	struct buf b = { 0 };

	/* IP, TID, TIME */
	record(&b, TALLY_RECORD_SAMPLE, (uint64_t[]){ 0x1000, 1, 500 }, 3);
	record(&b, TALLY_RECORD_LOST, (uint64_t[]){ 7, 41 }, 2);
	record(&b, TALLY_RECORD_SAMPLE, (uint64_t[]){ 0x2000, 1, 300 }, 3);
	record(&b, TALLY_RECORD_LOST_SAMPLES, (uint64_t[]){ 9 }, 1);
	record(&b, TALLY_RECORD_THROTTLE, (uint64_t[]){ 1, 2, 3 }, 3);
	record(&b, 63, NULL, 0);
	return b;
}

static void counts_each_kind_at_every_cut(void)
{
	struct tally_layout layout = {
		.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME,
	};
	struct buf b = some_records();

	for (size_t cut = 0; cut <= b.len; cut += 8) {
		struct iovec spans[2] = { { b.at, cut }, { b.at + cut, b.len - cut } };
		struct tallier t;
		tallier_init(&t, &layout);
		check_u64(tallier_add(&t, spans, 2), b.len);
		check_u64(t.records, 6);
		check_u64(t.samples, 2);
		check_u64(t.lost, 50);
		check_u64(t.throttled, 1);
		check_u64(t.first_time, 300);
		check_u64(t.last_time, 500);
	}
	buf_done(&b);
}

static void knows_where_the_time_is(void)
{
	struct tally_layout layout = {
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR,
	};
	struct buf b = { 0 };
	struct tallier t;

	record(&b, TALLY_RECORD_SAMPLE, (uint64_t[]){ 11, 22, 33 }, 3);
	tallier_init(&t, &layout);
	tallier_add(&t, &(struct iovec){ b.at, b.len }, 1);
	check_u64(t.first_time, 22);

	/* A layout without times, and a sample too short for one. */
	layout.sample_type = TALLY_SAMPLE_IP;
	tallier_init(&t, &layout);
	tallier_add(&t, &(struct iovec){ b.at, b.len }, 1);
	check_u64(t.first_time, 0);
	check_u64(t.samples, 1);
	layout.sample_type = TALLY_SAMPLE_TIME | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID;
	buf_reset(&b);
	record(&b, TALLY_RECORD_SAMPLE, (uint64_t[]){ 1 }, 1);
	tallier_init(&t, &layout);
	tallier_add(&t, &(struct iovec){ b.at, b.len }, 1);
	check_u64(t.first_time, 0);
	buf_done(&b);
}

static void notes_mapped_files_at_every_cut(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_TIME, .sample_id_all = 1 };
	struct tally_record rec = {
		.type = TALLY_RECORD_MMAP2,
		.misc = TALLY_MISC_USER,
		.mmap = { .pid = 7,
			  .addr = 0x1000,
			  .len = 0x1000,
			  .ino = 11,
			  .maj = 8,
			  .min = 1,
			  .filename = "/bin/some program",
			  .filename_len = 17 },
	};
	_Alignas(8) char bytes[256];
	int n = tally_record_encode(&layout, &rec, bytes, sizeof(bytes));

	require(n > 0 && n % 8 == 0);
	for (int cut = 0; cut <= n; cut += 8) {
		struct iovec spans[2] = { { bytes, (size_t)cut },
					  { bytes + cut, (size_t)(n - cut) } };
		struct tallier t;
		tallier_init(&t, &layout);
		check_u64(tallier_add(&t, spans, 2), n);
		check_int(t.modules.files.count, 1);
		check_str(strings_get(&t.modules.paths, 1), "/bin/some program");
		check_u64(t.modules.files.at[0].inode, 11);
		tallier_done(&t);
	}
}

static void stops_before_what_is_no_record(void)
{
	static const uint16_t sizes[] = { 0, 4, 7, 12, 65528 };
	struct tally_layout layout = { 0 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct buf b = { 0 };
		struct tallier t;
		record(&b, TALLY_RECORD_SAMPLE, (uint64_t[]){ 1, 2 }, 2);
		buf_u32(&b, TALLY_RECORD_SAMPLE);
		buf_u16(&b, 0);
		buf_u16(&b, sizes[i]);
		buf_u64(&b, 0);
		tallier_init(&t, &layout);
		check_u64(tallier_add(&t, &(struct iovec){ b.at, b.len }, 1), 24);
		check_u64(t.records, 1);
		buf_done(&b);
	}
}

int main(void)
{
	tap_run(counts_each_kind_at_every_cut);
	tap_run(knows_where_the_time_is);
	tap_run(notes_mapped_files_at_every_cut);
	tap_run(stops_before_what_is_no_record);
	return tap_end();
}
