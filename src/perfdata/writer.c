/* SPDX-License-Identifier: MIT */
/*
 * Writing perf.data files. The order in a file is header, ids, attrs, records, table of features,
 * features. Records are appended at the descriptor's position; the header is brought up to date by
 * position, so that a killed writer leaves a file that ends at a round. What a failed write left
 * half done is cut off again.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tally/reader.h>
#include <tally/writer.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/vec.h"
#include "perfdata/feature.h"
#include "perfdata/new-file.h"

struct written_event {
	char *name;
	struct tally_attr attr;
	uint64_t *ids;
	uint32_t id_count;
};

struct written_feature {
	uint32_t feature;
	struct buf bytes;
};

struct tally_writer {
	struct new_file file;
	VEC(struct written_event) events;
	VEC(struct written_feature) features;
	uint32_t attr_size;
	uint64_t data_offset;
	uint64_t data_size;  /* bytes of records in the file */
	uint64_t round_size; /* of those, up to the end of the last round */
	uint64_t size;       /* of the file */
	int failed;          /* an append that went wrong: no more records can follow */
	bool begun, finished;
};

int tally_writer_open(struct tally_writer **out, const char *path,
		      const struct tally_writer_opts *opts, struct tally_error *err)
{
	struct tally_writer_opts o;
	int r = opts_read(&o, sizeof(o), TALLY_WRITER_NO_OLD, opts, err);

	if (r < 0)
		return r;
	struct tally_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return error_nomem(err, path);
	r = new_file_open(&w->file, path, &o, err);
	if (r < 0) {
		tally_writer_close(w);
		return r;
	}
	*out = w;
	return 0;
}

void tally_writer_close(struct tally_writer *writer)
{
	if (!writer)
		return;
	vec_each (&writer->events, e) {
		free(e->name);
		free(e->ids);
	}
	vec_each (&writer->features, f)
		buf_done(&f->bytes);
	vec_done(&writer->events);
	vec_done(&writer->features);
	new_file_done(&writer->file);
	free(writer);
}

void tally_writer_discard(struct tally_writer *writer)
{
	if (writer)
		new_file_undo(&writer->file);
	tally_writer_close(writer);
}

/* ---- events and the head of the file ---- */

int tally_writer_event(struct tally_writer *writer, const char *name, const struct tally_attr *attr,
		       const uint64_t *ids, uint32_t id_count, struct tally_error *err)
{
	if (writer->begun)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "%s: event %s comes after the first record", writer->file.path,
				 name);
	struct written_event *e = vec_push(&writer->events);
	if (!e)
		return error_nomem(err, name);
	e->attr = *attr;
	e->id_count = id_count;
	e->name = strdup(name);
	e->ids = calloc(id_count + (size_t)1, sizeof(*ids));
	if (!e->name || !e->ids) {
		free(e->name);
		free(e->ids);
		writer->events.count--;
		return error_nomem(err, name);
	}
	if (id_count)
		memcpy(e->ids, ids, id_count * sizeof(*ids));
	return 0;
}

/* perf walks the entries by attr.size, others by the header's attr_size: so one size for all. */
static uint32_t common_attr_size(struct tally_writer *w)
{
	uint32_t size = TALLY_ATTR_SIZE_MIN;

	vec_each (&w->events, e) {
		uint32_t needed = tally_attr_size(&e->attr);
		size = needed > size ? needed : size;
	}
	return size;
}

static void put_attr(struct buf *b, const struct tally_attr *attr, uint32_t size)
{
	uint8_t bytes[TALLY_ATTR_SIZE_MAX];

	if (tally_attr_encode(attr, bytes, size, false) < 0)
		b->failed = true;
	buf_add(b, bytes, size);
}

static void fill_header(const struct tally_writer *w, uint64_t ids_size, struct file_header *head)
{
	*head = (struct file_header){
		.magic = FILE_MAGIC,
		.size = FILE_HEADER_SIZE,
		.attr_size = w->attr_size + sizeof(struct file_section),
		.attrs.offset = FILE_HEADER_SIZE + ids_size,
		.data.offset = w->data_offset,
		.data.size = w->data_size,
	};
	head->attrs.size = w->events.count * head->attr_size;
}

