/* SPDX-License-Identifier: MIT */
/* Recordings in, a recording out: written aside and renamed when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "perfdata/rewrite.h"

#define KNOWN_FLAGS (TALLY_REWRITE_RELATIVE | TALLY_REWRITE_BLANK)

/* What follows a record is copied in pieces. */
#define PIECE 65536

/* Where AUXTRACE and TRACING_DATA tell how much follows. */
#define FOLLOWING_AT RECORD_HEADER

void rewrite_complain(struct rewrite *w, const char *fmt, ...)
{
	char *to = w->result.trouble;
	size_t used = strlen(to), room = sizeof(w->result.trouble) - used;
	va_list args;

	if (room < 4)
		return;
	if (used) {
		memcpy(to + used, "; ", 3);
		used += 2;
		room -= 2;
	}
	va_start(args, fmt);
	vsnprintf(to + used, room, fmt, args);
	va_end(args);
}

/* ---- inputs ---- */

static int open_inputs(struct rewrite *w, const char *const *paths, struct tally_error *err)
{
	for (uint32_t i = 0; i < w->count; i++)
		w->inputs[i].fd = -1;
	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		in->path = paths[i];
		int r = tally_reader_open(&in->reader, in->path, NULL, err);
		if (r < 0)
			return r;
		in->fd = sys()->open(in->path, O_RDONLY | O_NONBLOCK, 0);
		in->wanted.opts = &w->opts;
		in->wanted.from = w->opts.from;
		in->wanted.to = w->opts.to;
		in->patch.rename = w->opts.rename;
		in->patch.arg = w->opts.arg;
		in->patch.blank = w->opts.flags & TALLY_REWRITE_BLANK;
	}
	return 0;
}

/* What has to be known before the first record is judged: names, and when the first sample was. */
static int look_ahead(struct rewrite *w, struct input *in, struct tally_error *err)
{
	struct tally_reader_record item;
	struct tally_record rec;
	uint64_t first = UINT64_MAX;

	if (!w->opts.comm && !(w->opts.flags & TALLY_REWRITE_RELATIVE))
		return 0;
	while (tally_reader_next(in->reader, &item, NULL) > 0) {
		if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) <= 0)
			continue;
		if (rec.type == TALLY_RECORD_SAMPLE && rec.id.time < first)
			first = rec.id.time;
		if (w->opts.comm && comms_see(&in->wanted.comms, &rec) < 0)
			return error_nomem(err, "the names of threads");
	}
	if ((w->opts.flags & TALLY_REWRITE_RELATIVE) && first != UINT64_MAX) {
		in->wanted.from += first;
		in->wanted.to += w->opts.to ? first : 0;
	}
	return tally_reader_rewind(in->reader, err);
}

static void close_inputs(struct rewrite *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		tally_reader_close(in->reader);
		if (in->fd >= 0)
			sys()->close(in->fd);
		comms_done(&in->wanted.comms);
		free(in->identify);
	}
	free(w->inputs);
}

/* ---- records ---- */

static int fail_append(int code, struct tally_error *err)
{
	return error_set(err, code, TALLY_CAUSE_IO, "writing the new recording: %s%s",
			 strerror(-code), code == -ENOSPC ? "; make room" : "");
}

static int put(struct rewrite *w, const void *bytes, size_t len, struct tally_error *err)
{
	struct iovec span = { (void *)(uintptr_t)bytes, len };
	int r = tally_writer_append(w->writer, &span, 1);

	w->result.records++;
	return r < 0 ? fail_append(r, err) : 0;
}

static int read_piece(const struct input *in, uint64_t at, void *to, size_t len,
		      struct tally_error *err)
{
	ssize_t n = in->fd < 0 ? -ESPIPE : sys()->pread(in->fd, to, len, (off_t)at);

	if (n == (ssize_t)len)
		return 0;
	return error_set(err, n < 0 ? (int)n : -EBADMSG, TALLY_CAUSE_IO,
			 "%s: what follows a record at offset %" PRIu64 " cannot be read: %s",
			 in->path, at, n < 0 ? strerror((int)-n) : "it is not there");
}

