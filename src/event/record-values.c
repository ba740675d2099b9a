/* SPDX-License-Identifier: MIT */
/*
 * What stands behind the borrowed pointers of a decoded record, one value at a time: in the writer's
 * byte order and unaligned there, in ours here.
 */
#include "base/bytes.h"
#include "event/record-table.h"

static uint64_t word_at(const struct tally_record *rec, const void *words, uint64_t i)
{
	return load_u64((const unsigned char *)words + 8 * i, rec->swapped);
}

uint64_t tally_sample_ip(const struct tally_record *rec, uint64_t i)
{
	if (rec->type == TALLY_RECORD_SAMPLE && i < rec->sample.chain_len)
		return word_at(rec, rec->sample.chain, i);
	if (rec->type == TALLY_RECORD_CALLCHAIN_DEFERRED && i < rec->deferred.chain_len)
		return word_at(rec, rec->deferred.chain, i);
	return 0;
}

/* The counts of a record, NULL when it has none. */
static const struct tally_record_counts *counts_of(const struct tally_record *rec)
{
	if (rec->type == TALLY_RECORD_SAMPLE)
		return &rec->sample.counts;
	return rec->type == TALLY_RECORD_READ ? &rec->read.counts : NULL;
}

/* One count: value, times, id, lost. A group: nr, times, and of each member value, id, lost. */
bool tally_record_count(const struct tally_record *rec, uint64_t i, struct tally_record_count *out)
{
	const struct tally_record_counts *c = counts_of(rec);

	if (!c || i >= c->count)
		return false;
	bool group = c->format & TALLY_READ_GROUP;
	uint64_t times = counts_times(c->format);
	uint64_t at = group ? 1 + times + i * counts_entry(c->format) : 0;
	*out = (struct tally_record_count){ .value = word_at(rec, c->block, at++) };
	if (!group)
		at += times;
	if (c->format & TALLY_READ_ID)
		out->id = word_at(rec, c->block, at++);
	if (c->format & TALLY_READ_LOST)
		out->lost = word_at(rec, c->block, at);
	return true;
}

bool tally_record_namespace(const struct tally_record *rec, uint64_t i, struct tally_namespace *out)
{
	if (rec->type != TALLY_RECORD_NAMESPACES || i >= rec->namespaces.count)
		return false;
	out->dev = word_at(rec, rec->namespaces.entries, 2 * i);
	out->ino = word_at(rec, rec->namespaces.entries, 2 * i + 1);
	return true;
}

/*
 * The next `width` bits of a C bit-field of 64 bits, of which `*at` are gone. A big-endian compiler
 * allots from the most significant bit on.
 */
static uint64_t next_bits(uint64_t flags, bool mirrored, unsigned *at, unsigned width)
{
	unsigned from = mirrored ? 64 - *at - width : *at;

	*at += width;
	return flags >> from & ((1ull << width) - 1);
}

/* Widths of the fields of struct perf_branch_entry's flags, the last being what is not used yet. */
static const uint8_t branch_widths[] = { 1, 1, 1, 1, 16, 4, 2, 4, 3, 31 };

uint64_t record_turn_branch_flags(uint64_t flags, bool mirrored)
{
	uint64_t turned = 0;
	unsigned at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(branch_widths); i++) {
		unsigned to = mirrored ? at : 64 - at - branch_widths[i];
		turned |= next_bits(flags, mirrored, &at, branch_widths[i]) << to;
	}
	return turned;
}

/* struct perf_branch_entry of include/uapi/linux/perf_event.h, whose bits have no big-endian form. */
bool tally_sample_branch(const struct tally_record *rec, uint64_t i, struct tally_branch *out)
{
	const struct tally_record_sample *s = &rec->sample;
	unsigned at = 0;

	if (rec->type != TALLY_RECORD_SAMPLE || i >= s->branch_count)
		return false;
	uint64_t flags = word_at(rec, s->branches, 3 * i + 2);
	bool mirrored = rec->swapped;
	*out = (struct tally_branch){
		.from = word_at(rec, s->branches, 3 * i),
		.to = word_at(rec, s->branches, 3 * i + 1),
		.counters = s->branch_counters ? word_at(rec, s->branch_counters, i) : 0,
	};
	for (unsigned bit = 0; bit < 4; bit++)
		out->flags |= (uint32_t)next_bits(flags, mirrored, &at, 1) << bit;
	out->cycles = (uint16_t)next_bits(flags, mirrored, &at, 16);
	out->type = (uint8_t)next_bits(flags, mirrored, &at, 4);
	out->spec = (uint8_t)next_bits(flags, mirrored, &at, 2);
	out->new_type = (uint8_t)next_bits(flags, mirrored, &at, 4);
	out->priv = (uint8_t)next_bits(flags, mirrored, &at, 3);
	return true;
}

bool tally_regs_value(const struct tally_record *rec, const struct tally_regs *regs, unsigned bit,
		      uint64_t *value)
{
	if (!regs->values || bit > 63 || !(regs->mask >> bit & 1))
		return false;
	uint64_t before = regs->mask & ((1ull << bit) - 1);
	*value = word_at(rec, regs->values, (uint64_t)__builtin_popcountll(before));
	return true;
}

/*
 * union perf_mem_data_src has a form for each byte order, so that the numbers agree. SNOOPX begins
 * at bit 38; headers before 5.10 had its shift wrong.
 */
struct tally_data_src tally_data_src_decode(uint64_t data_src)
{
	struct tally_data_src d;
	unsigned at = 0;

	d.op = (uint32_t)next_bits(data_src, false, &at, 5);
	d.level = (uint32_t)next_bits(data_src, false, &at, 14);
	d.snoop = (uint32_t)next_bits(data_src, false, &at, 5);
	d.lock = (uint32_t)next_bits(data_src, false, &at, 2);
	d.dtlb = (uint32_t)next_bits(data_src, false, &at, 7);
	d.level_no = (uint32_t)next_bits(data_src, false, &at, 4);
	d.remote = (uint32_t)next_bits(data_src, false, &at, 1);
	d.snoopx = (uint32_t)next_bits(data_src, false, &at, 2);
	d.block = (uint32_t)next_bits(data_src, false, &at, 3);
	d.hops = (uint32_t)next_bits(data_src, false, &at, 3);
	d.region = (uint32_t)next_bits(data_src, false, &at, 5);
	d.rest = (uint32_t)next_bits(data_src, false, &at, 13);
	return d;
}
