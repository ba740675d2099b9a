/* SPDX-License-Identifier: MIT */
/*
 * Writing perf.data. Records are appended at the descriptor's position, maybe compressed; what else
 * a file or a stream has is in writer-file.c and writer-stream.c. What a failed write left half done
 * is cut off again.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "perfdata/writer.h"

#define KNOWN_FLAGS (TALLY_WRITER_NO_OLD | TALLY_WRITER_STREAM)

#define BUILD_IDS_ROOM 8192

static int put_packed(void *arg, const void *record, size_t len);

static int open_packer(struct tally_writer *w, uint32_t level, struct tally_error *err)
{
	int r = level ? compressor_open(&w->packer, level, put_packed, w) : 0;

	w->level = level;
	if (r == -EINVAL)
		return error_set(err, r, TALLY_CAUSE_ARGUMENT,
				 "there is no compression level %" PRIu32 "; 1 to %d are", level,
				 COMPRESS_LEVEL_MAX);
	return r < 0 ? error_nomem(err, "the compression") : 0;
}

int tally_writer_open(struct tally_writer **out, const char *path,
		      const struct tally_writer_opts *opts, struct tally_error *err)
{
	struct tally_writer_opts o;
	int r = opts_read(&o, sizeof(o), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	struct tally_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return error_nomem(err, path);
	if (!strcmp(path, "-"))
		o.flags |= TALLY_WRITER_STREAM;
	w->form = o.flags & TALLY_WRITER_STREAM ? &writer_stream : &writer_file;
	w->file.fd = -1;
	r = open_packer(w, o.compress, err);
	if (r == 0)
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
	compressor_close(writer->packer);
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
	uint32_t size = w->attr_size > TALLY_ATTR_SIZE_MIN ? w->attr_size : TALLY_ATTR_SIZE_MIN;

	vec_each (&w->events, e) {
		uint32_t needed = tally_attr_size(&e->attr);
		size = needed > size ? needed : size;
	}
	return size;
}

void writer_put_attr(const struct tally_writer *w, struct buf *b, const struct tally_attr *attr)
{
	size_t at = b->len;

	buf_zero(b, w->attr_size);
	if (!b->failed && tally_attr_encode(attr, b->at + at, w->attr_size, w->swapped) < 0)
		b->failed = true;
}

/* ---- writing ---- */

int writer_write(struct tally_writer *w, const void *bytes, size_t len)
{
	return sys_write_all(w->file.fd, bytes, len);
}

static int fail_write(struct tally_writer *w, int code, struct tally_error *err)
{
	const char *advice = code == -ENOSPC || code == -EDQUOT
				     ? "; make room or choose another disk"
				     : "";

	if (!w->data_size)
		return error_set(err, code, TALLY_CAUSE_IO,
				 "writing %s failed before a record was written: %s%s",
				 w->file.path, strerror(-code), advice);
	return error_set(err, code, TALLY_CAUSE_IO,
			 "writing %s failed after %" PRIu64
			 " bytes: %s; its records up to there can be read%s",
			 w->file.path, w->size, strerror(-code), advice);
}

static int out_of_order(struct tally_writer *w, const char *what, struct tally_error *err)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "%s: %s", w->file.path, what);
}

static int fail_head(struct tally_writer *w, int code, struct tally_error *err)
{
	if (code == -E2BIG)
		return error_set(err, code, TALLY_CAUSE_UNSUPPORTED,
				 "%s: an event has more ids or a longer name than a stream can "
				 "tell; record fewer threads or CPUs, or into a file",
				 w->file.path);
	return code == -ENOMEM ? error_nomem(err, "the header") : fail_write(w, code, err);
}

