/* SPDX-License-Identifier: MIT */
/*
 * The tables that decoding and encoding of records both walk: a row says where a field of a record
 * stands in struct tally_record and how it is written.
 */
#ifndef EVENT_RECORD_TABLE_H
#define EVENT_RECORD_TABLE_H

#include <stddef.h>
#include <tally/record.h>

/* How a field is written: first those of 8 bytes, then those whose length is in the record. */
enum kind {
	WORD,  /* u64 */
	PAIR,  /* two u32, which swap each for itself */
	CPU,   /* u32, and a reserved u32 of zero */
	W422,  /* u32, u16, u16 */
	W224,  /* u16, u16, u32 */
	BYTES, /* eight of them */

	BUILD_ID,   /* u8 size, 3 reserved bytes, 20 bytes; as in struct tally_record_mmap */
	TEXT,       /* NUL-terminated, padded to 8; a pointer and a u32 length in the struct */
	CHAIN,      /* u64 count and as many u64; a pointer and a u64 count in the struct */
	COUNTS,     /* a read block: struct tally_record_counts */
	NAMESPACES, /* u64 count and as many pairs of u64; a u64 count and a pointer */
	POKE,       /* u16, u16 and as many bytes as their sum, padded to 8 together */
	RAW,        /* u32 size and the bytes, padded to 8 together; a pointer and a u64 */
	BRANCHES,   /* u64 count, [hw_idx], entries, [counters]: in tally_record_sample */
	REGS,       /* u64 abi, and a u64 for each register of the mask unless abi is 0 */
	STACK,      /* u64 size, and unless it is 0 the bytes and their u64 dyn_size */
	AUX_DATA,   /* u64 size and the bytes; a pointer and a u64 size */
	KINDS,
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
	const struct field *fields; /* NULL: not known, all of it passes through */
	size_t count;
	size_t size; /* of its member of struct tally_record */
};

/* By type, `record_shapes` of them. */
extern const struct shape record_shape_table[];
extern const size_t record_shapes;

/* The sample_id at the end of all records but SAMPLE. */
extern const struct shape record_trailer;

/*
 * The beginning of a sample, which is all that most have. As a macro: who decodes it sees constants, of
 * which the compiler makes straight code, and has fewer bytes to clear: a third of the time.
 */
#define SAMPLE_AT(member) offsetof(struct tally_record, member)
#define SAMPLE_WORDS                                                       \
	{ TALLY_SAMPLE_IDENTIFIER, SAMPLE_AT(id.id), WORD },               \
		{ TALLY_SAMPLE_IP, SAMPLE_AT(sample.ip), WORD },           \
		{ TALLY_SAMPLE_TID, SAMPLE_AT(id.pid), PAIR },             \
		{ TALLY_SAMPLE_TIME, SAMPLE_AT(id.time), WORD },           \
		{ TALLY_SAMPLE_ADDR, SAMPLE_AT(sample.addr), WORD },       \
		{ TALLY_SAMPLE_ID, SAMPLE_AT(id.id), WORD },               \
		{ TALLY_SAMPLE_STREAM_ID, SAMPLE_AT(id.stream_id), WORD }, \
		{ TALLY_SAMPLE_CPU, SAMPLE_AT(id.cpu), CPU },              \
	{                                                                  \
		TALLY_SAMPLE_PERIOD, SAMPLE_AT(sample.period), WORD        \
	}
#define SAMPLE_CHAIN                                                   \
	{                                                              \
		TALLY_SAMPLE_CALLCHAIN, SAMPLE_AT(sample.chain), CHAIN \
	}
/* Words, then maybe a callchain, and nothing else. */
#define HEAD_BITS                                                                           \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_ADDR | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU |  \
	 TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CALLCHAIN)

/* All that has a row: up to WEIGHT_STRUCT. */
#define KNOWN_SAMPLE_BITS ((1ull << 25) - 1)

#define KNOWN_READ_FORMAT                                                                       \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_GROUP | \
	 TALLY_READ_LOST)

/* Of branch_sample_type: what else a branch stack holds [5.7, 6.8]. */
#define BRANCHES_HW_INDEX (1ull << 17)
#define BRANCHES_COUNTERS (1ull << 19)
#define BRANCH_BYTES      24u

#define TRAILER_BITS                                                                       \
	(TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | \
	 TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER)

#define RECORD_HEADER    sizeof(struct tally_record_header)
#define FIRST_USER_TYPE  64u /* perf(1)'s PERF_RECORD_USER_TYPE_START: from files only */
#define BUILD_ID_BYTES   24u
#define BUILD_ID_LONGEST 20u

/* Words of one count in a read block, and words of its times. */
static inline size_t counts_entry(uint64_t format)
{
	return 1u + !!(format & TALLY_READ_ID) + !!(format & TALLY_READ_LOST);
}

static inline size_t counts_times(uint64_t format)
{
	return (size_t) !!(format & TALLY_READ_TIME_ENABLED) + !!(format & TALLY_READ_TIME_RUNNING);
}

/* The flags of a branch as the other byte order's compiler allots their bits; `mirrored`: which it is now. */
uint64_t record_turn_branch_flags(uint64_t flags, bool mirrored);

static inline const struct shape *record_shape(uint32_t type)
{
	/* The table's first row, type 0, is empty. */
	return &record_shape_table[type < record_shapes ? type : 0];
}

#endif
