/* SPDX-License-Identifier: MIT */
/* line-table: programs by hand, by DWARF 5, 6.2, and DWARF 2, 6.2. */
#include "base/buf.h"
#include "image/line-table.h"
#include "tap.h"

#define LINE_BASE   (-3)
#define LINE_RANGE  12
#define OPCODE_BASE 13

static struct buf section;
static struct dwarf_file file;
static struct dwarf_unit unit;
static struct line_table table;
static bool swapped;

static void u8(int v)
{
	uint8_t byte = (uint8_t)v;

	buf_add(&section, &byte, 1);
}

static void u16(uint16_t v)
{
	store_u16(&v, v, swapped);
	buf_add(&section, &v, sizeof(v));
}

static void u32(uint32_t v)
{
	store_u32(&v, v, swapped);
	buf_add(&section, &v, sizeof(v));
}

static void u64(uint64_t v)
{
	store_u64(&v, v, swapped);
	buf_add(&section, &v, sizeof(v));
}

static void text(const char *v)
{
	buf_add(&section, v, strlen(v) + 1);
}

/* How many operands the standard opcodes have, from 1 on. */
static void operands(void)
{
	static const uint8_t counts[OPCODE_BASE - 1] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

	buf_add(&section, counts, sizeof(counts));
}

static size_t length_at, header_at;

/* Version 2: "/inc" and "a.c" of the compiler's folder, "b.h" of the other. */
static void begin_old(void)
{
	length_at = section.len;
	u32(0);
	u16(2);
	header_at = section.len;
	u32(0);
	u8(1); /* the shortest instruction */
	u8(1);
	u8(LINE_BASE);
	u8(LINE_RANGE);
	u8(OPCODE_BASE);
	operands();
	text("/inc");
	text("");
	text("a.c"), u8(0), u8(0), u8(0);
	text("b.h"), u8(1), u8(0), u8(0);
	u8(0);
}

/* Version 5: the same, with the texts in it, and files from 0 on. */
static void begin_new(void)
{
	length_at = section.len;
	u32(0);
	u16(5);
	u8(8), u8(0); /* addresses, selectors */
	header_at = section.len;
	u32(0);
	u8(1), u8(1), u8(1);
	u8(LINE_BASE), u8(LINE_RANGE), u8(OPCODE_BASE);
	operands();
	u8(1), u8(DW_LNCT_path), u8(DW_FORM_string);
	u8(2), text("/src"), text("/inc");
	u8(2), u8(DW_LNCT_path), u8(DW_FORM_string), u8(DW_LNCT_directory_index), u8(DW_FORM_udata);
	u8(2), text("a.c"), u8(0), text("b.h"), u8(1);
}

static void end_header(void)
{
	store_u32(section.at + header_at, (uint32_t)(section.len - header_at - 4), swapped);
}

static void set_address(uint64_t address)
{
	u8(0), u8(9), u8(DW_LNE_set_address), u64(address);
}

static void end_sequence(void)
{
	u8(0), u8(1), u8(DW_LNE_end_sequence);
}

/* The special opcode that moves address and line by so much, and makes a row. */
static void special(int address, int line)
{
	u8((line - LINE_BASE) + LINE_RANGE * address + OPCODE_BASE);
}

static void end_table(void)
{
	store_u32(section.at + length_at, (uint32_t)(section.len - length_at - 4), swapped);
}

static void begin(void)
{
	section = (struct buf){ 0 };
	file = (struct dwarf_file){ 0 };
	table = (struct line_table){ 0 };
	unit = (struct dwarf_unit){ .file = &file, .encoding = { 5, 8, false } };
}

static void read_table(void)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		dwarf_section_borrow(&file.sections[i], (const uint8_t *)section.at, section.len,
				     swapped);
	check_int(dwarf_file_list(&file), 0);
	check_int(line_table_read(&table, &unit, 0), 0);
}

static void done(void)
{
	line_table_done(&table);
	dwarf_file_done(&file);
	buf_done(&section);
}

/* "file:line:column" of an address. */
static const char *at(uint64_t address)
{
	static char text[64];
	struct line_row row;

	if (!line_table_find(&table, address, &row))
		return "-";
	const struct line_file *of = line_table_file(&table, row.file);
	snprintf(text, sizeof(text), "%s:%u:%u", of ? of->name : "?", row.line, row.column);
	return text;
}

/* The program of the next tests: rows at 0x1000 (line 10), 0x1004 (12), 0x1010 (9); end 0x1020. */
static void put_program(int first_file)
{
	u8(DW_LNS_set_file), u8(first_file);
	set_address(0x1000);
	u8(DW_LNS_advance_line), u8(9);
	u8(DW_LNS_set_column), u8(5);
	u8(DW_LNS_copy);
	special(4, 2);
	u8(DW_LNS_set_file), u8(first_file + 1);
	special(12, -3);
	u8(DW_LNS_advance_pc), u8(0x10);
	end_sequence();
}

