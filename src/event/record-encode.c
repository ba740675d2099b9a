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

static void encode_u64(struct output *out, uint64_t value)
{
	unsigned char *to = claim(out, 8);

	if (to)
		store_u64(to, value, out->swapped);
}

/* Bytes as they are, and zeros until `used` before them and they make a multiple of 8. */
static void encode_bytes(struct output *out, const void *from, uint64_t len, uint64_t used)
{
	uint64_t padding = -(used + len) & 7;
	unsigned char *to = len > UINT16_MAX ? claim(out, UINT64_MAX) : claim(out, len + padding);

	if (!to)
		return;
	if (len)
		memcpy(to, from, len);
	memset(to + len, 0, padding);
}

/* `count` words out of the record's bytes, which may be in the other byte order. */
static void encode_words(struct output *out, const struct tally_record *rec, const void *from,
			 uint64_t count)
{
	unsigned char *to = claim(out, count > UINT16_MAX ? UINT64_MAX : 8 * count);

	for (uint64_t i = 0; to && i < count; i++)
		store_u64(to + 8 * i, load_u64((const unsigned char *)from + 8 * i, rec->swapped),
			  out->swapped);
}

typedef void encode_kind(struct output *out, const struct tally_record *rec,
			 const unsigned char *from);

static void encode_text(struct output *out, const struct tally_record *rec,
			const unsigned char *from)
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

static void encode_chain(struct output *out, const struct tally_record *rec,
			 const unsigned char *from)
{
	const void *chain;
	uint64_t count;

	memcpy(&chain, from, sizeof(chain));
	memcpy(&count, from + sizeof(chain), sizeof(count));
	encode_u64(out, count);
	encode_words(out, rec, chain, count);
}

static void encode_build_id(struct output *out, const struct tally_record *rec,
			    const unsigned char *from)
{
	encode_bytes(out, from, BUILD_ID_BYTES, 0);
}

static void encode_counts(struct output *out, const struct tally_record *rec,
			  const unsigned char *from)
{
	struct tally_record_counts counts;

	memcpy(&counts, from, sizeof(counts));
	bool group = counts.format & TALLY_READ_GROUP;
	uint64_t entries = counts.count > UINT16_MAX ? UINT16_MAX : counts.count;
	encode_words(out, rec, counts.block,
		     group + counts_times(counts.format) + entries * counts_entry(counts.format));
}

static void encode_namespaces(struct output *out, const struct tally_record *rec,
			      const unsigned char *from)
{
	const struct tally_record_namespaces *n = &rec->namespaces;

	encode_u64(out, n->count);
	encode_words(out, rec, n->entries, n->count > UINT16_MAX ? UINT16_MAX + 1u : 2 * n->count);
}

static void encode_poke(struct output *out, const struct tally_record *rec,
			const unsigned char *from)
{
	const struct tally_record_text_poke *poke = &rec->text_poke;
	unsigned char *to = claim(out, 4);

	if (!to)
		return;
	store_u16(to, poke->old_len, out->swapped);
	store_u16(to + 2, poke->new_len, out->swapped);
	encode_bytes(out, poke->bytes, (uint64_t)poke->old_len + poke->new_len, 4);
}

static void encode_raw(struct output *out, const struct tally_record *rec,
		       const unsigned char *from)
{
	uint64_t len = rec->sample.raw_len;
	unsigned char *to = claim(out, len > UINT16_MAX ? UINT64_MAX : 4);

	if (!to)
		return;
	store_u32(to, (uint32_t)len, out->swapped);
	encode_bytes(out, rec->sample.raw, len, 4);
}

/* The flags are a bit-field, which the other byte order has mirrored. */
static void encode_entries(struct output *out, const struct tally_record *rec)
{
	const unsigned char *from = rec->sample.branches;

	for (uint64_t i = 0; i < rec->sample.branch_count && !out->full;
	     i++, from += BRANCH_BYTES) {
		uint64_t flags = load_u64(from + 16, rec->swapped);
		if (out->swapped != (bool)rec->swapped)
			flags = record_turn_branch_flags(flags, rec->swapped);
		encode_words(out, rec, from, 2);
		encode_u64(out, flags);
	}
}

static void encode_branches(struct output *out, const struct tally_record *rec,
			    const unsigned char *from)
{
	const struct tally_record_sample *s = &rec->sample;

	encode_u64(out, s->branch_count);
	if (s->branch_parts & BRANCHES_HW_INDEX)
		encode_u64(out, s->branch_hw_idx);
	encode_entries(out, rec);
	if (s->branch_counters)
		encode_words(out, rec, s->branch_counters, s->branch_count);
}

static void encode_regs(struct output *out, const struct tally_record *rec,
			const unsigned char *from)
{
	struct tally_regs regs;

	memcpy(&regs, from, sizeof(regs));
	encode_u64(out, regs.abi);
	if (regs.abi)
		encode_words(out, rec, regs.values, (uint64_t)__builtin_popcountll(regs.mask));
}

