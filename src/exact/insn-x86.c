/* SPDX-License-Identifier: MIT */
/*
 * x86: how long an instruction is, and whether it is a branch or needs care. Lengths come from tables
 * of what follows the opcode: Intel SDM vol. 2, appendix A (opcode maps), 2.1 and 2.2 (formats), 2.3
 * (VEX), 2.7 (EVEX); AMD64 manual vol. 6 (XOP). A near branch with an operand-size prefix in 64-bit
 * mode is taken as Intel has it (the prefix means nothing); AMD's would be two bytes shorter.
 */
#include <string.h>

#include "exact/insn.h"

/* What follows an opcode. */
enum follows {
	M = 1 << 0,   /* ModRM, and what that asks for */
	B = 1 << 1,   /* a byte */
	W = 1 << 2,   /* two bytes */
	Z = 1 << 3,   /* four bytes, or two by the operand size */
	V = 1 << 4,   /* likewise, or eight with REX.W */
	O = 1 << 5,   /* an address as wide as addresses are */
	F = 1 << 6,   /* a far pointer: Z, and two bytes */
	BAD = 1 << 7, /* no instruction in 64-bit mode */
};

static const uint8_t one_byte[256] = {
	/* clang-format off */
	/* 00 */ M, M, M, M, B, Z, BAD, BAD, M, M, M, M, B, Z, BAD, 0,
	/* 10 */ M, M, M, M, B, Z, BAD, BAD, M, M, M, M, B, Z, BAD, BAD,
	/* 20 */ M, M, M, M, B, Z, 0, BAD, M, M, M, M, B, Z, 0, BAD,
	/* 30 */ M, M, M, M, B, Z, 0, BAD, M, M, M, M, B, Z, 0, BAD,
	/* 40 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 50 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	/* 60 */ BAD, BAD, M | BAD, M, 0, 0, 0, 0, Z, M | Z, B, M | B, 0, 0, 0, 0,
	/* 70 */ B, B, B, B, B, B, B, B, B, B, B, B, B, B, B, B,
	/* 80 */ M | B, M | Z, M | B | BAD, M | B, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 90 */ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, F | BAD, 0, 0, 0, 0, 0,
	/* a0 */ O, O, O, O, 0, 0, 0, 0, B, Z, 0, 0, 0, 0, 0, 0,
	/* b0 */ B, B, B, B, B, B, B, B, V, V, V, V, V, V, V, V,
	/* c0 */ M | B, M | B, W, 0, M | BAD, M | BAD, M | B, M | Z, W | B, 0, W, 0, 0, B, BAD, 0,
	/* d0 */ M, M, M, M, B | BAD, B | BAD, BAD, 0, M, M, M, M, M, M, M, M,
	/* e0 */ B, B, B, B, B, B, B, B, Z, Z, F | BAD, B, 0, 0, 0, 0,
	/* f0 */ 0, 0, 0, 0, 0, 0, M, M, 0, 0, 0, 0, 0, 0, M, M,
	/* clang-format on */
};

/* Behind 0f. */
static const uint8_t two_byte[256] = {
	/* clang-format off */
	/* 00 */ M, M, M, M, BAD, 0, 0, 0, 0, 0, BAD, 0, BAD, M, 0, M | B,
	/* 10 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 20 */ M, M, M, M, BAD, BAD, BAD, BAD, M, M, M, M, M, M, M, M,
	/* 30 */ 0, 0, 0, 0, 0, 0, BAD, 0, 0, BAD, 0, BAD, BAD, BAD, BAD, BAD,
	/* 40 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 50 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 60 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* 70 */ M | B, M | B, M | B, M | B, M, M, M, 0, M, M, BAD, BAD, M, M, M, M,
	/* 80 */ Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z, Z,
	/* 90 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* a0 */ 0, 0, 0, M, M | B, M, M, M, 0, 0, 0, M, M | B, M, M, M,
	/* b0 */ M, M, M, M, M, M, M, M, M, M, M | B, M, M, M, M, M,
	/* c0 */ M, M, M | B, M, M | B, M | B, M | B, M, 0, 0, 0, 0, 0, 0, 0, 0,
	/* d0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* e0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* f0 */ M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M,
	/* clang-format on */
};

