/* SPDX-License-Identifier: MIT */
/*
 * The reader of line tables. The first byte tells byte order and size of addresses, the rest is
 * .debug_line, and the texts that it may refer to. Sequences are sorted and hold their rows, and
 * every row is found at its own address.
 */
#include <string.h>

#include "fuzz.h"
#include "image/line-table.h"

/* In the cost of checks lies the limit to so many. */
#define CHECKED 256

static void check_sequence(const struct line_table *t, const struct line_sequence *s)
{
	must(s->low && s->low < s->high && s->count);
	must(s->first + s->count <= t->rows.count);
	for (size_t i = 0; i < s->count && i < CHECKED; i++) {
		const struct line_row *row = &t->rows.at[s->first + i];
		must(i == 0 || row[-1].at <= row->at);
		const struct line_file *file = line_table_file(t, row->file);
		must(!file || strlen(file->name) < SIZE_MAX);
	}
}

static void check_table(const struct line_table *t)
{
	for (size_t i = 0; i < t->sequences.count && i < CHECKED; i++) {
		const struct line_sequence *s = &t->sequences.at[i];
		check_sequence(t, s);
		must(i == 0 || s[-1].low <= s->low);
		bool last = i + 1 == t->sequences.count || s[1].low > s->low;
		const struct line_row *row = line_table_find(t, s->low);
		must(!last || (row && row->at == 0));
		must(!line_table_find(t, s->low - 1) || i > 0);
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
