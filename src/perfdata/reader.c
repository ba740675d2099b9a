/* SPDX-License-Identifier: MIT */
/* Reading: the records one after another, and what the file tells of itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "perfdata/reader-inside.h"

/* ---- records ---- */

static void count(struct tally_reader *r, uint32_t type)
{
	r->counts[type < COUNTED_TYPES ? type : COUNTED_TYPES]++;
}

/* The end of a file, maybe of one of several. 1: go on, 0, or -errno. */
static int go_on(struct tally_reader *r, struct tally_error *err)
{
	if (r->stream.growing)
		return look_again(r, err);
	if (unpack_rest(&r->unpack))
		source_complain(r->stream.src,
				"has compressed records that end within one, of which %zu bytes "
				"are left out",
				unpack_rest(&r->unpack));
	unpack_reset(&r->unpack);
	return open_next_part(r, err);
}

/* What the writer had mapped bounds what a slice may hold; perf reads it into as much. */
static uint64_t slice_limit(struct tally_reader *r)
{
	struct cursor c = sections_cursor(r->sections, TALLY_FEATURE_COMPRESSED);
	uint32_t fields[5];

	for (int i = 0; i < 5; i++)
		fields[i] = take_u32(&c);
	return c.bad ? 0 : fields[4];
}

static int unpack(struct tally_reader *r, const struct stream_record *packed,
		  struct tally_error *err)
{
	if (!r->unpack.zstd)
		r->unpack.limit = slice_limit(r);
	count(r, packed->type);
	return unpack_feed(&r->unpack, packed) < 0 ? error_nomem(err, "compressed records") : 0;
}

/* As they stand in the file, but that what is compressed comes in the place of what holds it. */
static int next_in_file(struct tally_reader *r, struct stream_record *out, struct tally_error *err)
{
	const bool as_is = r->opts.flags & TALLY_READER_PACKED;

	for (;;) {
		int ret = r->unpack.in ? unpack_next(&r->unpack, out, err) : 0;
		if (ret)
			return ret;
		ret = stream_next(&r->stream, out, err);
		if (ret > 0 && (!out->packed_at || as_is))
			return ret;
		if (ret > 0)
			ret = unpack(r, out, err) < 0 ? -ENOMEM : 1;
		else if (ret == 0)
			ret = go_on(r, err);
		if (ret <= 0)
			return ret;
	}
}

static void fill(struct tally_reader *r, const struct stream_record *record, uint32_t event,
		 struct tally_reader_record *out)
{
	*out = (struct tally_reader_record){
		.bytes = record->bytes,
		.len = record->len,
		.type = record->type,
		.offset = record->offset,
		.payload = record->following,
		.layout = &r->events.layouts[event],
		.event = event,
		.part = r->part,
	};
	r->has_payload = record->following > 0;
	count(r, record->type);
}

static void fill_waited(struct tally_reader *r, const struct waiting *head, const uint8_t *bytes,
			struct tally_reader_record *out)
{
	*out = (struct tally_reader_record){
		.bytes = bytes,
		.len = head->len,
		.type = head->type,
		.offset = head->offset,
		.layout = &r->events.layouts[head->event],
		.event = head->event,
		.part = head->part,
	};
	r->has_payload = false;
	count(r, head->type);
}

/* Nothing else comes: all that waits may go, and then the end, or the error, is told. */
static void end_order(struct tally_reader *r)
{
	order_end(r->order);
	r->draining = r->ended = true;
	if (r->order->late)
		source_complain(&r->src,
				"has %" PRIu64 " records that came later than its rounds promised "
				"and stand behind their time",
				r->order->late);
}

/* Records that wait: 1; 0 when none may go now, or -errno. */
static int drain(struct tally_reader *r, struct tally_reader_record *out, struct tally_error *err)
{
	struct waiting head;
	const uint8_t *bytes;
	int ret = order_next(r->order, &head, &bytes, err);

	if (ret > 0)
		fill_waited(r, &head, bytes, out);
	if (ret != 0)
		return ret;
	r->draining = false;
	if (!r->round.bytes)
		return 0;
	fill(r, &r->round, 0, out);
	r->round.bytes = NULL;
	return 1;
}

/* Takes in a record, or hands it out at once. 1: handed out, 0, or -errno. */
static int put_in_order(struct tally_reader *r, const struct stream_record *record,
			struct tally_reader_record *out, struct tally_error *err)
{
	/* The files of a folder have rounds of their own, or none. */
	if (record->type == TALLY_FILE_FINISHED_ROUND && !r->folder) {
		order_round(r->order);
		r->round = *record;
		r->draining = true;
		return 0;
	}
	uint32_t event = events_find(&r->events, record->type, record->bytes, record->len);
	uint64_t time = record->type < RECORD_USER ? events_time(&r->events, event, record->type,
								 record->bytes, record->len)
						   : 0;
	if (time == 0 || time == UINT64_MAX) {
		fill(r, record, event, out);
		return 1;
	}
	struct waiting head = { .time = time,
				.offset = record->offset,
				.len = record->len,
				.type = record->type,
				.event = event,
				.part = r->part };
	return order_push(r->order, &head, record->bytes, err);
}