/* The record, and what follows it. Neither is ever compressed. */
static int copy_aux(struct rewrite *w, const struct input *in,
		    const struct tally_reader_record *item, struct tally_error *err)
{
	struct iovec span = { (void *)(uintptr_t)item->bytes, item->len };
	uint64_t left = load_u64((const uint8_t *)item->bytes + FOLLOWING_AT, w->writer->swapped);
	uint64_t at = item->offset + item->len;
	uint64_t section[2] = { 0, item->len };
	int r = writer_append_plain(w->writer, &span, 0);

	section[0] = w->writer->data_offset + w->writer->data_size;
	for (size_t i = 0; i < ARRAY_SIZE(section); i++) {
		store_u64(&section[i], section[i], w->writer->swapped);
		buf_u64(&w->aux_index, section[i]);
	}
	if (r == 0)
		r = writer_append_plain(w->writer, &span, 1);
	while (r == 0 && left) {
		size_t n = left < PIECE ? (size_t)left : PIECE;
		r = read_piece(in, at, w->room, n, err);
		if (r < 0)
			return r;
		span = (struct iovec){ w->room, n };
		r = writer_append_plain(w->writer, &span, 1);
		left -= n;
		at += n;
	}
	w->result.records++;
	return r < 0 ? fail_append(r, err) : 0;
}

/* The record of a stream becomes the feature of a file. */
static int take_tracing_data(struct rewrite *w, const struct input *in,
			     const struct tally_reader_record *item, struct tally_error *err)
{
	uint32_t len = load_u32((const uint8_t *)item->bytes + FOLLOWING_AT, w->writer->swapped);

	if (w->opts.flags & TALLY_REWRITE_BLANK)
		return 0;
	uint8_t *bytes = malloc(len + (size_t)1);
	if (!bytes)
		return error_nomem(err, "the formats of tracepoints");
	int r = read_piece(in, item->offset + item->len, bytes, len, err);
	if (r == 0 && tally_writer_feature(w->writer, TALLY_FEATURE_TRACING_DATA, bytes, len) < 0)
		r = error_nomem(err, "the formats of tracepoints");
	free(bytes);
	return r;
}

static int take_build_id_record(struct rewrite *w, const struct tally_reader_record *item,
				struct tally_error *err)
{
	struct cursor c = { item->bytes, item->len, w->writer->swapped, false };
	struct build_id_entry entry;

	if (!take_build_id(&c, false, &entry) || !entry.id_len)
		return 0;
	char *name = strndup(entry.name.at, entry.name.len);
	int r = name ? rewrite_build_id(w, entry.cpumode, entry.pid, name, entry.id, entry.id_len)
		     : -ENOMEM;
	free(name);
	return r < 0 ? error_nomem(err, "the build-ids") : 0;
}

/* In a stream these describe the recording, which the new header does. */
static bool describes(uint32_t type)
{
	return type == TALLY_FILE_HEADER_ATTR || type == TALLY_FILE_EVENT_TYPE ||
	       type == TALLY_FILE_HEADER_FEATURE;
}

/* What holds for one recording only. */
static bool is_of_one(uint32_t type)
{
	switch (type) {
	case TALLY_FILE_FINISHED_ROUND:
	case TALLY_FILE_FINISHED_INIT:
	case TALLY_FILE_ID_INDEX:
	case TALLY_FILE_THREAD_MAP:
	case TALLY_FILE_CPU_MAP:
	case TALLY_FILE_TIME_CONV:
		return true;
	default:
		return false;
	}
}

static bool is_packed(uint32_t type)
{
	return type == TALLY_FILE_COMPRESSED || type == TALLY_FILE_COMPRESSED2;
}

static void note_sample(struct rewrite *w, const struct tally_record *rec)
{
	if (rec->type != TALLY_RECORD_SAMPLE)
		return;
	w->result.samples++;
	if (!(rec->id.has & TALLY_SAMPLE_TIME))
		return;
	if (!w->last || rec->id.time < w->first)
		w->first = rec->id.time;
	if (rec->id.time > w->last)
		w->last = rec->id.time;
}

