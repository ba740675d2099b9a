/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: what .eh_frame and .debug_frame are made of (DWARF 5, 6.4; LSB Core,
 * 10.6). Everything in it may be a lie: each read is checked, and a program takes time in
 * proportion to its bytes. 64-bit, little-endian targets only.
 */
#ifndef IMAGE_UNWIND_CFI_H
#define IMAGE_UNWIND_CFI_H

#include "image/unwind-rules.h"

struct cfi_section {
	const uint8_t *bytes;
	size_t len;
	uint64_t address; /* where the linker put it */
	bool debug_frame; /* not .eh_frame */
};

/* What is common to functions: a CIE. */
struct cfi_common {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;
	uint8_t encoding; /* of addresses in its FDEs */
	bool augmented, signal;
	size_t program, program_end; /* offsets in the section */
};

/* What is told of one function: an FDE. */
struct cfi_function {
	struct cfi_common common;
	uint64_t start, end; /* addresses */
	size_t program, program_end;
};

/* The rules at a place. */
struct cfi_state {
	struct unwind_rule cfa;
	struct unwind_rule regs[UNWIND_REGS];
};

/* The offset of the entry behind the one at `offset`; the section's length behind the last. */
size_t cfi_next(const struct cfi_section *section, size_t offset);

/* Reads the entry at `offset`. 1: a function; 0: something else; -EBADMSG: it is broken. */
int cfi_function_read(struct cfi_function *out, const struct cfi_section *section, size_t offset);

/*
 * A pointer of .eh_frame_hdr or .eh_frame at `*offset`, which is moved behind it. -EBADMSG: none.
 */
int cfi_pointer(const struct cfi_section *section, size_t *offset, uint8_t encoding, uint64_t base,
		uint64_t *out);

/* How pointers are written: DW_EH_PE_* */
#define CFI_OMIT        0xffu
#define CFI_DATAREL_S4  0x3bu
#define CFI_APPLICATION 0x70u
#define CFI_APP_PCREL   0x10u
#define CFI_APP_DATAREL 0x30u
#define CFI_INDIRECT    0x80u
#define CFI_FORMAT      0x0fu

/* Takes the rules that hold from `start` on; a negative answer ends the run. */
typedef int cfi_row_fn(void *arg, uint64_t start, const struct cfi_state *state);

/*
 * Runs the function's program: rows in ascending order. -EBADMSG: it is broken; or `row`'s answer.
 */
int cfi_run(const struct cfi_section *section, const struct cfi_function *f, cfi_row_fn *row,
	    void *arg);

#endif
