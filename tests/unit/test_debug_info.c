/* SPDX-License-Identifier: MIT */
/* debug-info, inline-index, die-name, dwarf-*: units by hand, by DWARF 4, 7.5, in both byte orders. */
#include <stdlib.h>

#include "base/buf.h"
#include "image/debug-info.h"
#include "image/inline-index.h"
#include "tap.h"

#define TEXT 0x1000 /* where the unit's code begins */
#define SIZE 0x1000

enum codes {
	END,
	UNIT,          /* low_pc, high_pc, comp_dir, of a form that it tells itself; has children */
	FUNCTION,      /* name, low_pc, high_pc; has children */
	INLINED,       /* abstract_origin, low_pc, high_pc, call_file, call_line; has children */
	ABSTRACT,      /* linkage_name */
	INSTANCE,      /* abstract_origin, low_pc, high_pc */
	LISTED,        /* name, ranges */
	BLOCK,         /* has children */
	LINK,          /* specification */
	HOLLOW,        /* inlined: abstract_origin, call_line; has children */
	LONG_FUNCTION, /* as FUNCTION, INLINED, after DW_AT_sibling */
	LONG_INLINED,
};

static struct buf info, abbrev, ranges, aranges;
static struct debug_info d;
static bool swapped, without_outermost;

static void u8(struct buf *b, int v)
{
	uint8_t byte = (uint8_t)v;

	buf_add(b, &byte, 1);
}

static void u16(struct buf *b, uint16_t v)
{
	store_u16(&v, v, swapped);
	buf_add(b, &v, sizeof(v));
}

static void u32(struct buf *b, uint32_t v)
{
	store_u32(&v, v, swapped);
	buf_add(b, &v, sizeof(v));
}

static void u64(struct buf *b, uint64_t v)
{
	store_u64(&v, v, swapped);
	buf_add(b, &v, sizeof(v));
}

static void text(const char *v)
{
	buf_add(&info, v, strlen(v) + 1);
}

/* An abbreviation; pairs of attribute and form, up to 0. */
static void put_abbrev(int code, int tag, bool children, const uint8_t *pairs)
{
	u8(&abbrev, code), u8(&abbrev, tag), u8(&abbrev, children);
	for (; *pairs; pairs += 2)
		u8(&abbrev, pairs[0]), u8(&abbrev, pairs[1]);
	u16(&abbrev, 0);
}

#define PAIRS(...) ((const uint8_t[]){ __VA_ARGS__ __VA_OPT__(, ) 0 })
#define PLACE      DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4

static void begin(void)
{
	info = abbrev = ranges = aranges = (struct buf){ 0 };
	d = (struct debug_info){ 0 };
	put_abbrev(UNIT, DW_TAG_compile_unit, true, PAIRS(PLACE, DW_AT_comp_dir, DW_FORM_indirect));
	put_abbrev(FUNCTION, DW_TAG_subprogram, true, PAIRS(DW_AT_name, DW_FORM_string, PLACE));
	put_abbrev(INLINED, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, PLACE, DW_AT_call_file, DW_FORM_data1,
			 DW_AT_call_line, DW_FORM_data1));
	put_abbrev(ABSTRACT, DW_TAG_subprogram, false, PAIRS(DW_AT_linkage_name, DW_FORM_string));
	put_abbrev(INSTANCE, DW_TAG_subprogram, false,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, PLACE));
	put_abbrev(LISTED, DW_TAG_subprogram, false,
		   PAIRS(DW_AT_name, DW_FORM_string, DW_AT_ranges, DW_FORM_sec_offset));
	put_abbrev(BLOCK, DW_TAG_lexical_block, true, PAIRS());
	put_abbrev(LINK, DW_TAG_subprogram, false, PAIRS(DW_AT_specification, DW_FORM_ref4));
	put_abbrev(HOLLOW, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_call_line, DW_FORM_data1));
	put_abbrev(LONG_FUNCTION, DW_TAG_subprogram, true,
		   PAIRS(DW_AT_sibling, DW_FORM_ref4, DW_AT_name, DW_FORM_string, PLACE));
	put_abbrev(LONG_INLINED, DW_TAG_inlined_subroutine, true,
		   PAIRS(DW_AT_sibling, DW_FORM_ref4, DW_AT_abstract_origin, DW_FORM_ref4, PLACE,
			 DW_AT_call_file, DW_FORM_data1, DW_AT_call_line, DW_FORM_data1));
	u8(&abbrev, 0);
	u32(&info, 0), u16(&info, 4), u32(&info, 0), u8(&info, 8);
	u8(&info, UNIT), u64(&info, TEXT), u32(&info, SIZE);
	u8(&info, DW_FORM_string), text("/src");
}

