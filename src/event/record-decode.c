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

#define KNOWN_READ_FORMAT                                                                       \
	(TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING | TALLY_READ_ID | TALLY_READ_GROUP | \
	 TALLY_READ_LOST)

/* What is left of a record to be decoded. */
struct input {
	const unsigned char *at, *end;
	bool swapped;
};

static size_t left(const struct input *in)
{
	return (size_t)(in->end - in->at);
}

static int decode_text(struct input *in, unsigned char *to)
{
	const char *text = (const char *)in->at;
	const char *nul = memchr(text, '\0', left(in));

	if (!nul)
		return -EBADMSG;
	uint32_t len = (uint32_t)(nul - text);
	memcpy(to, &text, sizeof(text));
	memcpy(to + sizeof(text), &len, sizeof(len));
	size_t padded = align_up(len + 1, 8);
	in->at += padded < left(in) ? padded : left(in);
	return 0;
}

static int decode_chain(struct input *in, unsigned char *to)
{
	if (left(in) < 8)
		return -EBADMSG;
	uint64_t count = load_u64(in->at, in->swapped);
	in->at += 8;
	if (count > left(in) / 8)
		return -EBADMSG;
	memcpy(to, &in->at, sizeof(in->at));
	memcpy(to + sizeof(in->at), &count, sizeof(count));
	in->at += 8 * count;
	return 0;
}

static int decode_build_id(struct input *in, unsigned char *to)
{
	if (left(in) < BUILD_ID_BYTES)
		return -EBADMSG;
	memcpy(to, in->at, BUILD_ID_BYTES);
	in->at += BUILD_ID_BYTES;
	return 0;
}

/*
 * perf_event_open(2), "Reading results": {value, enabled?, running?, id?, lost?}, or with GROUP
 * {nr, enabled?, running?, {value, id?, lost?}[nr]}.
 */
static int skip_read(struct input *in, uint64_t format)
{
	size_t times = !!(format & TALLY_READ_TIME_ENABLED) + !!(format & TALLY_READ_TIME_RUNNING);
	size_t entry = 1 + !!(format & TALLY_READ_ID) + !!(format & TALLY_READ_LOST);
	size_t words = left(in) / 8;
	uint64_t count = 1;

	if (format & TALLY_READ_GROUP) {
		if (words < 1 + times)
			return -EBADMSG;
		count = load_u64(in->at, in->swapped);
		in->at += 8;
		words--;
	}
	if (words < times || count > (words - times) / entry)
		return -EBADMSG;
	in->at += 8 * (times + count * entry);
	return 0;
}

static int decode_long(struct input *in, const struct field *f, unsigned char *to,
		       const struct tally_layout *layout)
{
	switch (f->kind) {
	case BUILD_ID:
		return decode_build_id(in, to);
	case TEXT:
		return decode_text(in, to);
	case READ:
		return skip_read(in, layout->read_format);
	default:
		return decode_chain(in, to);
	}
}

/*
 * Decodes the fields that are `present`. Inlined, and the cursor kept in locals: the stores through
 * `to` may alias anything, so that one in memory would be read again for each field.
 */
static inline __attribute__((always_inline)) int
decode_fields(struct input *in, const struct shape *shape, uint64_t present,
	      const struct tally_layout *layout, struct tally_record *rec)
{
	const unsigned char *at = in->at;
	bool swapped = in->swapped;

	for (size_t i = 0; i < shape->count; i++) {
		const struct field *f = &shape->fields[i];
		unsigned char *to = (unsigned char *)rec + f->at;

		if (!(f->when & present))
			continue;
		if (f->kind > CPU) {
			in->at = at;
			int r = decode_long(in, f, to, layout);
			if (r < 0)
				return r;
			at = in->at;
			continue;
		}
		if (in->end - at < 8)
			return -EBADMSG;
		if (f->kind == WORD) {
			store_u64(to, load_u64(at, swapped), false);
		} else {
			store_u32(to, load_u32(at, swapped), false);
			if (f->kind == PAIR)
				store_u32(to + 4, load_u32(at + 4, swapped), false);
		}
		at += 8;
	}
	in->at = at;
	return 0;
}

static int decode_sample(const struct tally_layout *layout, struct input *in,
			 struct tally_record *rec)
{
	uint64_t type = layout->sample_type, decoded = DECODED_SAMPLE_BITS;

	/* A read block of unknown shape hides where the callchain begins. */
	if (type & TALLY_SAMPLE_READ && layout->read_format & ~KNOWN_READ_FORMAT)
		decoded &= ~(TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN);
	int r = decode_fields(in, record_shape(TALLY_RECORD_SAMPLE), type & decoded, layout, rec);
	if (r < 0)
		return r;
	rec->id.has = (uint32_t)(type & TRAILER_BITS);
	if (type & ~decoded) {
		rec->sample.rest = in->at;
		rec->sample.rest_len = left(in);
		in->at = in->end;
	}
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
		return record_shape(rec->type)->count ? -EBADMSG : 0;
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
	r = decode_fields(in, shape, form_of(rec, in), layout, rec);
	if (rec->type == TALLY_RECORD_COMM)
		rec->comm.exec = rec->misc & TALLY_MISC_COMM_EXEC ? 1 : 0;
	return r;
}

int tally_record_decode(const struct tally_layout *layout, const void *bytes, size_t len,
			struct tally_record *out, size_t out_size)
{
	const unsigned char *at = bytes;
	bool swapped = layout->swapped;

	if (len < RECORD_HEADER)
		return -EAGAIN;
	struct tally_record rec;
	rec.type = load_u32(at, swapped);
	rec.misc = load_u16(at + 4, swapped);
	rec.size = load_u16(at + 6, swapped);
	rec.bytes = bytes;
	rec.id = (struct tally_sample_id){ .pid = -1, .tid = -1, .cpu = -1 };
	rec.swapped = swapped;
	if (rec.size < RECORD_HEADER)
		return -EBADMSG;
	if (len < rec.size)
		return -EAGAIN;
	size_t used = offsetof(struct tally_record, mmap) + record_shape(rec.type)->size;
	memset(&rec.mmap, 0, record_shape(rec.type)->size);
	struct input in = { at + RECORD_HEADER, at + rec.size, swapped };
	int r = rec.type == TALLY_RECORD_SAMPLE ? decode_sample(layout, &in, &rec)
						: decode_other(layout, &in, &rec);
	if (r < 0)
		return r;
	rec.leftover = (uint32_t)left(&in);
	if (used > out_size)
		used = out_size;
	memcpy(out, &rec, used);
	memset((char *)out + used, 0, out_size - used);
	return rec.size;
}
