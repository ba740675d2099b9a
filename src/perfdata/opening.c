/* SPDX-License-Identifier: MIT */
/*
 * Opening recordings of all forms: files, streams that were saved into one, pipes, folders. What
 * comes through a pipe is read once, from front to back; a file that does, whose features stand at
 * its end, is copied into a temporary one first.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "perfdata/pipe.h"
#include "perfdata/reader-inside.h"
#include "perfdata/temp.h"

/* How much of a pipe is looked at ahead for events and their names: what perf synthesizes before
 * them for a machine with many processes. */
#define HOLD_LIMIT (4u << 20)

#define COPY_SIZE (256u << 10)

/* perf never made as many threads. */
#define PARTS_LIMIT (64u << 10)

/* ---- where the records are ---- */

static bool starts_before(const struct file_section *section, uint64_t end)
{
	return !section->size || section->offset < end;
}

static bool is_finished(const struct file_header *file)
{
	static const uint64_t none[FILE_FEATURE_WORDS];
	uint64_t end = file->data.offset + file->data.size;

	return file->size == FILE_HEADER_SIZE_OLD ||
	       memcmp(file->features, none, sizeof(none)) != 0 ||
	       !starts_before(&file->attrs, end) || !starts_before(&file->event_types, end);
}

/* Somebody writes it still, who brings the header up to date (tally), or not (perf). */
static void bound_growing(struct tally_reader *r)
{
	const struct file_header *file = &r->head.file;
	struct stream *s = &r->stream;
	uint64_t left = r->src.size - file->data.offset;

	s->growing = true;
	s->end = r->src.size;
	if (file->data.size && file->data.size < left)
		s->end = file->data.offset + file->data.size;
}

static void bound_finished(struct tally_reader *r)
{
	const struct file_header *file = &r->head.file;
	struct stream *s = &r->stream;
	uint64_t end = file->data.offset + file->data.size;

	s->growing = false;
	s->exact = true;
	s->sure_end = end;
	if (is_finished(file))
		s->end = end;
	sections_read_table(r->sections, file->features, end);
}

/*
 * Where the records end. A killed writer leaves a header without a data size (perf), or with that
 * of its last round (tally), and without features. So does a file that something cut.
 */
int find_records(struct tally_reader *r, struct tally_error *err)
{
	const struct file_header *file = &r->head.file;
	struct stream *s = &r->stream;
	uint64_t size = r->src.size, data = file->data.offset;

	if (data < file->size || data > size)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: its records begin at offset %" PRIu64 ", expected between "
				 "%" PRIu64 " and the file's size, %" PRIu64,
				 r->name, data, file->size, size);
	bool whole = file->data.size && file->data.size <= size - data;
	s->start = data;
	s->end = size;
	s->sure_end = UINT64_MAX;
	if ((r->opts.flags & TALLY_READER_FOLLOW) && !(whole && is_finished(file)))
		bound_growing(r);
	else if (whole)
		bound_finished(r);
	else if (!file->data.size)
		source_complain(&r->src, "has no size of data in its header, so its writer was "
					 "killed: read to the last whole record");
	else
		source_complain(&r->src,
				"is cut short: its header promises %" PRIu64
				" bytes of records, of which %" PRIu64 " are there",
				file->data.size, size - data);
	return 0;
}

static int look_size(struct source *src, struct tally_error *err)
{
	struct stat st;

	if (fstat(src->fd, &st) < 0)
		return error_set(err, -errno, TALLY_CAUSE_IO, "%s: %s", src->name, strerror(errno));
	src->size = (uint64_t)st.st_size;
	return 0;
}

int look_again(struct tally_reader *r, struct tally_error *err)
{
	uint64_t end = r->stream.end;
	int ret = look_size(&r->src, err);

	if (ret < 0 || !r->stream.growing)
		return ret;
	if (r->head.piped) {
		r->stream.end = r->src.size;
	} else {
		ret = head_read(&r->head, &r->src, err);
		if (ret == 0)
			ret = find_records(r, err);
	}
	return ret < 0 ? ret : r->stream.end > end;
}

/* ---- the forms ---- */

static int open_sections(struct tally_reader *r, struct tally_error *err)
{
	int ret = head_read_events(&r->head, &r->src, &r->events, err);

	return ret < 0 ? ret : find_records(r, err);
}

/* Looks ahead for events and features: in front of the records that are for them, or with perf's
 * --tail-synthesize behind. Damage behind them is met again by who reads on. */
static int open_pipe(struct tally_reader *r, struct tally_error *err)
{
	struct stream *s = &r->stream;
	struct stream_record record;
	int ret;

	s->start = FILE_HEADER_SIZE_PIPE;
	s->end = r->src.size;
	s->sure_end = UINT64_MAX;
	s->growing = !r->src.once && (r->opts.flags & TALLY_READER_FOLLOW);
	stream_rewind(s);
	while ((ret = stream_next(s, &record, err)) > 0) {
		ret = pipe_learn(&record, s, &r->events, r->sections, err);
		if (ret < 0 || (ret == 0 && r->events.list.count))
			break;
	}
	if (ret < 0 && ret != -EBADMSG)
		return ret;
	if (r->events.list.count)
		return 0;
	return ret < 0 ? ret
		       : error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				   "%s: a pipe's stream that describes no event", r->name);
}