static void check_program(void)
{
	check_str(at(0xfff), "-");
	check_str(at(0x1000), "a.c:10:5");
	check_str(at(0x1003), "a.c:10:5");
	check_str(at(0x1004), "a.c:12:5");
	check_str(at(0x1010), "b.h:9:5");
	check_str(at(0x101f), "b.h:9:5");
	check_str(at(0x1020), "-");
}

static void versions_2_and_5(void)
{
	for (int order = 0; order < 2; order++) {
		swapped = order;
		begin();
		begin_old(), end_header(), put_program(1), end_table();
		read_table();
		check_program();
		check_str(table.folders.at[table.files.at[2].folder], "/inc");
		done();

		begin();
		begin_new(), end_header(), put_program(0), end_table();
		read_table();
		check_program();
		check_str(table.folders.at[table.files.at[0].folder], "/src");
		done();
	}
	swapped = false;
}

static void of_rows_with_one_address_the_last_holds(void)
{
	begin();
	begin_old(), end_header();
	set_address(0x1000);
	special(0, 4), special(0, 3), special(4, 1);
	u8(DW_LNS_advance_pc), u8(4);
	end_sequence(), end_table();
	read_table();
	check_str(at(0x1000), "a.c:8:0");
	check_str(at(0x1004), "a.c:9:0");
	done();
}

static void dropped_code_and_open_ends_are_left_out(void)
{
	begin();
	begin_old(), end_header();
	set_address(0), special(0, 1), special(8, 1), end_sequence();
	set_address(UINT64_MAX), special(0, 1), special(8, 1), end_sequence();
	set_address(0x2000), special(0, 1), u8(DW_LNS_advance_pc), u8(8), end_sequence();
	set_address(0x3000), special(0, 1), special(8, 1); /* no end */
	end_table();
	read_table();
	check_u64(table.sequences.count, 1);
	check_str(at(0x4), "-");
	check_str(at(0x2004), "a.c:2:0");
	check_str(at(0x3000), "-");
	done();
}

static void unknown_opcodes_are_passed_over(void)
{
	begin();
	begin_old(), end_header();
	set_address(0x1000);
	u8(0), u8(5), u8(0x80), u32(0xdeadbeef); /* a vendor's */
	u8(12), u8(0x85), u8(0x01);              /* set_isa, whose operand has two bytes */
	u8(DW_LNS_negate_stmt), u8(DW_LNS_set_prologue_end);
	special(0, 2), u8(DW_LNS_const_add_pc), u8(DW_LNS_fixed_advance_pc), u16(3);
	end_sequence(), end_table();
	read_table();
	check_str(at(0x1000), "a.c:3:0");
	/* const_add_pc moves as the special opcode 255 does: (255 - 13) / 12. */
	check_str(at(0x1000 + 20 + 2), "a.c:3:0");
	check_str(at(0x1000 + 20 + 3), "-");
	done();
}

/* ---- programs of many rows ---- */

#define ROWS 700

static struct expected {
	uint64_t address;
	uint32_t line, column, file;
} rows[ROWS];

static uint32_t seed;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % sides;
}

static void uleb(uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		u8((int)(v & 0x7f) | 0x80);
	u8((int)v);
}

static void sleb(int64_t v)
{
	for (; v < -0x40 || v > 0x3f; v >>= 7)
		u8((int)(v & 0x7f) | 0x80);
	u8((int)(v & 0x7f));
}

/* One row behind `was`, by opcodes that the dice choose. */
static struct expected put_row(struct expected was, bool may_stay)
{
	struct expected now = was;

	if (dice(3) == 0)
		now.column = dice(2) ? dice(120) : dice(1000), u8(DW_LNS_set_column),
		uleb(now.column);
	if (dice(5) == 0)
		now.file = 1 + dice(2), u8(DW_LNS_set_file), uleb(now.file);
	if (dice(4) == 0)
		u8(DW_LNS_negate_stmt);
	if (dice(9) == 0)
		u8(0), u8(2), u8(4), u8(1); /* a discriminator */
	if (dice(3) == 0) {
		int32_t by = (int32_t)dice(2) ? (int32_t)dice(120) - 50 : (int32_t)dice(9000) - 100;
		now.line += (uint32_t)by;
		u8(DW_LNS_advance_line), sleb(by);
	}
	int steps = (int)dice(16) + !may_stay, line = (int)dice(12) + LINE_BASE;
	if (dice(2)) {
		special(steps, line);
		now.line += (uint32_t)line;
	} else {
		u8(DW_LNS_advance_pc), uleb((uint64_t)steps), u8(DW_LNS_copy);
	}
	now.address += (uint64_t)steps;
	return now;
}

static const char *expected_at(uint64_t address, int count)
{
	static char out[64];
	const struct expected *best = NULL;

	for (int i = 0; i < count; i++)
		if (rows[i].address <= address && (!best || rows[i].address >= best->address))
			best = &rows[i];
	if (!best)
		return "-";
	snprintf(out, sizeof(out), "%s:%u:%u", best->file == 1 ? "a.c" : "b.h", best->line,
		 best->column);
	return out;
}

