/* SPDX-License-Identifier: MIT */
/*
 * What a comparison of runs has to know of a machine: where a system call has its number, arguments and
 * result, and which instructions read what is not the program's. Pure; both machines everywhere.
 */
#ifndef INSPECT_SAME_MACHINE_H
#define INSPECT_SAME_MACHINE_H

#include <stddef.h>
#include <tally/tracee.h>

/* Bytes of an instruction that suffice to tell these. */
#define SAME_INSN_BYTES 8

enum same_insn_kind {
	SAME_INSN_OTHER,
	SAME_INSN_CALL,
	SAME_INSN_RDTSC,
	SAME_INSN_RDTSCP,
	SAME_INSN_RDRAND,
	SAME_INSN_RDSEED,
	SAME_INSN_CNTVCT,
	SAME_INSN_RNDR,
	SAME_INSN_KINDS,
};

struct same_insn {
	uint8_t kind;  /* enum same_insn_kind */
	uint8_t word;  /* of the registers: where it puts its answer */
	uint8_t bytes; /* of the answer */
};

/* Words of struct tally_tracee_regs. */
struct same_machine {
	uint8_t number; /* of a system call, before it is made */
	uint8_t made;   /* ... and where the kernel remembers it */
	uint8_t result, flags;
	uint8_t arg[6];
};

/* NULL: a machine that is not known. */
const struct same_machine *same_machine(uint32_t machine);

void same_insn_read(struct same_insn *out, uint32_t machine, const uint8_t *bytes, size_t len);
/* "RDTSC" */
const char *same_insn_name(uint32_t kind);

/* What the instruction has answered, and registers as if it had answered `value`. */
uint64_t same_insn_value(const struct tally_tracee_regs *regs, const struct same_insn *insn);
void same_insn_answer(struct tally_tracee_regs *regs, const struct same_insn *insn, uint64_t value);

/* Bytes of an area of vector registers that say nothing of these: XSAVE's header. */
bool same_vector_header(uint32_t machine, size_t byte);
/* "xmm3", of an area as tally_tracee_vector() gives it. */
void same_vector_name(char *out, size_t size, uint32_t machine, size_t byte);

#endif
