/* SPDX-License-Identifier: MIT */
/*
 * Decoding: bytes to struct tally_record. Each step is held against what is left of the record, so
 * that nothing outside it is read whatever its counts and sizes say.
 */
#include <errno.h>

#include "base/bytes.h"
#include "event/record-table.h"

#define MMAP2_ID_OFFSET 32u /* behind pid, tid, addr, len, pgoff */
#define MD5_BYTES       16u
#define MINOR_BITS      20 /* MINORBITS of <linux/kdev_t.h> */

/* The fields that stand before the read block. */
#define BEFORE_COUNTS (HEAD_BITS & ~TALLY_SAMPLE_CALLCHAIN)

/* What is left of a record to be decoded. */
struct input {
	const unsigned char *at, *end;
	bool swapped;
};

static size_t left(const struct input *in)
{
	return (size_t)(in->end - in->at);
}

/* The next `bytes`, NULL when the record has not so many. */
static const void *take(struct input *in, uint64_t bytes)
{
	const unsigned char *at = in->at;

	if (bytes > left(in))
		return NULL;
	in->at += bytes;
	return at;
}

static bool take_word(struct input *in, uint64_t *out)
{
	const void *at = take(in, 8);

	if (at)
		*out = load_u64(at, in->swapped);
	return at;
}

/* Skips what pads `used` bytes to 8; a cut record ends without it. */
static void skip_padding(struct input *in, uint64_t used)
{
	uint64_t padding = -used & 7;

	in->at += padding < left(in) ? padding : left(in);
}

typedef int decode_kind(struct input *in, const struct tally_layout *layout,
			struct tally_record *rec, unsigned char *to);

static int decode_text(struct input *in, const struct tally_layout *layout,
		       struct tally_record *rec, unsigned char *to)
{
	const char *text = (const char *)in->at;
	const char *nul = memchr(text, '\0', left(in));

	if (!nul)
		return -EBADMSG;
	uint32_t len = (uint32_t)(nul - text);
	memcpy(to, &text, sizeof(text));
	memcpy(to + sizeof(text), &len, sizeof(len));
	in->at += len + 1;
	skip_padding(in, len + 1ull);
	return 0;
}

/* `count` words from here on: a pointer and a count. */
static int keep_words(struct input *in, uint64_t count, unsigned char *to)
{
	if (count > left(in) / 8)
		return -EBADMSG;
	memcpy(to, &in->at, sizeof(in->at));
	memcpy(to + sizeof(in->at), &count, sizeof(count));
	in->at += 8 * count;
	return 0;
}

static int decode_chain(struct input *in, const struct tally_layout *layout,
			struct tally_record *rec, unsigned char *to)
{
	uint64_t count;

	return take_word(in, &count) ? keep_words(in, count, to) : -EBADMSG;
}

static int decode_build_id(struct input *in, const struct tally_layout *layout,
			   struct tally_record *rec, unsigned char *to)
{
	const void *at = take(in, BUILD_ID_BYTES);

	if (!at)
		return -EBADMSG;
	memcpy(to, at, BUILD_ID_BYTES);
	return 0;
}

/*
 * perf_event_open(2), "Reading results": {value, enabled?, running?, id?, lost?}, or with GROUP
 * {nr, enabled?, running?, {value, id?, lost?}[nr]}.
 */
static int decode_counts(struct input *in, const struct tally_layout *layout,
			 struct tally_record *rec, unsigned char *to)
{
	uint64_t format = layout->read_format, words = left(in) / 8;
	struct tally_record_counts counts = { .count = 1, .format = format, .block = in->at };
	size_t times = counts_times(format), entry = counts_entry(format);

