/* SPDX-License-Identifier: MIT */
/* The reader, over files made by hand: every form of the format, and failing system calls. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/reader.h>

#include "base/sys.h"
#include "handmade-recording.h"

/* ---- a table of system calls whose pread can be made to misbehave ---- */

static struct {
	size_t short_to;    /* at most so many bytes a call; 0: all */
	int interruptions;  /* so many calls end in EINTR first */
	uint64_t broken_at; /* reads that touch this offset end in EIO; 0: none */
	int calls;
} fake;

static ssize_t fake_pread(int fd, void *buf, size_t len, off_t offset)
{
	uint64_t at = (uint64_t)offset;

	fake.calls++;
	if (fake.interruptions > 0) {
		fake.interruptions--;
		return -EINTR;
	}
	if (fake.broken_at && at <= fake.broken_at && at + len > fake.broken_at) {
		len = fake.broken_at - at;
		if (!len)
			return -EIO;
	}
	if (fake.short_to && len > fake.short_to)
		len = fake.short_to;
	return sys_kernel.pread(fd, buf, len, offset);
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.pread = fake_pread;
	return &table;
}

/* ---- forms ---- */

static void check_whole(const struct shape *s)
{
	struct made m;
	int fd, n = 0;

	make(&m, s);
	struct tally_reader *r = must_open(&m, &fd);
	if (!r)
		return;
	check_int(tally_reader_swapped(r), s->swapped);
	check_u64(tally_reader_file_size(r), m.h.len);
	check_int(tally_reader_events(r), 2);
	check(!tally_reader_event(r, 2));
	const struct tally_reader_event *e = tally_reader_event(r, 1);
	check_int(e->attr.type, 1);
	check_int(e->attr.config, 2);
	check_u64(e->attr.sample_type, IP | TID | TIME | ID | PERIOD);
	check_int(e->id_count, 2);
	check_u64(e->ids[0], 201);
	check_u64(e->ids[1], 202);
	check_int(e->raw_attr_len, s->attr ? s->attr : 96);
	check_mem(e->raw_attr, m.h.at + m.attrs + e->raw_attr_len + 16, e->raw_attr_len);
	check_records(r, &m);
	check_int(tally_reader_rewind(r, NULL), 0);
	check_records(r, &m);
	if (m.table) {
		check_str(e->name, "faults:u");
		check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
		check_str(tally_reader_cmdline(r, 0), "perf");
		check_str(tally_reader_cmdline(r, 1), "");
		check_str(tally_reader_cmdline(r, 2), "record");
		check_int(tally_reader_build_ids(r, count_id, &n), 0);
		check_int(n, 2);
	}
	check(!tally_reader_cmdline(r, 3));
	check(!tally_reader_text(r, TALLY_FEATURE_CPUID));
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	hm_done(&m.h);
}

static void reads_a_file(void)
{
	check_whole(&(struct shape){ 0 });
}

static void reads_the_other_byte_order(void)
{
	check_whole(&(struct shape){ .swapped = true });
}

static void reads_the_old_header_without_features(void)
{
	check_whole(&(struct shape){ .header = 72 });
	check_whole(&(struct shape){ .header = 72, .swapped = true });
}

static void reads_version_1_in_both_byte_orders(void)
{
	check_whole(&(struct shape){ .magic = "PERFFILE" });
	check_whole(&(struct shape){ .magic = "PERFFILE", .swapped = true });
	check_whole(&(struct shape){ .magic = "PERFFILE", .swapped = true, .attr = 64 });
}

static void reads_attrs_of_any_size(void)
{
	static const uint32_t sizes[] = { 64, 72, 80, 104, 112, 120, 128, 136, 144, 152, 1024 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		check_whole(&(struct shape){ .attr = sizes[i] });
		check_whole(&(struct shape){ .attr = sizes[i], .swapped = true });
	}
}

static void reads_feature_texts_of_any_alignment(void)
{
	for (size_t align = 1; align < 9; align++)
		check_whole(&(struct shape){ .align = align });
}