static uint64_t ids_size(struct tally_writer *w)
{
	uint64_t size = 0;

	vec_each (&w->events, e)
		size += e->id_count * sizeof(uint64_t);
	return size;
}

static void put_head(struct tally_writer *w, struct buf *b)
{
	struct file_header head;
	uint64_t ids_offset = FILE_HEADER_SIZE;

	w->attr_size = common_attr_size(w);
	w->data_offset = FILE_HEADER_SIZE + ids_size(w) +
			 w->events.count * (w->attr_size + sizeof(struct file_section));
	fill_header(w, ids_size(w), &head);
	buf_add(b, &head, sizeof(head));
	vec_each (&w->events, e)
		buf_add(b, e->ids, e->id_count * sizeof(uint64_t));
	vec_each (&w->events, e) {
		struct file_section ids = { ids_offset, e->id_count * sizeof(uint64_t) };
		put_attr(b, &e->attr, w->attr_size);
		buf_add(b, &ids, sizeof(ids));
		ids_offset += ids.size;
	}
}

/* ---- writing ---- */

static int write_all(int fd, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->write(fd, (const char *)bytes + done, len - done);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int pwrite_all(int fd, const void *bytes, size_t len, uint64_t offset)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->pwrite(fd, (const char *)bytes + done, len - done,
					  (off_t)(offset + done));
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int fail_write(struct tally_writer *w, int code, struct tally_error *err)
{
	const char *advice = code == -ENOSPC || code == -EDQUOT
				     ? "; make room or choose another disk"
				     : "";

	if (!w->round_size)
		return error_set(err, code, TALLY_CAUSE_IO,
				 "writing %s failed before a record was written: %s%s",
				 w->file.path, strerror(-code), advice);
	return error_set(err, code, TALLY_CAUSE_IO,
			 "writing %s failed after %" PRIu64
			 " bytes: %s; its records up to the last round can be read%s",
			 w->file.path, w->size, strerror(-code), advice);
}

static int out_of_order(struct tally_writer *w, const char *what, struct tally_error *err)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "%s: %s", w->file.path, what);
}

int tally_writer_begin(struct tally_writer *writer, struct tally_error *err)
{
	struct buf head = { 0 };

	if (writer->begun)
		return out_of_order(writer, "it has begun already", err);
	if (!writer->events.count)
		return out_of_order(writer, "a file needs at least one event", err);
	put_head(writer, &head);
	int r = head.failed ? error_nomem(err, "the header") : 0;
	if (r == 0) {
		r = write_all(writer->file.fd, head.at, head.len);
		if (r < 0)
			fail_write(writer, r, err);
	}
	if (r == 0) {
		writer->size = head.len;
		writer->begun = true;
	}
	buf_done(&head);
	return r;
}

/* Writes what a short writev left of the spans, of which `done` bytes are out. */
static int write_rest(int fd, const struct iovec *spans, int count, size_t done)
{
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		if (done >= spans[i].iov_len) {
			done -= spans[i].iov_len;
			continue;
		}
		r = write_all(fd, (const char *)spans[i].iov_base + done, spans[i].iov_len - done);
		done = 0;
	}
	return r;
}

static int write_spans(int fd, const struct iovec *spans, int count, size_t total)
{
	ssize_t n;

	do
		n = sys()->writev(fd, spans, count);
	while (n == -EINTR);
	if (n < 0)
		return (int)n;
	return (size_t)n == total ? 0 : write_rest(fd, spans, count, (size_t)n);
}

/* Cuts the file back to its last whole round: half a record must not follow it. */
static int give_up(struct tally_writer *w, int code)
{
	w->failed = code;
	w->data_size = w->round_size;
	w->size = w->data_offset + w->data_size;
	(void)!ftruncate(w->file.fd, (off_t)w->size);
	return code;
}

int tally_writer_append(struct tally_writer *writer, const struct iovec *spans, int count)
{
	if (writer->failed)
		return writer->failed;
	if (!writer->begun || writer->finished)
		return -EINVAL;
	while (count > 0) {
		int n = count < IOV_MAX ? count : IOV_MAX;
		size_t total = 0;
		for (int i = 0; i < n; i++)
			total += spans[i].iov_len;
		int r = write_spans(writer->file.fd, spans, n, total);
		if (r < 0)
			return give_up(writer, r);
		writer->data_size += total;
		writer->size += total;
		spans += n;
		count -= n;
	}
	return 0;
}