	if (words < 1 + times)
		return -EBADMSG;
	if (format & TALLY_READ_GROUP) {
		counts.count = load_u64(in->at, in->swapped);
		words--;
	}
	if (counts.count > (words - times) / entry)
		return -EBADMSG;
	const unsigned char *at = in->at + 8;
	if (format & TALLY_READ_TIME_ENABLED) {
		counts.enabled_ns = load_u64(at, in->swapped);
		at += 8;
	}
	if (format & TALLY_READ_TIME_RUNNING)
		counts.running_ns = load_u64(at, in->swapped);
	in->at += 8 * (!!(format & TALLY_READ_GROUP) + times + counts.count * entry);
	memcpy(to, &counts, sizeof(counts));
	return 0;
}

static int decode_namespaces(struct input *in, const struct tally_layout *layout,
			     struct tally_record *rec, unsigned char *to)
{
	uint64_t count;

	if (!take_word(in, &count) || count > left(in) / 16)
		return -EBADMSG;
	rec->namespaces.count = count;
	rec->namespaces.entries = take(in, 16 * count);
	return 0;
}

static int decode_poke(struct input *in, const struct tally_layout *layout,
		       struct tally_record *rec, unsigned char *to)
{
	struct tally_record_text_poke *poke = &rec->text_poke;
	const unsigned char *lens = take(in, 4);

	if (!lens)
		return -EBADMSG;
	poke->old_len = load_u16(lens, in->swapped);
	poke->new_len = load_u16(lens + 2, in->swapped);
	uint64_t bytes = (uint64_t)poke->old_len + poke->new_len;
	poke->bytes = take(in, bytes);
	if (!poke->bytes)
		return -EBADMSG;
	skip_padding(in, 4 + bytes);
	return 0;
}

/* The kernel's size counts the padding, so that it is 4 modulo 8. */
static int decode_raw(struct input *in, const struct tally_layout *layout, struct tally_record *rec,
		      unsigned char *to)
{
	const unsigned char *size = take(in, 4);

	if (!size)
		return -EBADMSG;
	rec->sample.raw_len = load_u32(size, in->swapped);
	rec->sample.raw = take(in, rec->sample.raw_len);
	if (!rec->sample.raw)
		return -EBADMSG;
	skip_padding(in, 4 + rec->sample.raw_len);
	return 0;
}

static int decode_branches(struct input *in, const struct tally_layout *layout,
			   struct tally_record *rec, unsigned char *to)
{
	struct tally_record_sample *s = &rec->sample;

	s->branch_hw_idx = UINT64_MAX;
	s->branch_parts = layout->branch_sample_type & (BRANCHES_HW_INDEX | BRANCHES_COUNTERS);
	if (!take_word(in, &s->branch_count))
		return -EBADMSG;
	if (s->branch_parts & BRANCHES_HW_INDEX && !take_word(in, &s->branch_hw_idx))
		return -EBADMSG;
	if (s->branch_count > left(in) / BRANCH_BYTES)
		return -EBADMSG;
	s->branches = take(in, s->branch_count * BRANCH_BYTES);
	if (!(s->branch_parts & BRANCHES_COUNTERS) || !s->branch_count)
		return 0;
	s->branch_counters = take(in, 8 * s->branch_count);
	return s->branch_counters ? 0 : -EBADMSG;
}

/* No registers follow an abi of 0. */
static int decode_regs(struct input *in, const struct tally_layout *layout,
		       struct tally_record *rec, unsigned char *to)
{
	struct tally_regs *user = &rec->sample.regs_user, regs;
	bool is_user = to == (unsigned char *)user;

	regs.mask = is_user ? layout->regs_user : layout->regs_intr;
	regs.values = NULL;
	if (!take_word(in, &regs.abi))
		return -EBADMSG;
	if (!regs.abi)
		regs.mask = 0;
	else if (!(regs.values = take(in, 8 * (uint64_t)__builtin_popcountll(regs.mask))))
		return -EBADMSG;
	memcpy(to, &regs, sizeof(regs));
	return 0;
}

/* No dyn_size follows a size of 0. */
static int decode_stack(struct input *in, const struct tally_layout *layout,
			struct tally_record *rec, unsigned char *to)
{
	struct tally_record_sample *s = &rec->sample;