/* In any order, so that nothing is left from the row before. */
static void check_rows(int count, uint64_t low, uint64_t high)
{
	for (uint64_t i = 0, size = high - low; i < size; i++) {
		uint64_t address = low + i * 1000003 % size;
		check_str(at(address), expected_at(address, count));
	}
	check_str(at(high), "-");
}

static void rows_are_found_from_marks_on(void)
{
	for (uint32_t round = 0; round < 20; round++) {
		struct expected now = { .address = 0x1000, .line = 1, .file = 1 };
		seed = round;
		begin(), begin_old(), end_header();
		set_address(now.address);
		for (int i = 0; i < ROWS; i++)
			rows[i] = now = put_row(now, true);
		u8(DW_LNS_advance_pc), uleb(7), end_sequence(), end_table();
		read_table();
		check_u64(table.sequences.count, 1);
		check(table.marks.count && table.marks.count < ROWS / 16);
		check(!table.sequences.at[0].marks_all);
		check_rows(ROWS, rows[0].address, now.address + 7);
		done();
	}
}

/* The manual forbids that. */
static void rows_that_go_back_are_found(void)
{
	begin(), begin_old(), end_header();
	seed = 1;
	set_address(0x1000);
	struct expected now = { .address = 0x1000, .line = 1, .file = 1 };
	rows[0] = now = put_row(now, false);
	uint64_t low = now.address, high = 0;
	for (int i = 1; i < ROWS; i++) {
		/* Pieces of 100 rows in the wrong order, and each with its own addresses. */
		if (i % 100 == 0) {
			now.address = low + 0x10000 - (uint64_t)i * 40;
			set_address(now.address);
		}
		rows[i] = now = put_row(now, false);
		high = now.address > high ? now.address : high;
	}
	set_address(high + 9), end_sequence(), end_table();
	read_table();
	check_u64(table.sequences.count, 1);
	check(table.sequences.at[0].marks_all);
	check_rows(ROWS, low, high + 9);
	done();
}

/* As many bytes without a row as would make each look-up slow. */
static void long_ways_are_gone_once(void)
{
	for (int where = 0; where < 3; where++) {
		begin(), begin_old(), end_header();
		seed = 2;
		set_address(0x1000);
		struct expected now = { .address = 0x1000, .line = 1, .file = 1 };
		for (int i = 0; i < 90; i++) {
			if (i == 45 * where)
				for (int k = 0; k < 5000; k++)
					u8(DW_LNS_negate_stmt);
			rows[i] = now = put_row(now, true);
		}
		if (where == 2)
			for (int k = 0; k < 5000; k++)
				u8(DW_LNS_negate_stmt);
		u8(DW_LNS_advance_pc), uleb(3), end_sequence(), end_table();
		read_table();
		/* Before the first row it is never gone again. */
		check(table.sequences.count == 1 && table.sequences.at[0].marks_all == (where > 0));
		check_rows(90, rows[0].address, now.address + 3);
		done();
	}
}

static void what_is_cut_short_keeps_what_came_before(void)
{
	begin();
	begin_new(), end_header(), put_program(0);
	size_t whole = section.len;
	set_address(0x5000), special(0, 1), u8(DW_LNS_advance_pc), u8(8), end_sequence(),
		end_table();
	size_t len = section.len;
	for (size_t cut = 0; cut < len; cut++) {
		table = (struct line_table){ 0 };
		file = (struct dwarf_file){ 0 };
		store_u32(section.at, (uint32_t)(cut < 4 ? 0 : cut - 4), false);
		section.len = cut;
		read_table();
		check(cut < whole || table.sequences.count == 1);
		line_table_done(&table);
		dwarf_file_done(&file);
	}
	buf_done(&section);
}

static void counts_that_no_bytes_stand_for_are_refused(void)
{
	begin();
	begin_new();
	section.len -= 1 + 4 + 1 + 4 + 1;                 /* the files */
	section.len -= 1 + 4;                             /* their format */
	u8(0);                                            /* entries of nothing ... */
	u8(0xff), u8(0xff), u8(0xff), u8(0xff), u8(0x7f); /* ... and 2^35 of them */
	end_header(), put_program(0), end_table();
	read_table();
	check_u64(table.files.count, 0);
	check_u64(table.sequences.count, 0);
	done();
}

int main(void)
{
	tap_run(versions_2_and_5);
	tap_run(of_rows_with_one_address_the_last_holds);
	tap_run(dropped_code_and_open_ends_are_left_out);
	tap_run(unknown_opcodes_are_passed_over);
	tap_run(rows_are_found_from_marks_on);
	tap_run(rows_that_go_back_are_found);
	tap_run(long_ways_are_gone_once);
	tap_run(what_is_cut_short_keeps_what_came_before);
	tap_run(counts_that_no_bytes_stand_for_are_refused);
	return tap_end();
}
