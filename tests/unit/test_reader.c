/* SPDX-License-Identifier: MIT */
/* The reader, over files made by hand: every form, every way to be damaged. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tally/reader.h>

#include "base/sys.h"
#include "handmade.h"
#include "tap.h"

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

/* ---- files ---- */

enum {
	IP = 1 << 0,
	TID = 1 << 1,
	TIME = 1 << 2,
	ID = 1 << 6,
	PERIOD = 1 << 8,
	IDENTIFIER = 1 << 16,
	SAMPLE_ID_ALL = 1 << 18,
};

/* Two events with two ids each, three records of COMM, SAMPLE, COMM, and four features. */
struct shape {
	bool swapped;
	uint64_t header;   /* 104 when 0 */
	uint32_t attr;     /* size of the attrs; 96 when 0 */
	const char *magic; /* another one */
	bool one_event;
	size_t align; /* of texts; 64 when 0 */
};

struct made {
	struct handmade h;
	size_t ids, attrs, data, data_end, table;
};

/* SAMPLE {u64 ip; u32 pid, tid; u64 time; u64 id; u64 period}: 48 bytes. */
static void put_sample(struct handmade *h, uint64_t ip, uint64_t id)
{
	hm_record(h, 9, 2, 48);
	hm_u64(h, ip);
	hm_u32(h, 7);
	hm_u32(h, 8);
	hm_u64(h, 1234);
	hm_u64(h, id);
	hm_u64(h, 1000);
}

static void put_attrs(struct made *m, const struct shape *s)
{
	struct handmade *h = &m->h;
	struct hm_attr attr = { .size = s->attr ? s->attr : 96,
				.sample_type = IP | TID | TIME | ID | PERIOD };

	m->attrs = h->len;
	for (uint32_t i = 0; i < (s->one_event ? 1 : 2); i++) {
		attr.type = i;
		attr.config = i ? 2 : 0; /* cycles, page-faults */
		hm_attr(h, &attr);
		hm_u64(h, m->ids + 16 * i);
		hm_u64(h, 16);
	}
	hm_section(h, HM_ATTRS_AT, m->attrs, h->len - m->attrs);
}

static void put_event_desc(struct handmade *h, const struct shape *s, size_t align)
{
	struct hm_attr attr = { .size = s->attr ? s->attr : 96 };

	hm_u32(h, 2);
	hm_u32(h, attr.size);
	for (uint32_t i = 0; i < 2; i++) {
		attr.type = i;
		attr.config = i ? 2 : 0;
		hm_attr(h, &attr);
		hm_u32(h, 1);
		hm_text(h, i ? "faults:u" : "cycles:pp", align);
		hm_u64(h, 101 + 100 * i);
	}
}

static void put_build_ids(struct handmade *h)
{
	uint8_t id[20];

	for (int i = 0; i < 20; i++)
		id[i] = (uint8_t)(i + 1);
	hm_record(h, 0, 1, 36 + 20);
	hm_u32(h, (uint32_t)-1);
	hm_bytes(h, id, 20);
	hm_u32(h, 0);
	hm_bytes(h, "[kernel.kallsyms]\0\0", 20);
	/* misc bit 15: the byte behind the 20 tells how many count. */
	hm_record(h, 0, 0x8002, 36 + 12);
	hm_u32(h, 4711);
	hm_bytes(h, id, 20);
	hm_bytes(h, "\x08\0\0", 4);
	hm_bytes(h, "/bin/true\0\0", 12);
}

/* HOSTNAME 3, BUILD_ID 2, CMDLINE 11, EVENT_DESC 12: the table is in the order of the bits. */
static void put_features(struct made *m, const struct shape *s)
{
	static const int bits[] = { 2, 3, 11, 12 };
	struct handmade *h = &m->h;
	size_t align = s->align ? s->align : 64;

	hm_set(h, HM_FEATURES_AT, 1 << 2 | 1 << 3 | 1 << 11 | 1 << 12, 8);
	m->table = h->len;
	hm_room(h, sizeof(bits) / sizeof(*bits) * 16);
	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		size_t begin = h->len;
		if (bits[i] == 2)
			put_build_ids(h);
		if (bits[i] == 3)
			hm_text(h, "box", align);
		if (bits[i] == 11) {
			hm_u32(h, 3);
			hm_text(h, "perf", align);
			hm_text(h, "", align);
			hm_text(h, "record", align);
		}
		if (bits[i] == 12)
			put_event_desc(h, s, align);
		hm_section(h, m->table + 16 * i, begin, h->len - begin);
	}
}