static int copy_rest(struct tally_reader *r, int to, struct tally_error *err)
{
	uint8_t *buf = malloc(COPY_SIZE);
	uint64_t done = r->stream.have;
	int64_t n = 0;

	if (!buf)
		return error_nomem(err, r->name);
	int ret = temp_write(to, r->stream.buf, r->stream.have, 0, err);
	while (ret == 0 && (n = source_take(&r->src, buf, 0, COPY_SIZE)) > 0) {
		ret = temp_write(to, buf, (size_t)n, done, err);
		done += (uint64_t)n;
	}
	if (ret == 0 && n < 0)
		ret = error_set(err, (int)n, TALLY_CAUSE_IO,
				"%s: reading at offset %" PRIu64 " failed: %s", r->name, done,
				strerror((int)-n));
	free(buf);
	return ret;
}

/* A file's form that comes through a pipe: what describes its records may stand behind them. */
static int spool(struct tally_reader *r, struct tally_error *err)
{
	int fd = temp_open(r->opts.temp_folder, err);
	int ret = fd < 0 ? fd : copy_rest(r, fd, err);

	if (ret < 0) {
		if (fd >= 0)
			sys()->close(fd);
		return ret;
	}
	if (r->owns_fd)
		sys()->close(r->src.fd);
	r->src.fd = fd;
	r->owns_fd = true;
	r->src.once = false;
	r->stream.have = 0;
	return look_size(&r->src, err);
}

/* Finds out by its first bytes what comes through a pipe. */
static int open_once(struct tally_reader *r, struct tally_error *err)
{
	r->stream.end = UINT64_MAX;
	r->stream.hold = HOLD_LIMIT;
	int ret = stream_need(&r->stream, FILE_HEADER_SIZE_PIPE, err);
	if (ret >= 0)
		ret = head_parse(&r->head, &r->src, r->stream.buf, r->stream.have, err);
	if (ret == 0 && !r->head.piped) {
		ret = spool(r, err);
		r->stream.hold = 0;
		if (ret == 0)
			ret = head_read(&r->head, &r->src, err);
	}
	return ret;
}

static int open_parts(struct tally_reader *r, struct tally_error *err)
{
	int ret = r->src.once ? open_once(r, err) : head_read(&r->head, &r->src, err);

	if (ret == 0)
		ret = r->head.piped ? open_pipe(r, err) : open_sections(r, err);
	if (ret == 0 && events_settle(&r->events, &r->src, r->sections) < 0)
		ret = error_nomem(err, "the events of a file");
	if (ret < 0)
		return ret;
	stream_rewind(&r->stream);
	r->stream.hold = 0;
	r->first = r->stream;
	return 0;
}

/* ---- folders ---- */

static char *part_path(const struct tally_reader *r, uint32_t part)
{
	char *path = NULL;

	if (part)
		return asprintf(&path, "%s/data.%u", r->folder, part - 1) < 0 ? NULL : path;
	return asprintf(&path, "%s/data", r->folder) < 0 ? NULL : path;
}

/* Counts the folder's files and their bytes. */
static int find_parts(struct tally_reader *r, struct tally_error *err)
{
	struct stat st;

	for (uint32_t part = 1; part < PARTS_LIMIT; part++) {
		char *path = part_path(r, part);
		int ret = path ? stat(path, &st) : -1;
		free(path);
		if (!path)
			return error_nomem(err, r->name);
		if (ret < 0)
			break;
		r->part_count = part;
		r->parts_size += (uint64_t)st.st_size;
	}
	return 0;
}

/* `fd` is the folder, which is no longer needed when its files can be found by a path. */
static int open_folder(struct tally_reader *r, struct tally_error *err)
{
	char number[32];
	int dir = r->src.fd;

	snprintf(number, sizeof(number), "/proc/self/fd/%d", dir);
	r->folder = strdup(r->owns_fd ? r->name : number);
	char *path = r->folder ? part_path(r, 0) : NULL;
	if (!path)
		return error_nomem(err, r->name);
	int fd = sys()->open(path, O_RDONLY, 0);
	free(path);
	if (fd < 0)
		return error_set(err, fd, fd == -ENOENT ? TALLY_CAUSE_NO_FILE : TALLY_CAUSE_IO,
				 "%s: is a folder, whose file \"data\" cannot be opened: %s; a "
				 "recording of perf record --threads has one",
				 r->name, strerror(-fd));
	if (r->owns_fd)
		sys()->close(dir);
	r->src.fd = fd;
	r->owns_fd = true;
	int ret = look_size(&r->src, err);
	return ret < 0 ? ret : find_parts(r, err);
}

