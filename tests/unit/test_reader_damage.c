/* SPDX-License-Identifier: MIT */
/* The reader, over files made by hand and then damaged: by dead writers, disks and enemies. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/reader.h>

#include "handmade-recording.h"

/* ---- files whose writer did not finish ---- */

static void check_drains(const struct made *m, int records, const char *health)
{
	struct tally_error err = { 0 };
	int fd;
	struct tally_reader *r = must_open(m, &fd);

	if (!r)
		return;
	if (!check_int(drain(r, &err), records))
		printf("# %s\n", err.text);
	if (health)
		check_has(tally_reader_health(r), health);
	else
		check_str(tally_reader_health(r), NULL);
	/* It reads the same again. */
	tally_reader_rewind(r, NULL);
	check_int(drain(r, &err), records);
	close_made(r, fd);
}

/* perf writes the size of the data last. */
static void reads_what_a_killed_perf_left(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	hm_set(&m.h, HM_DATA_AT + 8, 0, 8);
	check_drains(&m, 3, "killed");
	m.h.len -= 5; /* in the middle of the last record */
	check_drains(&m, 2, "27 bytes");
	hm_done(&m.h);
}

static void reads_a_file_that_was_cut(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end - 1;
	check_drains(&m, 2, "cut short");
	m.h.len = m.data + 7;
	check_drains(&m, 0, "cut short");
	hm_done(&m.h);
}

/* Blocks that were allotted and never written hold zeros. */
static void zeros_end_what_a_killed_writer_left(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	hm_set(&m.h, HM_DATA_AT + 8, 0, 8);
	hm_room(&m.h, 4096);
	check_drains(&m, 3, "4096 bytes");
	hm_done(&m.h);
}

/* The sizes are those of the last round, and there are no features yet. */
static void reads_on_behind_the_last_round(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	memset(m.h.at + HM_FEATURES_AT, 0, 32);
	check_drains(&m, 3, NULL);
	hm_set(&m.h, HM_DATA_AT + 8, 32, 8);
	check_drains(&m, 3, "not finished");
	m.h.len -= 3;
	check_drains(&m, 2, "29 bytes");
	hm_done(&m.h);
}

static void junk_behind_the_data_is_told_and_left_out(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	memset(m.h.at + HM_FEATURES_AT, 0, 32);
	hm_bytes(&m.h, "Recording took 3.2 seconds\n", 27);
	check_drains(&m, 3, "27 bytes");
	/* With features the data's end is sure, and what stands behind them nobody reads. */
	hm_done(&m.h);
	make(&m, &(struct shape){ 0 });
	hm_bytes(&m.h, "junk", 4);
	check_drains(&m, 3, NULL);
	hm_done(&m.h);
}

static void a_rest_shorter_than_a_header_is_left_out(void)
{
	struct made m;

	make(&m, &(struct shape){ .header = 72 });
	hm_set(&m.h, HM_DATA_AT + 8, m.data_end - m.data - 32 + 7, 8);
	check_drains(&m, 2, "7 bytes");
	hm_done(&m.h);
}

/* ---- damaged records ---- */

static void check_damage(const struct made *m, int before, const char *text, uint64_t offset)
{
	struct tally_reader_record rec;
	struct tally_error err = { 0 }, again = { 0 };
	char at[32];
	int fd;
	struct tally_reader *r = must_open(m, &fd);

	if (!r)
		return;
	for (int i = 0; i < before; i++)
		check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(tally_reader_next(r, &rec, &err), -EBADMSG);
	check_int(err.code, -EBADMSG);
	check_int(err.cause, TALLY_CAUSE_CORRUPT);
	snprintf(at, sizeof(at), "offset %" PRIu64, offset);
	check_has(err.text, at);
	snprintf(at, sizeof(at), "record %d", before + 1);
	check_has(err.text, at);
	check_has(err.text, text);
	check_has(err.text, "t.data");
	check_int(tally_reader_next(r, &rec, &again), -EBADMSG);
	check_str(again.text, err.text);
	tally_reader_rewind(r, NULL);
	check_int(tally_reader_next(r, &rec, NULL), before ? 1 : -EBADMSG);
	close_made(r, fd);
}

