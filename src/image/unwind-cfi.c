/* SPDX-License-Identifier: MIT */
/* Entries of .eh_frame and .debug_frame, and their programs. */
#include <errno.h>

#include "image/dwarf-cursor.h"
#include "image/unwind-cfi.h"

/* Compilers nest two or three. */
#define MAX_REMEMBERED 16

/* A length of this announces 64-bit offsets; those from 0xfffffff0 on are reserved. */
#define LONG_FORM    0xffffffffu
#define FIRST_NO_LEN 0xfffffff0u

/* DW_CFA_*; the first three have their operand in the low six bits. */
enum {
	CFA_ADVANCE = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0,
	CFA_SET_LOC,
	CFA_ADVANCE1,
	CFA_ADVANCE2,
	CFA_ADVANCE4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

/* ---- entries ---- */

/* An entry without its length. */
struct entry {
	struct dwarf_cursor body;
	size_t offset;  /* of what follows the length */
	uint64_t id;    /* CIE, or how far away it is */
	bool is_common; /* a CIE */
	size_t word;    /* bytes of an offset */
};

static struct dwarf_cursor from(const struct cfi_section *s, size_t offset)
{
	return (struct dwarf_cursor){ .at = s->bytes + offset, .end = s->bytes + s->len };
}

/*
 * Reads the length at `offset`, and leaves the cursor at the entry's bytes. False: there is no
 * entry.
 */
static bool entry_open(const struct cfi_section *s, size_t offset, struct entry *out)
{
	if (offset >= s->len)
		return false;
	struct dwarf_cursor in = from(s, offset);
	uint64_t len = cursor_fixed(&in, 4);
	out->word = 4;
	if (len == LONG_FORM) {
		len = cursor_fixed(&in, 8);
		out->word = 8;
	} else if (len >= FIRST_NO_LEN) {
		return false;
	}
	if (in.failed || len > (uint64_t)(in.end - in.at))
		return false;
	out->offset = (size_t)(in.at - s->bytes);
	out->body = (struct dwarf_cursor){ .at = in.at, .end = in.at + len };
	return true;
}

size_t cfi_next(const struct cfi_section *s, size_t offset)
{
	struct entry e;

	return entry_open(s, offset, &e) ? (size_t)(e.body.end - s->bytes) : s->len;
}

/* With its id. An entry of length 0 ends what one object file gave to .eh_frame. */
static bool entry_read(const struct cfi_section *s, size_t offset, struct entry *e)
{
	if (!entry_open(s, offset, e) || e->body.at == e->body.end)
		return false;
	/* .eh_frame writes 4 bytes even where the length takes 8. */
	size_t bytes = s->debug_frame ? e->word : 4;
	e->id = cursor_fixed(&e->body, bytes);
	if (s->debug_frame)
		e->is_common = e->id == (bytes == 8 ? UINT64_MAX : UINT32_MAX);
	else
		e->is_common = e->id == 0;
	return !e->body.failed;
}

static size_t format_bytes(uint8_t encoding)
{
	static const uint8_t bytes[] = { 8, 0, 2, 4, 8 };
	uint8_t format = encoding & 7;

	return format < sizeof(bytes) ? bytes[format] : 0;
}

int cfi_pointer(const struct cfi_section *s, size_t *offset, uint8_t encoding, uint64_t base,
		uint64_t *out)
{
	if (*offset > s->len || encoding == CFI_OMIT || encoding & CFI_INDIRECT)
		return -EBADMSG;
	struct dwarf_cursor in = from(s, *offset);
	uint64_t at = s->address + *offset, value;
	if ((encoding & 7) == 1)
		value = encoding & 8 ? (uint64_t)cursor_sleb(&in) : cursor_uleb(&in);
	else if (!format_bytes(encoding))
		return -EBADMSG;
	else if (encoding & 8)
		value = (uint64_t)cursor_signed(&in, format_bytes(encoding));
	else
		value = cursor_fixed(&in, format_bytes(encoding));
	switch (encoding & CFI_APPLICATION) {
	case 0:
		break;
	case CFI_APP_PCREL:
		value += at;
		break;
	case CFI_APP_DATAREL:
		value += base;
		break;
	default:
		return -EBADMSG;
	}
	if (in.failed)
		return -EBADMSG;
	*offset = (size_t)(in.at - s->bytes);
	*out = value;
	return 0;
}

/* What the letters of an augmentation that begins with z say of its FDEs. */
static bool read_augmentation(const struct cfi_section *s, struct cfi_common *c,
			      const char *letters, struct dwarf_cursor *in)
{
	uint64_t len = cursor_uleb(in);
	uint64_t ignored;

	if (in->failed || len > (uint64_t)(in->end - in->at))
		return false;
	struct dwarf_cursor data = { .at = in->at, .end = in->at + len };
	in->at += len;
	for (const char *l = letters; *l; l++) {
		size_t offset;
		uint8_t encoding;
		switch (*l) {
		case 'R':
			c->encoding = (uint8_t)cursor_fixed(&data, 1);
			break;
		case 'L':
			cursor_fixed(&data, 1);
			break;
		case 'P': /* the personality routine */
			encoding = (uint8_t)cursor_fixed(&data, 1);
			offset = (size_t)(data.at - s->bytes);
			if (cfi_pointer(s, &offset, encoding & (uint8_t)~CFI_INDIRECT, 0,
					&ignored) < 0 ||
			    offset > (size_t)(data.end - s->bytes))
				return false;
			data.at = s->bytes + offset;
			break;
		case 'S':
			c->signal = true;
			break;
		default: /* B: signed by key B; G: tagged stack frames */
			break;
		}
	}
	return !data.failed;
}

static int read_common(const struct cfi_section *s, size_t offset, struct cfi_common *c)
{
	struct entry e;

	if (!entry_read(s, offset, &e) || !e.is_common)
		return -EBADMSG;
	struct dwarf_cursor *in = &e.body;
	uint64_t version = cursor_fixed(in, 1);
	const char *letters = (const char *)in->at;
	cursor_take(in, strnlen(letters, (size_t)(in->end - in->at)) + 1);
	if (in->failed || (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	/* Version 4 tells the sizes of addresses and of segment selectors. */
	if (version == 4 && cursor_fixed(in, 2) != sizeof(uint64_t))
		return -EBADMSG;
	*c = (struct cfi_common){ .code_align = cursor_uleb(in), .data_align = cursor_sleb(in) };
	c->ra = version == 1 ? cursor_fixed(in, 1) : cursor_uleb(in);
	if (*letters == 'z') {
		c->augmented = true;
		if (!read_augmentation(s, c, letters + 1, in))
			return -EBADMSG;
	} else if (*letters) {
		return -EBADMSG; /* nobody can tell where its program begins */
	}
	c->program = (size_t)(in->at - s->bytes);
	c->program_end = (size_t)(in->end - s->bytes);
	return in->failed || c->ra >= UNWIND_REGS ? -EBADMSG : 0;
}

int cfi_function_read(struct cfi_function *f, const struct cfi_section *s, size_t offset)
{
	struct entry e;

	if (!entry_read(s, offset, &e) || e.is_common)
		return 0;
	/* .eh_frame counts back from the id's own place. */
	uint64_t common = s->debug_frame ? e.id : e.offset - e.id;
	if (common >= s->len || read_common(s, (size_t)common, &f->common) < 0)
		return -EBADMSG;
	size_t at = (size_t)(e.body.at - s->bytes);
	uint64_t size;
	if (cfi_pointer(s, &at, f->common.encoding, 0, &f->start) < 0 ||
	    cfi_pointer(s, &at, f->common.encoding & CFI_FORMAT, 0, &size) < 0 ||
	    at > (size_t)(e.body.end - s->bytes))
		return -EBADMSG;
	e.body.at = s->bytes + at;
	if (f->common.augmented)
		cursor_take(&e.body, cursor_uleb(&e.body));
	if (e.body.failed || !size || size > UINT64_MAX - f->start)
		return -EBADMSG;
	f->end = f->start + size;
	f->program = (size_t)(e.body.at - s->bytes);
	f->program_end = (size_t)(e.body.end - s->bytes);
	return 1;
}

/* ---- programs ---- */

struct run {
	const struct cfi_section *section;
	const struct cfi_function *f;
	struct cfi_state state, initial;
	uint64_t at;       /* the place for which `state` is */
	uint64_t reported; /* rows reach so far */
	cfi_row_fn *row;
	void *arg;
	unsigned remembered;
	struct cfi_state stack[MAX_REMEMBERED];
};

/* Sets a register's rule. Registers without a number here hold no addresses: they are left out. */
static bool set(struct run *r, uint64_t reg, uint8_t kind, uint64_t other, int64_t offset)
{
	if (reg >= UNWIND_REGS)
		return true;
	if (offset != (int32_t)offset || (kind == RULE_REGISTER && other >= UNWIND_REGS))
		return false;
	r->state.regs[reg] = (struct unwind_rule){
		.kind = kind,
		.reg = (uint8_t)reg,
		.other = (uint8_t)other,
		.offset = (int32_t)offset,
	};
	return true;
}

static bool set_scaled(struct run *r, uint64_t reg, uint8_t kind, int64_t factor)
{
	int64_t offset;

	return !__builtin_mul_overflow(factor, r->f->common.data_align, &offset) &&
	       set(r, reg, kind, 0, offset);
}

static bool set_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	if (reg >= UNWIND_REGS || offset != (int32_t)offset)
		return false;
	r->state.cfa = (struct unwind_rule){
		.kind = RULE_REGISTER,
		.other = (uint8_t)reg,
		.offset = (int32_t)offset,
	};
	return true;
}

static bool set_cfa_scaled(struct run *r, uint64_t reg, int64_t factor)
{
	int64_t offset;

	return !__builtin_mul_overflow(factor, r->f->common.data_align, &offset) &&
	       set_cfa(r, reg, offset);
}

/* Where an expression stands: its length first. */
static int64_t take_expression(struct run *r, struct dwarf_cursor *in)
{
	int64_t offset = in->at - r->section->bytes;

	cursor_take(in, cursor_uleb(in));
	return offset;
}

static bool restore(struct run *r, uint64_t reg)
{
	if (reg < UNWIND_REGS)
		r->state.regs[reg] = r->initial.regs[reg];
	return true;
}

/* The rules so far hold up to `to`. */
static int move(struct run *r, uint64_t to)
{
	int ret = 0;

	if (to < r->at || to > r->f->end)
		to = r->f->end;
	if (to > r->reported) {
		ret = r->row(r->arg, r->reported, &r->state);
		r->reported = to;
	}
	r->at = to;
	return ret;
}

static int advance(struct run *r, uint64_t delta)
{
	uint64_t by;

	if (__builtin_mul_overflow(delta, r->f->common.code_align, &by) || by > UINT64_MAX - r->at)
		return -EBADMSG;
	return move(r, r->at + by);
}

static int set_location(struct run *r, struct dwarf_cursor *in)
{
	size_t offset = (size_t)(in->at - r->section->bytes);
	uint64_t to;

	if (cfi_pointer(r->section, &offset, r->f->common.encoding, 0, &to) < 0 || to < r->at)
		return -EBADMSG;
	in->at = r->section->bytes + offset;
	if (in->at > in->end)
		return -EBADMSG;
	return move(r, to);
}

static bool remember(struct run *r)
{
	if (r->remembered == MAX_REMEMBERED)
		return false;
	r->stack[r->remembered++] = r->state;
	return true;
}

static bool recall(struct run *r)
{
	if (!r->remembered)
		return false;
	r->state = r->stack[--r->remembered];
	return true;
}

/* The instructions that change rules; false: a broken or unknown one. */
static bool change(struct run *r, uint8_t op, struct dwarf_cursor *in)
{
	uint64_t reg;

	switch (op) {
	case CFA_NOP:
	case CFA_AARCH64_NEGATE_RA_STATE: /* addresses tell by themselves that they are signed */
		return true;
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return true;
	case CFA_OFFSET_EXTENDED:
		reg = cursor_uleb(in);
		return set_scaled(r, reg, RULE_AT, (int64_t)cursor_uleb(in));
	case CFA_OFFSET_EXTENDED_SF:
		reg = cursor_uleb(in);
		return set_scaled(r, reg, RULE_AT, cursor_sleb(in));
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		reg = cursor_uleb(in);
		return set_scaled(r, reg, RULE_AT, -(int64_t)(cursor_uleb(in) & INT64_MAX));
	case CFA_VAL_OFFSET:
		reg = cursor_uleb(in);
		return set_scaled(r, reg, RULE_IS, (int64_t)cursor_uleb(in));
	case CFA_VAL_OFFSET_SF:
		reg = cursor_uleb(in);
		return set_scaled(r, reg, RULE_IS, cursor_sleb(in));
	case CFA_RESTORE_EXTENDED:
		return restore(r, cursor_uleb(in));
	case CFA_UNDEFINED:
		return set(r, cursor_uleb(in), RULE_LOST, 0, 0);
	case CFA_SAME_VALUE:
		return set(r, cursor_uleb(in), RULE_KEPT, 0, 0);
	case CFA_REGISTER:
		reg = cursor_uleb(in);
		return set(r, reg, RULE_REGISTER, cursor_uleb(in), 0);
	case CFA_EXPRESSION:
		reg = cursor_uleb(in);
		return set(r, reg, RULE_AT_EXPRESSION, 0, take_expression(r, in));
	case CFA_VAL_EXPRESSION:
		reg = cursor_uleb(in);
		return set(r, reg, RULE_IS_EXPRESSION, 0, take_expression(r, in));
	case CFA_REMEMBER:
		return remember(r);
	case CFA_RESTORE_STATE:
		return recall(r);
	case CFA_DEF_CFA:
		reg = cursor_uleb(in);
		return set_cfa(r, reg, (int64_t)cursor_uleb(in));
	case CFA_DEF_CFA_SF:
		reg = cursor_uleb(in);
		return set_cfa_scaled(r, reg, cursor_sleb(in));
	case CFA_DEF_CFA_REGISTER:
		return set_cfa(r, cursor_uleb(in), r->state.cfa.offset);
	case CFA_DEF_CFA_OFFSET:
		return set_cfa(r, r->state.cfa.other, (int64_t)cursor_uleb(in));
	case CFA_DEF_CFA_OFFSET_SF:
		return set_cfa_scaled(r, r->state.cfa.other, cursor_sleb(in));
	case CFA_DEF_CFA_EXPRESSION:
		r->state.cfa = (struct unwind_rule){
			.kind = RULE_IS_EXPRESSION,
			.offset = (int32_t)take_expression(r, in),
		};
		return true;
	case CFA_GNU_ARGS_SIZE:
		cursor_uleb(in);
		return true;
	default:
		return false;
	}
}

static int step(struct run *r, struct dwarf_cursor *in)
{
	uint8_t op = (uint8_t)cursor_fixed(in, 1), low = op & 0x3f;
	bool good;

	switch (op & 0xc0) {
	case CFA_ADVANCE:
		return advance(r, low);
	case CFA_OFFSET:
		good = set_scaled(r, low, RULE_AT, (int64_t)cursor_uleb(in));
		return good ? 0 : -EBADMSG;
	case CFA_RESTORE:
		restore(r, low);
		return 0;
	default:
		break;
	}
	switch (op) {
	case CFA_SET_LOC:
		return set_location(r, in);
	case CFA_ADVANCE1:
		return advance(r, cursor_fixed(in, 1));
	case CFA_ADVANCE2:
		return advance(r, cursor_fixed(in, 2));
	case CFA_ADVANCE4:
		return advance(r, cursor_fixed(in, 4));
	default:
		return change(r, op, in) ? 0 : -EBADMSG;
	}
}

static int run(struct run *r, size_t begin, size_t end)
{
	struct dwarf_cursor in = { .at = r->section->bytes + begin,
				   .end = r->section->bytes + end };
	int ret = 0;

	while (in.at < in.end && ret >= 0)
		ret = step(r, &in);
	return in.failed ? -EBADMSG : ret;
}

int cfi_run(const struct cfi_section *section, const struct cfi_function *f, cfi_row_fn *row,
	    void *arg)
{
	struct run r = {
		.section = section,
		.f = f,
		.at = f->start,
		.reported = f->start,
		.row = row,
		.arg = arg,
	};

	for (unsigned i = 0; i < UNWIND_REGS; i++)
		r.state.regs[i].reg = r.initial.regs[i].reg = (uint8_t)i;
	int ret = run(&r, f->common.program, f->common.program_end);
	if (ret < 0)
		return ret;
	r.initial = r.state;
	ret = run(&r, f->program, f->program_end);
	return ret < 0 ? ret : move(&r, f->end);
}