static void place(uint64_t low, uint32_t size)
{
	u64(&info, low), u32(&info, size);
}

/* Its offset, for references. */
static uint32_t put_abstract(const char *name)
{
	uint32_t at = (uint32_t)info.len;

	u8(&info, ABSTRACT), text(name);
	return at;
}

static void put_function(const char *name, uint64_t low, uint32_t size)
{
	u8(&info, FUNCTION), text(name), place(low, size);
}

static void put_inlined(uint32_t origin, uint64_t low, uint32_t size, int line)
{
	u8(&info, INLINED), u32(&info, origin), place(low, size), u8(&info, 1), u8(&info, line);
}

static void end(void)
{
	u8(&info, END);
}

static void lend(enum dwarf_sections which, const struct buf *bytes)
{
	dwarf_section_borrow(&d.file.sections[which], (const uint8_t *)bytes->at, bytes->len,
			     swapped);
}

/* Those that are there. */
static void start_units(void)
{
	lend(DWARF_INFO, &info);
	lend(DWARF_ABBREV, &abbrev);
	lend(DWARF_RANGES, &ranges);
	lend(DWARF_ARANGES, &aranges);
	check_int(debug_info_start(&d), 0);
}

static void start(void)
{
	end();
	store_u32(info.at, (uint32_t)info.len - 4, swapped);
	start_units();
}

static void done(void)
{
	debug_info_done(&d);
	buf_done(&info);
	buf_done(&abbrev);
	buf_done(&ranges);
	buf_done(&aranges);
}

/* "inner@line outer@line", innermost first; lines are those of calls. */
static const char *at(uint64_t address)
{
	static char out[512];
	struct debug_places places = { .without_outermost = without_outermost };

	check_int(debug_info_find(&d, address, &places), 0);
	out[0] = '\0';
	vec_each (&places.list, p)
		snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%s@%u%s",
			 out[0] ? " " : "", p->function ? p->function : "?", p->line,
			 p->is_linkage ? "!" : "");
	vec_done(&places.list);
	return out;
}

static void put_nested(void)
{
	uint32_t a = put_abstract("_Z1av"), b = put_abstract("_Z1bv");

	put_function("main", 0x1100, 0x100);
	u8(&info, BLOCK);
	put_inlined(a, 0x1110, 0x20, 7);
	put_inlined(b, 0x1118, 8, 9);
	end(), end(), end(), end();
	put_function("other", 0x1200, 0x10);
	end();
}

static void inlined_calls_lead_out_to_their_function(void)
{
	for (int order = 0; order < 2; order++) {
		swapped = order;
		begin();
		put_nested();
		start();
		check_str(at(0x10ff), "");
		check_str(at(0x1100), "main@0");
		check_str(at(0x1110), "_Z1av@0! main@7");
		check_str(at(0x1118), "_Z1bv@0! _Z1av@9! main@7");
		check_str(at(0x1120), "_Z1av@0! main@7");
		check_str(at(0x1130), "main@0");
		check_str(at(0x1208), "other@0");
		check_str(at(0x1300), "");
		done();
	}
	swapped = false;
}

static void the_name_of_the_function_itself_may_be_known(void)
{
	begin();
	put_nested();
	start();
	without_outermost = true;
	check_str(at(0x1118), "_Z1bv@0! _Z1av@9! ?@7");
	check_str(at(0x1208), "?@0");
	without_outermost = false;
	check_str(at(0x1208), "other@0");
	done();
}

/* As in strict DWARF 2, where what lies in several places has none. */
static void a_call_without_a_place_still_stands_between(void)
{
	begin();
	uint32_t a = put_abstract("_Z1av"), b = put_abstract("_Z1bv");
	put_function("main", 0x1100, 0x100);
	u8(&info, HOLLOW), u32(&info, a), u8(&info, 7);
	put_inlined(b, 0x1118, 8, 9);
	end(), end(), end();
	start();
	check_str(at(0x1118), "_Z1bv@0! _Z1av@9! main@7");
	check_str(at(0x1120), "main@0");
	done();
}