static void a_record_of_size_0_is_an_error(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.data + 32 + 6, 0, 2);
	check_damage(&m, 1, "(SAMPLE)", m.data + 32);
	check_damage(&m, 1, "at least 8", m.data + 32);
	hm_set(&m.h, m.data + 6, 7, 2);
	check_damage(&m, 0, "size of 7", m.data);
	/* Also where the writer was killed: only zeros are taken for no record. */
	hm_set(&m.h, HM_DATA_AT + 8, 0, 8);
	check_damage(&m, 0, "size of 7", m.data);
	hm_done(&m.h);
}

static void a_record_across_the_end_of_the_data_is_an_error(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.data + 80 + 6, 40, 2);
	check_damage(&m, 2, "at most the 32", m.data + 80);
	hm_set(&m.h, m.data + 80, 222, 4);
	check_damage(&m, 2, "(type 222)", m.data + 80);
	hm_done(&m.h);
}

/* AUXTRACE {u64 size ...} and TRACING_DATA {u32 size} precede bytes that they do not count. */
static void steps_over_what_follows_a_record(void)
{
	struct made m;
	struct tally_reader_record rec;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	hm_record(&m.h, TALLY_FILE_AUXTRACE, 0, 48);
	hm_u64(&m.h, 700000); /* more than a buffer */
	hm_room(&m.h, 32 + 700000);
	hm_record(&m.h, TALLY_FILE_TRACING_DATA, 0, 12);
	hm_u32(&m.h, 5);
	hm_room(&m.h, 8);
	hm_comm(&m.h, 1, "behind");
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.len, 48);
	check_u64(tally_reader_position(r), m.data + 48 + 700000);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.len, 12);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.type, TALLY_RECORD_COMM);
	check_str((const char *)rec.bytes + 16, "behind");
	check_int(tally_reader_next(r, &rec, NULL), 0);
	close_made(r, fd);
	hm_done(&m.h);
}

/* The shortest of old perf: nothing follows, and it is the last. */
static void what_follows_may_be_nothing(void)
{
	struct made m;

	start_data(&m, &(struct shape){ .header = 72 });
	hm_record(&m.h, TALLY_FILE_TRACING_DATA, 0, 12);
	hm_u32(&m.h, 0);
	end_data(&m);
	check_drains(&m, 1, NULL);
	hm_done(&m.h);
}

static void what_follows_a_record_must_be_there(void)
{
	struct made m;

	start_data(&m, &(struct shape){ 0 });
	hm_comm(&m.h, 1, "first");
	hm_record(&m.h, TALLY_FILE_AUXTRACE, 0, 48);
	hm_u64(&m.h, 17);
	hm_room(&m.h, 32 + 16);
	end_data(&m);
	hm_set(&m.h, HM_FEATURES_AT, 1 << 15, 8); /* BRANCH_STACK, empty: the file is finished */
	hm_u64(&m.h, m.h.len);
	hm_u64(&m.h, 0);
	check_damage(&m, 1, "(AUXTRACE)", m.data + 32);
	hm_set(&m.h, m.data + 40, UINT64_MAX, 8);
	check_damage(&m, 1, "(AUXTRACE)", m.data + 32);
	hm_set(&m.h, m.data + 40, UINT64_MAX - 47, 8);
	check_damage(&m, 1, "(AUXTRACE)", m.data + 32);
	hm_set(&m.h, m.data + 38, 8, 2);
	check_damage(&m, 1, "(AUXTRACE)", m.data + 32);
	hm_set(&m.h, m.data + 38, 48, 2);
	hm_set(&m.h, m.data + 40, 16, 8);
	check_drains(&m, 2, NULL);
	hm_done(&m.h);
}

/* ---- hostile headers ---- */

static int open_made(const struct made *m, struct tally_reader **r, struct tally_error *err)
{
	int fd = hm_file(&m->h);
	int ret = tally_reader_open_fd(r, fd, "t.data", NULL, err);

	if (ret < 0)
		close(fd);
	return ret;
}