static int append_round(struct tally_writer *w)
{
	struct tally_record_header end = { .type = TALLY_FILE_FINISHED_ROUND, .size = sizeof(end) };
	struct iovec span = { &end, sizeof(end) };

	return tally_writer_append(w, &span, 1);
}

/* One number, in one page: a reader sees the old size or the new one. */
static int store_data_size(struct tally_writer *w)
{
	return pwrite_all(w->file.fd, &w->data_size, sizeof(w->data_size),
			  offsetof(struct file_header, data.size));
}

int tally_writer_round(struct tally_writer *writer, struct tally_error *err)
{
	/* A round without records promises nothing. */
	if (!writer->failed && writer->begun && !writer->finished &&
	    writer->data_size == writer->round_size)
		return 0;
	int r = append_round(writer);
	if (r == -EINVAL)
		return out_of_order(writer, "a round outside begin and finish", err);
	if (r == 0) {
		r = store_data_size(writer);
		if (r == 0)
			writer->round_size = writer->data_size;
	}
	return r < 0 ? fail_write(writer, r, err) : 0;
}

/* ---- features ---- */

static struct written_feature *find_feature(struct tally_writer *w, uint32_t feature)
{
	vec_each (&w->features, f)
		if (f->feature == feature)
			return f;
	return NULL;
}

/* The feature's buffer, made when it is new. NULL: no memory. */
static struct buf *feature_buf(struct tally_writer *w, uint32_t feature)
{
	struct written_feature *f = find_feature(w, feature);

	if (!f) {
		f = vec_push(&w->features);
		if (!f)
			return NULL;
		f->feature = feature;
	}
	return &f->bytes;
}

/* Finds the buffer to fill anew. 0 or -errno. */
static int start_feature(struct tally_writer *w, uint32_t feature, struct buf **out)
{
	if (feature >= FILE_FEATURES || w->finished)
		return -EINVAL;
	*out = feature_buf(w, feature);
	if (!*out)
		return -ENOMEM;
	buf_reset(*out);
	return 0;
}

int tally_writer_text(struct tally_writer *writer, uint32_t feature, const char *text)
{
	struct buf *b;
	int r = start_feature(writer, feature, &b);

	if (r < 0)
		return r;
	feature_put_text(b, text);
	return b->failed ? -ENOMEM : 0;
}

int tally_writer_feature(struct tally_writer *writer, uint32_t feature, const void *bytes,
			 size_t len)
{
	struct buf *b;
	int r = start_feature(writer, feature, &b);

	if (r < 0)
		return r;
	buf_add(b, bytes, len);
	return b->failed ? -ENOMEM : 0;
}

int tally_writer_cmdline(struct tally_writer *writer, uint32_t count, const char *const *words)
{
	struct buf *b;
	int r = start_feature(writer, TALLY_FEATURE_CMDLINE, &b);

	if (r < 0)
		return r;
	feature_put_words(b, count, words);
	return b->failed ? -ENOMEM : 0;
}

int tally_writer_build_id(struct tally_writer *writer, uint32_t cpumode, int32_t pid,
			  const char *name, const uint8_t *id, uint32_t id_len)
{
	struct buf *b = writer->finished ? NULL : feature_buf(writer, TALLY_FEATURE_BUILD_ID);

	if (!b)
		return writer->finished ? -EINVAL : -ENOMEM;
	return feature_put_build_id(b, cpumode, pid, name, id, id_len);
}

/* ---- finishing ---- */

static int put_event_desc(struct tally_writer *w)
{
	struct buf *b;
	int r = start_feature(w, TALLY_FEATURE_EVENT_DESC, &b);

	if (r < 0)
		return r;
	feature_put_events_head(b, (uint32_t)w->events.count, w->attr_size);
	vec_each (&w->events, e) {
		put_attr(b, &e->attr, w->attr_size);
		feature_put_event(b, e->name, e->ids, e->id_count);
	}
	return b->failed ? -ENOMEM : 0;
}