static void an_attr_of_size_0_has_64_bytes(void)
{
	struct made m;
	int fd;

	make(&m, &(struct shape){ .attr = 64 });
	hm_set(&m.h, m.attrs + 4, 0, 4);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(tally_reader_event(r, 0)->raw_attr_len, 64);
	check_u64(tally_reader_event(r, 1)->ids[1], 202);
	close_made(r, fd);
	hm_done(&m.h);
}

/* perf inject of 6.12 and later writes them last. */
static void finds_attrs_behind_the_data(void)
{
	struct made m;
	int fd;

	make(&m, &(struct shape){ 0 });
	size_t size = m.data - m.attrs, at = m.h.len;
	hm_room(&m.h, size);
	memcpy(m.h.at + at, m.h.at + m.attrs, size);
	memset(m.h.at + m.attrs, 0xff, size);
	hm_section(&m.h, HM_ATTRS_AT, at, size);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(tally_reader_events(r), 2);
	check_records(r, &m);
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	/* Without features too: they are no records of a killed writer. */
	memset(m.h.at + HM_FEATURES_AT, 0, 32);
	require((r = must_open(&m, &fd)) != NULL);
	check_records(r, &m);
	close_made(r, fd);
	hm_done(&m.h);
}

/* The names that perf report shows. */
static void names_events_by_type_and_config_without_a_description(void)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name;
	} cases[] = {
		{ 0, 0, "cycles" },
		{ 0, 4, "branches" },
		{ 1, 0, "cpu-clock" },
		{ 1, 2, "page-faults" },
		{ 3, 0x10000, "L1-dcache-load-misses" },
		{ 4, 0x1c4, "raw 0x1c4" },
		{ 77, 0x12, "type 77 config 0x12" },
	};
	struct made m;
	int fd;

	make(&m, &(struct shape){ .header = 72 });
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		hm_set(&m.h, m.attrs, cases[i].type, 4);
		hm_set(&m.h, m.attrs + 8, cases[i].config, 8);
		struct tally_reader *r = must_open(&m, &fd);
		require(r);
		check_str(tally_reader_event(r, 0)->name, cases[i].name);
		close_made(r, fd);
	}
	hm_done(&m.h);
}

/* ---- which event ---- */

static uint32_t event_of_next(struct tally_reader *r)
{
	struct tally_reader_record rec = { .event = 99 };

	check_int(tally_reader_next(r, &rec, NULL), 1);
	return rec.event;
}

static void tells_events_by_the_id_of_samples(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	put_sample(&m.h, 1, 102);
	put_sample(&m.h, 2, 201);
	put_sample(&m.h, 3, 0);
	put_sample(&m.h, 4, 12345);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(event_of_next(r), 0);
	check_int(event_of_next(r), 1);
	check_int(event_of_next(r), 0); /* made by the recorder, of no event */
	check_int(event_of_next(r), 0); /* an id that nobody has */
	close_made(r, fd);
	hm_done(&m.h);
}

/* IDENTIFIER: first in samples, last in all others, so the rest may differ. */
static void tells_events_of_different_layouts_by_identifier(void)
{
	struct made m;
	struct tally_reader_record rec;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.attrs + 24, IDENTIFIER | TID, 8);
	hm_set(&m.h, m.attrs + 40, SAMPLE_ID_ALL, 8);
	hm_set(&m.h, m.attrs + 112 + 24, IDENTIFIER | TIME | IP, 8);
	hm_set(&m.h, m.attrs + 112 + 40, SAMPLE_ID_ALL, 8);
	hm_record(&m.h, 9, 2, 32);
	hm_u64(&m.h, 202);
	hm_u64(&m.h, 0x1234);
	hm_u64(&m.h, 99);
	/* COMM {pid, tid, comm[8]} with {time, identifier} behind it */
	hm_record(&m.h, 3, 0, 40);
	hm_u64(&m.h, 7);
	hm_bytes(&m.h, "abc\0\0\0\0", 8);
	hm_u64(&m.h, 88);
	hm_u64(&m.h, 201);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	for (int i = 0; i < 2; i++) {
		struct tally_record decoded;
		require(tally_reader_next(r, &rec, NULL) == 1);
		check_int(rec.event, 1);
		check(tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded,
					  sizeof(decoded)) > 0);
		check_u64(decoded.id.time, i ? 88 : 99);
	}
	close_made(r, fd);
	hm_done(&m.h);
}