/* Judged, and changed where it has to be. */
static int copy_changed(struct rewrite *w, struct input *in, const struct tally_reader_record *item,
			const struct tally_record *rec, struct tally_error *err)
{
	const struct tally_reader_event *e = tally_reader_event(in->reader, item->event);
	uint64_t identify = in->identify[item->event];

	if (wanted_filters(&w->opts) && !wanted_record(&in->wanted, rec, e->name)) {
		w->result.dropped++;
		return 0;
	}
	if (!patch_changes(&in->patch) && !identify) {
		note_sample(w, rec);
		return put(w, item->bytes, item->len, err);
	}
	int len = patch_record(&in->patch, item->layout, rec, identify, w->room);
	if (len < 0) {
		w->result.too_big++;
		return 0;
	}
	note_sample(w, rec);
	return put(w, w->room, (size_t)len, err);
}

static int copy_record(struct rewrite *w, struct input *in, const struct tally_reader_record *item,
		       struct tally_error *err)
{
	struct tally_record rec;

	if (tally_record_decode(item->layout, item->bytes, item->len, &rec, sizeof(rec)) > 0)
		return copy_changed(w, in, item, &rec, err);
	/* What is not understood is not changed; where it would have to be, it is left out. */
	if (wanted_filters(&w->opts) || patch_changes(&in->patch) || in->identify[item->event]) {
		w->result.dropped++;
		return 0;
	}
	return put(w, item->bytes, item->len, err);
}

static int copy_round(struct rewrite *w, const struct tally_reader_record *item,
		      struct tally_error *err)
{
	struct iovec span = { (void *)(uintptr_t)item->bytes, item->len };
	int r = writer_append_plain(w->writer, &span, 1);

	w->result.records++;
	return r < 0 ? fail_append(r, err) : 0;
}

static int copy_item(struct rewrite *w, struct input *in, const struct tally_reader_record *item,
		     struct tally_error *err)
{
	if (describes(item->type) || (w->count > 1 && is_of_one(item->type)))
		return 0;
	switch (item->type) {
	case TALLY_FILE_TRACING_DATA:
		return take_tracing_data(w, in, item, err);
	case TALLY_FILE_BUILD_ID:
		return take_build_id_record(w, item, err);
	case TALLY_FILE_AUXTRACE:
		return copy_aux(w, in, item, err);
	case TALLY_FILE_FINISHED_ROUND:
		return copy_round(w, item, err);
	default:
		break;
	}
	if (!is_packed(item->type))
		return copy_record(w, in, item, err);
	if (w->count > 1 || wanted_filters(&w->opts) || patch_changes(&in->patch))
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s: has compressed records, which cannot be looked into",
				 in->path);
	w->packed = true;
	return put(w, item->bytes, item->len, err);
}

static bool is_damage(int code)
{
	return code == -EBADMSG;
}

static int copy_input(struct rewrite *w, struct input *in, struct tally_error *err)
{
	struct tally_reader_record item;
	struct tally_error broken;
	int r;

	while ((r = tally_reader_next(in->reader, &item, &broken)) > 0) {
		r = copy_item(w, in, &item, err);
		if (r < 0)
			return r;
	}
	const char *health = tally_reader_health(in->reader);
	if (health)
		rewrite_complain(w, "%s %s", in->path, health);
	if (is_damage(r)) {
		rewrite_complain(w, "%s", broken.text);
		return 0;
	}
	if (r < 0 && err)
		*err = broken;
	return r;
}

/* ---- the whole ---- */

/* What is less than true of the result. */
static void tell_limits(struct rewrite *w)
{
	uint32_t clocks = 0;
	int32_t clock = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		const struct tally_attr *attr = &tally_reader_event(w->inputs[i].reader, 0)->attr;
		int32_t own = attr->flags & TALLY_ATTR_USE_CLOCKID ? attr->clockid : -1;
		clocks += !clocks || own != clock;
		clock = own;
	}
	if (clocks > 1)
		rewrite_complain(w, "the recordings have different clocks: their times do not "
				    "compare");
	else if (w->machines > 1)
		rewrite_complain(w, "clocks of different machines do not compare");
	if (w->machines > 1)
		rewrite_complain(w, "kernel addresses are named by the kernel of %s, the first",
				 w->inputs[0].host[0] ? w->inputs[0].host : w->inputs[0].path);
	if (w->result.too_big)
		rewrite_complain(w,
				 "%" PRIu64 " records were as large as records may be and had no "
				 "room for an id: left out",
				 w->result.too_big);
}

