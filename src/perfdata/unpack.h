/* SPDX-License-Identifier: MIT */
/* The records inside of COMPRESSED and COMPRESSED2 records: slices of one zstd stream a file. */
#ifndef PERFDATA_UNPACK_H
#define PERFDATA_UNPACK_H

#include "perfdata/stream.h"

struct unpack {
	struct source *src;
	void *zstd;   /* ZSTD_DStream; NULL until the first slice */
	uint8_t *buf; /* what came out of it: a record may begin in one slice and end in the next */
	size_t have, at;
	const uint8_t *in; /* the slice, in the stream's buffer */
	size_t in_len, in_at;
	uint64_t offset;    /* of the compressed record in the file */
	uint64_t slice_out; /* bytes that came out of this slice */
	uint64_t limit;     /* of them: what the writer had mapped */
	uint64_t count;     /* records that came out of the file */
	bool flushed;       /* nothing more comes out before the next slice */
};

/* Takes a slice, whose bytes must stay until unpack_next has answered 0. -ENOMEM. */
int unpack_feed(struct unpack *u, const struct stream_record *packed);
/* 1; 0 when the slice is used up; -EBADMSG, -ENOMEM. */
int unpack_next(struct unpack *u, struct stream_record *out, struct tally_error *err);
/* Forgets what was begun: the source's end, or back to its start. */
void unpack_reset(struct unpack *u);
/* How many bytes of an unfinished record there are. */
size_t unpack_rest(const struct unpack *u);
void unpack_done(struct unpack *u);

#endif
