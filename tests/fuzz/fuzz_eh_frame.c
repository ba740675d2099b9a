/* SPDX-License-Identifier: MIT */
/*
 * Unwind tables: the first byte tells whether they are .eh_frame or .debug_frame, the second how long an
 * index in front of them is, as .eh_frame_hdr. Entries are sorted, each look-up ends, rows of a function
 * ascend from its start, and rules name registers that there are.
 */
#include <string.h>

#include "fuzz.h"
#include "image/unwind-table.h"

#define ADDRESS 0x10000u /* of the tables; the index is 0x1000 before it */

/* As many as a run of a few milliseconds allows. */
#define LOOKUPS 256

static void check_rules(const struct unwind_rules *rules)
{
	must(rules->cfa.other < UNWIND_REGS && rules->ra < UNWIND_REGS);
	must(rules->count <= UNWIND_REGS);
	for (unsigned i = 0; i < rules->count; i++)
		must(rules->saved[i].reg < UNWIND_REGS && rules->saved[i].other < UNWIND_REGS &&
		     rules->saved[i].kind != RULE_BY_ABI);
}

static void check_table(struct unwind_table *t, size_t len)
{
	must(t->rows.count <= len);
	vec_each (&t->flats, flat) {
		must(flat->first + (uint64_t)flat->count <= t->rows.count);
		for (uint32_t i = 0; i < flat->count; i++) {
			const struct unwind_row *row = &t->rows.at[flat->first + i];
			must(i == 0 ? row->start == 0 : row[-1].start < row->start);
			must(row->rules < t->rules.count);
		}
	}
	vec_each (&t->rules, rules)
		check_rules(*rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table t = { 0 };
	struct cfi_section header = { .address = ADDRESS - 0x1000 };
	int error = 0;

	if (size < 2 || size > 1u << 16)
		return 0;
	struct unwind_part *part = &t.parts[data[0] & 1];
	part->section.debug_frame = data[0] & 1;
	header.bytes = data + 2;
	header.len = data[1] < size - 2 ? data[1] : size - 2;
	part->section.bytes = header.bytes + header.len;
	part->section.len = size - 2 - header.len;
	part->section.address = ADDRESS;
	must(unwind_table_index(part, &header) == 0);
	for (size_t i = 0; i < part->entries.count && i < LOOKUPS; i++) {
		const struct unwind_entry *e = &part->entries.at[i];
		must(i == 0 || e[-1].start <= e->start);
		for (unsigned k = 0; k < 4; k++)
			unwind_table_find(&t, e->start + 5 * k * k, &error);
	}
	must(error == 0);
	check_table(&t, part->section.len);
	unwind_table_done(&t);
	return 0;
}
