/* SPDX-License-Identifier: MIT */
/*
 * What differs between architectures for one who traces a thread. Each has its file: arch-x86.c,
 * arch-arm64.c; arch-other.c for those that are not known, where nothing can be traced.
 */
#ifndef EXACT_ARCH_H
#define EXACT_ARCH_H

#include "exact/insn.h"

struct arch {
	uint32_t machine; /* as an ELF file has it */
	uint32_t words;   /* of struct tally_tracee_regs */
	uint32_t pc, sp;  /* words of it */
	uint32_t result;  /* where a system call leaves its result */
	const char *const *names;
	uint8_t break_bytes[4];
	uint8_t break_len;
	uint8_t break_moves; /* by so much the pc is behind a breakpoint that was executed */
	uint8_t call_bytes[4];
	uint8_t call_len;
	uint32_t vector_note; /* NT_... of the vector registers */
};

extern const struct arch arch;

int arch_get_regs(int32_t tid, struct tally_tracee_regs *regs);
int arch_set_regs(int32_t tid, const struct tally_tracee_regs *regs);

/* The instruction at the front of `bytes`. */
void arch_insn(struct insn *out, const uint8_t *bytes, size_t len, unsigned bits);
/* Whether code runs with 32 or 64 bits. */
unsigned arch_bits(const struct tally_tracee_regs *regs);

/* Registers for a system call by the instruction at `at`. */
void arch_prepare_call(struct tally_tracee_regs *regs, long number, const uint64_t args[6],
		       uint64_t at);
/* At the stop at a call's entry: its arguments, and making it none. */
uint64_t arch_call_arg(const struct tally_tracee_regs *regs, int index);
int arch_skip_call(int32_t tid, struct tally_tracee_regs *regs);
/* Whether the kernel will start the interrupted system call again when the thread goes on. */
bool arch_restarts(const struct tally_tracee_regs *regs);

/* Whether the program steps itself by the trap flag. */
bool arch_steps_itself(const struct tally_tracee_regs *regs);
/* How often a REP has yet to go. */
uint64_t arch_repeats(const struct tally_tracee_regs *regs);
/* Whether a REP over `repeats` times `element` bytes writes near `address`. */
bool arch_repeat_writes(const struct tally_tracee_regs *regs, unsigned element, uint64_t address);
/* Whether code there is emulated by the kernel, like a function that returns at once. */
bool arch_emulated(uint64_t pc);

#endif
