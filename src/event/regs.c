/* SPDX-License-Identifier: MIT */
/*
 * Names of the registers that samples carry, by the bits of attr.sample_regs_user. Each list is that
 * of the architecture's include/uapi/asm/perf_regs.h.
 */
#include <stdio.h>
#include <string.h>

#include <tally/record.h>

#include "base/bytes.h"

static const char *const x86[] = {
	"AX",
	"BX",
	"CX",
	"DX",
	"SI",
	"DI",
	"BP",
	"SP",
	"IP",
	"FLAGS",
	"CS",
	"SS",
	"DS",
	"ES",
	"FS",
	"GS",
	"R8",
	"R9",
	"R10",
	"R11",
	"R12",
	"R13",
	"R14",
	"R15",
	/* Each of XMM0 to XMM15 has two bits, of which the lower is named [5.3]. */
	[32] = "XMM0",
	[34] = "XMM1",
	[36] = "XMM2",
	[38] = "XMM3",
	[40] = "XMM4",
	[42] = "XMM5",
	[44] = "XMM6",
	[46] = "XMM7",
	[48] = "XMM8",
	[50] = "XMM9",
	[52] = "XMM10",
	[54] = "XMM11",
	[56] = "XMM12",
	[58] = "XMM13",
	[60] = "XMM14",
	[62] = "XMM15",
};

static const char
	*const arm64[] = {
		"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",        "x7",  "x8",
		"x9",  "x10", "x11", "x12", "x13", "x14", "x15",       "x16", "x17",
		"x18", "x19", "x20", "x21", "x22", "x23", "x24",       "x25", "x26",
		"x27", "x28", "x29", "lr",  "sp",  "pc",  [46] = "vg", /* length of the vectors of SVE [6.1] */
	};

static const char *const arm[] = {
	"r0", "r1", "r2",  "r3", "r4", "r5", "r6", "r7",
	"r8", "r9", "r10", "fp", "ip", "sp", "lr", "pc",
};

static const char *const riscv[] = {
	"pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
	"a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
	"s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

static const char *const powerpc[] = {
	"r0",
	"r1",
	"r2",
	"r3",
	"r4",
	"r5",
	"r6",
	"r7",
	"r8",
	"r9",
	"r10",
	"r11",
	"r12",
	"r13",
	"r14",
	"r15",
	"r16",
	"r17",
	"r18",
	"r19",
	"r20",
	"r21",
	"r22",
	"r23",
	"r24",
	"r25",
	"r26",
	"r27",
	"r28",
	"r29",
	"r30",
	"r31",
	"nip",
	"msr",
	"orig_r3",
	"ctr",
	"link",
	"xer",
	"ccr",
	"softe",
	"trap",
	"dar",
	"dsisr",
	"sier",
	"mmcra",
	/* Extended, with REGS_INTR [5.8]. */
	"mmcr0",
	"mmcr1",
	"mmcr2",
	"mmcr3",
	"sier2",
	"sier3",
	"pmc1",
	"pmc2",
	"pmc3",
	"pmc4",
	"pmc5",
	"pmc6",
	"sdar",
	"siar",
};

static const char *const s390[] = {
	"r0",  "r1",  "r2",   "r3",   "r4",   "r5",   "r6",   "r7",   "r8",   "r9",  "r10", "r11",
	"r12", "r13", "r14",  "r15",  "fp0",  "fp1",  "fp2",  "fp3",  "fp4",  "fp5", "fp6", "fp7",
	"fp8", "fp9", "fp10", "fp11", "fp12", "fp13", "fp14", "fp15", "mask", "pc",
};

#define LOWEST(bits) ((1ull << (bits)) - 1)

/*
 * Without DS, ES, FS and GS, which the kernel refuses to 64-bit programs (REG_NOSUPPORT,
 * arch/x86/kernel/perf_regs.c); a 32-bit one has no R8 to R15.
 */
#define X86_64_GENERAL 0xff0fffull
#define X86_32_GENERAL 0xffffull

/* By uname -m, the first whose beginning fits. */
static const struct {
	const char *machine;
	const char *const *names;
	unsigned count;
	uint64_t general;
} machines[] = {
	{ "x86_64", x86, ARRAY_SIZE(x86), X86_64_GENERAL },
	{ "i386", x86, 16, X86_32_GENERAL },
	{ "i486", x86, 16, X86_32_GENERAL },
	{ "i586", x86, 16, X86_32_GENERAL },
	{ "i686", x86, 16, X86_32_GENERAL },
	{ "aarch64", arm64, ARRAY_SIZE(arm64), LOWEST(33) },
	{ "arm64", arm64, ARRAY_SIZE(arm64), LOWEST(33) },
	{ "arm", arm, ARRAY_SIZE(arm), LOWEST(16) },
	{ "riscv", riscv, ARRAY_SIZE(riscv), LOWEST(32) },
	{ "ppc", powerpc, ARRAY_SIZE(powerpc), LOWEST(45) },
	{ "powerpc", powerpc, ARRAY_SIZE(powerpc), LOWEST(45) },
	{ "s390", s390, ARRAY_SIZE(s390), LOWEST(34) },
};

const char *tally_reg_name(const char *machine, unsigned bit)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strncmp(machine, machines[i].machine, strlen(machines[i].machine)))
			return bit < machines[i].count ? machines[i].names[bit] : NULL;
	return NULL;
}

uint64_t tally_regs_general(const char *machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strncmp(machine, machines[i].machine, strlen(machines[i].machine)))
			return machines[i].general;
	return 0;
}
