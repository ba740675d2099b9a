/* SPDX-License-Identifier: MIT */
/* The inside of a writer, for its parts: its forms (file, stream) and the features. */
#ifndef PERFDATA_WRITER_H
#define PERFDATA_WRITER_H

#include <tally/writer.h>

#include "base/vec.h"
#include "perfdata/compress.h"
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
	bool sent; /* in a stream: it went out before the records */
	struct buf bytes;
};

struct writer_form;

struct tally_writer {
	struct new_file file;
	const struct writer_form *form;
	struct compressor *packer; /* NULL: records are written as they are */
	uint32_t level;
	/* A copy of another file (rewrite): in its byte order, with attrs of this size at least, and
	 * without features that only who records can know. */
	bool swapped, copies;
	bool nameless; /* no EVENT_DESC, either, but the one given */
	VEC(struct written_event) events;
	VEC(struct written_feature) features;
	uint32_t attr_size; /* of all; before begin the least that is wanted */
	uint64_t data_offset;
	uint64_t data_size;  /* bytes of records in the file */
	uint64_t round_size; /* of those, up to the end of the last round */
	uint64_t round_before;
	uint64_t size; /* of the file */
	int failed;    /* an append that went wrong: no more records can follow */
	bool begun, finished;
};

/* What a file and a stream do differently. Answers are 0 or -errno. */
struct writer_form {
	/* What stands before the records. */
	int (*put_head)(struct tally_writer *w, struct buf *head);
	/* The records up to here can be read. */
	int (*mark)(struct tally_writer *w);
	/* What follows the records. */
	int (*put_features)(struct tally_writer *w);
	/* Takes back what was written behind the last round. */
	void (*cut)(struct tally_writer *w);
};

extern const struct writer_form writer_file, writer_stream;

/* All bytes, or -errno. */
int writer_write(struct tally_writer *w, const void *bytes, size_t len);

/* Records that are never compressed, with what follows them. 0 or -errno, and the writer gives up. */
int writer_append_plain(struct tally_writer *w, const struct iovec *spans, int count);

/* An attr in the size that all of the file have. */
void writer_put_attr(const struct tally_writer *w, struct buf *b, const struct tally_attr *attr);

/* The features that follow from the events, unless they were given. -ENOMEM. */
int writer_own_features(struct tally_writer *w);

/* By their bits, as both forms have them. */
void writer_sort_features(struct tally_writer *w);

struct written_feature *writer_find_feature(struct tally_writer *w, uint32_t feature);

#endif
