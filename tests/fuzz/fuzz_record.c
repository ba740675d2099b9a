/* SPDX-License-Identifier: MIT */
/*
 * The record codec. An input is a layout (sample_type, read_format, and a byte with sample_id_all
 * and the byte order) and records behind it. What is decoded lies within the record; what is then
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

static void check_sample(const struct tally_record *rec)
{
	volatile uint64_t ip = 0;

	if (rec->sample.chain)
		must(inside(rec, rec->sample.chain, 8 * rec->sample.chain_len));
	else
		must(rec->sample.chain_len == 0);
	for (uint64_t i = 0; i <= rec->sample.chain_len; i++)
		ip = tally_sample_ip(rec, i);
	(void)ip;
	if (rec->sample.rest)
		must(inside(rec, rec->sample.rest, rec->sample.rest_len));
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
}

/* The encoder's bytes decode to the record that they were made of, whatever was odd about it. */
static void check_round_trip(const struct tally_layout *layout, const struct tally_record *rec)
{
	static unsigned char once[65536], twice[65536];
	struct tally_record again;
	int n = tally_record_encode(layout, rec, once, sizeof(once));

	if (n < 0) {
		must(n == -EOPNOTSUPP || n == -ENOSPC);
		return;
	}
	must(tally_record_decode(layout, once, (size_t)n, &again, sizeof(again)) == n);
	must(again.type == rec->type && again.id.has == rec->id.has && again.leftover == 0);
	must(tally_record_encode(layout, &again, twice, sizeof(twice)) == n);
	must(!memcmp(once, twice, (size_t)n));
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
	data += LAYOUT_BYTES;
	size -= LAYOUT_BYTES;
	while ((n = tally_record_decode(&layout, data, size, &rec, sizeof(rec))) > 0) {
		must((size_t)n <= size && n >= 8);
		(void)tally_record_id(&layout, data, size);
		check_record(&rec);
		check_round_trip(&layout, &rec);
		data += n;
		size -= (size_t)n;
	}
	must(n == -EAGAIN || n == -EBADMSG);
	return 0;
}
