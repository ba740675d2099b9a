/* SPDX-License-Identifier: MIT */
/* The reader: puts the parts together and answers for them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tally/reader.h>

#include "base/error.h"
#include "base/sys.h"
#include "perfdata/head.h"
#include "perfdata/pipe.h"
#include "perfdata/stream.h"

struct tally_reader {
	struct source src;
	char *name;
	bool owns_fd;
	struct head head;
	struct events events;
	struct sections *sections; /* apart, as its parts are loaded by getters */
	struct stream stream;
	struct tally_error failed; /* code 0: nothing has */
};

/* ---- opening ---- */

static bool starts_before(const struct file_section *section, uint64_t end)
{
	return !section->size || section->offset < end;
}

/*
 * Where the records end. A killed writer leaves a header without a data size (perf), or with that
 * of its last round (tally), and without features. So does a file that something cut.
 */
static int find_records(struct tally_reader *r, struct tally_error *err)
{
	const struct file_header *file = &r->head.file;
	struct stream *s = &r->stream;
	uint64_t size = r->src.size, data = file->data.offset;

	if (data < file->size || data > size)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: its records begin at offset %" PRIu64 ", expected between "
				 "%" PRIu64 " and the file's size, %" PRIu64,
				 r->name, data, file->size, size);
	s->start = data;
	s->end = size;
	s->sure_end = UINT64_MAX;
	if (!file->data.size) {
		source_complain(&r->src, "its header has no size of data, so its writer was "
					 "killed: read to the last whole record");
	} else if (file->data.size > size - data) {
		source_complain(&r->src,
				"is cut short: its header promises %" PRIu64
				" bytes of records, of which %" PRIu64 " are there",
				file->data.size, size - data);
	} else {
		uint64_t end = data + file->data.size;
		static const uint64_t none[FILE_FEATURE_WORDS];
		bool finished = file->size == FILE_HEADER_SIZE_OLD ||
				memcmp(file->features, none, sizeof(none)) != 0 ||
				!starts_before(&file->attrs, end) ||
				!starts_before(&file->event_types, end);
		s->exact = true;
		s->sure_end = end;
		if (finished)
			s->end = end;
		sections_read_table(r->sections, file->features, end);
	}
	return 0;
}

static int open_sections(struct tally_reader *r, struct tally_error *err)
{
	int ret = head_read_events(&r->head, &r->src, &r->events, err);

	return ret < 0 ? ret : find_records(r, err);
}

/* Looks ahead for events and features. Damage behind them is met again by who reads on. */
static int open_pipe(struct tally_reader *r, struct tally_error *err)
{
	struct stream_record record;
	int ret;

	r->stream.start = FILE_HEADER_SIZE_PIPE;
	r->stream.end = r->src.size;
	r->stream.sure_end = UINT64_MAX;
	stream_rewind(&r->stream);
	while ((ret = stream_next(&r->stream, &record, err)) > 0) {
		ret = pipe_learn(&record, &r->src, &r->events, r->sections, err);
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
	}
	if (r->events.list.count)
		return 0;
	return ret < 0 ? ret
		       : error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				   "%s: a pipe's stream that describes no event", r->name);
}

static int open_parts(struct tally_reader *r, struct tally_error *err)
{
	int ret = head_read(&r->head, &r->src, err);

	if (ret == 0)
		ret = r->head.piped ? open_pipe(r, err) : open_sections(r, err);
	if (ret == 0 && events_settle(&r->events, &r->src, r->sections) < 0)
		ret = error_nomem(err, "the events of a file");
	if (ret == 0)
		stream_rewind(&r->stream);
	return ret;
}

/* -EOPNOTSUPP for what has no size and positions, and for recordings that are folders. */
static int check_kind(struct tally_reader *r, struct tally_error *err)
{
	struct stat st;

	if (fstat(r->src.fd, &st) < 0)
		return error_set(err, -errno, TALLY_CAUSE_IO, "%s: %s", r->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s: is a folder; recordings of perf record --threads are not "
				 "read yet",
				 r->name);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
				 "%s: is no regular file; save it into one and read that", r->name);
	r->src.size = (uint64_t)st.st_size;
	return 0;
}