static void encode_stack(struct output *out, const struct tally_record *rec,
			 const unsigned char *from)
{
	const struct tally_record_sample *s = &rec->sample;

	encode_u64(out, s->stack_len);
	if (!s->stack_len)
		return;
	encode_bytes(out, s->stack, s->stack_len, -s->stack_len & 7);
	encode_u64(out, s->stack_dyn_size);
}

static void encode_aux_data(struct output *out, const struct tally_record *rec,
			    const unsigned char *from)
{
	encode_u64(out, rec->sample.aux_len);
	encode_bytes(out, rec->sample.aux, rec->sample.aux_len, 0);
}

static encode_kind *const encode_kinds[KINDS] = {
	[BUILD_ID] = encode_build_id,
	[TEXT] = encode_text,
	[CHAIN] = encode_chain,
	[COUNTS] = encode_counts,
	[NAMESPACES] = encode_namespaces,
	[POKE] = encode_poke,
	[RAW] = encode_raw,
	[BRANCHES] = encode_branches,
	[REGS] = encode_regs,
	[STACK] = encode_stack,
	[AUX_DATA] = encode_aux_data,
};

/* A field of 8 bytes. */
static void encode_short(struct output *out, unsigned kind, const unsigned char *from)
{
	unsigned char *to = claim(out, 8);

	if (!to)
		return;
	switch (kind) {
	case WORD:
		store_u64(to, load_u64(from, false), out->swapped);
		break;
	case PAIR:
	case CPU:
		store_u32(to, load_u32(from, false), out->swapped);
		store_u32(to + 4, kind == PAIR ? load_u32(from + 4, false) : 0, out->swapped);
		break;
	case W422:
		store_u32(to, load_u32(from, false), out->swapped);
		store_u16(to + 4, load_u16(from + 4, false), out->swapped);
		store_u16(to + 6, load_u16(from + 6, false), out->swapped);
		break;
	case W224:
		store_u16(to, load_u16(from, false), out->swapped);
		store_u16(to + 2, load_u16(from + 2, false), out->swapped);
		store_u32(to + 4, load_u32(from + 4, false), out->swapped);
		break;
	default:
		memcpy(to, from, 8);
	}
}

static void encode_fields(struct output *out, const struct shape *shape, uint64_t present,
			  const struct tally_record *rec)
{
	for (size_t i = 0; i < shape->count; i++) {
		const struct field *f = &shape->fields[i];
		const unsigned char *from = (const unsigned char *)rec + f->at;

		if (!(f->when & present))
			continue;
		if (f->kind > BYTES)
			encode_kinds[f->kind](out, rec, from);
		else
			encode_short(out, f->kind, from);
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

/* Whether all that the layout asks for can be written: a record without fields is not known. */
static bool can_encode(const struct tally_layout *layout, const struct tally_record *rec)
{
	bool counts = rec->type == TALLY_RECORD_READ ||
		      (rec->type == TALLY_RECORD_SAMPLE && layout->sample_type & TALLY_SAMPLE_READ);

	if (counts && layout->read_format & ~KNOWN_READ_FORMAT)
		return false;
	if (rec->type == TALLY_RECORD_SAMPLE && layout->sample_type & ~KNOWN_SAMPLE_BITS)
		return false;
	return record_shape(rec->type)->fields;
}

/* One count stands alone but in a group. */
static bool counts_fit(const struct tally_record_counts *counts, uint64_t format)
{
	return counts->format == format && counts->block &&
	       (format & TALLY_READ_GROUP || counts->count == 1);
}

static bool regs_fit(const struct tally_regs *regs, uint64_t mask)
{
	return !regs->abi || (regs->mask == mask && (regs->values || !mask));
}

/* Whether what the record holds is what the layout says: a reader knows the layout alone. */
static bool fits_layout(const struct tally_layout *layout, const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	uint64_t type = layout->sample_type;

	if (rec->type == TALLY_RECORD_MMAP2)
		return rec->mmap.build_id_size <= BUILD_ID_LONGEST;
	if (rec->type == TALLY_RECORD_READ)
		return counts_fit(&rec->read.counts, layout->read_format);
	if (rec->type != TALLY_RECORD_SAMPLE)
		return true;
	if (type & TALLY_SAMPLE_READ && !counts_fit(&s->counts, layout->read_format))
		return false;
	if (type & TALLY_SAMPLE_STACK_USER && s->stack_len % 8)
		return false;
	return (!(type & TALLY_SAMPLE_REGS_USER) || regs_fit(&s->regs_user, layout->regs_user)) &&
	       (!(type & TALLY_SAMPLE_REGS_INTR) || regs_fit(&s->regs_intr, layout->regs_intr));
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
	if (!fits_layout(layout, rec))
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