static int next_by_time(struct tally_reader *r, struct tally_reader_record *out)
{
	struct stream_record record;
	int ret;

	for (;;) {
		if (r->draining && (ret = drain(r, out, &r->failed)) != 0)
			return ret;
		if (r->ended)
			return r->failed.code;
		ret = next_in_file(r, &record, &r->failed);
		if (ret == 0 && r->stream.growing)
			return 0;
		if (ret <= 0)
			end_order(r);
		else if ((ret = put_in_order(r, &record, out, &r->failed)) != 0)
			return ret;
	}
}

static int next(struct tally_reader *r, struct tally_reader_record *out)
{
	struct stream_record record;
	int ret = next_in_file(r, &record, &r->failed);

	if (ret > 0)
		fill(r, &record, events_find(&r->events, record.type, record.bytes, record.len),
		     out);
	return ret;
}

int tally_reader_next(struct tally_reader *reader, struct tally_reader_record *out,
		      struct tally_error *err)
{
	int r = reader->failed.code;

	/* What stood before an error and waits is handed out first. */
	if (reader->order && (r == 0 || reader->draining))
		r = next_by_time(reader, out);
	else if (r == 0)
		r = next(reader, out);
	if (r < 0 && err)
		*err = reader->failed;
	/* Of a pipe that does not wait: more may come. */
	if (r == -EAGAIN)
		reader->failed.code = 0;
	return r;
}

int tally_reader_rewind(struct tally_reader *reader, struct tally_error *err)
{
	if (reader->src.once)
		return error_set(err, -ESPIPE, TALLY_CAUSE_ARGUMENT,
				 "%s: comes through a pipe, which cannot be read twice; save it "
				 "into a file and read that",
				 reader->name);
	reader->failed.code = 0;
	reader->draining = reader->ended = reader->has_payload = false;
	reader->round.bytes = NULL;
	memset(reader->counts, 0, sizeof(reader->counts));
	unpack_reset(&reader->unpack);
	if (reader->order)
		order_reset(reader->order);
	rewind_parts(reader);
	return 0;
}

bool tally_reader_rewindable(const struct tally_reader *reader)
{
	return !reader->src.once;
}

int64_t tally_reader_payload(struct tally_reader *reader, uint64_t offset, void *to, size_t len)
{
	return reader->has_payload ? stream_payload(&reader->stream, offset, to, len) : 0;
}

uint64_t tally_reader_count(const struct tally_reader *reader, uint32_t type)
{
	if (type >= COUNTED_TYPES && type != TALLY_READER_OTHER_TYPES)
		return 0;
	return reader->counts[type < COUNTED_TYPES ? type : COUNTED_TYPES];
}

/* ---- what the file tells of itself ---- */

uint32_t tally_reader_events(const struct tally_reader *reader)
{
	return (uint32_t)reader->events.list.count;
}

const struct tally_reader_event *tally_reader_event(const struct tally_reader *reader, uint32_t i)
{
	return i < reader->events.list.count ? &reader->events.list.at[i] : NULL;
}

bool tally_reader_swapped(const struct tally_reader *reader)
{
	return reader->src.swapped;
}

uint64_t tally_reader_file_size(const struct tally_reader *reader)
{
	return reader->src.once ? 0 : reader->src.size + reader->parts_size;
}

uint64_t tally_reader_position(const struct tally_reader *reader)
{
	return reader->passed_size + stream_position(&reader->stream);
}

int tally_reader_feature(const struct tally_reader *reader, uint32_t feature, const void **bytes,
			 uint64_t *len)
{
	return sections_bytes(reader->sections, feature, bytes, len);
}

const char *tally_reader_text(const struct tally_reader *reader, uint32_t feature)
{
	return sections_text(reader->sections, feature);
}

const char *tally_reader_cmdline(const struct tally_reader *reader, uint32_t i)
{
	return sections_word(reader->sections, i);
}

int tally_reader_build_ids(const struct tally_reader *reader,
			   int (*fn)(uint32_t cpumode, int32_t pid, const char *name,
				     const uint8_t *id, uint32_t id_len, void *arg),
			   void *arg)
{
	struct cursor c = sections_cursor(reader->sections, TALLY_FEATURE_BUILD_ID);
	bool no_pid = build_ids_lack_pid(c);
	struct build_id_entry entry;

	while (take_build_id(&c, no_pid, &entry)) {
		if (!entry.id_len)
			continue;
		char *name = strndup(entry.name.at, entry.name.len);
		int r = name ? fn(entry.cpumode, entry.pid, name, entry.id, entry.id_len, arg)
			     : -ENOMEM;
		free(name);
		if (r)
			return r;
	}
	return c.bad ? -EBADMSG : 0;
}

const char *tally_reader_health(const struct tally_reader *reader)
{
	return reader->health[0] ? reader->health : NULL;
}

void tally_reader_close(struct tally_reader *reader)
{
	if (!reader)
		return;
	if (reader->part)
		sys()->close(reader->part_src.fd);
	if (reader->owns_fd)
		sys()->close(reader->src.fd);
	if (reader->order)
		order_done(reader->order);
	free(reader->order);
	unpack_done(&reader->unpack);
	free(reader->folder);
	free(reader->part_name);
	events_done(&reader->events);
	if (reader->sections)
		sections_done(reader->sections);
	free(reader->sections);
	stream_done(&reader->stream);
	free(reader->name);
	free(reader);
}
