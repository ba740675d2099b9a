/* SPDX-License-Identifier: MIT */
/*
 * Five small files, each cut to every length and with every byte changed: whatever is left of them
 * ends in records or in one error.
 */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include <tally/features.h>
#include <tally/file_record.h>

#include "handmade-recording.h"

static void put_packed(struct handmade *h, ZSTD_CStream *zstd, const void *bytes, size_t len)
{
	uint8_t packed[4096];
	ZSTD_inBuffer in = { bytes, len, 0 };
	ZSTD_outBuffer out = { packed, sizeof(packed), 0 };

	ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush);
	hm_record(h, TALLY_FILE_COMPRESSED2, 0, (uint16_t)((16 + out.pos + 7) / 8 * 8));
	hm_u64(h, out.pos);
	hm_bytes(h, packed, out.pos);
	hm_room(h, (8 - out.pos % 8) % 8);
}

/* Samples, some of them between compressed slices, one of which is in the middle of a record. */
static void make_packed(struct made *m)
{
	struct handmade raw = { 0 };
	ZSTD_CStream *zstd = ZSTD_createCStream();

	ZSTD_initCStream(zstd, 1);
	for (uint64_t i = 0; i < 10; i++)
		put_sample(&raw, i, 201);
	start_data(m, &(struct shape){ .header = 72, .attr = 64 });
	put_packed(&m->h, zstd, raw.at, 100);
	hm_record(&m->h, TALLY_FILE_FINISHED_ROUND, 0, 8);
	put_packed(&m->h, zstd, raw.at + 100, raw.len - 100);
	end_data(m);
	ZSTD_freeCStream(zstd);
	hm_done(&raw);
}

/* Rounds, what follows records, lists. */
static void make_records(struct made *m)
{
	start_data(m, &(struct shape){ .header = 72, .attr = 64 });
	for (uint64_t i = 0; i < 6; i++) {
		put_sample(&m->h, i, 201);
		hm_set(&m->h, m->h.len - 24, 1000 - i % 3, 8);
		if (i % 2)
			hm_record(&m->h, TALLY_FILE_FINISHED_ROUND, 0, 8);
	}
	hm_record(&m->h, TALLY_FILE_AUXTRACE, 0, 48);
	hm_u64(&m->h, 8);
	hm_room(&m->h, 40);
	hm_record(&m->h, TALLY_FILE_THREAD_MAP, 0, 40);
	hm_u64(&m->h, 1);
	hm_room(&m->h, 24);
	hm_record(&m->h, TALLY_FILE_CPU_MAP, 0, 24);
	hm_u16(&m->h, 1);
	hm_u16(&m->h, 1);
	hm_u16(&m->h, 8);
	hm_room(&m->h, 4);
	hm_u32(&m->h, 3);
	hm_room(&m->h, 2);
	end_data(m);
}

static void make_kind(struct made *m, int kind)
{
	if (kind == 0)
		make(m, &(struct shape){ 0 });
	else if (kind == 1)
		make(m, &(struct shape){ .swapped = true, .align = 4 });
	else if (kind == 2)
		make_pipe(m, false);
	else if (kind == 3)
		make_packed(m);
	else
		make_records(m);
}

enum {
	KINDS = 5
};

static int ignore_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		     uint32_t id_len, void *arg)
{
	return 0;
}

static void read_lists(const struct tally_reader_record *item, bool swapped)
{
	struct tally_file_record rec;
	struct tally_file_thread thread;
	struct tally_file_id id;
	uint64_t n = 0, cursor = 0, word;
	int32_t cpu;

	if (tally_file_record_decode(item->bytes, item->len, swapped, &rec, sizeof(rec)) < 0)
		return;
	while (tally_file_id(&rec, n, &id) || tally_file_thread(&rec, n, &thread) ||
	       tally_file_word(&rec, n, &word))
		n++;
	while (tally_file_cpu(&rec, &cursor, &cpu))
		;
}

static void read_features(struct tally_reader *r)
{
	struct tally_feature_item item;

	for (uint32_t i = 0; i < 40; i++) {
		struct tally_feature_walk walk = { .feature = i };
		while (tally_reader_item(r, &walk, &item) > 0)
			;
		tally_reader_text(r, i);
	}
	for (uint32_t i = 0; tally_reader_cmdline(r, i); i++)
		;
	tally_reader_build_ids(r, ignore_id, NULL);
}

/* How many records there were; each error has a text and stays. */
static uint64_t exercise(int fd, size_t size, uint32_t flags)
{
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = flags };
	struct tally_reader *r = NULL;
	struct tally_reader_record rec;
	struct tally_record decoded;
	struct tally_error err;
	uint64_t n = 0;
	int ret;

	if (tally_reader_open_fd(&r, fd, "t.data", &opts, &err) < 0) {
		check(err.code < 0 && err.text[0]);
		return 0;
	}
	while ((ret = tally_reader_next(r, &rec, &err)) > 0 && n <= 64 * size) {
		tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded, sizeof(decoded));
		read_lists(&rec, tally_reader_swapped(r));
		n++;
	}
	check(n <= 64 * size);
	check(ret == 0 || (ret == err.code && err.text[0]));
	read_features(r);
	tally_reader_close(r);
	return n;
}

/* By position, and every so often in the other ways. */
static void exercise_ways(int fd, const struct made *m, size_t at)
{
	uint64_t plain = exercise(fd, m->h.len, 0);

	if (at % 4 == 0)
		check_u64(exercise(fd, m->h.len, TALLY_READER_TIME_ORDER), plain);
	if (at % 4 == 1)
		exercise(fd, m->h.len, TALLY_READER_PACKED | TALLY_READER_FOLLOW);
}

static void exercise_pipe(const struct made *m)
{
	int fds[2];

	check_int(pipe(fds), 0);
	check_int(write(fds[1], m->h.at, m->h.len), (int64_t)m->h.len);
	close(fds[1]);
	exercise(fds[0], m->h.len, TALLY_READER_TIME_ORDER_PIPE);
	close(fds[0]);
}

static void any_length_is_read_or_refused(void)
{
	struct made m;

	for (int kind = 0; kind < KINDS; kind++) {
		make_kind(&m, kind);
		int fd = hm_file(&m.h);
		for (size_t len = m.h.len; len--;) {
			require(ftruncate(fd, (off_t)len) == 0);
			m.h.len = len;
			exercise_ways(fd, &m, len);
			if (len % 4 == 2)
				exercise_pipe(&m);
		}
		close(fd);
		hm_done(&m.h);
	}
}

static void any_byte_may_be_wrong(void)
{
	static const uint8_t masks[] = { 0xff, 0x01, 0x80, 0x10 };
	struct made m;

	for (int kind = 0; kind < KINDS; kind++) {
		make_kind(&m, kind);
		int fd = hm_file(&m.h);
		for (size_t at = 0; at < m.h.len; at++) {
			for (size_t k = 0; k < sizeof(masks); k++) {
				m.h.at[at] ^= masks[k];
				require(pwrite(fd, m.h.at + at, 1, (off_t)at) == 1);
				exercise_ways(fd, &m, at + k);
				if (k == 0 && at % 4 == 2)
					exercise_pipe(&m);
				m.h.at[at] ^= masks[k];
			}
			require(pwrite(fd, m.h.at + at, 1, (off_t)at) == 1);
		}
		close(fd);
		hm_done(&m.h);
	}
}

int main(void)
{
	tap_run(any_length_is_read_or_refused);
	tap_run(any_byte_may_be_wrong);
	return tap_end();
}