	if (!take_word(in, &s->stack_len))
		return -EBADMSG;
	if (!s->stack_len)
		return 0;
	s->stack = take(in, s->stack_len);
	return s->stack && take_word(in, &s->stack_dyn_size) ? 0 : -EBADMSG;
}

static int decode_aux_data(struct input *in, const struct tally_layout *layout,
			   struct tally_record *rec, unsigned char *to)
{
	struct tally_record_sample *s = &rec->sample;

	if (!take_word(in, &s->aux_len))
		return -EBADMSG;
	s->aux = take(in, s->aux_len);
	if (!s->aux)
		return -EBADMSG;
	skip_padding(in, s->aux_len);
	return 0;
}

static decode_kind *const decode_kinds[KINDS] = {
	[BUILD_ID] = decode_build_id,
	[TEXT] = decode_text,
	[CHAIN] = decode_chain,
	[COUNTS] = decode_counts,
	[NAMESPACES] = decode_namespaces,
	[POKE] = decode_poke,
	[RAW] = decode_raw,
	[BRANCHES] = decode_branches,
	[REGS] = decode_regs,
	[STACK] = decode_stack,
	[AUX_DATA] = decode_aux_data,
};

/* A field of 8 bytes. */
static inline __attribute__((always_inline)) void
decode_short(const unsigned char *at, bool swapped, unsigned kind, unsigned char *to)
{
	switch (kind) {
	case WORD:
		store_u64(to, load_u64(at, swapped), false);
		break;
	case PAIR:
		store_u32(to, load_u32(at, swapped), false);
		store_u32(to + 4, load_u32(at + 4, swapped), false);
		break;
	case CPU:
		store_u32(to, load_u32(at, swapped), false);
		break;
	case W422:
		store_u32(to, load_u32(at, swapped), false);
		store_u16(to + 4, load_u16(at + 4, swapped), false);
		store_u16(to + 6, load_u16(at + 6, swapped), false);
		break;
	case W224:
		store_u16(to, load_u16(at, swapped), false);
		store_u16(to + 2, load_u16(at + 2, swapped), false);
		store_u32(to + 4, load_u32(at + 4, swapped), false);
		break;
	default:
		memcpy(to, at, 8);
	}
}

/*
 * Decodes a field if it is `present`. Inlined, and the cursor `at` kept in a local: the stores through
 * `to` may alias anything, so that one in memory would be read again for each field.
 */
static inline __attribute__((always_inline)) int
decode_field(struct input *in, const unsigned char **at, const struct field *f, uint64_t present,
	     const struct tally_layout *layout, struct tally_record *rec)
{
	unsigned char *to = (unsigned char *)rec + f->at;

	if (!(f->when & present))
		return 0;
	if (f->kind > BYTES) {
		in->at = *at;
		int r = decode_kinds[f->kind](in, layout, rec, to);
		*at = in->at;
		return r;
	}
	if (in->end - *at < 8)
		return -EBADMSG;
	decode_short(*at, in->swapped, f->kind, to);
	*at += 8;
	return 0;
}

static int decode_fields(struct input *in, const struct shape *shape, uint64_t present,
			 const struct tally_layout *layout, struct tally_record *rec)
{
	const unsigned char *at = in->at;

	for (size_t i = 0; i < shape->count; i++) {
		int r = decode_field(in, &at, &shape->fields[i], present, layout, rec);
		if (r < 0)
			return r;
	}
	in->at = at;
	return 0;
}

static const struct field head_fields[] = { SAMPLE_WORDS, SAMPLE_CHAIN };
#define HEAD_SIZE offsetof(struct tally_record_sample, rest)

static inline bool is_head(const struct tally_layout *layout)
{
	return !(layout->sample_type & ~HEAD_BITS);
}