static void a_function_in_another_is_not_inlined(void)
{
	begin();
	put_function("outer", 0x1100, 0x100);
	put_function("nested", 0x1140, 0x10);
	end(), end();
	start();
	check_str(at(0x1145), "nested@0");
	check_str(at(0x1150), "outer@0");
	done();
}

static void texts_of_a_unit_are_found_again(void)
{
	begin();
	start();
	struct dwarf_unit *unit = dwarf_file_unit_at(&d.file, 0);
	require(unit);
	check_str(dwarf_unit_text(unit, &unit->comp_dir), "/src");
	done();
}

static void references_in_a_circle_end(void)
{
	begin();
	uint32_t self = (uint32_t)info.len;
	u8(&info, INSTANCE), u32(&info, self), place(0x1100, 16);
	uint32_t first = (uint32_t)info.len;
	u8(&info, LINK), u32(&info, first + 5);
	u8(&info, LINK), u32(&info, first);
	u8(&info, INSTANCE), u32(&info, first), place(0x1200, 16);
	u8(&info, INSTANCE), u32(&info, 0xfffffff0), place(0x1300, 16);
	u8(&info, INSTANCE), u32(&info, first + 1), place(0x1400, 16); /* in the middle of a DIE */
	start();
	check_str(at(0x1100), "?@0");
	check_str(at(0x1200), "?@0");
	check_str(at(0x1300), "?@0");
	at(0x1400);
	done();
}

static void a_declaration_names_what_completes_it(void)
{
	begin();
	uint32_t declaration = put_abstract("_Z1cv");
	uint32_t link = (uint32_t)info.len;
	u8(&info, LINK), u32(&info, declaration);
	u8(&info, INSTANCE), u32(&info, link), place(0x1100, 16);
	start();
	check_str(at(0x1108), "_Z1cv@0!");
	done();
}

/* DWARF 4, 2.17.3. */
static void lists_of_ranges_count_from_a_base(void)
{
	begin();
	u64(&ranges, 0x100), u64(&ranges, 0x110);       /* from the unit's low pc */
	u64(&ranges, UINT64_MAX), u64(&ranges, 0x1800); /* another base */
	u64(&ranges, 0), u64(&ranges, 8);
	u64(&ranges, 16), u64(&ranges, 16);        /* empty */
	u64(&ranges, UINT64_MAX), u64(&ranges, 0); /* of code that was dropped */
	u64(&ranges, 0x1900), u64(&ranges, 0x1a00);
	u64(&ranges, 0), u64(&ranges, 0);
	u64(&ranges, 0x300), u64(&ranges, 0x310); /* behind the end */
	u8(&info, LISTED), text("f"), u32(&info, 0);
	start();
	check_str(at(0x10ff), "");
	check_str(at(0x1108), "f@0");
	check_str(at(0x1110), "");
	check_str(at(0x1804), "f@0");
	check_str(at(0x1810), "");
	check_str(at(0x1980), "");
	check_str(at(0x1304), "");
	done();
}

/* DWARF 4, 6.1.2: a header of 12 bytes, up to a multiple of a tuple, and tuples. */
static void more_of_a_unit_stands_in_aranges(void)
{
	for (uint32_t unit = 0; unit < 2; unit++) {
		begin();
		put_function("aside", 0x9000, 0x10);
		end();
		u32(&aranges, 44), u16(&aranges, 2), u32(&aranges, unit), u8(&aranges, 8);
		u8(&aranges, 0), u32(&aranges, 0);
		u64(&aranges, 0x9000), u64(&aranges, 0x10), u64(&aranges, 0), u64(&aranges, 0);
		start();
		/* There is no unit at offset 1. */
		check_str(at(0x9008), unit ? "" : "aside@0");
		check_str(at(0x9010), "");
		done();
	}
}

