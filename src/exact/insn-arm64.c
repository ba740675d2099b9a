/* SPDX-License-Identifier: MIT */
/*
 * arm64: branches, system calls and exclusives, by the fixed bits of their encodings: Arm ARM (DDI
 * 0487), C4.1 "A64 instruction set encoding".
 */
#include <string.h>

#include "exact/insn.h"

/* Where the offset of a relative branch stands. */
enum offset {
	OFFSET_NONE,
	OFFSET_9,  /* bits 5 to 13 */
	OFFSET_14, /* bits 5 to 18 */
	OFFSET_19, /* bits 5 to 23 */
	OFFSET_26, /* bits 0 to 25 */
};

static const struct {
	uint8_t from, width;
} offsets[] = {
	[OFFSET_9] = { 5, 9 },
	[OFFSET_14] = { 5, 14 },
	[OFFSET_19] = { 5, 19 },
	[OFFSET_26] = { 0, 26 },
};

#define CONDITIONAL (TALLY_INSN_BRANCH | TALLY_INSN_CONDITIONAL)

/* The first row that matches counts. */
static const struct {
	uint32_t mask, value, flags;
	uint8_t how, offset;
	bool traps;
} rows[] = {
	{ 0xff000000, 0x54000000, CONDITIONAL, INSN_PLAIN, OFFSET_19, false }, /* B.cond, BC.cond */
	{ 0x7e000000, 0x34000000, CONDITIONAL, INSN_PLAIN, OFFSET_19, false }, /* CBZ, CBNZ */
	{ 0x7e000000, 0x36000000, CONDITIONAL, INSN_PLAIN, OFFSET_14, false }, /* TBZ, TBNZ */
	{ 0x7e000000, 0x74000000, CONDITIONAL, INSN_PLAIN, OFFSET_9, false }, /* CB<cc>, CBB, CBH */
	{ 0x7c000000, 0x14000000, TALLY_INSN_BRANCH, INSN_PLAIN, OFFSET_26, false }, /* B, BL */
	/* BR, BLR, RET, and those with pointer authentication. */
	{ 0xfe000000, 0xd6000000, TALLY_INSN_BRANCH, INSN_PLAIN, OFFSET_NONE, false },
	/* RETAASPPC and RETABSPPC with an immediate. */
	{ 0xff800000, 0x55000000, TALLY_INSN_BRANCH, INSN_PLAIN, OFFSET_NONE, false },
	{ 0xffe0001f, 0xd4000001, TALLY_INSN_SYSCALL | TALLY_INSN_CARE, INSN_CALL, OFFSET_NONE,
	  false },                                                                  /* SVC */
	{ 0xffe0001f, 0xd4200000, TALLY_INSN_CARE, INSN_PLAIN, OFFSET_NONE, true }, /* BRK */
	/* LDXRB, LDXRH, LDXR, LDAXR: o2 = 0, L = 1, o1 = 0. */
	{ 0x3fe00000, 0x08400000, TALLY_INSN_EXCLUSIVE | TALLY_INSN_CARE, INSN_REGION, OFFSET_NONE,
	  false },
	/* LDXP, LDAXP: with o1 = 1 and a size of 32 or 64 bits; smaller ones are CASP. */
	{ 0xbfe00000, 0x88600000, TALLY_INSN_EXCLUSIVE | TALLY_INSN_CARE, INSN_REGION, OFFSET_NONE,
	  false },
};

static int64_t signed_bits(uint32_t word, unsigned from, unsigned width)
{
	uint64_t value = word >> from & ((1ull << width) - 1);
	uint64_t sign = 1ull << (width - 1);

	return (int64_t)(value ^ sign) - (int64_t)sign;
}

void insn_arm64(struct insn *out, uint32_t word)
{
	memset(out, 0, sizeof(*out));
	out->len = sizeof(word);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if ((word & rows[i].mask) != rows[i].value)
			continue;
		out->flags = rows[i].flags;
		out->how = rows[i].how;
		out->traps = rows[i].traps;
		out->relative = rows[i].offset != OFFSET_NONE;
		if (out->relative)
			out->target = 4 * signed_bits(word, offsets[rows[i].offset].from,
						      offsets[rows[i].offset].width);
		return;
	}
}

/* STXRB ... STLXR (o2, L and o1 = 0), STXP, STLXP (o1 = 1, 32 or 64 bits). */
bool insn_arm64_ends_region(uint32_t word)
{
	return (word & 0x3fe00000) == 0x08000000 || (word & 0xbfe00000) == 0x88200000;
}