static void start_data(struct made *m, const struct shape *s)
{
	uint64_t header = s->header ? s->header : HM_HEADER;

	*m = (struct made){ .h.swapped = s->swapped };
	hm_header(&m->h, header, (s->attr ? s->attr : 96) + 16);
	if (s->magic)
		memcpy(m->h.at, s->magic, 8);
	m->ids = m->h.len;
	for (uint64_t i = 0; i < 4; i++)
		hm_u64(&m->h, (i < 2 ? 101 : 199) + i); /* 101 102, 201 202 */
	put_attrs(m, s);
	m->data = m->h.len;
}

static void end_data(struct made *m)
{
	m->data_end = m->h.len;
	hm_section(&m->h, HM_DATA_AT, m->data, m->data_end - m->data);
}

static void make(struct made *m, const struct shape *s)
{
	start_data(m, s);
	hm_comm(&m->h, 7, "make");
	put_sample(&m->h, 0x401000, 202);
	hm_comm(&m->h, 8, "cc1");
	end_data(m);
	if (!s->header || s->header == HM_HEADER)
		put_features(m, s);
}

static int open_made(const struct made *m, struct tally_reader **r, struct tally_error *err)
{
	int fd = hm_file(&m->h);
	int ret = tally_reader_open_fd(r, fd, "t.data", NULL, err);

	if (ret < 0)
		close(fd);
	return ret;
}

/* Closes a reader together with the descriptor that open_made gave it. */
static void close_made(struct tally_reader *r, int fd)
{
	tally_reader_close(r);
	close(fd);
}

/* open_made for tests that cannot go on without: leaves the descriptor in `fd`. */
static struct tally_reader *must_open(const struct made *m, int *fd)
{
	struct tally_reader *r = NULL;
	struct tally_error err = { 0 };

	*fd = hm_file(&m->h);
	if (tally_reader_open_fd(&r, *fd, "t.data", NULL, &err) < 0) {
		printf("# %s\n", err.text);
		check(!"opens");
		close(*fd);
		return NULL;
	}
	return r;
}

static int count_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		    uint32_t id_len, void *arg)
{
	int *n = arg;

	if (++*n == 1) {
		check_int(cpumode, TALLY_MISC_KERNEL);
		check_int(pid, -1);
		check_str(name, "[kernel.kallsyms]");
		check_int(id_len, 20);
		check_int(id[19], 20);
	} else {
		check_int(cpumode, TALLY_MISC_USER);
		check_int(pid, 4711);
		check_str(name, "/bin/true");
		check_int(id_len, 8);
		check_int(id[0], 1);
	}
	return 0;
}

static void check_records(struct tally_reader *r, const struct made *m)
{
	static const uint32_t types[] = { 3, 9, 3 }, sizes[] = { 32, 48, 32 };
	struct tally_reader_record rec;
	struct tally_record decoded;
	uint64_t offset = m->data;

	for (int i = 0; i < 3; i++) {
		require(tally_reader_next(r, &rec, NULL) == 1);
		check_int(rec.type, types[i]);
		check_int(rec.len, sizes[i]);
		check_u64(rec.offset, offset);
		check_mem(rec.bytes, m->h.at + offset, rec.len);
		offset += rec.len;
		check_u64(tally_reader_position(r), offset);
		check_int(tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded,
					      sizeof(decoded)),
			  rec.len);
		if (rec.type == TALLY_RECORD_SAMPLE) {
			check_u64(decoded.sample.ip, 0x401000);
			check_int(decoded.id.tid, 8);
		}
	}
	check_int(tally_reader_next(r, &rec, NULL), 0);
	check_int(tally_reader_next(r, &rec, NULL), 0);
}

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