/* Which table an opcode belongs to. */
enum map {
	MAP_ONE,
	MAP_0F,
	MAP_0F38,
	MAP_0F3A,
	MAP_FP16_5 = 5, /* EVEX alone */
	MAP_FP16_6 = 6,
	MAP_XOP_8 = 8,
	MAP_XOP_9,
	MAP_XOP_A,
};

struct decode {
	const uint8_t *bytes;
	size_t len, at;
	unsigned bits;
	bool rex_w, operand, address; /* REX.W, 66, 67 */
	bool fs;                      /* 64 */
	bool rep;                     /* f2 or f3 */
	bool repne;                   /* the last of them is f2 */
	bool vector;                  /* VEX, EVEX or XOP */
	enum map map;
	uint8_t opcode, modrm;
	bool has_modrm;
};

/* The next byte; 0 behind the end, which `at` then tells. */
static uint8_t take(struct decode *d)
{
	uint8_t byte = d->at < d->len ? d->bytes[d->at] : 0;

	d->at++;
	return byte;
}

static uint8_t peek(const struct decode *d)
{
	return d->at < d->len ? d->bytes[d->at] : 0;
}

static bool take_prefix(struct decode *d)
{
	switch (peek(d)) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x65:
	case 0xf0:
		break;
	case 0x64:
		d->fs = true;
		break;
	case 0x66:
		d->operand = true;
		break;
	case 0x67:
		d->address = true;
		break;
	case 0xf2:
	case 0xf3:
		d->rep = true;
		d->repne = peek(d) == 0xf2;
		break;
	default:
		return false;
	}
	d->rex_w = false; /* a REX before another prefix counts for nothing */
	d->at++;
	return true;
}

static void take_prefixes(struct decode *d)
{
	while (d->at < d->len) {
		if (take_prefix(d))
			continue;
		if (d->bits != 64 || (peek(d) & 0xf0) != 0x40)
			return;
		d->rex_w = take(d) & 8;
	}
}

/* VEX, EVEX and XOP share their first bytes with older instructions, whose next byte is a ModRM of
 * memory in 32-bit mode, and of another group in XOP's case. */
static bool take_vector(struct decode *d)
{
	uint8_t first = peek(d), next = d->at + 1 < d->len ? d->bytes[d->at + 1] : 0;
	bool memory = d->bits == 32 && (next & 0xc0) != 0xc0;

	if (first == 0xc5 && !memory) {
		d->at += 2;
		d->map = MAP_0F;
	} else if (first == 0xc4 && !memory) {
		d->at += 3;
		d->map = (enum map)(next & 0x1f);
	} else if (first == 0x62 && !memory) {
		d->at += 4;
		d->map = (enum map)(next & 7);
	} else if (first == 0x8f && (next & 0x1f) >= MAP_XOP_8) {
		d->at += 3;
		d->map = (enum map)(next & 0x1f);
	} else {
		return false;
	}
	d->opcode = take(d);
	d->vector = true;
	return true;
}

static void take_opcode(struct decode *d)
{
	if (take_vector(d))
		return;
	d->opcode = take(d);
	if (d->opcode != 0x0f)
		return;
	d->opcode = take(d);
	d->map = MAP_0F;
	if (d->opcode != 0x38 && d->opcode != 0x3a)
		return;
	d->map = d->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
	d->opcode = take(d);
}

static unsigned follows(const struct decode *d)
{
	switch (d->map) {
	case MAP_ONE:
		return d->vector ? BAD : one_byte[d->opcode];
	case MAP_0F: /* AVX-512 has filled gaps, of what has a ModRM */
		return d->vector && two_byte[d->opcode] == BAD ? M : two_byte[d->opcode];
	case MAP_0F3A:
	case MAP_XOP_8:
		return M | B;
	case MAP_0F38:
	case MAP_FP16_5:
	case MAP_FP16_6:
	case MAP_XOP_9:
		return M;
	case MAP_XOP_A:
		return M | Z;
	default:
		return BAD;
	}
}

/* ModRM with 16-bit addresses: 32-bit mode and 67. */
static void take_memory_16(struct decode *d, unsigned mod, unsigned rm)
{
	d->at += mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0;
}

