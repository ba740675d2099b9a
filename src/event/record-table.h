/* SPDX-License-Identifier: MIT */
/*
 * The tables that decoding and encoding of records both walk: a row says where a field of a record
 * stands in struct tally_record and how it is written.
 */
#ifndef EVENT_RECORD_TABLE_H
#define EVENT_RECORD_TABLE_H

#include <tally/record.h>

/* How a field is written. All but a text, a callchain and a read block have 8 or 24 bytes. */
enum kind {
	WORD,     /* u64 */
	PAIR,     /* two u32, which swap each for itself */
	CPU,      /* u32, and a reserved u32 of zero */
	BUILD_ID, /* u8 size, 3 reserved bytes, 20 bytes; as in struct tally_record_mmap */
	TEXT,     /* NUL-terminated, padded to 8; a pointer and a u32 length in the struct */
	READ,     /* the counts of PERF_SAMPLE_READ: stepped over */
	CHAIN,    /* u64 count and as many u64; a pointer and a u64 count in the struct */
};

struct field {
	uint64_t when; /* bits of sample_type, or FORM_*: any of them makes the field present */
	uint16_t at;   /* in struct tally_record */
	uint16_t kind;
};

/* Values of `when` */
#define ALWAYS        UINT64_MAX
#define FORM_INODE    (1ull << 0) /* MMAP2 */
#define FORM_BUILD_ID (1ull << 1)

/* A record type: perf's name for it, and its fields; none when it passes through. */
struct shape {
	const char *name;
	const struct field *fields;
	size_t count;
	size_t size; /* of its member of struct tally_record */
};

/* By type, `record_shapes` of them. */
extern const struct shape record_shape_table[];
extern const size_t record_shapes;

/* The sample_id at the end of all records but SAMPLE. */
extern const struct shape record_trailer;

#define DECODED_SAMPLE_BITS                                                                 \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_ADDR | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU |  \
	 TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN)

#define TRAILER_BITS                                                                       \
	(TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | \
	 TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER)

#define RECORD_HEADER    sizeof(struct tally_record_header)
#define FIRST_USER_TYPE  64u /* perf(1)'s PERF_RECORD_USER_TYPE_START: from files only */
#define BUILD_ID_BYTES   24u
#define BUILD_ID_LONGEST 20u

static inline const struct shape *record_shape(uint32_t type)
{
	/* The table's first row, type 0, is empty. */
	return &record_shape_table[type < record_shapes ? type : 0];
}

#endif
