/* SPDX-License-Identifier: MIT */
/* The records of a file, one after another, through a small buffer. */
#ifndef PERFDATA_STREAM_H
#define PERFDATA_STREAM_H

#include "perfdata/source.h"

struct stream {
	struct source *src;
	uint8_t *buf;
	size_t room, have, at; /* of the buffer; bytes in it; how many of them are behind us */
	uint64_t offset;       /* in the file, of the buffer's first byte */
	uint64_t skip;         /* bytes behind the last record that are no records */
	uint64_t start, end;   /* where the records are */
	bool stopped;          /* what is left is no whole record */
	uint64_t sure_end;     /* behind it, bytes that look like no record end the stream */
	uint64_t count;        /* records handed out */
	bool exact;            /* `end` is what the writer said: a record across it is damage */
	bool went_beyond;      /* of sure_end */
};

struct stream_record {
	const uint8_t *bytes; /* valid until the next call */
	uint64_t offset;
	uint32_t len, type;
};

/* Allocates the buffer, for a file whose size is known. -ENOMEM. */
int stream_init(struct stream *s, struct source *src);
void stream_rewind(struct stream *s);
/* 1, 0 at the end, -EBADMSG at damage, or what pread(2) says. */
int stream_next(struct stream *s, struct stream_record *out, struct tally_error *err);
uint64_t stream_position(const struct stream *s);
void stream_done(struct stream *s);

#endif