static void says_when_ids_have_no_common_place(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.attrs + 24, IDENTIFIER | TID, 8);
	put_sample(&m.h, 2, 201);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(event_of_next(r), 0);
	check_has(tally_reader_health(r), "ids");
	close_made(r, fd);
	hm_done(&m.h);
}

/* User records have no sample_id: what stands at their end is no id. */
static void user_records_belong_to_the_first_event(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	hm_set(&m.h, m.attrs + 40, SAMPLE_ID_ALL, 8);
	hm_record(&m.h, TALLY_FILE_STAT_ROUND, 0, 32);
	for (int i = 0; i < 3; i++)
		hm_u64(&m.h, 201);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(event_of_next(r), 0);
	close_made(r, fd);
	hm_done(&m.h);
}

/* ---- the buffer ---- */

/* Old perf wrote sizes that are no multiples of 8; three MiB of them cross every buffer's end. */
static void put_odd_records(struct made *m, int count)
{
	for (int i = 0; i < count; i++) {
		uint16_t size = (uint16_t)(8 + (uint32_t)i * 7919 % 4099);
		if (i % 50 == 49)
			size = 65535;
		hm_record(&m->h, 1000, 0, size);
		memset(hm_room(&m->h, size - 8u), i & 0xff, size - 8u);
	}
}

static void check_odd_records(struct tally_reader *r, const struct made *m, int count)
{
	struct tally_reader_record rec;
	uint64_t offset = m->data;

	for (int i = 0; i < count; i++) {
		struct tally_error err = { 0 };
		if (!check_int(tally_reader_next(r, &rec, &err), 1)) {
			printf("# %s\n", err.text);
			return;
		}
		check_u64(rec.offset, offset);
		check_mem(rec.bytes, m->h.at + offset, rec.len);
		offset += rec.len;
	}
	check_int(tally_reader_next(r, &rec, NULL), 0);
	check_u64(offset, m->data_end);
}

static void records_that_cross_the_buffer_are_whole(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	put_odd_records(&m, 1000);
	end_data(&m);
	check(m.data_end - m.data > 3u << 20);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_odd_records(r, &m, 1000);
	tally_reader_rewind(r, NULL);
	fake.short_to = 5000;
	check_odd_records(r, &m, 1000);
	fake.short_to = 0;
	fake.interruptions = 3;
	tally_reader_rewind(r, NULL);
	check_odd_records(r, &m, 1000);
	check_int(fake.interruptions, 0);
	close_made(r, fd);
	hm_done(&m.h);
}

static void a_large_file_takes_few_reads(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	put_odd_records(&m, 1000);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	fake.calls = 0;
	check_int(drain(r, NULL), 1000);
	check(fake.calls <= (int)(m.h.len >> 16) + 2);
	close_made(r, fd);
	hm_done(&m.h);
}

static void a_failing_disk_is_an_error_with_the_offset(void)
{
	struct made m;
	struct tally_error err = { 0 };
	struct tally_reader_record rec;
	char at[32];
	int fd, n = 0, ret;

	start_data(&m, &(struct shape){ 0 });
	put_odd_records(&m, 1000);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	fake.broken_at = m.data + 1000000;
	while ((ret = tally_reader_next(r, &rec, &err)) > 0)
		n++;
	check_int(ret, -EIO);
	check_int(err.cause, TALLY_CAUSE_IO);
	snprintf(at, sizeof(at), "offset %" PRIu64, fake.broken_at);
	check_has(err.text, at);
	check(rec.offset + rec.len + 65535 >= fake.broken_at);
	check_int(tally_reader_next(r, &rec, &err), -EIO);
	fake.broken_at = 0;
	tally_reader_rewind(r, NULL);
	check_int(drain(r, NULL), 1000);
	close_made(r, fd);
	hm_done(&m.h);
}