int tally_writer_begin(struct tally_writer *writer, struct tally_error *err)
{
	struct buf head = { 0 };

	if (writer->begun)
		return out_of_order(writer, "it has begun already", err);
	if (!writer->events.count)
		return out_of_order(writer, "a file needs at least one event", err);
	writer->attr_size = common_attr_size(writer);
	int r = writer->form->put_head(writer, &head);
	if (r == 0 && head.failed)
		r = -ENOMEM;
	if (r == 0)
		r = writer_write(writer, head.at, head.len);
	if (r < 0)
		fail_head(writer, r, err);
	if (r == 0) {
		writer->size = head.len;
		writer->begun = true;
	}
	buf_done(&head);
	return r;
}

/* Writes what a short writev left of the spans, of which `done` bytes are out. */
static int write_rest(struct tally_writer *w, const struct iovec *spans, int count, size_t done)
{
	int r = 0;

	for (int i = 0; i < count && r == 0; i++) {
		if (done >= spans[i].iov_len) {
			done -= spans[i].iov_len;
			continue;
		}
		r = writer_write(w, (const char *)spans[i].iov_base + done,
				 spans[i].iov_len - done);
		done = 0;
	}
	return r;
}

static size_t total_of(const struct iovec *spans, int count)
{
	size_t total = 0;

	for (int i = 0; i < count; i++)
		total += spans[i].iov_len;
	return total;
}

/* How many of the first `len` bytes of the spans are whole records. */
static size_t whole_records(const struct tally_writer *w, const struct iovec *spans, int count,
			    size_t len)
{
	const size_t head = sizeof(struct tally_record_header);
	size_t whole = 0, base = 0;

	for (int i = 0; i < count; base += spans[i++].iov_len)
		while (whole >= base && whole - base + head <= spans[i].iov_len) {
			const char *at = (const char *)spans[i].iov_base + (whole - base);
			uint16_t size = load_u16(at + offsetof(struct tally_record_header, size),
						 w->swapped);
			if (size < head || size > len - whole)
				return whole;
			whole += size;
		}
	return whole;
}

/* About what the features will take, with build-ids, which are known at the end only. */
static size_t features_room(struct tally_writer *w)
{
	size_t room = BUILD_IDS_ROOM;

	vec_each (&w->features, f)
		room += f->bytes.len + sizeof(struct file_section);
	vec_each (&w->events, e)
		room += w->attr_size + strlen(e->name) + e->id_count * sizeof(uint64_t);
	return room;
}

/* Of spans that could not be written, what did get out: a large ring is more than a small disk.
 * Features get their room where it is a small part: perf takes no tracepoints without them. */
static void keep_whole(struct tally_writer *w, const struct iovec *spans, int count)
{
	off_t begin = (off_t)w->size, at = lseek(w->file.fd, 0, SEEK_CUR);

	if (w->form != &writer_file || at <= begin)
		return;
	size_t len = (size_t)(at - begin), room = features_room(w);
	size_t whole = whole_records(w, spans, count, room <= len / 2 ? len - room : len);
	w->data_size += whole;
	w->size += whole;
}

static int write_spans(struct tally_writer *w, const struct iovec *spans, int count)
{
	size_t total = total_of(spans, count);
	ssize_t n;

	do
		n = sys()->writev(w->file.fd, spans, count);
	while (n == -EINTR);
	int r = n < 0 ? (int)n : (size_t)n == total ? 0 : write_rest(w, spans, count, (size_t)n);
	if (r == 0) {
		w->data_size += total;
		w->size += total;
	} else {
		keep_whole(w, spans, count);
	}
	return r;
}

static int pack_spans(struct tally_writer *w, const struct iovec *spans, int count)
{
	int r = 0;

	for (int i = 0; i < count && r == 0; i++)
		r = compressor_add(w->packer, spans[i].iov_base, spans[i].iov_len);
	return r;
}

static int put_packed(void *arg, const void *record, size_t len)
{
	struct tally_writer *w = arg;
	int r = writer_write(w, record, len);

	if (r == 0) {
		w->data_size += len;
		w->size += len;
	}
	return r;
}

static void back_to(struct tally_writer *w, uint64_t round)
{
	w->data_size = round;
	w->size = w->data_offset + w->data_size;
}

/* Half a record must not remain. A slice of compressed ones may end within one: these go back to
 * their last whole round, where there is one. */