/* ---- files whose writer did not finish ---- */

static int drain(struct tally_reader *r, struct tally_error *err)
{
	struct tally_reader_record rec;
	int n = 0, ret;

	while ((ret = tally_reader_next(r, &rec, err)) > 0)
		n++;
	check_int(tally_reader_next(r, &rec, err), ret); /* the end stays the end */
	return ret < 0 ? ret : n;
}

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

/* AUXTRACE {u64 size ...} and TRACING_DATA {u32 size} are followed by bytes that they do not count. */
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

static void compressed_records_pass_and_are_told(void)
{
	struct made m;

	start_data(&m, &(struct shape){ 0 });
	hm_record(&m.h, TALLY_FILE_COMPRESSED, 0, 8 + 5); /* any length */
	hm_bytes(&m.h, "zstd!", 5);
	hm_comm(&m.h, 1, "behind");
	end_data(&m);
	check_drains(&m, 2, "compressed");
	hm_done(&m.h);
}

/* perf 6.16: the 16-bit size of a COMPRESSED2 that is too long reads 0; its own figure is right. */
static void a_compressed_record_may_be_longer_than_its_size(void)
{
	struct made m;
	struct tally_reader_record rec;
	int fd;

	start_data(&m, &(struct shape){ 0 });
	hm_record(&m.h, TALLY_FILE_COMPRESSED2, 0, 0);
	hm_u64(&m.h, 65530);
	hm_room(&m.h, 65530);
	hm_comm(&m.h, 1, "behind");
	end_data(&m);
	struct tally_reader *r = must_open(&m, &fd);
	require(r);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.len, 16 + 65530);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.type, TALLY_RECORD_COMM);
	close_made(r, fd);
	hm_done(&m.h);
}

static void a_compressed_record_too_short_for_its_figure_is_damaged(void)
{
	struct made m;

	start_data(&m, &(struct shape){ .header = 72 });
	hm_record(&m.h, TALLY_FILE_COMPRESSED2, 0, 9);
	hm_u64(&m.h, UINT64_MAX);
	end_data(&m);
	check_damage(&m, 0, "at least 16", m.data);
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
	check(fake.calls <= (int)(m.h.len >> 18) + 2);
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

/* ---- hostile headers ---- */

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

static void make_pipe(struct made *m, bool swapped)
{
	struct hm_attr attr = { .type = 1,
				.size = 64,
				.sample_type = IP | TID | TIME | ID | PERIOD };

	*m = (struct made){ .h.swapped = swapped };
	hm_header(&m->h, 16 + 8, 0);
	m->h.len = 16;
	hm_set(&m->h, 8, 16, 8);
	for (uint32_t i = 0; i < 2; i++) {
		attr.config = i ? 2 : 0;
		hm_record(&m->h, TALLY_FILE_HEADER_ATTR, 0, 8 + 64 + 16);
		hm_attr(&m->h, &attr);
		hm_u64(&m->h, 101 + 100 * i);
		hm_u64(&m->h, 102 + 100 * i);
	}
	hm_record(&m->h, TALLY_FILE_HEADER_FEATURE, 0, 16 + 9);
	hm_u64(&m->h, TALLY_FEATURE_HOSTNAME);
	hm_text(&m->h, "pipe", 1);
	hm_record(&m->h, TALLY_FILE_HEADER_FEATURE, 0, 16); /* the end mark */
	hm_u64(&m->h, 32);
	hm_comm(&m->h, 1, "before");
	hm_record(&m->h, TALLY_FILE_EVENT_UPDATE, 0, 32);
	hm_u64(&m->h, 2); /* a name */
	hm_u64(&m->h, 202);
	hm_bytes(&m->h, "faults\0", 8);
	put_sample(&m->h, 0x401000, 201);
}

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

/* ---- any bytes ---- */

static int ignore_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		     uint32_t id_len, void *arg)
{
	return 0;
}

