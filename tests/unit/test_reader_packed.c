/* SPDX-License-Identifier: MIT */
/*
 * Compressed records, over files made by hand with libzstd as perf makes them: one stream for the
 * file, flushed at the end of each slice (tools/perf/util/zstd.c).
 */
#include <errno.h>
#include <zstd.h>

#include "handmade-recording.h"

enum {
	LARGEST = 65535 /* header.size has 16 bits */
};

static struct {
	ZSTD_CStream *zstd;
	uint8_t bytes[4 << 20];
	size_t len;
} packer;

static void start_packing(void)
{
	if (!packer.zstd)
		packer.zstd = ZSTD_createCStream();
	ZSTD_initCStream(packer.zstd, 1);
}

static void pack(const void *bytes, size_t len)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	ZSTD_outBuffer out = { packer.bytes, sizeof(packer.bytes), 0 };

	ZSTD_compressStream2(packer.zstd, &out, &in, ZSTD_e_flush);
	packer.len = out.pos;
}

/* COMPRESSED {bytes}, of any length. */
static void put_packed(struct handmade *h, const void *bytes, size_t len)
{
	pack(bytes, len);
	hm_record(h, TALLY_FILE_COMPRESSED, 0, (uint16_t)(8 + packer.len));
	hm_bytes(h, packer.bytes, packer.len);
}

/* COMPRESSED2 {u64 size; bytes; padding}. */
static void put_packed2(struct handmade *h, const void *bytes, size_t len)
{
	pack(bytes, len);
	hm_record(h, TALLY_FILE_COMPRESSED2, 0, (uint16_t)((16 + packer.len + 7) / 8 * 8));
	hm_u64(h, packer.len);
	hm_bytes(h, packer.bytes, packer.len);
	hm_room(h, (8 - packer.len % 8) % 8);
}

static void put_round(struct handmade *h)
{
	hm_record(h, TALLY_FILE_FINISHED_ROUND, 0, 8);
}

/* `count` records COMM with names that tell their number. */
static struct handmade numbered(int from, int count, bool swapped)
{
	struct handmade h = { .swapped = swapped };

	for (int i = from; i < from + count; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		hm_comm(&h, (uint32_t)i, name);
	}
	return h;
}

static void check_numbered(struct tally_reader *r, int from, int count, uint64_t offset)
{
	struct tally_reader_record rec;
	struct tally_error err = { 0 };

	for (int i = from; i < from + count; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		if (!check_int(tally_reader_next(r, &rec, &err), 1)) {
			printf("# %s\n", err.text);
			return;
		}
		check_int(rec.type, TALLY_RECORD_COMM);
		check_int(rec.len, 32);
		check_str((const char *)rec.bytes + 16, name);
		check_u64(rec.offset, offset);
	}
}

static void check_type(struct tally_reader *r, uint32_t type)
{
	struct tally_reader_record rec = { 0 };

	check_int(tally_reader_next(r, &rec, NULL), 1);
	check_int(rec.type, type);
}

