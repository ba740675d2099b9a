/* SPDX-License-Identifier: MIT */
/* Encoding: struct tally_record to the bytes that the kernel would have written. */
#include <errno.h>

#include "base/bytes.h"
#include "event/record-table.h"

/* Where a record is being written. What does not fit is not written; `full` remembers that. */
struct output {
	unsigned char *at;
	size_t left;
	bool swapped, full;
};

/* The next `bytes` of the output, NULL when they do not fit. */
static unsigned char *claim(struct output *out, uint64_t bytes)
{
	unsigned char *at = out->at;

	if (out->full || bytes > out->left) {
		out->full = true;
		return NULL;
	}
	out->at += bytes;
	out->left -= bytes;
	return at;
}

static void encode_text(struct output *out, const unsigned char *from)
{
	const char *text;
	uint32_t len;

	memcpy(&text, from, sizeof(text));
	memcpy(&len, from + sizeof(text), sizeof(len));
	size_t padded = align_up((size_t)len + 1, 8);
	unsigned char *to = claim(out, padded);
	if (!to)
		return;
	if (len)
		memcpy(to, text, len);
	memset(to + len, 0, padded - len);
}

static void encode_chain(struct output *out, const struct tally_record *rec)
{
	uint64_t count = rec->sample.chain_len;
	unsigned char *to = claim(out, 8);

	if (to)
		store_u64(to, count, out->swapped);
	to = claim(out, count > UINT16_MAX ? UINT64_MAX : 8 * count);
	for (uint64_t i = 0; to && i < count; i++)
		store_u64(to + 8 * i, tally_sample_ip(rec, i), out->swapped);
}

static void encode_word(struct output *out, const struct field *f, const unsigned char *from)
{
	unsigned char *to = claim(out, 8);

	if (!to)
		return;
	if (f->kind == WORD) {
		store_u64(to, load_u64(from, false), out->swapped);
		return;
	}
	store_u32(to, load_u32(from, false), out->swapped);
	store_u32(to + 4, f->kind == PAIR ? load_u32(from + 4, false) : 0, out->swapped);
}

static void encode_fields(struct output *out, const struct shape *shape, uint64_t present,
			  const struct tally_record *rec)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct field *f = &shape->fields[i];
		const unsigned char *from = (const unsigned char *)rec + f->at;

		if (!(f->when & present))
			continue;
		if (f->kind == TEXT) {
			encode_text(out, from);
		} else if (f->kind == CHAIN) {
			encode_chain(out, rec);
		} else if (f->kind == BUILD_ID) {
			unsigned char *to = claim(out, BUILD_ID_BYTES);
			if (to)
				memcpy(to, from, BUILD_ID_BYTES);
		} else {
			encode_word(out, f, from);
		}
	}
}

/* The header's misc, with the bits that the fields imply. */
static uint16_t misc_of(const struct tally_record *rec)
{
	uint16_t misc = rec->misc;

	if (rec->type == TALLY_RECORD_COMM && rec->comm.exec)
		misc |= TALLY_MISC_COMM_EXEC;
	if (rec->type == TALLY_RECORD_MMAP2 && rec->mmap.build_id_size)
		misc |= TALLY_MISC_MMAP_BUILD_ID;
	return misc;
}

static uint64_t form_of(const struct tally_record *rec)
{
	return rec->type == TALLY_RECORD_MMAP2 && rec->mmap.build_id_size ? FORM_BUILD_ID
									  : FORM_INODE;
}

/* Whether all that the layout asks for can be written. */
static bool can_encode(const struct tally_layout *layout, const struct tally_record *rec)
{
	if (rec->type == TALLY_RECORD_SAMPLE)
		return !(layout->sample_type & ~(DECODED_SAMPLE_BITS & ~TALLY_SAMPLE_READ));
	return record_shape(rec->type)->count > 0;
}

int tally_record_encode(const struct tally_layout *layout, const struct tally_record *rec,
			void *bytes, size_t room)
{
	const struct shape *shape = record_shape(rec->type);
	unsigned char *start = bytes;
	bool sample = rec->type == TALLY_RECORD_SAMPLE;

	if (!can_encode(layout, rec))
		return -EOPNOTSUPP;
	uint16_t misc = misc_of(rec);
	if (rec->type == TALLY_RECORD_MMAP2 && rec->mmap.build_id_size > BUILD_ID_LONGEST)
		return -EINVAL;
	struct output out = { start, room < UINT16_MAX ? room : UINT16_MAX, layout->swapped,
			      false };
	claim(&out, RECORD_HEADER);
	encode_fields(&out, shape, sample ? layout->sample_type : form_of(rec), rec);
	if (!sample && layout->sample_id_all)
		encode_fields(&out, &record_trailer, layout->sample_type, rec);
	if (out.full)
		return -ENOSPC;
	store_u32(start, rec->type, out.swapped);
	store_u16(start + 4, misc, out.swapped);
	store_u16(start + 6, (uint16_t)(out.at - start), out.swapped);
	return (int)(out.at - start);
}