/* The same with all rows known: nothing of the table is left to be read. */
static inline int decode_head(struct input *in, const struct tally_layout *layout,
			      struct tally_record *rec)
{
	const unsigned char *at = in->at;

#pragma GCC unroll 16
	for (size_t i = 0; i < ARRAY_SIZE(head_fields); i++) {
		int r = decode_field(in, &at, &head_fields[i], layout->sample_type, layout, rec);
		if (r < 0)
			return r;
	}
	in->at = at;
	rec->id.has = (uint32_t)(layout->sample_type & TRAILER_BITS);
	return 0;
}

static int decode_sample_as(const struct tally_layout *layout, struct input *in,
			    struct tally_record *rec)
{
	uint64_t type = layout->sample_type, known = KNOWN_SAMPLE_BITS;

	/* A read block of unknown shape hides where what follows begins. */
	if (type & TALLY_SAMPLE_READ && layout->read_format & ~KNOWN_READ_FORMAT)
		known &= BEFORE_COUNTS;
	int r = decode_fields(in, record_shape(TALLY_RECORD_SAMPLE), type & known, layout, rec);
	if (r < 0)
		return r;
	rec->id.has = (uint32_t)(type & TRAILER_BITS);
	if (type & ~known) {
		rec->sample.rest = in->at;
		rec->sample.rest_len = left(in);
		in->at = in->end;
	}
	return 0;
}

/*
 * What was asked of a branch stack is not always there: the kernel writes no hw_idx where there is
 * no stack at all, but does for an empty one (perf_output_sample()), and counters only where the PMU
 * has some. Only the record's length tells: the form that uses up all of it is right.
 */
static int decode_sample(const struct tally_layout *layout, struct input *in,
			 struct tally_record *rec)
{
	const struct input all = *in;
	int r = decode_sample_as(layout, in, rec);

	if (!(layout->sample_type & TALLY_SAMPLE_BRANCH_STACK) || (r == 0 && !left(in)))
		return r;
	struct tally_layout less = *layout;
	struct tally_record other = *rec;
	struct input again = all;
	less.branch_sample_type &= rec->sample.branch_count ? ~BRANCHES_COUNTERS
							    : ~BRANCHES_HW_INDEX;
	memset(&other.sample, 0, sizeof(other.sample));
	if (decode_sample_as(&less, &again, &other) < 0 || left(&again))
		return r;
	*rec = other;
	*in = again;
	return 0;
}

/* Takes the sample_id from the record's end, and with it the end from what is left. */
static int decode_trailer(const struct tally_layout *layout, struct input *in,
			  struct tally_record *rec)
{
	size_t size = tally_layout_id_size(layout);

	if (!size || rec->type >= FIRST_USER_TYPE)
		return 0;
	if (left(in) < size)
		return record_shape(rec->type)->fields ? -EBADMSG : 0;
	in->end -= size;
	struct input trailer = { in->end, in->end + size, in->swapped };
	rec->id.has = (uint32_t)(layout->sample_type & TRAILER_BITS);
	return decode_fields(&trailer, &record_trailer, layout->sample_type, layout, rec);
}

/*
 * Which form an MMAP2 has. The bit in misc alone does not tell: where several events listen, of
 * which one wants build-ids, the kernel sets it for that one and leaves it set for the next,
 * which has an inode (perf_event_mmap_output(), seen on Linux 6.18). A build-id has 1 to 20 bytes
 * and zeros behind them. An inode begins with its device: a major number that could be the length
 * of a short id (8 is that of SCSI disks) is followed by a minor of 20 bits, which a hash is not.
 */
