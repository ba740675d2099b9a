/* SPDX-License-Identifier: MIT */
/*
 * The record codec. An input is a layout (sample_type, read_format, and a byte with sample_id_all,
 * the byte order and the forms of branch stacks and registers) and records behind it. What is decoded lies within the record; what is then
 * encoded decodes to the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <tally/record.h>

#include "fuzz.h"

#define LAYOUT_BYTES 17

/* A pointer out of a decoded record, and the record that it must point into. */
static bool inside(const struct tally_record *rec, const void *at, uint64_t len)
{
	uint64_t offset = (uint64_t)((uintptr_t)at - (uintptr_t)rec->bytes);

	return offset >= 8 && offset <= rec->size && len <= rec->size - offset;
}

static void check_text(const struct tally_record *rec, const char *text, uint32_t len)
{
	must(inside(rec, text, (uint64_t)len + 1));
	must(strlen(text) == len);
}

/* What is borrowed is within the record, and there is none without it. */
static void check_bytes(const struct tally_record *rec, const void *at, uint64_t len)
{
	if (len)
		must(at && inside(rec, at, len));
}

static void check_words(const struct tally_record *rec, const void *at, uint64_t count)
{
	must(count <= 8192);
	check_bytes(rec, at, 8 * count);
}

static void check_counts(const struct tally_record *rec, const struct tally_record_counts *counts)
{
	struct tally_record_count one;

	must(counts->count <= 8192);
	for (uint64_t i = 0; i < counts->count; i++)
		must(tally_record_count(rec, i, &one));
	must(!tally_record_count(rec, counts->count, &one));
}

static void check_branches(const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	struct tally_branch branch;

	check_words(rec, s->branches, 3 * s->branch_count);
	if (s->branch_counters)
		check_words(rec, s->branch_counters, s->branch_count);
	for (uint64_t i = 0; i < s->branch_count; i++)
		must(tally_sample_branch(rec, i, &branch));
	must(!tally_sample_branch(rec, s->branch_count, &branch));
}

static void check_regs(const struct tally_record *rec, const struct tally_regs *regs)
{
	uint64_t value;

	for (unsigned bit = 0; bit < 66; bit++)
		must(tally_regs_value(rec, regs, bit, &value) ==
		     (bit < 64 && regs->abi && regs->mask >> bit & 1));
}

static void check_sample(const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	volatile uint64_t ip = 0;

	check_words(rec, s->chain, s->chain_len);
	for (uint64_t i = 0; i <= s->chain_len; i++)
		ip = tally_sample_ip(rec, i);
	(void)ip;
	check_bytes(rec, s->rest, s->rest_len);
	check_counts(rec, &s->counts);
	check_bytes(rec, s->raw, s->raw_len);
	check_branches(rec);
	check_regs(rec, &s->regs_user);
	check_regs(rec, &s->regs_intr);
	check_bytes(rec, s->stack, s->stack_len);
	check_bytes(rec, s->aux, s->aux_len);
	(void)tally_data_src_decode(s->data_src);
}

static void check_others(const struct tally_record *rec)
{
	struct tally_namespace one;

	switch (rec->type) {
	case TALLY_RECORD_READ:
		check_counts(rec, &rec->read.counts);
		break;
	case TALLY_RECORD_NAMESPACES:
		check_words(rec, rec->namespaces.entries, 2 * rec->namespaces.count);
		must(!tally_record_namespace(rec, rec->namespaces.count, &one));
		break;
	case TALLY_RECORD_KSYMBOL:
		check_text(rec, rec->ksymbol.name, rec->ksymbol.name_len);
		break;
	case TALLY_RECORD_CGROUP:
		check_text(rec, rec->cgroup.path, rec->cgroup.path_len);
		break;
	case TALLY_RECORD_TEXT_POKE:
		check_bytes(rec, rec->text_poke.bytes,
			    (uint64_t)rec->text_poke.old_len + rec->text_poke.new_len);
		break;
	case TALLY_RECORD_CALLCHAIN_DEFERRED:
		check_words(rec, rec->deferred.chain, rec->deferred.chain_len);
		break;
	}
}

static void check_record(const struct tally_record *rec)
{
	must(rec->leftover <= rec->size - 8u);
	if (rec->type == TALLY_RECORD_SAMPLE)
		check_sample(rec);
	if (rec->type == TALLY_RECORD_MMAP || rec->type == TALLY_RECORD_MMAP2) {
		check_text(rec, rec->mmap.filename, rec->mmap.filename_len);
		must(rec->mmap.build_id_size <= sizeof(rec->mmap.build_id));
	}
	if (rec->type == TALLY_RECORD_COMM)
		check_text(rec, rec->comm.comm, rec->comm.comm_len);
	check_others(rec);
}

/* The encoder's bytes decode to the record that they were made of, whatever was odd about it. */
static void check_round_trip(const struct tally_layout *layout, const struct tally_record *rec)
{
	static unsigned char once[65536], twice[65536];
	struct tally_record again;
	int n = tally_record_encode(layout, rec, once, sizeof(once));

	if (n < 0) {
		must(n == -EOPNOTSUPP || n == -ENOSPC || n == -EINVAL);
		return;
	}
	must(tally_record_decode(layout, once, (size_t)n, &again, sizeof(again)) == n);
	must(again.type == rec->type && again.id.has == rec->id.has && again.leftover == 0);
	must(tally_record_encode(layout, &again, twice, sizeof(twice)) == n);
	must(!memcmp(once, twice, (size_t)n));
}

/* What is printed is one line of printable characters, however short the room. */
static void check_print(const struct tally_layout *layout, const struct tally_record *rec)
{
	static char line[1 << 20];
	const struct tally_print_opts json = { sizeof(json), TALLY_PRINT_JSON, "aarch64" };
	char small[16];

	for (int as = 0; as < 2; as++) {
		size_t len = tally_record_print(layout, rec, as ? &json : NULL, line, sizeof(line));
		must(len < sizeof(line) && strlen(line) == len);
		for (size_t i = 0; i < len; i++)
			must(line[i] >= 0x20 && line[i] < 0x7f);
		must(tally_record_print(layout, rec, as ? &json : NULL, small, sizeof(small)) ==
		     len);
		must(!strncmp(line, small, sizeof(small) - 1));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_layout layout = { 0 };
	struct tally_record rec;
	int n;

	if (size < LAYOUT_BYTES)
		return 0;
	memcpy(&layout.sample_type, data, 8);
	memcpy(&layout.read_format, data + 8, 8);
	layout.sample_id_all = data[16] & 1;
	layout.swapped = data[16] >> 1 & 1;
	/* HW_INDEX and COUNTERS, and some registers, the highest among them. */
	layout.branch_sample_type = (data[16] >> 2 & 1ull) << 17 | (data[16] >> 3 & 1ull) << 19;
	layout.regs_user = data[16] >> 4 | (uint64_t)(data[16] >> 7) << 63;
	layout.regs_intr = (uint64_t)(data[16] >> 4) << 30;
	data += LAYOUT_BYTES;
	size -= LAYOUT_BYTES;
	while ((n = tally_record_decode(&layout, data, size, &rec, sizeof(rec))) > 0) {
		must((size_t)n <= size && n >= 8);
		(void)tally_record_id(&layout, data, size);
		check_record(&rec);
		check_round_trip(&layout, &rec);
		check_print(&layout, &rec);
		data += n;
		size -= (size_t)n;
	}
	must(n == -EAGAIN || n == -EBADMSG);
	return 0;
}