static void take_modrm(struct decode *d)
{
	d->modrm = take(d);
	d->has_modrm = true;
	unsigned mod = d->modrm >> 6, rm = d->modrm & 7;
	/* Control and debug registers: mod means nothing. */
	if (mod == 3 || (d->map == MAP_0F && !d->vector && d->opcode >= 0x20 && d->opcode <= 0x23))
		return;
	if (d->bits == 32 && d->address) {
		take_memory_16(d, mod, rm);
		return;
	}
	bool wide = mod == 2 || (mod == 0 && rm == 5);
	if (rm == 4) { /* SIB; without a base it has four bytes */
		uint8_t sib = take(d);
		wide |= mod == 0 && (sib & 7) == 5;
	}
	d->at += wide ? 4 : mod;
}

static bool is_near_branch(const struct decode *d)
{
	if (d->vector)
		return false;
	if (d->map == MAP_0F)
		return (d->opcode & 0xf0) == 0x80;
	return d->map == MAP_ONE && (d->opcode == 0xe8 || d->opcode == 0xe9);
}

static void take_immediate(struct decode *d, unsigned what)
{
	bool narrow = d->operand && !d->rex_w && d->map != MAP_XOP_A &&
		      !(d->bits == 64 && is_near_branch(d));
	/* TEST and no other of its group has an immediate. */
	if (d->map == MAP_ONE && (d->opcode == 0xf6 || d->opcode == 0xf7) && (d->modrm & 0x30) == 0)
		what |= d->opcode == 0xf6 ? B : Z;
	/* EXTRQ and INSERTQ have two bytes. */
	if (d->map == MAP_0F && !d->vector && d->opcode == 0x78 &&
	    (d->operand || (d->rep && d->repne)))
		what |= W;
	if (what & B)
		d->at += 1;
	if (what & W)
		d->at += 2;
	if (what & (Z | F))
		d->at += narrow ? 2 : 4;
	if (what & F)
		d->at += 2;
	if (what & V)
		d->at += d->rex_w ? 8 : narrow ? 2 : 4;
	if (what & O)
		d->at += (size_t)(d->bits == 64 ? 8 : 4) >> d->address;
}

static bool is_string(uint8_t opcode)
{
	return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
	       (opcode >= 0xaa && opcode <= 0xaf);
}

/* Where a relative branch goes: the immediate is the last of its bytes. */
static void find_target(const struct decode *d, struct insn *out)
{
	unsigned wide = d->map == MAP_0F || d->opcode == 0xe8 || d->opcode == 0xe9
				? (d->operand && d->bits == 32 ? 2 : 4)
				: 1;
	unsigned above = 64 - 8 * wide;
	uint64_t offset = 0;

	for (unsigned i = 0; i < wide; i++)
		offset |= (uint64_t)d->bytes[d->at - wide + i] << 8 * i;
	out->relative = true;
	out->target = (int64_t)d->at + ((int64_t)(offset << above) >> above);
}

/* FF: calls and jumps through a register or memory, near (/2, /4) and far (/3, /5). */
static bool is_indirect(const struct decode *d)
{
	unsigned reg = d->modrm >> 3 & 7;

	return d->opcode == 0xff && reg >= 2 && reg <= 5;
}