static int give_up(struct tally_writer *w, int code)
{
	w->failed = code;
	if (w->packer && w->round_size)
		back_to(w, w->round_size);
	w->form->cut(w);
	return code;
}

/* As they are, also where others are compressed. */
static int append_plain(struct tally_writer *w, const struct iovec *spans, int count)
{
	int r = 0;

	while (count > 0 && r == 0) {
		int n = count < IOV_MAX ? count : IOV_MAX;
		r = write_spans(w, spans, n);
		spans += n;
		count -= n;
	}
	return r;
}

int tally_writer_append(struct tally_writer *writer, const struct iovec *spans, int count)
{
	if (writer->failed)
		return writer->failed;
	if (!writer->begun || writer->finished)
		return -EINVAL;
	int r = writer->packer ? pack_spans(writer, spans, count)
			       : append_plain(writer, spans, count);
	return r < 0 ? give_up(writer, r) : 0;
}

int writer_append_plain(struct tally_writer *w, const struct iovec *spans, int count)
{
	if (w->failed)
		return w->failed;
	int r = w->packer ? compressor_flush(w->packer) : 0;
	if (r == 0)
		r = append_plain(w, spans, count);
	return r < 0 ? give_up(w, r) : 0;
}

/* The round's own record is never compressed: it holds for what the slices before it gave. */
static int append_round(struct tally_writer *w)
{
	struct tally_record_header end = { .size = sizeof(end) };
	struct iovec span = { &end, sizeof(end) };

	store_u32(&end.type, TALLY_FILE_FINISHED_ROUND, w->swapped);
	store_u16(&end.size, sizeof(end), w->swapped);
	return writer_append_plain(w, &span, 1);
}

/* A round without records promises nothing. */
static bool has_news(const struct tally_writer *w)
{
	return w->data_size != w->round_size || (w->packer && compressor_pending(w->packer));
}

int tally_writer_round(struct tally_writer *writer, struct tally_error *err)
{
	if (!writer->begun || writer->finished)
		return out_of_order(writer, "a round outside begin and finish", err);
	if (!writer->failed && !has_news(writer))
		return 0;
	int r = append_round(writer);
	if (r == 0) {
		r = writer->form->mark(writer);
		if (r == 0) {
			writer->round_before = writer->round_size;
			writer->round_size = writer->data_size;
		}
	}
	return r < 0 ? fail_write(writer, r, err) : 0;
}

/* ---- finishing ---- */

/* A file with no records at all looks like one whose writer was killed. */
static int end_records(struct tally_writer *w)
{
	int r = 0;

	if (w->packer && !w->failed)
		r = compressor_flush(w->packer);
	if (r == 0 && !w->data_size && !w->failed)
		r = append_round(w);
	return r;
}

/* A little that came last is worth less than the features, without which perf unpacks nothing. */
static int put_features(struct tally_writer *w)
{
	int r = w->form->put_features(w);
	uint64_t round = w->packer ? w->round_before : w->round_size;
	uint64_t most = w->packer ? w->data_size - 1 : w->data_size / 4;

	if (r != -ENOSPC || !w->failed || w->data_size - round > most)
		return r;
	back_to(w, round);
	w->form->cut(w);
	return w->form->put_features(w);
}

int tally_writer_finish(struct tally_writer *writer, struct tally_error *err)
{
	if (!writer->begun || writer->finished)
		return out_of_order(writer, "it cannot be finished before begin, or twice", err);
	int r = writer->failed && !writer->data_size ? writer->failed : end_records(writer);
	if (r == 0)
		r = writer->form->mark(writer);
	if (r < 0)
		return fail_write(writer, r, err);
	r = put_features(writer);
	writer->finished = r == 0;
	if (r == -ENOMEM)
		return error_nomem(err, "the features");
	return r < 0 ? fail_write(writer, r, err) : 0;
}

uint64_t tally_writer_size(const struct tally_writer *writer)
{
	return writer->size;
}
