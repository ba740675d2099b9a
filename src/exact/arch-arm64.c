/* SPDX-License-Identifier: MIT */
/* arm64: registers as ptrace(2) gives them (struct user_pt_regs), and what the kernel's ABI says. */
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/sys.h"
#include "exact/arch.h"

enum {
	WORD_X0 = 0,
	WORD_X8 = 8,
	WORD_SP = 31,
	WORD_PC = 32,
	WORDS = 34, /* x0 to x30, sp, pc, pstate */
};

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

static const char *const names[WORDS] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",     "x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",    "x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate",
};

const struct arch arch = {
	.machine = EM_AARCH64,
	.words = WORDS,
	.pc = WORD_PC,
	.sp = WORD_SP,
	.result = WORD_X0,
	.names = names,
	.break_bytes = { 0x00, 0x00, 0x20, 0xd4 }, /* BRK #0 */
	.break_len = 4,
	.break_moves = 0,
	.call_bytes = { 0x01, 0x00, 0x00, 0xd4 }, /* SVC #0 */
	.call_len = 4,
	.vector_note = NT_PRFPREG,
};

int arch_get_regs(int32_t tid, struct tally_tracee_regs *regs)
{
	struct iovec iov = { regs->word, WORDS * sizeof(regs->word[0]) };

	regs->machine = arch.machine;
	regs->count = arch.words;
	return (int)sys()->ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, (unsigned long)&iov);
}

int arch_set_regs(int32_t tid, const struct tally_tracee_regs *regs)
{
	struct tally_tracee_regs copy = *regs;
	struct iovec iov = { copy.word, WORDS * sizeof(copy.word[0]) };

	return (int)sys()->ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, (unsigned long)&iov);
}

void arch_insn(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits)
{
	uint32_t word;

	if (len < sizeof(word)) {
		memset(out, 0, sizeof(*out));
		out->flags = TALLY_INSN_UNKNOWN;
		return;
	}
	memcpy(&word, bytes, sizeof(word));
	insn_arm64(out, word);
}

unsigned arch_bits(const struct tally_tracee_regs *regs)
{
	return 64;
}

uint64_t arch_call_arg(const struct tally_tracee_regs *regs, int index)
{
	return regs->word[WORD_X0 + index];
}

void arch_prepare_call(struct tally_tracee_regs *regs, long number, const uint64_t args[6],
		       uint64_t at)
{
	for (int i = 0; i < 6; i++)
		regs->word[WORD_X0 + i] = args[i];
	regs->word[WORD_X8] = (uint64_t)number;
	regs->word[WORD_PC] = at;
}

int arch_skip_call(int32_t tid, struct tally_tracee_regs *regs)
{
	int number = -1;
	struct iovec iov = { &number, sizeof(number) };

	return (int)sys()->ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, (unsigned long)&iov);
}
