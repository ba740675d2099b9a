/* SPDX-License-Identifier: MIT */
/* Records put together byte by byte, and what every record has to stand: for the tests of the codec. */
#ifndef UNIT_RECORDS_BY_HAND_H
#define UNIT_RECORDS_BY_HAND_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tally/record.h>

#include "base/bytes.h"
#include "tap.h"

#define TRAILER_BITS                                                                       \
	(TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | \
	 TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER)

/* A record being put together, its first 8 bytes being the header. */
struct put {
	unsigned char at[4096];
	size_t len;
	bool swapped;
};

static inline struct put put_new(uint32_t type, uint16_t misc, bool swapped)
{
	struct put p = { .len = 8, .swapped = swapped };

	store_u32(p.at, type, swapped);
	store_u16(p.at + 4, misc, swapped);
	return p;
}

static inline void put32(struct put *p, uint32_t v)
{
	store_u32(p->at + p->len, v, p->swapped);
	p->len += 4;
}

static inline void put64(struct put *p, uint64_t v)
{
	store_u64(p->at + p->len, v, p->swapped);
	p->len += 8;
}

/* A text as the kernel pads it: with its NUL to a multiple of 8. */
static inline void put_text(struct put *p, const char *text)
{
	size_t len = strlen(text) + 1;

	memcpy(p->at + p->len, text, len);
	memset(p->at + p->len + len, 0, 8);
	p->len = align_up(p->len + len, 8);
}

static inline void put_end(struct put *p)
{
	store_u16(p->at + 6, (uint16_t)p->len, p->swapped);
}

/* struct sample_id of the manual. */
static inline void put_trailer(struct put *p, uint64_t type)
{
	if (type & TALLY_SAMPLE_TID) {
		put32(p, 701);
		put32(p, 702);
	}
	if (type & TALLY_SAMPLE_TIME)
		put64(p, 0x1122334455667788);
	if (type & TALLY_SAMPLE_ID)
		put64(p, 4711);
	if (type & TALLY_SAMPLE_STREAM_ID)
		put64(p, 4712);
	if (type & TALLY_SAMPLE_CPU) {
		put32(p, 3);
		put32(p, 0);
	}
	if (type & TALLY_SAMPLE_IDENTIFIER)
		put64(p, 4711);
}

static inline bool trailer_is_right(const struct tally_record *rec, uint64_t type)
{
	bool ok = true;

	ok &= check_u64(rec->id.has, type & TRAILER_BITS);
	ok &= check_int(rec->id.pid, type & TALLY_SAMPLE_TID ? 701 : -1);
	ok &= check_int(rec->id.tid, type & TALLY_SAMPLE_TID ? 702 : -1);
	ok &= check_u64(rec->id.time, type & TALLY_SAMPLE_TIME ? 0x1122334455667788 : 0);
	ok &= check_u64(rec->id.id, type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER) ? 4711 : 0);
	ok &= check_u64(rec->id.stream_id, type & TALLY_SAMPLE_STREAM_ID ? 4712 : 0);
	ok &= check_int(rec->id.cpu, type & TALLY_SAMPLE_CPU ? 3 : -1);
	return ok;
}

/*
 * Decodes from memory of exactly the record's size, so that a sanitizer sees every byte that is
 * read outside. The copy is kept until the next call: `rec` points into it.
 */
static inline int decode(const struct tally_layout *layout, const void *bytes, size_t len,
			 struct tally_record *rec)
{
	static unsigned char *copy;

	free(copy);
	copy = malloc(len ? len : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	return tally_record_decode(layout, copy, len, rec, sizeof(*rec));
}

static inline bool encodes_back(const struct tally_layout *layout, const struct tally_record *rec,
				const struct put *p)
{
	unsigned char bytes[4096];

	memset(bytes, 0xaa, sizeof(bytes));
	return check_int(tally_record_encode(layout, rec, bytes, p->len), p->len) &&
	       check_mem(bytes, p->at, p->len) &&
	       check_int(tally_record_encode(layout, rec, bytes, p->len - 1), -ENOSPC);
}

/* No prefix of a record may be read beyond its end, nor be taken for the whole. */
static inline void survives_truncation(const struct tally_layout *layout, const struct put *p)
{
	struct tally_record rec;

	for (size_t len = 0; len < p->len; len++) {
		struct put cut = *p;
		if (!check_int(decode(layout, cut.at, len, &rec), -EAGAIN))
			return;
		cut.len = len;
		put_end(&cut);
		int r = len < 8 ? 0 : decode(layout, cut.at, len, &rec);
		if (!check(r == 0 || r == -EBADMSG || r == (int)len))
			return;
	}
}

/* What every case below ends with: the trailer at the end, decoded, nothing left, and back. */
static inline void round_trip(struct put *p, uint64_t type, struct tally_record *rec)
{
	struct tally_layout layout = { .sample_type = type,
				       .sample_id_all = 1,
				       .swapped = p->swapped };

	put_trailer(p, type);
	put_end(p);
	require(check_int(decode(&layout, p->at, p->len, rec), p->len));
	check_int(rec->leftover, 0);
	check_int(rec->size, p->len);
	check_int(rec->swapped, p->swapped);
	trailer_is_right(rec, type);
	encodes_back(&layout, rec, p);
	survives_truncation(&layout, p);
	/* The survivors above have freed what rec points to. */
	decode(&layout, p->at, p->len, rec);
}

static const uint64_t trailer_types[] = { 0, TRAILER_BITS,
					  TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
						  TALLY_SAMPLE_IDENTIFIER };

/* Runs `fn` in both byte orders and with several trailers. */
static inline void in_all_ways(void (*fn)(bool swapped, uint64_t type))
{
	for (int swapped = 0; swapped < 2; swapped++)
		for (size_t i = 0; i < ARRAY_SIZE(trailer_types); i++)
			fn(swapped, trailer_types[i]);
}

#endif