static void check_refused(const struct made *m, uint32_t cause, const char *text)
{
	struct tally_error err = { 0 };
	struct tally_reader *r = NULL;

	check_int(open_made(m, &r, &err), -EBADMSG);
	check(!r);
	check_int(err.cause, cause);
	check_has(err.text, "t.data");
	check_has(err.text, text);
	tally_reader_close(r);
}

static void refuses_what_is_no_recording(void)
{
	struct made m;

	make(&m, &(struct shape){ .magic = "\x7f"
					   "ELF\2\1\1" });
	check_refused(&m, TALLY_CAUSE_CORRUPT, "not a perf.data file");
	hm_done(&m.h);
	m = (struct made){ 0 };
	check_refused(&m, TALLY_CAUSE_TRUNCATED, "0 bytes");
	hm_bytes(&m.h, "PERFILE2", 8);
	check_refused(&m, TALLY_CAUSE_TRUNCATED, "8 bytes");
	hm_done(&m.h);
}

static void refuses_other_header_sizes(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, 8, 112, 8);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "expected 104, 72");
	check_refused(&m, TALLY_CAUSE_CORRUPT, "offset 8");
	hm_done(&m.h);
}

static void refuses_sections_outside_the_file(void)
{
	static const struct {
		size_t at;
		uint64_t value;
	} bad[] = {
		{ HM_ATTRS_AT, UINT64_MAX - 8 },
		{ HM_ATTRS_AT, 1u << 20 },
		{ HM_ATTRS_AT + 8, UINT64_MAX },
		{ HM_ATTRS_AT + 8, 1u << 20 },
		{ HM_DATA_AT, UINT64_MAX },
		{ HM_DATA_AT, 1u << 20 },
		{ HM_DATA_AT, 8 },
	};
	struct made m;
	struct tally_error err;
	struct tally_reader *r = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		make(&m, &(struct shape){ 0 });
		hm_set(&m.h, bad[i].at, bad[i].value, 8);
		check_int(open_made(&m, &r, &err), -EBADMSG);
		check(!r);
		hm_done(&m.h);
	}
}

static void refuses_damaged_attrs(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.attrs + 4, 63, 4);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "size of an attr");
	hm_set(&m.h, m.attrs + 4, 0xfffffff8, 4);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "size of an attr");
	hm_set(&m.h, m.attrs + 4, 96, 4);
	hm_set(&m.h, HM_ATTRS_AT + 8, 112 + 111, 8);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "size of an attr");
	hm_set(&m.h, HM_ATTRS_AT + 8, 0, 8);
	check_refused(&m, TALLY_CAUSE_TRUNCATED, "no event");
	hm_done(&m.h);
}

static void refuses_damaged_ids(void)
{
	struct made m;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.attrs + 96, 1u << 20, 8);
	check_refused(&m, TALLY_CAUSE_TRUNCATED, "ids");
	hm_set(&m.h, m.attrs + 96, m.ids, 8);
	hm_set(&m.h, m.attrs + 104, 12, 8);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "ids");
	hm_done(&m.h);
}

/* A thousand events that all point to the same megabyte would need a gigabyte. */
static void ids_cannot_be_multiplied(void)
{
	struct made m = { 0 };
	struct hm_attr attr = { .size = 64 };

	hm_header(&m.h, 104, 80);
	for (int i = 0; i < 1000; i++) {
		hm_attr(&m.h, &attr);
		hm_u64(&m.h, 104);
		hm_u64(&m.h, 80 * 1000);
	}
	hm_section(&m.h, HM_ATTRS_AT, 104, 80 * 1000);
	hm_section(&m.h, HM_DATA_AT, m.h.len, 0);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "less than the file has");
	hm_done(&m.h);
}

/* ---- hostile features ---- */

static void features_outside_the_file_are_left_out(void)
{
	struct made m;
	int fd;

	make(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.table + 16, UINT64_MAX - 3, 8); /* HOSTNAME */
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), NULL);
	check_has(tally_reader_health(r), "HOSTNAME");
	check_str(tally_reader_cmdline(r, 0), "perf");
	check_records(r, &m);
	close_made(r, fd);
	m.h.len = m.table + 63;
	check_drains(&m, 3, "table of features");
	hm_done(&m.h);
}