static int open_reader(struct tally_reader **out, int fd, bool owns_fd, const char *name,
		       struct tally_error *err)
{
	struct tally_reader *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	if (!r)
		goto fail;
	r->owns_fd = owns_fd;
	r->src.fd = fd;
	r->src.name = r->name = strdup(name);
	r->sections = calloc(1, sizeof(*r->sections));
	if (!r->name || !r->sections)
		goto fail;
	r->sections->src = &r->src;
	ret = check_kind(r, err);
	if (ret == 0)
		ret = stream_init(&r->stream, &r->src);
	if (ret == 0)
		ret = open_parts(r, err);
	if (ret < 0)
		goto fail;
	*out = r;
	return 0;
fail:
	if (ret == -ENOMEM)
		error_nomem(err, name);
	if (r)
		tally_reader_close(r);
	else if (owns_fd)
		sys()->close(fd);
	return ret;
}

/* There is nothing to choose yet; a caller that asks for something is newer than this library. */
static int check_opts(const struct tally_reader_opts *opts, struct tally_error *err)
{
	struct tally_reader_opts o;

	return opts_read(&o, sizeof(o), 0, opts, err);
}

int tally_reader_open(struct tally_reader **out, const char *path,
		      const struct tally_reader_opts *opts, struct tally_error *err)
{
	int r = check_opts(opts, err);

	if (r < 0)
		return r;
	/* O_NONBLOCK: a pipe without a writer would keep open waiting. */
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0) {
		enum tally_cause cause = fd == -ENOENT   ? TALLY_CAUSE_NO_FILE
					 : fd == -EACCES ? TALLY_CAUSE_PERMISSION
							 : TALLY_CAUSE_IO;
		return error_set(err, fd, cause, "cannot open %s: %s%s", path, strerror(-fd),
				 fd == -EACCES ? "; ask its owner, or be root" : "");
	}
	return open_reader(out, fd, true, path, err);
}

int tally_reader_open_fd(struct tally_reader **out, int fd, const char *name,
			 const struct tally_reader_opts *opts, struct tally_error *err)
{
	int r = check_opts(opts, err);

	return r < 0 ? r : open_reader(out, fd, false, name, err);
}

/* ---- records ---- */

int tally_reader_next(struct tally_reader *reader, struct tally_reader_record *out,
		      struct tally_error *err)
{
	struct stream_record record;

	if (reader->failed.code) {
		if (err)
			*err = reader->failed;
		return reader->failed.code;
	}
	int r = stream_next(&reader->stream, &record, &reader->failed);
	if (r <= 0) {
		if (r < 0 && err)
			*err = reader->failed;
		return r;
	}
	if (record.type == TALLY_FILE_COMPRESSED || record.type == TALLY_FILE_COMPRESSED2)
		source_complain(&reader->src, "has compressed records, which are not read yet: "
					      "what they hold is missing");
	uint32_t event = events_find(&reader->events, record.type, record.bytes, record.len);
	*out = (struct tally_reader_record){
		.bytes = record.bytes,
		.len = record.len,
		.type = record.type,
		.offset = record.offset,
		.layout = &reader->events.layouts[event],
		.event = event,
	};
	return 1;
}

int tally_reader_rewind(struct tally_reader *reader, struct tally_error *err)
{
	reader->failed.code = 0;
	stream_rewind(&reader->stream);
	return 0;
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
	return reader->src.size;
}

uint64_t tally_reader_position(const struct tally_reader *reader)
{
	return stream_position(&reader->stream);
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
	return reader->src.health[0] ? reader->src.health : NULL;
}

void tally_reader_close(struct tally_reader *reader)
{
	if (!reader)
		return;
	if (reader->owns_fd)
		sys()->close(reader->src.fd);
	events_done(&reader->events);
	if (reader->sections)
		sections_done(reader->sections);
	free(reader->sections);
	stream_done(&reader->stream);
	free(reader->name);
	free(reader);
}