static void what_is_cut_short_or_flipped_ends(void)
{
	begin();
	put_nested();
	start();
	for (size_t len = 0; len < info.len; len++) {
		struct debug_info whole = d;
		struct buf cut = { .at = malloc(len + 1), .len = len };
		memcpy(cut.at, info.at, len);
		for (int which = 0; which < 2; which++) {
			d = (struct debug_info){ 0 };
			lend(DWARF_INFO, which ? &info : &cut);
			lend(DWARF_ABBREV, &abbrev);
			/* A wrong length; a wrong byte. */
			info.at[which ? len : 0] ^= which ? 0x55 : 0;
			if (!which && len > 4)
				store_u32(cut.at, (uint32_t)len - 4, false);
			check_int(debug_info_start(&d), 0);
			for (uint64_t a = 0x10f0; a < 0x1220; a += 8)
				at(a);
			info.at[which ? len : 0] ^= which ? 0x55 : 0;
			debug_info_done(&d);
		}
		free(cut.at);
		d = whole;
	}
	done();
}

static void blocks_without_an_end_end(void)
{
	begin();
	put_function("main", 0x1100, 0x100);
	for (int i = 0; i < 100000; i++)
		u8(&info, BLOCK);
	start();
	check_str(at(0x1104), "main@0");
	done();
}

/* Each of many functions has one long list: who reads all of them would be busy for hours. */
static void lists_that_are_shared_are_paid_for(void)
{
	begin();
	for (int i = 0; i < 20000; i++)
		u64(&ranges, 0x100), u64(&ranges, 0x101);
	u64(&ranges, 0), u64(&ranges, 0);
	for (int i = 0; i < 50000; i++)
		u8(&info, LISTED), text("f"), u32(&info, 0);
	start();
	check_str(at(0x1100), "f@0");
	check(d.indexes.at[0]->nodes.count < 50000);
	done();
}

/* As of a linker that optimizes: one table for all units, with what roots need at its end. */
static void many_units_share_a_table(void)
{
	enum {
		UNITS = 3000,
		LAST = 120
	};
	begin();
	info.len = 0;
	abbrev.len--; /* its end */
	for (int code = LONG_INLINED + 1; code < LAST; code++)
		put_abbrev(code, 0x34 /* variable */, false, PAIRS(DW_AT_name, DW_FORM_string));
	put_abbrev(LAST, DW_TAG_compile_unit, true, PAIRS(PLACE, DW_AT_name, DW_FORM_string));
	u8(&abbrev, 0);
	for (uint64_t i = 0; i < UNITS; i++) {
		size_t from = info.len;
		u32(&info, 0), u16(&info, 4), u32(&info, 0), u8(&info, 8);
		u8(&info, LAST), place(TEXT + 0x10 * i, 0x10), text("unit");
		put_function("f", TEXT + 0x10 * i, 0x10);
		end(), end();
		store_u32(info.at + from, (uint32_t)(info.len - from) - 4, swapped);
	}
	start_units();
	check_u64(d.file.units.count, UNITS);
	for (uint64_t i = 0; i < UNITS; i += 100)
		check_str(at(TEXT + 0x10 * i + 4), "f@0");
	check_str(at(TEXT + 0x10 * (UNITS - 1)), "f@0");
	done();
}

/* ---- functions that are looked into when they are asked for ---- */

static uint32_t seed;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % sides;
}

/* Where the sibling's offset is to be put; 0: the DIE has none. */
static size_t put_long(int code, bool has_sibling)
{
	size_t at = info.len + 1;

	u8(&info, has_sibling ? (code == FUNCTION ? LONG_FUNCTION : LONG_INLINED) : code);
	if (has_sibling)
		u32(&info, 0);
	return has_sibling ? at : 0;
}

static void end_long(size_t sibling)
{
	end();
	if (sibling)
		store_u32(info.at + sibling, (uint32_t)info.len, swapped);
}