static void features_cannot_be_multiplied(void)
{
	struct made m;
	int fd, present = 0;
	const void *bytes;
	uint64_t len;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	memset(m.h.at + HM_FEATURES_AT, 0xff, 32);
	hm_room(&m.h, 4096);
	for (size_t i = 0; i < 256; i++)
		hm_section(&m.h, m.data_end + 16 * i, 0, m.h.len);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	for (uint32_t i = 0; i < 300; i++)
		present += tally_reader_feature(r, i, &bytes, &len);
	check_int(present, 1);
	close_made(r, fd);
	hm_done(&m.h);
}

static void an_empty_feature_is_present(void)
{
	struct made m;
	const void *bytes = NULL;
	uint64_t len = 1;
	int fd;

	make(&m, &(struct shape){ 0 });
	m.h.len = m.data_end;
	hm_set(&m.h, HM_FEATURES_AT, 1 << 15, 8);
	hm_u64(&m.h, m.h.len);
	hm_u64(&m.h, 0);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(tally_reader_feature(r, 15, &bytes, &len), 1);
	check_u64(len, 0);
	check(bytes != NULL);
	check_int(tally_reader_feature(r, TALLY_FEATURE_HOSTNAME, &bytes, &len), 0);
	check_int(tally_reader_feature(r, 4000000000, &bytes, &len), 0);
	close_made(r, fd);
	hm_done(&m.h);
}

/* Replaces the features by one, whose bytes the caller appends and then ends by end_feature(). */
static size_t start_feature(struct made *m, const struct shape *s, int bit)
{
	make(m, s);
	m->h.len = m->data_end;
	hm_set(&m->h, HM_FEATURES_AT, 1ull << bit, 8);
	hm_room(&m->h, 16);
	return m->h.len;
}

static void end_feature(struct made *m, size_t begin)
{
	hm_section(&m->h, m->data_end, begin, m->h.len - begin);
}

static void a_text_ends_where_its_section_does(void)
{
	struct made m;
	int fd;

	size_t begin = start_feature(&m, &(struct shape){ 0 }, 3);
	hm_u32(&m.h, 3);
	hm_bytes(&m.h, "abcd", 4); /* no NUL in the three */
	end_feature(&m, begin);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "abc");
	close_made(r, fd);
	hm_set(&m.h, begin, 5, 4); /* one more than there is */
	require((r = must_open(&m, &fd)) != NULL);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), NULL);
	close_made(r, fd);
	hm_done(&m.h);
}

static void counts_in_features_are_not_believed(void)
{
	struct made m;
	int fd, n = 0;

	size_t begin = start_feature(&m, &(struct shape){ 0 }, 11);
	hm_u32(&m.h, UINT32_MAX);
	hm_text(&m.h, "perf", 8);
	end_feature(&m, begin);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_str(tally_reader_cmdline(r, 0), "perf");
	check_str(tally_reader_cmdline(r, 1), NULL);
	close_made(r, fd);
	hm_done(&m.h);

	begin = start_feature(&m, &(struct shape){ 0 }, 12);
	hm_u32(&m.h, UINT32_MAX);
	hm_u32(&m.h, 64);
	hm_room(&m.h, 64);
	hm_u32(&m.h, UINT32_MAX); /* ids */
	hm_text(&m.h, "cycles", 8);
	end_feature(&m, begin);
	require((r = must_open(&m, &fd)) != NULL);
	check_has(tally_reader_health(r), "EVENT_DESC");
	check(tally_reader_event(r, 0)->name != NULL);
	close_made(r, fd);
	hm_done(&m.h);

	begin = start_feature(&m, &(struct shape){ 0 }, 2);
	put_build_ids(&m.h);
	hm_record(&m.h, 0, 2, 0);
	end_feature(&m, begin);
	require((r = must_open(&m, &fd)) != NULL);
	check_int(tally_reader_build_ids(r, count_id, &n), -EBADMSG);
	check_int(n, 2);
	close_made(r, fd);
	hm_done(&m.h);
}

