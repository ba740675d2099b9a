/* SPDX-License-Identifier: MIT */
/*
 * Registers by machine, and the instructions that read clocks and random numbers: Intel SDM vol. 2
 * (RDTSC 0f 31, RDTSCP 0f 01 f9, RDRAND 0f c7 /6, RDSEED 0f c7 /7, SYSCALL 0f 05); Arm ARM, "System
 * registers in AArch64" (MRS of CNTVCT_EL0, CNTVCTSS_EL0, RNDR, RNDRRS).
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "inspect/same-machine.h"

/* Words of x86-64's registers, struct user_regs_struct. */
enum {
	X86_R15,
	X86_R14,
	X86_R13,
	X86_R12,
	X86_RBP,
	X86_RBX,
	X86_R11,
	X86_R10,
	X86_R9,
	X86_R8,
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RSI,
	X86_RDI,
	X86_ORIG_RAX,
	X86_FLAGS = 18,
	X86_RSP = 19,
};

/* And of arm64's, struct user_pt_regs: X0 to X30 come first. */
enum {
	ARM64_PSTATE = 33,
	ARM64_XZR = 31, /* as a number in an instruction */
};

#define X86_CARRY        1u
#define X86_STATUS_FLAGS 0x8d5u /* CF, PF, AF, ZF, SF, OF */
#define ARM64_NZCV       0xf0000000u

/* Intel SDM vol. 1, 13.4: the legacy area, the header, the rest. */
#define XSAVE_X87     32
#define XSAVE_XMM     160
#define XSAVE_RESERVE 416
#define XSAVE_REST    576
#define XSAVE_YMM_END 832
/* struct user_fpsimd_state: 32 registers of 16 bytes come first. */
#define ARM64_STATUS 512

static const struct same_machine x86 = {
	.number = X86_RAX,
	.made = X86_ORIG_RAX,
	.result = X86_RAX,
	.flags = X86_FLAGS,
	.arg = { X86_RDI, X86_RSI, X86_RDX, X86_R10, X86_R8, X86_R9 },
};

static const struct same_machine arm64 = {
	.number = 8,
	.made = 8,
	.result = 0,
	.flags = ARM64_PSTATE,
	.arg = { 0, 1, 2, 3, 4, 5 },
};

const struct same_machine *same_machine(uint32_t machine)
{
	return machine == EM_X86_64 ? &x86 : machine == EM_AARCH64 ? &arm64 : NULL;
}

/* 0f c7 with a register as its operand. */
static void read_random(struct same_insn *out, uint8_t modrm, uint8_t rex, bool narrow)
{
	static const uint8_t words[16] = {
		X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI,
		X86_R8,  X86_R9,  X86_R10, X86_R11, X86_R12, X86_R13, X86_R14, X86_R15,
	};
	unsigned group = modrm >> 3 & 7;

	if (modrm >> 6 != 3 || group < 6)
		return;
	out->kind = group == 6 ? SAME_INSN_RDRAND : SAME_INSN_RDSEED;
	out->word = words[(modrm & 7) | (rex & 1 ? 8 : 0)];
	out->bytes = rex & 8 ? 8 : narrow ? 2 : 4;
}

static void read_x86(struct same_insn *out, const uint8_t *bytes, size_t len)
{
	size_t at = 0;
	bool narrow = false, repeated = false;
	uint8_t rex = 0;

	for (; at < len; at++) {
		if (bytes[at] == 0x66)
			narrow = true;
		else if (bytes[at] == 0xf2 || bytes[at] == 0xf3)
			repeated = true;
		else
			break;
	}
	if (at < len && (bytes[at] & 0xf0) == 0x40)
		rex = bytes[at++];
	if (at + 1 >= len || bytes[at] != 0x0f)
		return;
	uint8_t second = bytes[at + 1], third = at + 2 < len ? bytes[at + 2] : 0;
	out->bytes = 8;
	if (second == 0x05)
		out->kind = SAME_INSN_CALL;
	else if (second == 0x31)
		out->kind = SAME_INSN_RDTSC;
	else if (second == 0x01 && third == 0xf9)
		out->kind = SAME_INSN_RDTSCP;
	else if (second == 0xc7 && !repeated) /* f3: RDPID, SENDUIPI */
		read_random(out, third, rex, narrow);
}

static void read_arm64(struct same_insn *out, const uint8_t *bytes, size_t len)
{
	static const struct {
		uint32_t word, mask;
		enum same_insn_kind kind;
	} table[] = {
		{ 0xd4000001, 0xffe0001f, SAME_INSN_CALL },
		{ 0xd53be040, 0xffffffe0, SAME_INSN_CNTVCT },
		{ 0xd53be0c0, 0xffffffe0, SAME_INSN_CNTVCT },
		{ 0xd53b2400, 0xffffffe0, SAME_INSN_RNDR },
		{ 0xd53b2420, 0xffffffe0, SAME_INSN_RNDR },
	};

	if (len < sizeof(uint32_t))
		return;
	uint32_t word = load_u32(bytes, false);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if ((word & table[i].mask) == table[i].word)
			out->kind = table[i].kind;
	out->word = word & 0x1f;
	out->bytes = 8;
}

