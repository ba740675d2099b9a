/* SPDX-License-Identifier: MIT */
/*
 * The form of a stream, as perf record -o - writes it: a header of 16 bytes, and all else is
 * records. What a file has in sections goes out before the records; what is known only at the end
 * follows them.
 */
#include <errno.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "perfdata/writer.h"

/* EVENT_UPDATE: u64 type, u64 id, text. */
#define UPDATE_NAME 2u

/* What perf sends as HEADER_FEATURE: 3 to 14, 16, 17, 21 to 23, 25 to 29, 31. Of the others it
 * would read no sense in a stream, and numbers beyond its own make perf report end. */
#define STREAMED UINT64_C(0xbee37ff8)

/* TRACING_DATA tells how much follows it in 32 bits; the record has whole words. */
#define TRACING_RECORD 16

static void put_header(struct buf *b, uint32_t type, uint32_t misc, uint64_t size)
{
	buf_u32(b, type);
	buf_u16(b, (uint16_t)misc);
	buf_u16(b, (uint16_t)size);
}

static int put_event(const struct tally_writer *w, struct buf *b, const struct written_event *e)
{
	uint64_t size = RECORD_HEADER + w->attr_size + e->id_count * sizeof(uint64_t);

	if (size > UINT16_MAX)
		return -E2BIG;
	put_header(b, TALLY_FILE_HEADER_ATTR, 0, size);
	writer_put_attr(w, b, &e->attr);
	buf_add(b, e->ids, e->id_count * sizeof(uint64_t));
	return 0;
}

static int put_name(struct buf *b, const struct written_event *e)
{
	size_t len = strlen(e->name), padded = align_up(len + 1, 8);

	if (padded > UINT16_MAX / 2)
		return -E2BIG;
	put_header(b, TALLY_FILE_EVENT_UPDATE, 0, RECORD_HEADER + 16 + padded);
	buf_u64(b, UPDATE_NAME);
	buf_u64(b, e->id_count ? e->ids[0] : 0);
	buf_add(b, e->name, len);
	buf_zero(b, padded - len);
	return 0;
}

static void put_tracing_data(struct buf *b, const struct buf *bytes)
{
	size_t padded = align_up(bytes->len, 8);

	put_header(b, TALLY_FILE_TRACING_DATA, 0, TRACING_RECORD);
	buf_u32(b, (uint32_t)padded);
	buf_u32(b, 0);
	buf_add(b, bytes->at, bytes->len);
	buf_zero(b, padded - bytes->len);
}

/* Entries of the feature are records but for the type. */
static void put_build_ids(struct buf *b, const struct buf *entries)
{
	for (size_t at = 0; at + RECORD_HEADER <= entries->len;) {
		const char *entry = entries->at + at;
		uint16_t size = load_u16(entry + RECORD_SIZE_AT, false);
		put_header(b, TALLY_FILE_BUILD_ID, load_u16(entry + RECORD_MISC_AT, false), size);
		buf_add(b, entry + RECORD_HEADER, size - RECORD_HEADER);
		at += size;
	}
}

static void put_feature(struct buf *b, const struct written_feature *f)
{
	uint64_t size = RECORD_HEADER + sizeof(uint64_t) + align_up(f->bytes.len, 8);

	if (f->feature >= 64 || !(STREAMED >> f->feature & 1) || size > UINT16_MAX)
		return;
	put_header(b, TALLY_FILE_HEADER_FEATURE, 0, size);
	buf_u64(b, f->feature);
	buf_add(b, f->bytes.at, f->bytes.len);
	buf_zero(b, align_up(f->bytes.len, 8) - f->bytes.len);
}

/* Those that are not out yet. */
static void put_new(struct tally_writer *w, struct buf *b)
{
	writer_sort_features(w);
	vec_each (&w->features, f) {
		if (f->sent)
			continue;
		b->failed |= f->bytes.failed;
		if (f->feature == TALLY_FEATURE_TRACING_DATA)
			put_tracing_data(b, &f->bytes);
		else if (f->feature == TALLY_FEATURE_BUILD_ID)
			put_build_ids(b, &f->bytes);
		else
			put_feature(b, f);
		f->sent = true;
	}
}

static int put_head(struct tally_writer *w, struct buf *b)
{
	int r = writer_own_features(w);

	buf_u64(b, FILE_MAGIC);
	buf_u64(b, FILE_HEADER_SIZE_PIPE);
	vec_each (&w->events, e)
		r = r < 0 ? r : put_event(w, b, e);
	put_new(w, b);
	vec_each (&w->events, e)
		r = r < 0 ? r : put_name(b, e);
	w->data_offset = b->len;
	return r;
}

static int mark(struct tally_writer *w)
{
	return 0;
}

static int put_features(struct tally_writer *w)
{
	struct buf b = { 0 };

	if (w->failed)
		return w->failed; /* half a record may be out: nothing can follow it */
	put_new(w, &b);
	int r = b.failed ? -ENOMEM : writer_write(w, b.at, b.len);
	if (r == 0)
		w->size += b.len;
	buf_done(&b);
	return r;
}

/* What is out is out. */
static void cut(struct tally_writer *w)
{
}

const struct writer_form writer_stream = { put_head, mark, put_features, cut };
