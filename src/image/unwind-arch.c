/* SPDX-License-Identifier: MIT */
/*
 * The architectures: registers by their DWARF numbers (System V psABI of x86-64, figure 3.36;
 * AADWARF64, 4.1), and the signal frames of the kernel's uapi/asm/ucontext.h and sigcontext.h.
 */
#include <elf.h>
#include <string.h>

#include "base/bytes.h"
#include "image/unwind-arch.h"

#define BIT(n)         ((uint64_t)1 << (n))
#define BITS(from, to) ((BIT((to) - (from) + 1) - 1) << (from))

#define SAVED(number, at)                                        \
	{                                                        \
		.kind = RULE_AT, .reg = (number), .offset = (at) \
	}

enum {
	X86_RSP = 7,
	X86_RBP = 6,
	X86_RBX = 3,
	X86_RIP = 16,
};

/*
 * At its return to the trampoline the stack pointer is at the ucontext; registers are 40 bytes in.
 */
#define X86_CONTEXT 40

static const struct unwind_rule x86_context[] = {
	SAVED(8, X86_CONTEXT),
	SAVED(9, X86_CONTEXT + 8),
	SAVED(10, X86_CONTEXT + 16),
	SAVED(11, X86_CONTEXT + 24),
	SAVED(12, X86_CONTEXT + 32),
	SAVED(13, X86_CONTEXT + 40),
	SAVED(14, X86_CONTEXT + 48),
	SAVED(15, X86_CONTEXT + 56),
	SAVED(5, X86_CONTEXT + 64),
	SAVED(4, X86_CONTEXT + 72),
	SAVED(X86_RBP, X86_CONTEXT + 80),
	SAVED(X86_RBX, X86_CONTEXT + 88),
	SAVED(1, X86_CONTEXT + 96),
	SAVED(0, X86_CONTEXT + 104),
	SAVED(2, X86_CONTEXT + 112),
	SAVED(X86_RSP, X86_CONTEXT + 120),
	SAVED(X86_RIP, X86_CONTEXT + 128),
};

static const struct unwind_rules x86_trampoline = {
	.cfa = { .kind = RULE_REGISTER, .other = X86_RSP },
	.ra = X86_RIP,
	.count = ARRAY_SIZE(x86_context),
	.signal = true,
	.plain = true,
	.saved = x86_context,
};

static const struct unwind_rule x86_returns[] = { SAVED(X86_RIP, -8) };

static const struct unwind_rules x86_stub = {
	.cfa = { .kind = RULE_REGISTER, .other = X86_RSP, .offset = 8 },
	.ra = X86_RIP,
	.count = ARRAY_SIZE(x86_returns),
	.saved = x86_returns,
};

static const struct unwind_rules x86_pushed = {
	.cfa = { .kind = RULE_REGISTER, .other = X86_RSP, .offset = 16 },
	.ra = X86_RIP,
	.count = ARRAY_SIZE(x86_returns),
	.saved = x86_returns,
};

const struct unwind_arch unwind_x86_64 = {
	.machine = EM_X86_64,
	.pc = X86_RIP,
	.sp = X86_RSP,
	.fp = X86_RBP,
	.kept = BIT(X86_RBX) | BIT(X86_RBP) | BITS(12, 15),
	.address_mask = UINT64_MAX,
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip */
	.regs = 17,
	.perf_bits = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8 },
	/* mov $15, %rax; syscall */
	.trampoline = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
	.trampoline_len = 9,
	.trampoline_rules = &x86_trampoline,
	/* jmp *slot; push $index; jmp first stub */
	.stub_rules = &x86_stub,
	.pushed_rules = &x86_pushed,
	.stub_bytes = 16,
	.push_end = 11,
};

enum {
	ARM64_FP = 29,
	ARM64_LR = 30,
	ARM64_SP = 31,
	ARM64_PC = 32,
};

/* Above a siginfo of 128 bytes is the ucontext, in which the registers are 184 bytes in. */
#define ARM64_CONTEXT (128 + 184)
#define X(n)          SAVED(n, ARM64_CONTEXT + 8 * (n))

static const struct unwind_rule arm64_context[] = {
	X(0),  X(1),  X(2),  X(3),  X(4),  X(5),  X(6),  X(7),  X(8),  X(9),  X(10),
	X(11), X(12), X(13), X(14), X(15), X(16), X(17), X(18), X(19), X(20), X(21),
	X(22), X(23), X(24), X(25), X(26), X(27), X(28), X(29), X(30), X(31), X(32),
};

static const struct unwind_rules arm64_trampoline = {
	.cfa = { .kind = RULE_REGISTER, .other = ARM64_SP },
	.ra = ARM64_PC,
	.count = ARRAY_SIZE(arm64_context),
	.signal = true,
	.plain = true,
	.saved = arm64_context,
};

/* A stub changes neither the stack nor the link register. */
static const struct unwind_rules arm64_stub = {
	.cfa = { .kind = RULE_REGISTER, .other = ARM64_SP },
	.ra = ARM64_LR,
};

const struct unwind_arch unwind_arm64 = {
	.machine = EM_AARCH64,
	.pc = ARM64_PC,
	.sp = ARM64_SP,
	.fp = ARM64_FP,
	.kept = BITS(19, 30),
	/* Programs live below 2^48 unless they ask for more; a signature lies above [ARMv8.3]. */
	.address_mask = BITS(0, 47),
	.regs = 33,
	.perf_bits = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
		       17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 },
	/* mov x8, #139; svc #0 */
	.trampoline = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 },
	.trampoline_len = 8,
	.trampoline_rules = &arm64_trampoline,
	.stub_rules = &arm64_stub,
};

const struct unwind_arch *unwind_arch_named(const char *machine)
{
	static const struct {
		const char *name;
		const struct unwind_arch *arch;
	} names[] = {
		{ "x86_64", &unwind_x86_64 },
		{ "x86", &unwind_x86_64 }, /* perf's own name for both widths */
		{ "aarch64", &unwind_arm64 },
		{ "arm64", &unwind_arm64 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i].name, machine))
			return names[i].arch;
	return NULL;
}