static int open_part(struct tally_reader *r, struct tally_error *err)
{
	free(r->part_name);
	r->part_name = part_path(r, r->part);
	if (!r->part_name)
		return error_nomem(err, r->name);
	int fd = sys()->open(r->part_name, O_RDONLY, 0);
	if (fd < 0)
		return error_set(err, fd, TALLY_CAUSE_IO, "cannot open %s: %s", r->part_name,
				 strerror(-fd));
	snprintf(r->part_label, sizeof(r->part_label), "data.%u: ", r->part - 1);
	r->part_src = (struct source){
		.name = r->part_name,
		.part = r->part_label,
		.fd = fd,
		.swapped = r->src.swapped,
		.health = r->health,
	};
	return look_size(&r->part_src, err);
}

static void close_part(struct tally_reader *r)
{
	if (r->part)
		sys()->close(r->part_src.fd);
}

int open_next_part(struct tally_reader *r, struct tally_error *err)
{
	if (r->part >= r->part_count)
		return 0;
	r->passed_size += r->part ? r->part_src.size : r->src.size;
	close_part(r);
	r->part++;
	int ret = open_part(r, err);
	if (ret < 0) {
		r->part--;
		return ret;
	}
	r->unpack.src = &r->part_src;
	stream_next_source(&r->stream, &r->part_src);
	return 1;
}

void rewind_parts(struct tally_reader *r)
{
	if (r->part) {
		struct stream now = r->stream;
		close_part(r);
		r->part = 0;
		r->passed_size = 0;
		r->stream = r->first;
		r->stream.buf = now.buf;
		r->stream.room = now.room;
		r->stream.have = r->stream.at = 0;
		r->unpack.src = &r->src;
	}
	stream_rewind(&r->stream);
}

/* ---- opening ---- */

static int check_kind(struct tally_reader *r, struct tally_error *err)
{
	struct stat st;

	if (fstat(r->src.fd, &st) < 0)
		return error_set(err, -errno, TALLY_CAUSE_IO, "%s: %s", r->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return open_folder(r, err);
	r->src.once = !S_ISREG(st.st_mode);
	r->src.size = r->src.once ? UINT64_MAX : (uint64_t)st.st_size;
	return 0;
}

static int make_order(struct tally_reader *r)
{
	bool wanted = (r->opts.flags & TALLY_READER_TIME_ORDER) ||
		      (r->src.once && (r->opts.flags & TALLY_READER_TIME_ORDER_PIPE));

	if (!wanted)
		return 0;
	r->order = calloc(1, sizeof(*r->order));
	return r->order ? order_init(r->order, r->opts.temp_folder) : -ENOMEM;
}

static int build(struct tally_reader *r, struct tally_error *err)
{
	int ret = check_kind(r, err);

	if (ret == 0)
		ret = stream_init(&r->stream, &r->src);
	if (ret == 0)
		ret = open_parts(r, err);
	if (ret == 0)
		ret = make_order(r);
	return ret;
}

static int open_reader(struct tally_reader **out, int fd, bool owns_fd, const char *name,
		       const struct tally_reader_opts *opts, struct tally_error *err)
{
	struct tally_reader *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	if (!r)
		goto fail;
	r->opts = *opts;
	r->owns_fd = owns_fd;
	r->src.fd = fd;
	r->src.part = "";
	r->src.health = r->health;
	r->src.name = r->name = strdup(name);
	r->unpack.src = &r->src;
	r->sections = calloc(1, sizeof(*r->sections));
	if (!r->name || !r->sections)
		goto fail;
	r->sections->src = &r->src;
	ret = build(r, err);
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

static int check_opts(struct tally_reader_opts *out, const struct tally_reader_opts *opts,
		      struct tally_error *err)
{
	return opts_read(out, sizeof(*out),
			 TALLY_READER_TIME_ORDER | TALLY_READER_TIME_ORDER_PIPE |
				 TALLY_READER_PACKED | TALLY_READER_FOLLOW,
			 opts, err);
}

int tally_reader_open(struct tally_reader **out, const char *path,
		      const struct tally_reader_opts *opts, struct tally_error *err)
{
	struct tally_reader_opts o;
	int r = check_opts(&o, opts, err);

	if (r < 0)
		return r;
	if (!strcmp(path, "-"))
		return open_reader(out, 0, false, "standard input", &o, err);
	int fd = sys()->open(path, O_RDONLY, 0);
	if (fd < 0) {
		enum tally_cause cause = fd == -ENOENT   ? TALLY_CAUSE_NO_FILE
					 : fd == -EACCES ? TALLY_CAUSE_PERMISSION
							 : TALLY_CAUSE_IO;
		return error_set(err, fd, cause, "cannot open %s: %s%s", path, strerror(-fd),
				 fd == -EACCES ? "; ask its owner, or be root" : "");
	}
	return open_reader(out, fd, true, path, &o, err);
}

int tally_reader_open_fd(struct tally_reader **out, int fd, const char *name,
			 const struct tally_reader_opts *opts, struct tally_error *err)
{
	struct tally_reader_opts o;
	int r = check_opts(&o, opts, err);

	return r < 0 ? r : open_reader(out, fd, false, name, &o, err);
}
