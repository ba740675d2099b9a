/* SPDX-License-Identifier: MIT */
/* A small recording made by hand, in every form of the format, and looks at what a reader says. */
#ifndef TESTS_HANDMADE_RECORDING_H
#define TESTS_HANDMADE_RECORDING_H

#include <stdio.h>
#include <unistd.h>

#include <tally/reader.h>

#include "handmade.h"
#include "tap.h"

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
	size_t align;      /* of texts; 64 when 0 */
};

struct made {
	struct handmade h;
	size_t ids, attrs, data, data_end, table;
};

/* SAMPLE {u64 ip; u32 pid, tid; u64 time; u64 id; u64 period}: 48 bytes. */
static inline void put_sample(struct handmade *h, uint64_t ip, uint64_t id)
{
	hm_record(h, 9, 2, 48);
	hm_u64(h, ip);
	hm_u32(h, 7);
	hm_u32(h, 8);
	hm_u64(h, 1234);
	hm_u64(h, id);
	hm_u64(h, 1000);
}

static inline void put_attrs(struct made *m, const struct shape *s)
{
	struct handmade *h = &m->h;
	struct hm_attr attr = { .size = s->attr ? s->attr : 96,
				.sample_type = IP | TID | TIME | ID | PERIOD };

	m->attrs = h->len;
	for (uint32_t i = 0; i < 2; i++) {
		attr.type = i;
		attr.config = i ? 2 : 0; /* cycles, page-faults */
		hm_attr(h, &attr);
		hm_u64(h, m->ids + 16 * i);
		hm_u64(h, 16);
	}
	hm_section(h, HM_ATTRS_AT, m->attrs, h->len - m->attrs);
}

static inline void put_event_desc(struct handmade *h, const struct shape *s, size_t align)
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

static inline void put_build_ids(struct handmade *h)
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
static inline void put_features(struct made *m, const struct shape *s)
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

static inline void start_data(struct made *m, const struct shape *s)
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

static inline void end_data(struct made *m)
{
	m->data_end = m->h.len;
	hm_section(&m->h, HM_DATA_AT, m->data, m->data_end - m->data);
}

static inline void make(struct made *m, const struct shape *s)
{
	start_data(m, s);
	hm_comm(&m->h, 7, "make");
	put_sample(&m->h, 0x401000, 202);
	hm_comm(&m->h, 8, "cc1");
	end_data(m);
	if (!s->header || s->header == HM_HEADER)
		put_features(m, s);
}

/* Closes a reader together with the descriptor that open_made gave it. */
static inline void close_made(struct tally_reader *r, int fd)
{
	tally_reader_close(r);
	close(fd);
}

/* open_made for tests that cannot go on without: leaves the descriptor in `fd`. */
static inline struct tally_reader *must_open(const struct made *m, int *fd)
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

static inline int count_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
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

static inline void check_records(struct tally_reader *r, const struct made *m)
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

static inline void make_pipe(struct made *m, bool swapped)
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

static inline int drain(struct tally_reader *r, struct tally_error *err)
{
	struct tally_reader_record rec;
	int n = 0, ret;

	while ((ret = tally_reader_next(r, &rec, err)) > 0)
		n++;
	check_int(tally_reader_next(r, &rec, err), ret); /* the end stays the end */
	return ret < 0 ? ret : n;
}

#endif