static void a_file_may_shrink_while_it_is_read(void)
{
	struct made m;
	struct tally_reader_record rec;
	struct tally_error err;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	put_odd_records(&m, 1000);
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	check_int(tally_reader_next(r, &rec, &err), 1);
	require(ftruncate(fd, (off_t)m.data + 1000000) == 0);
	int n = drain(r, &err);
	check(n > 100 && n < 1000);
	check_has(tally_reader_health(r), "shorter");
	close_made(r, fd);
	hm_done(&m.h);
}

/* ---- pipes ---- */

static void reads_a_saved_pipe(void)
{
	struct made m;
	const void *bytes;
	uint64_t len;
	int fd;

	for (int swapped = 0; swapped < 2; swapped++) {
		make_pipe(&m, swapped);
		struct tally_reader *r = must_open(&m, &fd);
		require(r);
		check_int(tally_reader_events(r), 2);
		check_str(tally_reader_event(r, 0)->name, "cpu-clock");
		check_str(tally_reader_event(r, 1)->name, "faults");
		check_u64(tally_reader_event(r, 1)->ids[0], 201);
		check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "pipe");
		check_int(tally_reader_feature(r, 32, &bytes, &len), 0);
		for (int i = 0; i < 6; i++)
			check_int(event_of_next(r), 0);
		check_int(event_of_next(r), 1);
		check_int(drain(r, NULL), 0);
		check_str(tally_reader_health(r), NULL);
		close_made(r, fd);
		hm_done(&m.h);
	}
}

/* ---- opening ---- */

static void opening_fails_in_words(void)
{
	struct tally_reader *r = NULL;
	struct tally_error err;
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = 1u << 31 };
	char dir[] = "/tmp/tally-reader-XXXXXX", path[64];

	require(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/none", dir);
	check_int(tally_reader_open(&r, path, NULL, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_has(err.text, path);
	check_int(tally_reader_open(&r, dir, NULL, &err), -ENOENT);
	check_has(err.text, "folder");
	check_int(tally_reader_open(&r, "/dev/null", NULL, &err), -EBADMSG);
	check_int(tally_reader_open(&r, path, &opts, &err), -EINVAL);
	rmdir(dir);
	tally_reader_close(NULL);
}

static void opening_by_path_reads_the_same(void)
{
	char path[] = "/tmp/tally-reader-XXXXXX";
	struct made m;
	struct tally_reader *r = NULL;
	struct tally_error err;
	int fd = mkstemp(path);

	require(fd >= 0);
	make(&m, &(struct shape){ 0 });
	require(write(fd, m.h.at, m.h.len) == (ssize_t)m.h.len);
	close(fd);
	check_int(tally_reader_open(&r, path, NULL, &err), 0);
	if (r)
		check_records(r, &m);
	tally_reader_close(r);
	unlink(path);
	hm_done(&m.h);
}

int main(void)
{
	tap_run(reads_a_file);
	tap_run(reads_the_other_byte_order);
	tap_run(reads_the_old_header_without_features);
	tap_run(reads_version_1_in_both_byte_orders);
	tap_run(reads_attrs_of_any_size);
	tap_run(reads_feature_texts_of_any_alignment);
	tap_run(an_attr_of_size_0_has_64_bytes);
	tap_run(finds_attrs_behind_the_data);
	tap_run(names_events_by_type_and_config_without_a_description);
	tap_run(tells_events_by_the_id_of_samples);
	tap_run(tells_events_of_different_layouts_by_identifier);
	tap_run(says_when_ids_have_no_common_place);
	tap_run(user_records_belong_to_the_first_event);
	tap_run(records_that_cross_the_buffer_are_whole);
	tap_run(a_large_file_takes_few_reads);
	tap_run(a_failing_disk_is_an_error_with_the_offset);
	tap_run(a_file_may_shrink_while_it_is_read);
	tap_run(reads_a_saved_pipe);
	tap_run(opening_fails_in_words);
	tap_run(opening_by_path_reads_the_same);
	return tap_end();
}