static int write_all(struct rewrite *w, struct tally_error *err)
{
	int r = rewrite_plan(w, err);

	for (uint32_t i = 0; i < w->count && r == 0; i++)
		r = look_ahead(w, &w->inputs[i], err);
	if (r == 0 && rewrite_features(w) < 0)
		r = error_nomem(err, "the features");
	if (r == 0)
		r = tally_writer_begin(w->writer, err);
	for (uint32_t i = 0; i < w->count && r == 0; i++)
		r = copy_input(w, &w->inputs[i], err);
	if (r == 0 && rewrite_late_features(w) < 0)
		r = error_nomem(err, "the features");
	if (r == 0)
		r = tally_writer_finish(w->writer, err);
	if (r == 0)
		tell_limits(w);
	w->result.bytes = tally_writer_size(w->writer);
	return r;
}

/* Devices and pipes cannot be replaced, only written to. */
static bool is_special(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

static int rename_aside(const char *aside, const char *path, struct tally_error *err)
{
	if (rename(aside, path) == 0)
		return 0;
	return error_set(err, -errno, TALLY_CAUSE_IO, "cannot give %s the name %s: %s", aside, path,
			 strerror(errno));
}

static int open_writer(struct rewrite *w, const char *path, struct tally_error *err)
{
	struct tally_writer_opts opts = {
		.size = sizeof(opts),
		.flags = TALLY_WRITER_NO_OLD,
		.owner_uid_plus_1 = w->opts.owner_uid_plus_1,
		.owner_gid_plus_1 = w->opts.owner_gid_plus_1,
		.compress = w->opts.compress,
	};
	struct stat st;

	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
		opts.flags |= TALLY_WRITER_STREAM;
	int r = tally_writer_open(&w->writer, path, &opts, err);
	if (r < 0)
		return r;
	w->writer->copies = true;
	w->writer->nameless = w->count == 1;
	w->writer->swapped = tally_reader_swapped(w->inputs[0].reader);
	if (w->writer->swapped && w->writer->form == &writer_stream)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s has the other byte order and cannot become a stream; write a "
				 "file",
				 w->inputs[0].path);
	return 0;
}

static int run(struct rewrite *w, const char *output, const char *const *inputs,
	       struct tally_error *err)
{
	char *aside = NULL;
	int r = wanted_check(&w->opts, err);

	if (r == 0)
		r = open_inputs(w, inputs, err);
	if (r == 0 && !is_special(output) && asprintf(&aside, "%s.part", output) < 0) {
		aside = NULL;
		r = error_nomem(err, output);
	}
	if (r == 0)
		r = open_writer(w, aside ? aside : output, err);
	if (r == 0)
		r = write_all(w, err);
	if (r == 0 && aside)
		r = rename_aside(aside, output, err);
	if (r < 0)
		tally_writer_discard(w->writer);
	else
		tally_writer_close(w->writer);
	free(aside);
	return r;
}

int tally_rewrite(const char *output, uint32_t count, const char *const *inputs,
		  const struct tally_rewrite_opts *opts, struct tally_rewritten *result,
		  struct tally_error *err)
{
	struct rewrite *w = calloc(1, sizeof(*w));

	if (!w)
		return error_nomem(err, output);
	w->inputs = calloc(count + (size_t)1, sizeof(*w->inputs));
	w->count = w->inputs ? count : 0;
	int r = w->inputs ? opts_read(&w->opts, sizeof(w->opts), KNOWN_FLAGS, opts, err)
			  : error_nomem(err, output);
	if (r == 0 && !count)
		r = error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "no recording to write anew");
	if (r == 0)
		r = run(w, output, inputs, err);
	if (r == 0 && result)
		*result = w->result;
	close_inputs(w);
	buf_done(&w->aux_index);
	strings_done(&w->build_ids);
	free(w);
	return r;
}
