/* SPDX-License-Identifier: MIT */
/* The features of a file that is written: those given, and those that follow from its events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "perfdata/writer.h"

/* COMPRESSED, as perf writes it: its version is 0; 1 is zstd. */
#define COMPRESSED_VERSION 0
#define COMPRESSED_ZSTD    1

struct written_feature *writer_find_feature(struct tally_writer *w, uint32_t feature)
{
	vec_each (&w->features, f)
		if (f->feature == feature)
			return f;
	return NULL;
}

static int by_bit(const void *a, const void *b)
{
	const struct written_feature *x = a, *y = b;

	return (x->feature > y->feature) - (x->feature < y->feature);
}

void writer_sort_features(struct tally_writer *w)
{
	if (w->features.count)
		qsort(w->features.at, w->features.count, sizeof(*w->features.at), by_bit);
}

/* The feature's buffer, made when it is new. NULL: no memory. */
static struct buf *feature_buf(struct tally_writer *w, uint32_t feature)
{
	struct written_feature *f = writer_find_feature(w, feature);

	if (!f) {
		f = vec_push(&w->features);
		if (!f)
			return NULL;
		f->feature = feature;
	}
	f->sent = false;
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
	feature_put_text(b, text, writer->swapped);
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
	feature_put_words(b, count, words, writer->swapped);
	return b->failed ? -ENOMEM : 0;
}

int tally_writer_build_id(struct tally_writer *writer, uint32_t cpumode, int32_t pid,
			  const char *name, const uint8_t *id, uint32_t id_len)
{
	struct buf *b = writer->finished ? NULL : feature_buf(writer, TALLY_FEATURE_BUILD_ID);

	if (!b)
		return writer->finished ? -EINVAL : -ENOMEM;
	return feature_put_build_id(b, cpumode, pid, name, id, id_len, writer->swapped);
}

int tally_writer_group(struct tally_writer *writer, const char *name, uint32_t leader,
		       uint32_t members)
{
	struct buf *b;

	if (writer->begun || members < 2)
		return -EINVAL;
	b = feature_buf(writer, TALLY_FEATURE_GROUP_DESC);
	if (!b)
		return -ENOMEM;
	feature_put_group(b, name, leader, members, writer->swapped);
	return b->failed ? -ENOMEM : 0;
}

static int put_event_desc(struct tally_writer *w)
{
	struct buf *b;
	int r = start_feature(w, TALLY_FEATURE_EVENT_DESC, &b);

	if (r < 0)
		return r;
	feature_put_events_head(b, (uint32_t)w->events.count, w->attr_size, w->swapped);
	vec_each (&w->events, e) {
		writer_put_attr(w, b, &e->attr);
		feature_put_event(b, e->name, e->ids, e->id_count, w->swapped);
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

/* Without it perf report shows where samples were, not which branches they saw. */
static int put_branch_stack(struct tally_writer *w)
{
	vec_each (&w->events, e)
		if (e->attr.sample_type & TALLY_SAMPLE_BRANCH_STACK)
			return tally_writer_feature(w, TALLY_FEATURE_BRANCH_STACK, "", 0);
	return 0;
}

static int put_compressed(struct tally_writer *w)
{
	uint64_t taken = compressor_taken(w->packer), put = compressor_put(w->packer);
	uint64_t ratio = put ? (taken + put / 2) / put : 0;
	const uint32_t words[] = { COMPRESSED_VERSION, COMPRESSED_ZSTD, w->level,
				   ratio > UINT32_MAX ? UINT32_MAX : (uint32_t)ratio,
				   COMPRESS_OUTPUT_MAX };

	return tally_writer_feature(w, TALLY_FEATURE_COMPRESSED, words, sizeof(words));
}

int writer_own_features(struct tally_writer *w)
{
	int r = 0;

	if (!w->nameless && !writer_find_feature(w, TALLY_FEATURE_EVENT_DESC))
		r = put_event_desc(w);
	if (r == 0 && !w->copies && !writer_find_feature(w, TALLY_FEATURE_CLOCKID))
		r = put_clock(w);
	if (r == 0 && !w->copies)
		r = put_branch_stack(w);
	return r == 0 && w->packer ? put_compressed(w) : r;
}