static void judge_one_byte(const struct decode *d, struct insn *out)
{
	static const struct {
		uint8_t first, last;
		uint32_t flags;
		uint8_t how;
		bool relative, shifts;
	} rows[] = {
		{ 0x70, 0x7f, TALLY_INSN_BRANCH | TALLY_INSN_CONDITIONAL, INSN_PLAIN, true, false },
		{ 0xe0, 0xe3, TALLY_INSN_BRANCH | TALLY_INSN_CONDITIONAL, INSN_PLAIN, true, false },
		{ 0xe8, 0xe9, TALLY_INSN_BRANCH, INSN_PLAIN, true, false },
		{ 0xeb, 0xeb, TALLY_INSN_BRANCH, INSN_PLAIN, true, false },
		{ 0xc2, 0xc3, TALLY_INSN_BRANCH, INSN_PLAIN, false, false },
		{ 0xca, 0xcb, TALLY_INSN_BRANCH, INSN_PLAIN, false, true },
		{ 0xcf, 0xcf, TALLY_INSN_BRANCH | TALLY_INSN_CARE, INSN_PLAIN, false, true },
		{ 0x9a, 0x9a, TALLY_INSN_BRANCH, INSN_PLAIN, false, true },
		{ 0xea, 0xea, TALLY_INSN_BRANCH, INSN_PLAIN, false, true },
		{ 0x9c, 0x9c, TALLY_INSN_CARE, INSN_PUSHF, false, false },
		{ 0x9d, 0x9d, TALLY_INSN_CARE, INSN_PLAIN, false, false },
		{ 0x17, 0x17, TALLY_INSN_CARE, INSN_BEHIND, false, false }, /* POP SS */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (d->opcode < rows[i].first || d->opcode > rows[i].last)
			continue;
		out->flags |= rows[i].flags;
		out->how = rows[i].how;
		out->shifts = rows[i].shifts;
		if (rows[i].relative)
			find_target(d, out);
	}
	if (is_indirect(d)) {
		out->flags |= TALLY_INSN_BRANCH;
		out->shifts = d->modrm >> 3 & 1;
	}
	if (d->opcode == 0x8e && (d->modrm >> 3 & 7) == 2) { /* MOV SS */
		out->flags |= TALLY_INSN_CARE;
		out->how = INSN_BEHIND;
	}
	if (d->opcode == 0xcd && d->bytes[d->at - 1] == 0x80) { /* INT 80 */
		out->flags |= TALLY_INSN_SYSCALL | TALLY_INSN_CARE;
		out->how = INSN_CALL;
	}
	/* MOV to memory, of a register or a constant. */
	out->announces = d->fs && (d->opcode == 0x89 || d->opcode == 0xc7) && d->modrm < 0xc0;
	out->loads_flags = d->opcode == 0x9d || d->opcode == 0xcf;
	if (d->opcode == 0xcc || d->opcode == 0xf1 ||
	    (d->opcode == 0xcd && d->bytes[d->at - 1] == 3)) { /* INT3, INT1, INT 3 */
		out->flags |= TALLY_INSN_CARE;
		out->traps = true;
	}
	if (d->opcode == 0xc7 && d->modrm == 0xf8) /* XBEGIN */
		out->anywhere = true;
	if (d->rep && is_string(d->opcode)) {
		bool wide = d->opcode & 1;
		out->flags |= TALLY_INSN_REPEATED | TALLY_INSN_CARE;
		out->how = INSN_REPEAT;
		out->element = !wide ? 1 : d->rex_w ? 8 : d->operand ? 2 : 4;
	}
}

static void judge_two_byte(const struct decode *d, struct insn *out)
{
	if ((d->opcode & 0xf0) == 0x80) {
		out->flags |= TALLY_INSN_BRANCH | TALLY_INSN_CONDITIONAL;
		find_target(d, out);
	}
	if (d->opcode == 0x05 || d->opcode == 0x34) { /* SYSCALL, SYSENTER */
		out->flags |= TALLY_INSN_SYSCALL | TALLY_INSN_CARE;
		out->how = INSN_CALL;
	}
	if (d->opcode == 0xa2) {
		out->flags |= TALLY_INSN_CARE;
		out->how = INSN_BEHIND;
		out->cpuid = true;
	}
	out->tsc = d->opcode == 0x31 || (d->opcode == 0x01 && d->modrm == 0xf9);
}

void insn_x86(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits)
{
	struct decode d = { .bytes = bytes, .len = len < INSN_MAX ? len : INSN_MAX, .bits = bits };

	memset(out, 0, sizeof(*out));
	take_prefixes(&d);
	take_opcode(&d);
	unsigned what = follows(&d);
	bool bad = (what & BAD) && (bits == 64 || d.map != MAP_ONE || d.vector);
	if (what & M)
		take_modrm(&d);
	take_immediate(&d, what);
	if (bad || d.at > d.len) {
		out->flags = TALLY_INSN_UNKNOWN;
		return;
	}
	out->len = (uint8_t)d.at;
	if (d.vector)
		return;
	if (d.map == MAP_ONE)
		judge_one_byte(&d, out);
	else if (d.map == MAP_0F)
		judge_two_byte(&d, out);
}