/* With a clock of the caller's choice perf notes its resolution, and a moment on it and on the wall
 * clock, from which readers make dates. */
static int put_clock(struct tally_writer *w)
{
	const struct tally_attr *attr = NULL;
	struct timespec resolution, wall, clock;

	vec_each (&w->events, e)
		if (e->attr.flags & TALLY_ATTR_USE_CLOCKID)
			attr = &e->attr;
	if (!attr || clock_getres(attr->clockid, &resolution) < 0 ||
	    clock_gettime(CLOCK_REALTIME, &wall) < 0 || clock_gettime(attr->clockid, &clock) < 0)
		return 0;
	uint64_t ns = (uint64_t)resolution.tv_sec * 1000000000 + (uint64_t)resolution.tv_nsec;
	struct {
		uint32_t version, clockid;
		uint64_t wall_ns, clock_ns;
	} data = { 1, (uint32_t)attr->clockid,
		   (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec,
		   (uint64_t)clock.tv_sec * 1000000000 + (uint64_t)clock.tv_nsec };
	int r = tally_writer_feature(w, TALLY_FEATURE_CLOCKID, &ns, sizeof(ns));
	return r < 0 ? r : tally_writer_feature(w, TALLY_FEATURE_CLOCK_DATA, &data, sizeof(data));
}

static int own_features(struct tally_writer *w)
{
	int r = 0;

	if (!find_feature(w, TALLY_FEATURE_EVENT_DESC))
		r = put_event_desc(w);
	if (r == 0 && !find_feature(w, TALLY_FEATURE_CLOCKID))
		r = put_clock(w);
	return r;
}

static int by_bit(const void *a, const void *b)
{
	const struct written_feature *x = a, *y = b;

	return (x->feature > y->feature) - (x->feature < y->feature);
}

/* The table and, behind it, the payloads, both in the order of the bits. */
static void put_features(struct tally_writer *w, struct buf *b, uint64_t *bits)
{
	uint64_t at = w->data_offset + w->data_size +
		      w->features.count * sizeof(struct file_section);

	qsort(w->features.at, w->features.count, sizeof(*w->features.at), by_bit);
	vec_each (&w->features, f) {
		struct file_section section = { at, f->bytes.len };
		buf_add(b, &section, sizeof(section));
		bits[f->feature / 64] |= 1ull << f->feature % 64;
		at += f->bytes.len;
		b->failed |= f->bytes.failed;
	}
	vec_each (&w->features, f)
		buf_add(b, f->bytes.at, f->bytes.len);
}

/* The header names the features only once they are written. */
static int write_features(struct tally_writer *w, struct buf *b, struct tally_error *err)
{
	struct file_header head;
	uint64_t at = w->data_offset + w->data_size;

	fill_header(w, ids_size(w), &head);
	put_features(w, b, head.features);
	if (b->failed)
		return error_nomem(err, "the features");
	int r = pwrite_all(w->file.fd, b->at, b->len, at);
	if (r == 0)
		r = pwrite_all(w->file.fd, &head, sizeof(head), 0);
	if (r < 0) {
		(void)!ftruncate(w->file.fd, (off_t)at);
		return fail_write(w, r, err);
	}
	w->size += b->len;
	return 0;
}

int tally_writer_finish(struct tally_writer *writer, struct tally_error *err)
{
	struct buf b = { 0 };

	if (!writer->begun || writer->finished)
		return out_of_order(writer, "it cannot be finished before begin, or twice", err);
	int r = own_features(writer);
	if (r < 0)
		return error_nomem(err, "the features");
	/* A file with no records at all looks like one whose writer was killed. */
	if (!writer->data_size && !writer->failed)
		r = append_round(writer);
	if (r == 0)
		r = store_data_size(writer);
	if (r < 0)
		return fail_write(writer, r, err);
	writer->round_size = writer->data_size;
	r = write_features(writer, &b, err);
	writer->finished = r == 0;
	buf_done(&b);
	return r;
}

uint64_t tally_writer_size(const struct tally_writer *writer)
{
	return writer->size;
}
