/* SPDX-License-Identifier: MIT */
/* The values of attributes (DWARF 5, 7.5.6). */
#include "image/dwarf-form.h"

/* How a value is laid out. */
enum layout {
	UNKNOWN,
	FIXED, /* `size` bytes */
	ADDRESS,
	OFFSET,
	REFERENCE, /* to a DIE of another unit: of an address's size in DWARF 2 */
	ULEB,
	SLEB,
	TEXT,
	BLOCK, /* `size` bytes with its length; 0: as ULEB */
	INDIRECT,
};

struct shape {
	uint8_t layout, size;
};

static const struct shape shapes[] = {
	[DW_FORM_addr] = { ADDRESS, 0 },       [DW_FORM_block2] = { BLOCK, 2 },
	[DW_FORM_block4] = { BLOCK, 4 },       [DW_FORM_data2] = { FIXED, 2 },
	[DW_FORM_data4] = { FIXED, 4 },        [DW_FORM_data8] = { FIXED, 8 },
	[DW_FORM_string] = { TEXT, 0 },        [DW_FORM_block] = { BLOCK, 0 },
	[DW_FORM_block1] = { BLOCK, 1 },       [DW_FORM_data1] = { FIXED, 1 },
	[DW_FORM_flag] = { FIXED, 1 },         [DW_FORM_sdata] = { SLEB, 0 },
	[DW_FORM_strp] = { OFFSET, 0 },        [DW_FORM_udata] = { ULEB, 0 },
	[DW_FORM_ref_addr] = { REFERENCE, 0 }, [DW_FORM_ref1] = { FIXED, 1 },
	[DW_FORM_ref2] = { FIXED, 2 },         [DW_FORM_ref4] = { FIXED, 4 },
	[DW_FORM_ref8] = { FIXED, 8 },         [DW_FORM_ref_udata] = { ULEB, 0 },
	[DW_FORM_indirect] = { INDIRECT, 0 },  [DW_FORM_sec_offset] = { OFFSET, 0 },
	[DW_FORM_exprloc] = { BLOCK, 0 },      [DW_FORM_flag_present] = { FIXED, 0 },
	[DW_FORM_strx] = { ULEB, 0 },          [DW_FORM_addrx] = { ULEB, 0 },
	[DW_FORM_ref_sup4] = { FIXED, 4 },     [DW_FORM_strp_sup] = { OFFSET, 0 },
	[DW_FORM_data16] = { FIXED, 16 },      [DW_FORM_line_strp] = { OFFSET, 0 },
	[DW_FORM_ref_sig8] = { FIXED, 8 },     [DW_FORM_implicit_const] = { FIXED, 0 },
	[DW_FORM_loclistx] = { ULEB, 0 },      [DW_FORM_rnglistx] = { ULEB, 0 },
	[DW_FORM_ref_sup8] = { FIXED, 8 },     [DW_FORM_strx1] = { FIXED, 1 },
	[DW_FORM_strx2] = { FIXED, 2 },        [DW_FORM_strx3] = { FIXED, 3 },
	[DW_FORM_strx4] = { FIXED, 4 },        [DW_FORM_addrx1] = { FIXED, 1 },
	[DW_FORM_addrx2] = { FIXED, 2 },       [DW_FORM_addrx3] = { FIXED, 3 },
	[DW_FORM_addrx4] = { FIXED, 4 },
};

static struct shape shape_of(uint16_t form)
{
	if (form < ARRAY_SIZE(shapes))
		return shapes[form];
	switch (form) {
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return (struct shape){ ULEB, 0 };
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return (struct shape){ OFFSET, 0 };
	default:
		return (struct shape){ UNKNOWN, 0 };
	}
}

static uint8_t offset_size(const struct dwarf_encoding *e)
{
	return e->is64 ? 8 : 4;
}

int dwarf_form_size(uint16_t form, const struct dwarf_encoding *e)
{
	struct shape shape = shape_of(form);

	switch (shape.layout) {
	case FIXED:
		return shape.size;
	case ADDRESS:
		return e->address_size;
	case OFFSET:
		return offset_size(e);
	case REFERENCE:
		return e->version <= 2 ? e->address_size : offset_size(e);
	default:
		return -1;
	}
}

static void skip_leb(struct dwarf_cursor *c)
{
	while (c->at < c->end)
		if (!(*c->at++ & 0x80))
			return;
	cursor_fail(c);
}

static uint64_t read_fixed(struct dwarf_cursor *c, int size)
{
	switch (size) {
	case 0:
		return 1; /* a flag that is present */
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 3:
		return cursor_u24(c);
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	default:
		cursor_take(c, (uint64_t)size);
		return 0;
	}
}

static void skip_block(struct dwarf_cursor *c, uint8_t size)
{
	cursor_take(c, size ? read_fixed(c, size) : cursor_uleb(c));
}

void dwarf_form_skip(struct dwarf_cursor *c, uint16_t form, const struct dwarf_encoding *e)
{
	struct shape shape = shape_of(form);

	switch (shape.layout) {
	case ULEB:
	case SLEB:
		skip_leb(c);
		break;
	case TEXT:
		cursor_text(c);
		break;
	case BLOCK:
		skip_block(c, shape.size);
		break;
	case INDIRECT:
		dwarf_form_read(c, form, 0, e);
		break;
	default:
		cursor_fail(c);
	}
}

struct dwarf_value dwarf_form_read(struct dwarf_cursor *c, uint16_t form, int64_t constant,
				   const struct dwarf_encoding *e)
{
	if (form == DW_FORM_indirect) {
		form = (uint16_t)cursor_uleb(c);
		/* An indirect form that is one again leads nowhere; a constant stands in no DIE. */
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
			cursor_fail(c);
	}
	struct shape shape = shape_of(form);
	struct dwarf_value v = { .form = form };
	int size = dwarf_form_size(form, e);

	if (form == DW_FORM_implicit_const)
		v.number = (uint64_t)constant;
	else if (size >= 0)
		v.number = read_fixed(c, size);
	else if (shape.layout == ULEB)
		v.number = cursor_uleb(c);
	else if (shape.layout == SLEB)
		v.number = (uint64_t)cursor_sleb(c);
	else if (shape.layout == TEXT)
		v.text = cursor_text(c);
	else if (shape.layout == BLOCK)
		skip_block(c, shape.size);
	else
		cursor_fail(c);
	if (c->failed)
		v.form = 0;
	return v;
}

bool dwarf_value_is_constant(const struct dwarf_value *v)
{
	switch (v->form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
		return true;
	default:
		return false;
	}
}
