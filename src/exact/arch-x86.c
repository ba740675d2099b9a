/* SPDX-License-Identifier: MIT */
/* x86-64: registers as ptrace(2) gives them, and what the kernel's ABI says of them. */
#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "base/sys.h"
#include "exact/arch.h"

#define WORD(name) (offsetof(struct user_regs_struct, name) / sizeof(uint64_t))
#define WORDS      (sizeof(struct user_regs_struct) / sizeof(uint64_t))

#define TRAP_FLAG      (1u << 8)
#define DIRECTION_FLAG (1u << 10)

/* The kernel's code segment for 32-bit programs, __USER32_CS (arch/x86/include/asm/segment.h). */
#define CODE_32 0x23

/* Internal to the kernel, but seen by tracers: include/linux/errno.h. */
#define ERESTARTSYS           512
#define ERESTARTNOINTR        513
#define ERESTARTNOHAND        514
#define ERESTART_RESTARTBLOCK 516

/* The page of the old vsyscalls, arch/x86/include/uapi/asm/vsyscall.h. */
#define VSYSCALL_PAGE 0xffffffffff600000u
#define VSYSCALL_SIZE 4096u

static const char *const names[WORDS] = {
	"r15",    "r14", "r13", "r12",     "rbp",     "rbx", "r11",      "r10", "r9",
	"r8",     "rax", "rcx", "rdx",     "rsi",     "rdi", "orig_rax", "rip", "cs",
	"eflags", "rsp", "ss",  "fs_base", "gs_base", "ds",  "es",       "fs",  "gs",
};

const struct arch arch = {
	.machine = EM_X86_64,
	.words = WORDS,
	.pc = WORD(rip),
	.sp = WORD(rsp),
	.result = WORD(rax),
	.names = names,
	.break_bytes = { 0xcc },
	.break_len = 1,
	.break_moves = 1,
	.call_bytes = { 0x0f, 0x05 },
	.call_len = 2,
	.vector_note = NT_X86_XSTATE,
};

_Static_assert(WORDS <= TALLY_TRACEE_REGS_MAX, "all registers must fit");

int arch_get_regs(int32_t tid, struct tally_tracee_regs *regs)
{
	regs->machine = arch.machine;
	regs->count = arch.words;
	return (int)sys()->ptrace(PTRACE_GETREGS, tid, 0, (unsigned long)regs->word);
}

int arch_set_regs(int32_t tid, const struct tally_tracee_regs *regs)
{
	return (int)sys()->ptrace(PTRACE_SETREGS, tid, 0, (unsigned long)regs->word);
}

void arch_insn(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits)
{
	insn_x86(out, bytes, len, bits);
}

unsigned arch_bits(const struct tally_tracee_regs *regs)
{
	return regs->word[WORD(cs)] == CODE_32 ? 32 : 64;
}

static const uint8_t call_args[6] = {
	WORD(rdi), WORD(rsi), WORD(rdx), WORD(r10), WORD(r8), WORD(r9)
};

uint64_t arch_call_arg(const struct tally_tracee_regs *regs, int index)
{
	return regs->word[call_args[index]];
}

void arch_prepare_call(struct tally_tracee_regs *regs, long number, const uint64_t args[6],
		       uint64_t at)
{
	for (int i = 0; i < 6; i++)
		regs->word[call_args[i]] = args[i];
	regs->word[WORD(rax)] = (uint64_t)number;
	regs->word[WORD(orig_rax)] = UINT64_MAX; /* no call is to be restarted */
	regs->word[WORD(rip)] = at;
}

int arch_skip_call(int32_t tid, struct tally_tracee_regs *regs)
{
	regs->word[WORD(orig_rax)] = UINT64_MAX;
	return arch_set_regs(tid, regs);
}

bool arch_restarts(const struct tally_tracee_regs *regs)
{
	int64_t result = (int64_t)regs->word[WORD(rax)];

	if ((int64_t)regs->word[WORD(orig_rax)] < 0)
		return false;
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
	       result == -ERESTART_RESTARTBLOCK;
}

bool arch_steps_itself(const struct tally_tracee_regs *regs)
{
	return regs->word[WORD(eflags)] & TRAP_FLAG;
}

uint64_t arch_repeats(const struct tally_tracee_regs *regs)
{
	uint64_t count = regs->word[WORD(rcx)];

	return arch_bits(regs) == 32 ? (uint32_t)count : count;
}

bool arch_repeat_writes(const struct tally_tracee_regs *regs, unsigned element, uint64_t address)
{
	uint64_t count = arch_repeats(regs), to = regs->word[WORD(rdi)];
	bool down = regs->word[WORD(eflags)] & DIRECTION_FLAG;
	uint64_t distance = down ? to + element - address : address - to + element;

	/* Too many to be true will end in a fault, wherever that is. */
	return count > UINT64_MAX / 16 || distance <= (count + 2) * element;
}

bool arch_emulated(uint64_t pc)
{
	return pc - VSYSCALL_PAGE < VSYSCALL_SIZE;
}