static uint64_t form_of(const struct tally_record *rec, const struct input *in)
{
	const unsigned char *id = in->at + MMAP2_ID_OFFSET;

	if (rec->type != TALLY_RECORD_MMAP2 || !(rec->misc & TALLY_MISC_MMAP_BUILD_ID) ||
	    left(in) < MMAP2_ID_OFFSET + BUILD_ID_BYTES)
		return FORM_INODE;
	if (id[0] < 1 || id[0] > BUILD_ID_LONGEST || id[1] || id[2] || id[3])
		return FORM_INODE;
	if (id[0] < MD5_BYTES && load_u32(id + 4, in->swapped) >> MINOR_BITS == 0)
		return FORM_INODE;
	for (size_t i = 4u + id[0]; i < BUILD_ID_BYTES; i++)
		if (id[i])
			return FORM_INODE;
	return FORM_BUILD_ID;
}

static int decode_other(const struct tally_layout *layout, struct input *in,
			struct tally_record *rec)
{
	const struct shape *shape = record_shape(rec->type);
	int r = decode_trailer(layout, in, rec);

	if (r < 0)
		return r;
	if (rec->type == TALLY_RECORD_READ && layout->read_format & ~KNOWN_READ_FORMAT)
		return 0;
	r = decode_fields(in, shape, form_of(rec, in), layout, rec);
	if (rec->type == TALLY_RECORD_COMM)
		rec->comm.exec = rec->misc & TALLY_MISC_COMM_EXEC ? 1 : 0;
	return r;
}

/* Decodes into `rec`, of which what is behind the record's own fields is not written. The size. */
static inline __attribute__((always_inline)) int decode_record(const struct tally_layout *layout,
							       const unsigned char *at, size_t len,
							       struct tally_record *rec,
							       size_t *used)
{
	bool swapped = layout->swapped;

	if (len < RECORD_HEADER)
		return -EAGAIN;
	uint32_t type = load_u32(at, swapped);
	uint16_t size = load_u16(at + 6, swapped);
	if (size < RECORD_HEADER)
		return -EBADMSG;
	if (len < size)
		return -EAGAIN;
	rec->type = type;
	rec->misc = load_u16(at + 4, swapped);
	rec->size = size;
	rec->bytes = at;
	rec->id = (struct tally_sample_id){ .pid = -1, .tid = -1, .cpu = -1 };
	rec->swapped = swapped;
	bool sample = type == TALLY_RECORD_SAMPLE, head = sample && is_head(layout);
	size_t body = head ? HEAD_SIZE : record_shape(type)->size;
	memset(&rec->mmap, 0, body);
	*used = offsetof(struct tally_record, mmap) + body;
	struct input in = { at + RECORD_HEADER, at + size, swapped };
	int r = head     ? decode_head(&in, layout, rec)
		: sample ? decode_sample(layout, &in, rec)
			 : decode_other(layout, &in, rec);
	if (r < 0)
		return r;
	rec->leftover = (uint32_t)left(&in);
	return size;
}

/* What the decoder of fields leaves to the end: the rest is zero, and the layout is told. */
static inline void finish(const struct tally_layout *layout, struct tally_record *rec, size_t used,
			  size_t size)
{
	memset((char *)rec + used, 0, size - used);
	if (rec->type != TALLY_RECORD_SAMPLE)
		return;
	rec->sample.sample_type = layout->sample_type;
	rec->sample.branch_sample_type = layout->branch_sample_type;
}

/* For a caller who was compiled with a shorter struct. */
static int decode_short_record(const struct tally_layout *layout, const void *bytes, size_t len,
			       void *out, size_t out_size)
{
	struct tally_record rec;
	size_t used;
	int r = decode_record(layout, bytes, len, &rec, &used);

	if (r < 0)
		return r;
	finish(layout, &rec, used, sizeof(rec));
	memcpy(out, &rec, out_size);
	return r;
}

int tally_record_decode(const struct tally_layout *layout, const void *bytes, size_t len,
			struct tally_record *out, size_t out_size)
{
	size_t used;

	if (out_size < sizeof(*out))
		return decode_short_record(layout, bytes, len, out, out_size);
	int r = decode_record(layout, bytes, len, out, &used);
	if (r >= 0)
		finish(layout, out, used, out_size);
	return r;
}