/* A slice with records, a round, and a slice whose end is in the middle of a record. */
static void check_slices(bool swapped, void (*put)(struct handmade *, const void *, size_t))
{
	struct made m;
	int fd;
	struct handmade raw = numbered(0, 100, swapped);
	size_t places[3];

	start_data(&m, &(struct shape){ .header = 72, .swapped = swapped });
	start_packing();
	places[0] = m.h.len;
	put(&m.h, raw.at, 40 * 32);
	put_round(&m.h);
	places[1] = m.h.len;
	put(&m.h, raw.at + 40 * 32, 20 * 32 + 5);
	hm_comm(&m.h, 1, "between");
	places[2] = m.h.len;
	put(&m.h, raw.at + 60 * 32 + 5, 40 * 32 - 5);
	put_round(&m.h);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	for (int pass = 0; pass < 2; pass++) {
		check_numbered(r, 0, 40, places[0]);
		check_type(r, TALLY_FILE_FINISHED_ROUND);
		check_numbered(r, 40, 20, places[1]);
		check_type(r, TALLY_RECORD_COMM);
		check_numbered(r, 60, 40, places[2]);
		check_type(r, TALLY_FILE_FINISHED_ROUND);
		check_int(drain(r, NULL), 0);
		check_u64(tally_reader_count(r, TALLY_RECORD_COMM), 101);
		check_u64(tally_reader_count(r, TALLY_FILE_COMPRESSED) +
				  tally_reader_count(r, TALLY_FILE_COMPRESSED2),
			  3);
		tally_reader_rewind(r, NULL);
	}
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

static void what_is_compressed_comes_in_its_place(void)
{
	check_slices(false, put_packed);
	check_slices(true, put_packed);
}

static void the_second_form_tells_its_length(void)
{
	check_slices(false, put_packed2);
	check_slices(true, put_packed2);
}

/* A slice may hold thousands of times its size: the buffer stays as it is. */
static void a_slice_may_hold_much(void)
{
	struct made m;
	int fd;
	struct handmade raw = { 0 };

	for (int i = 0; i < 30000; i++) {
		hm_record(&raw, 9, 2, 1000);
		hm_room(&raw, 992);
	}
	hm_record(&raw, 9, 2, LARGEST);
	hm_room(&raw, LARGEST - 8);
	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	put_packed(&m.h, raw.at, raw.len);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(drain(r, NULL), 30001);
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

static void they_can_be_had_as_they_stand(void)
{
	struct made m;
	struct tally_reader *r = NULL;
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = TALLY_READER_PACKED };
	struct handmade raw = numbered(0, 3, false);

	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	put_packed(&m.h, raw.at, raw.len);
	hm_comm(&m.h, 1, "behind");
	end_data(&m);
	int fd = hm_file(&m.h);
	require(tally_reader_open_fd(&r, fd, "t.data", &opts, NULL) == 0);
	check_type(r, TALLY_FILE_COMPRESSED);
	check_type(r, TALLY_RECORD_COMM);
	check_int(drain(r, NULL), 0);
	check_u64(tally_reader_count(r, TALLY_FILE_COMPRESSED), 1);
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

/* Bytes that do not get smaller. */
static struct handmade noise(size_t records)
{
	struct handmade h = { 0 };
	uint64_t x = 88172645463325252u;

	for (size_t i = 0; i < records; i++) {
		hm_record(&h, 9, 2, 1024);
		uint8_t *to = hm_room(&h, 1016);
		for (size_t k = 0; k < 1016; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			to[k] = (uint8_t)x;
		}
	}
	return h;
}

/* Packs records so that a COMPRESSED2 of them has 65,529 to 65,535 bytes. */
static bool pack_almost_64k(void)
{
	struct handmade raw = noise(64);
	const size_t whole = 63 * 1024;
	bool found = false;

	/* The last record is as long as it takes. */
	for (size_t len = 1016; len > 500 && !found; len--) {
		hm_set(&raw, whole + 6, len, 2);
		start_packing();
		pack(raw.at, whole + len);
		found = 16 + packer.len > 65528 && 16 + packer.len <= LARGEST;
	}
	hm_done(&raw);
	return found;
}

/* perf 6.16: its size, with the padding that was meant, reads 0, and there is no padding. */
static void the_size_may_overflow_by_its_padding(void)
{
	struct made m;
	int fd;

	require(pack_almost_64k());
	start_data(&m, &(struct shape){ .header = 72 });
	hm_record(&m.h, TALLY_FILE_COMPRESSED2, 0, 0);
	hm_u64(&m.h, packer.len);
	hm_bytes(&m.h, packer.bytes, packer.len);
	hm_comm(&m.h, 1, "behind");
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	for (int i = 0; i < 64; i++)
		check_type(r, TALLY_RECORD_SAMPLE);
	check_type(r, TALLY_RECORD_COMM);
	check_int(drain(r, NULL), 0);
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	hm_done(&m.h);
}

/* And when one write made several: the first tells the length of all, the others have no figure. */
static void one_may_consist_of_several(void)
{
	struct made m;
	struct handmade raw = noise(300);
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	pack(raw.at, raw.len);
	size_t parts = (packer.len + 65518) / 65519, total = packer.len + 16 * parts;
	require(parts == 5);
	for (size_t i = 0, done = 0; i < parts; i++) {
		size_t len = i + 1 < parts ? 65519 : packer.len - done;
		uint64_t size = i ? 16 + len : (total + 7) / 8 * 8;
		hm_record(&m.h, TALLY_FILE_COMPRESSED2, 0, (uint16_t)size);
		hm_u64(&m.h, i ? 0xdeadbeefdeadbeefu : total - 16);
		hm_bytes(&m.h, packer.bytes + done, len);
		done += len;
	}
	hm_comm(&m.h, 1, "behind");
	put_packed2(&m.h, raw.at, 10 * 1024);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	for (int i = 0; i < 300; i++)
		check_type(r, TALLY_RECORD_SAMPLE);
	check_type(r, TALLY_RECORD_COMM);
	check_int(drain(r, NULL), 10);
	check_u64(tally_reader_count(r, TALLY_FILE_COMPRESSED2), 6);
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

/* ---- damage ---- */

/* Reads to the error: `before` records, then a text with each of the words. */
static void check_broken(const struct made *m, int before, const char *const *words)
{
	struct tally_reader_record rec;
	struct tally_error err = { 0 };
	int fd, n = 0, ret;
	struct tally_reader *r = must_open(m, &fd);

	require(r);
	while ((ret = tally_reader_next(r, &rec, &err)) > 0)
		n++;
	check_int(n, before);
	check_int(ret, -EBADMSG);
	check_int(err.cause, TALLY_CAUSE_CORRUPT);
	for (; *words; words++)
		check_has(err.text, *words);
	close_made(r, fd);
}

static void what_is_no_zstd_is_an_error(void)
{
	struct made m;

	start_data(&m, &(struct shape){ .header = 72 });
	hm_comm(&m.h, 1, "before");
	hm_record(&m.h, TALLY_FILE_COMPRESSED, 0, 8 + 5);
	hm_bytes(&m.h, "zstd!", 5);
	end_data(&m);
	char at[32];
	snprintf(at, sizeof(at), "offset %zu", m.data + 32);
	check_broken(&m, 1, (const char *const[]){ at, "compressed", NULL });
	hm_done(&m.h);
}

static void what_came_before_the_damage_is_delivered(void)
{
	struct made m;
	struct handmade raw = numbered(0, 20, false);

	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	put_packed(&m.h, raw.at, 10 * 32);
	hm_set(&raw, 15 * 32 + 6, 7, 2); /* a size below 8 */
	put_packed(&m.h, raw.at + 10 * 32, 10 * 32);
	end_data(&m);
	check_broken(&m, 15, (const char *const[]){ "record 16 (type 3)", "size of 7", NULL });
	hm_done(&m.h);
	hm_done(&raw);
}

/* perf compresses what the kernel wrote, and nothing else. */
static void nothing_compressed_is_within_another(void)
{
	struct made m;
	struct handmade raw = { 0 };

	hm_record(&raw, TALLY_FILE_COMPRESSED, 0, 16);
	hm_u64(&raw, 0);
	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	put_packed(&m.h, raw.at, raw.len);
	end_data(&m);
	check_broken(&m, 0, (const char *const[]){ "never compressed", NULL });
	hm_done(&m.h);
	hm_done(&raw);
}

static void an_unfinished_record_at_the_end_is_told(void)
{
	struct made m;
	int fd;
	struct handmade raw = numbered(0, 5, false);

	start_data(&m, &(struct shape){ .header = 72 });
	start_packing();
	put_packed(&m.h, raw.at, raw.len - 3);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(drain(r, NULL), 4);
	check_has(tally_reader_health(r), "29 bytes");
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

static void one_too_short_for_its_figure_is_damaged(void)
{
	struct made m;

	start_data(&m, &(struct shape){ .header = 72 });
	hm_record(&m.h, TALLY_FILE_COMPRESSED2, 0, 9);
	hm_u64(&m.h, UINT64_MAX);
	end_data(&m);
	check_broken(&m, 0, (const char *const[]){ "at least 16", NULL });
	hm_done(&m.h);
}

/* COMPRESSED {version, type, level, ratio, mmap_len}: perf reads a slice into mmap_len bytes. */
static void a_slice_holds_no_more_than_was_mapped(void)
{
	struct made m;
	struct handmade raw = numbered(0, 1000, false);

	start_data(&m, &(struct shape){ 0 });
	start_packing();
	put_packed(&m.h, raw.at, raw.len);
	end_data(&m);
	hm_set(&m.h, HM_FEATURES_AT, 1u << 27, 8);
	hm_u64(&m.h, m.h.len + 16);
	hm_u64(&m.h, 20);
	hm_u32(&m.h, 0);
	hm_u32(&m.h, 1);
	hm_u32(&m.h, 1);
	hm_u32(&m.h, 10);
	hm_u32(&m.h, 16384);
	check_broken(&m, 0, (const char *const[]){ "more than", NULL });
	hm_set(&m.h, m.h.len - 4, 32768, 4);
	int fd;
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(drain(r, NULL), 1000);
	close_made(r, fd);
	hm_done(&m.h);
	hm_done(&raw);
}

int main(void)
{
	tap_run(what_is_compressed_comes_in_its_place);
	tap_run(the_second_form_tells_its_length);
	tap_run(a_slice_may_hold_much);
	tap_run(they_can_be_had_as_they_stand);
	tap_run(the_size_may_overflow_by_its_padding);
	tap_run(one_may_consist_of_several);
	tap_run(what_is_no_zstd_is_an_error);
	tap_run(what_came_before_the_damage_is_delivered);
	tap_run(nothing_compressed_is_within_another);
	tap_run(an_unfinished_record_at_the_end_is_told);
	tap_run(one_too_short_for_its_figure_is_damaged);
	tap_run(a_slice_holds_no_more_than_was_mapped);
	ZSTD_freeCStream(packer.zstd);
	return tap_end();
}