void same_insn_read(struct same_insn *out, uint32_t machine, const uint8_t *bytes, size_t len)
{
	memset(out, 0, sizeof(*out));
	if (machine == EM_X86_64)
		read_x86(out, bytes, len);
	else if (machine == EM_AARCH64)
		read_arm64(out, bytes, len);
}

const char *same_insn_name(uint32_t kind)
{
	static const char *const names[SAME_INSN_KINDS] = {
		[SAME_INSN_OTHER] = "an instruction", [SAME_INSN_CALL] = "a system call",
		[SAME_INSN_RDTSC] = "RDTSC",          [SAME_INSN_RDTSCP] = "RDTSCP",
		[SAME_INSN_RDRAND] = "RDRAND",        [SAME_INSN_RDSEED] = "RDSEED",
		[SAME_INSN_CNTVCT] = "CNTVCT",        [SAME_INSN_RNDR] = "RNDR",
	};

	return kind < SAME_INSN_KINDS ? names[kind] : "?";
}

uint64_t same_insn_value(const struct tally_tracee_regs *regs, const struct same_insn *insn)
{
	if (insn->kind == SAME_INSN_RDTSC || insn->kind == SAME_INSN_RDTSCP)
		return regs->word[X86_RDX] << 32 | (uint32_t)regs->word[X86_RAX];
	return insn->word == ARM64_XZR && regs->machine == EM_AARCH64 ? 0 : regs->word[insn->word];
}

static void answer_x86_random(struct tally_tracee_regs *regs, const struct same_insn *insn,
			      uint64_t value)
{
	uint64_t *word = &regs->word[insn->word];

	if (insn->bytes == 2)
		*word = (*word & ~(uint64_t)0xffff) | (value & 0xffff);
	else
		*word = insn->bytes == 4 ? (uint32_t)value : value;
	regs->word[X86_FLAGS] = (regs->word[X86_FLAGS] & ~(uint64_t)X86_STATUS_FLAGS) | X86_CARRY;
}

/* Arm ARM, RNDR: the flags are 0 when there was a number. */
static void answer_arm64(struct tally_tracee_regs *regs, const struct same_insn *insn,
			 uint64_t value)
{
	if (insn->kind == SAME_INSN_RNDR)
		regs->word[ARM64_PSTATE] &= ~(uint64_t)ARM64_NZCV;
	if (insn->word != ARM64_XZR)
		regs->word[insn->word] = value;
}

void same_insn_answer(struct tally_tracee_regs *regs, const struct same_insn *insn, uint64_t value)
{
	switch (insn->kind) {
	case SAME_INSN_RDTSC:
	case SAME_INSN_RDTSCP:
		regs->word[X86_RAX] = (uint32_t)value;
		regs->word[X86_RDX] = value >> 32;
		return;
	case SAME_INSN_RDRAND:
	case SAME_INSN_RDSEED:
		answer_x86_random(regs, insn, value);
		return;
	case SAME_INSN_RNDR:
	case SAME_INSN_CNTVCT:
		answer_arm64(regs, insn, value);
		return;
	default:
		return;
	}
}

/* It tells which parts were never used, and that may be told otherwise. */
bool same_vector_header(uint32_t machine, size_t byte)
{
	return machine == EM_X86_64 && byte >= XSAVE_RESERVE && byte < XSAVE_REST;
}

void same_vector_name(char *out, size_t size, uint32_t machine, size_t byte)
{
	if (machine == EM_AARCH64 && byte >= ARM64_STATUS)
		snprintf(out, size, "fpsr or fpcr, byte %zu", byte - ARM64_STATUS);
	else if (machine == EM_AARCH64)
		snprintf(out, size, "v%zu, byte %zu", byte / 16, byte % 16);
	else if (byte < XSAVE_X87)
		snprintf(out, size, "x87 control, byte %zu", byte);
	else if (byte < XSAVE_XMM)
		snprintf(out, size, "st%zu, byte %zu", (byte - XSAVE_X87) / 16,
			 (byte - XSAVE_X87) % 16);
	else if (byte < XSAVE_RESERVE)
		snprintf(out, size, "xmm%zu, byte %zu", (byte - XSAVE_XMM) / 16,
			 (byte - XSAVE_XMM) % 16);
	else if (byte >= XSAVE_REST && byte < XSAVE_YMM_END)
		snprintf(out, size, "ymm%zu, byte %zu", (byte - XSAVE_REST) / 16,
			 16 + (byte - XSAVE_REST) % 16);
	else
		snprintf(out, size, "XSAVE area, byte %zu", byte);
}
