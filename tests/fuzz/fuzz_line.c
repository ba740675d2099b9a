/* SPDX-License-Identifier: MIT */
/*
 * The reader of line tables. The first byte tells byte order and size of addresses, the rest is
 * .debug_line, and the texts that it may refer to. Sequences are sorted and hold what they should, and
 * what is found in them rises.
 */
#include <string.h>

#include "fuzz.h"
#include "image/line-table.h"

/* In the cost of checks lies the limit to so many. */
#define CHECKED 256

static void check_marks(const struct line_table *t, const struct line_sequence *q)
{
	must(q->first + q->count <= t->marks.count);
	for (size_t i = 0; i < q->count && i < CHECKED; i++) {
		const struct line_mark *mark = &t->marks.at[q->first + i];
		must(i == 0 || mark[-1].at <= mark->at);
		must(i > 0 || q->marks_all || mark->at == 0);
		must(mark->program <= cursor_left(&t->program));
	}
}

/* What is found in a sequence: the row with the last address up to that one. */
static void check_found(const struct line_table *t, const struct line_sequence *q)
{
	uint64_t size = q->high - q->low, step = size / CHECKED + 1;
	uint32_t before = 0;

	for (uint64_t distance = 0; distance < size; distance += step) {
		struct line_row row;
		must(line_table_find(t, q->low + distance, &row));
		must(row.at <= distance && row.at >= before);
		const struct line_file *file = line_table_file(t, row.file);
		must(!file || strlen(file->name) < SIZE_MAX);
		before = row.at;
	}
}

static void check_table(const struct line_table *t)
{
	for (size_t i = 0; i < t->sequences.count && i < CHECKED; i++) {
		const struct line_sequence *q = &t->sequences.at[i];
		struct line_row row;
		must(q->low && q->low < q->high && q->count);
		must(i == 0 || q[-1].low <= q->low);
		check_marks(t, q);
		if (i + 1 == t->sequences.count || q[1].low >= q->high)
			check_found(t, q);
		must(i > 0 || !line_table_find(t, q->low - 1, &row));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_file file = { 0 };
	struct dwarf_unit unit = { .file = &file };
	struct line_table table = { 0 };

	if (!size)
		return 0;
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarf_section_borrow(&file.sections[i], data + 1, size - 1, data[0] & 1);
	unit.encoding = (struct dwarf_encoding){ 5, data[0] & 2 ? 4 : 8, false };
	unit.str_offsets_base = 8;
	if (dwarf_file_list(&file) == 0 && line_table_read(&table, &unit, 0) == 0)
		check_table(&table);
	line_table_done(&table);
	dwarf_file_done(&file);
	return 0;
}