/* Calls and blocks in `size` bytes of code, and rarely a function whose code is elsewhere. */
static void put_inside(uint32_t origin, uint64_t low, uint32_t size, int siblings,
		       uint64_t *elsewhere)
{
	for (uint32_t from = 0, len; size >= 8 && from < size; from += len) {
		len = 4 + dice(size);
		if (len > size - from)
			len = size - from;
		/* The dice fall as often with siblings as without. */
		uint32_t what = dice(8), line = 1 + dice(200);
		bool is_long = (int)dice(100) < siblings;
		if (what == 0) {
			size_t at = put_long(FUNCTION, is_long);
			text("within"), place(*elsewhere, 16);
			put_inside(origin, *elsewhere, 16, siblings, elsewhere);
			*elsewhere += 16;
			end_long(at);
		} else if (what < 3) {
			u8(&info, BLOCK);
			put_inside(origin, low + from, len / 2, siblings, elsewhere);
			end();
		} else {
			size_t at = put_long(INLINED, is_long);
			u32(&info, origin), place(low + from, len);
			u8(&info, 1), u8(&info, (int)line);
			put_inside(origin, low + from, len / 2, siblings, elsewhere);
			end_long(at);
		}
	}
}

static void put_forest(int siblings)
{
	uint64_t elsewhere = 0x1800;
	uint32_t origin = put_abstract("_Z1av");

	for (uint32_t i = 0; i < 8; i++) {
		uint64_t low = 0x1000 + 0x100 * (uint64_t)i;
		bool is_long = (int)dice(100) < siblings;
		size_t sibling = put_long(FUNCTION, is_long);
		text("f"), place(low, 0xc0);
		put_inside(origin, low, 0xc0, siblings, &elsewhere);
		end_long(sibling);
	}
}

static void looking_into_functions_finds_what_one_walk_does(void)
{
	static char expected[0x1000][512];

	for (uint32_t round = 0; round < 60; round++) {
		for (int siblings = 0; siblings <= 100; siblings += 50) {
			begin();
			seed = round;
			put_forest(siblings);
			start();
			for (uint32_t i = 0; i < 0x1000; i++) {
				/* In another order than that of the program. */
				uint32_t a = i * 1361 % 0x1000;
				if (!siblings)
					snprintf(expected[a], sizeof(expected[a]), "%s",
						 at(0x1000 + a));
				else
					check_str(at(0x1000 + a), expected[a]);
			}
			done();
		}
	}
}

static void what_symbols_deny_is_not_looked_for(void)
{
	struct debug_places places = { .no_function = true };

	begin();
	seed = 3;
	put_forest(100);
	start();
	check_int(debug_info_find(&d, 0x10f0, &places), 0);
	check(!d.indexes.at[0]->whole);
	places.no_function = false;
	check_int(debug_info_find(&d, 0x10f0, &places), 0);
	check(d.indexes.at[0]->whole);
	check_u64(places.list.count, 0);
	vec_done(&places.list);
	done();
}

#define NESTED 20000

static void calls_in_calls_in_calls_end(void)
{
	begin();
	uint32_t origin = put_abstract("_Z1av");
	static size_t siblings[NESTED + 1];
	siblings[0] = put_long(FUNCTION, true);
	text("f"), place(0x1100, 0x100);
	for (int i = 1; i <= NESTED; i++) {
		siblings[i] = put_long(INLINED, true);
		u32(&info, origin), place(0x1100, 0x100), u8(&info, 1), u8(&info, 1);
	}
	for (int i = NESTED; i >= 0; i--) {
		end();
		store_u32(info.at + siblings[i], (uint32_t)info.len, swapped);
	}
	start();
	check_has(at(0x1104), "_Z1av@");
	check(d.indexes.at[0]->nodes.count < 3000);
	done();
}

int main(void)
{
	tap_run(inlined_calls_lead_out_to_their_function);
	tap_run(the_name_of_the_function_itself_may_be_known);
	tap_run(a_call_without_a_place_still_stands_between);
	tap_run(a_function_in_another_is_not_inlined);
	tap_run(texts_of_a_unit_are_found_again);
	tap_run(references_in_a_circle_end);
	tap_run(a_declaration_names_what_completes_it);
	tap_run(lists_of_ranges_count_from_a_base);
	tap_run(more_of_a_unit_stands_in_aranges);
	tap_run(what_is_cut_short_or_flipped_ends);
	tap_run(many_units_share_a_table);
	tap_run(looking_into_functions_finds_what_one_walk_does);
	tap_run(what_symbols_deny_is_not_looked_for);
	tap_run(calls_in_calls_in_calls_end);
	tap_run(blocks_without_an_end_end);
	tap_run(lists_that_are_shared_are_paid_for);
	return tap_end();
}