/* Reads all there is to read. The number of records is bounded by the bytes. */
static void exercise(const struct made *m, int fd)
{
	struct tally_reader *r = NULL;
	struct tally_reader_record rec;
	struct tally_record decoded;
	struct tally_error err;
	const void *bytes;
	uint64_t len, records = 0;

	if (tally_reader_open_fd(&r, fd, "t.data", NULL, &err) < 0) {
		check(err.code < 0 && err.text[0]);
		return;
	}
	while (tally_reader_next(r, &rec, &err) > 0) {
		tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded, sizeof(decoded));
		check(rec.event < tally_reader_events(r));
		if (++records > m->h.len / 8) {
			check(!"ends");
			break;
		}
	}
	for (uint32_t i = 0; i < TALLY_FEATURE_MAX; i++) {
		tally_reader_feature(r, i, &bytes, &len);
		tally_reader_text(r, i);
	}
	for (uint32_t i = 0; tally_reader_cmdline(r, i); i++)
		;
	tally_reader_build_ids(r, ignore_id, NULL);
	tally_reader_close(r);
}

static void any_length_is_read_or_refused(void)
{
	struct made m;

	for (int kind = 0; kind < 3; kind++) {
		if (kind == 2)
			make_pipe(&m, false);
		else
			make(&m, &(struct shape){ .swapped = kind == 1 });
		int fd = hm_file(&m.h);
		for (size_t len = m.h.len; len--;) {
			require(ftruncate(fd, (off_t)len) == 0);
			exercise(&m, fd);
		}
		close(fd);
		hm_done(&m.h);
	}
}

static void any_byte_may_be_wrong(void)
{
	static const uint8_t masks[] = { 0xff, 0x01, 0x80, 0x40, 0x08 };
	struct made m;

	for (int kind = 0; kind < 3; kind++) {
		if (kind == 2)
			make_pipe(&m, false);
		else
			make(&m, &(struct shape){ .swapped = kind == 1, .align = 4 });
		int fd = hm_file(&m.h);
		for (size_t at = 0; at < m.h.len; at++) {
			for (size_t k = 0; k < sizeof(masks); k++) {
				uint8_t byte = m.h.at[at] ^ masks[k];
				require(pwrite(fd, &byte, 1, (off_t)at) == 1);
				exercise(&m, fd);
			}
			require(pwrite(fd, m.h.at + at, 1, (off_t)at) == 1);
		}
		close(fd);
		hm_done(&m.h);
	}
}

/* ---- opening ---- */

static void opening_fails_in_words(void)
{
	struct tally_reader *r = NULL;
	struct tally_error err;
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = 1 };
	char dir[] = "/tmp/tally-reader-XXXXXX", path[64];

	require(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/none", dir);
	check_int(tally_reader_open(&r, path, NULL, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_has(err.text, path);
	check_int(tally_reader_open(&r, dir, NULL, &err), -EOPNOTSUPP);
	check_has(err.text, "folder");
	snprintf(path, sizeof(path), "%s/fifo", dir);
	require(mkfifo(path, 0600) == 0);
	check_int(tally_reader_open(&r, path, NULL, &err), -EOPNOTSUPP);
	check_int(tally_reader_open(&r, path, &opts, &err), -EINVAL);
	unlink(path);
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
	tap_run(compressed_records_pass_and_are_told);
	tap_run(a_compressed_record_may_be_longer_than_its_size);
	tap_run(a_compressed_record_too_short_for_its_figure_is_damaged);
	tap_run(records_that_cross_the_buffer_are_whole);
	tap_run(a_large_file_takes_few_reads);
	tap_run(a_failing_disk_is_an_error_with_the_offset);
	tap_run(a_file_may_shrink_while_it_is_read);
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
	tap_run(reads_a_saved_pipe);
	tap_run(a_damaged_pipe_is_read_up_to_the_damage);
	tap_run(any_length_is_read_or_refused);
	tap_run(any_byte_may_be_wrong);
	tap_run(opening_fails_in_words);
	tap_run(opening_by_path_reads_the_same);
	return tap_end();
}
