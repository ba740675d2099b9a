/* SPDX-License-Identifier: MIT */
/* Instructions as text, by Zydis (x86), which is loaded when it is needed. */
#ifndef IMAGE_DISASSEMBLE_H
#define IMAGE_DISASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disassembler;

/*
 * `machine` is ELF's e_machine. Errors: -ENOTSUP: no such machine; -ENOENT: Zydis is not installed,
 * or in no version that we know; -ENOMEM.
 */
int disassembler_open(struct disassembler **out, uint32_t machine, bool is_64_bit, bool intel);
/* NULL is fine. */
void disassembler_close(struct disassembler *d);

/*
 * The instruction at the beginning of `bytes`, which runs at `address`. Returns its length; 0: there
 * is none. `text` lasts until the next call.
 */
size_t disassemble(struct disassembler *d, const uint8_t *bytes, size_t len, uint64_t address,
		   const char **text);

#endif