static int old_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		  uint32_t id_len, void *arg)
{
	int *n = arg;

	check_int(pid, -1);
	check_int(id[0], 1);
	check_int(id_len, 20);
	check_str(name, *n ? "/bin/true" : "[kernel.kallsyms]");
	++*n;
	return *n == 2 ? 77 : 0;
}

/* Before 2.6.36 an entry was {header; u8 id[24]; name}. */
static void build_ids_of_the_oldest_files_have_no_pid(void)
{
	struct made m;
	uint8_t id[24] = { 1 };
	int fd, n = 0;

	size_t begin = start_feature(&m, &(struct shape){ 0 }, 2);
	hm_record(&m.h, 0, 1, 32 + 20);
	hm_bytes(&m.h, id, 24);
	hm_bytes(&m.h, "[kernel.kallsyms]\0\0", 20);
	hm_record(&m.h, 0, 2, 32 + 12);
	hm_bytes(&m.h, id, 24);
	hm_bytes(&m.h, "/bin/true\0\0", 12);
	end_feature(&m, begin);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(tally_reader_build_ids(r, old_id, &n), 77);
	check_int(n, 2);
	close_made(r, fd);
	hm_done(&m.h);
}

/* A big-endian machine whose unsigned long has 32 bits writes the bitmap in such words. */
static void reads_a_bitmap_of_32_bit_words(void)
{
	struct made m;
	int fd;

	make(&m, &(struct shape){ .swapped = true });
	hm_set(&m.h, HM_FEATURES_AT, 1 << 2 | 1 << 3 | 1 << 11 | 1 << 12, 4);
	hm_set(&m.h, HM_FEATURES_AT + 4, 0, 4);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
	check_str(tally_reader_cmdline(r, 2), "record");
	close_made(r, fd);
	hm_done(&m.h);
}

/* ---- pipes ---- */

static void a_damaged_pipe_is_read_up_to_the_damage(void)
{
	struct made m;
	size_t at;

	make_pipe(&m, false);
	at = m.h.len;
	put_sample(&m.h, 1, 101);
	hm_set(&m.h, at + 6, 0, 2);
	check_damage(&m, 7, "(SAMPLE)", at);
	m.h.len = at + 20;
	hm_set(&m.h, at + 6, 48, 2);
	check_drains(&m, 7, "20 bytes");
	m.h.len = 16;
	check_refused(&m, TALLY_CAUSE_TRUNCATED, "no event");
	hm_done(&m.h);
	make_pipe(&m, false);
	hm_set(&m.h, 16 + 8 + 4, 88, 4);
	check_refused(&m, TALLY_CAUSE_CORRUPT, "HEADER_ATTR");
	hm_done(&m.h);
}

int main(void)
{
	tap_run(reads_what_a_killed_perf_left);
	tap_run(reads_a_file_that_was_cut);
	tap_run(zeros_end_what_a_killed_writer_left);
	tap_run(reads_on_behind_the_last_round);
	tap_run(junk_behind_the_data_is_told_and_left_out);
	tap_run(a_rest_shorter_than_a_header_is_left_out);
	tap_run(a_record_of_size_0_is_an_error);
	tap_run(a_record_across_the_end_of_the_data_is_an_error);
	tap_run(steps_over_what_follows_a_record);
	tap_run(what_follows_may_be_nothing);
	tap_run(what_follows_a_record_must_be_there);
	tap_run(refuses_what_is_no_recording);
	tap_run(refuses_other_header_sizes);
	tap_run(refuses_sections_outside_the_file);
	tap_run(refuses_damaged_attrs);
	tap_run(refuses_damaged_ids);
	tap_run(ids_cannot_be_multiplied);
	tap_run(features_outside_the_file_are_left_out);
	tap_run(features_cannot_be_multiplied);
	tap_run(an_empty_feature_is_present);
	tap_run(a_text_ends_where_its_section_does);
	tap_run(counts_in_features_are_not_believed);
	tap_run(build_ids_of_the_oldest_files_have_no_pid);
	tap_run(reads_a_bitmap_of_32_bit_words);
	tap_run(a_damaged_pipe_is_read_up_to_the_damage);
	return tap_end();
}
