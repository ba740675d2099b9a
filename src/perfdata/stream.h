/* SPDX-License-Identifier: MIT */
/* The records of a source, one after another, through a small buffer. */
#ifndef PERFDATA_STREAM_H
#define PERFDATA_STREAM_H

#include "perfdata/source.h"

struct stream {
	struct source *src;
	uint8_t *buf;
	size_t room, have, at; /* of the buffer; bytes in it; how many of them are behind us */
	uint64_t offset;       /* in the file, of the buffer's first byte */
	uint64_t skip;         /* bytes behind the last record that are no records and not passed */
	uint64_t following;    /* how many there were */
	uint64_t start, end;   /* where the records are; end UINT64_MAX: where the source ends */
	uint64_t sure_end;     /* behind it, bytes that look like no record end the stream */
	uint64_t parts_end;    /* end of a COMPRESSED2 that consists of several */
	uint64_t count;        /* records handed out */
	size_t hold;      /* nothing is dropped, and the buffer may grow to so many bytes; 0: no */
	bool stopped;     /* what is left is no whole record */
	bool exact;       /* `end` is what the writer said: a record across it is damage */
	bool growing;     /* what is no whole record yet may become one */
	bool went_beyond; /* of sure_end */
	bool overflowed;  /* more would have to be held */
};

struct stream_record {
	const uint8_t *bytes; /* valid until the next call */
	uint64_t offset, following;
	uint32_t len, type;
	uint32_t packed_at, packed; /* the compressed bytes in it; 0: none */
};

/* Allocates the buffer, for a source whose size is known if it ever will be. -ENOMEM. */
int stream_init(struct stream *s, struct source *src);
/* Goes on with another source, whose records are all that is in it. */
void stream_next_source(struct stream *s, struct source *src);
/* Back to the start: always possible by position, else while all is held. */
void stream_rewind(struct stream *s);
/* Sees to it that at least `len` bytes are in the buffer. 1, 0 when there are fewer, or -errno. */
int stream_need(struct stream *s, size_t len, struct tally_error *err);
/* 1, 0 at the end, -EBADMSG at damage, or what reading says. */
int stream_next(struct stream *s, struct stream_record *out, struct tally_error *err);
/* Reads of what follows the last record: how many bytes, 0 behind its end. -ESPIPE: it passed. */
int64_t stream_payload(struct stream *s, uint64_t within, void *to, size_t len);
uint64_t stream_position(const struct stream *s);
void stream_done(struct stream *s);

#endif
