/* SPDX-License-Identifier: MIT */
/* Where a function of an ELF file lies in the file, for uprobes. */
#ifndef EVENT_ELF_SYMBOL_H
#define EVENT_ELF_SYMBOL_H

#include <stddef.h>
#include <stdint.h>
#include <tally/error.h>

struct elf_function {
	uint64_t offset, size; /* in the file */
};

/*
 * Finds the function `name` of `len` bytes in the file `path`: in .symtab or else in .dynsym, by its
 * exact name; a global one goes before a weak, a weak before a local one. Errors, explained: those of
 * reading the file; -EINVAL when it is no ELF file of this byte order or its tables contradict each
 * other, when there is no such function (with the nearest), several of them, or one that a probe
 * cannot be put on; -ENOMEM.
 */
int elf_find_function(struct elf_function *out, const char *path, const char *name, size_t len,
		      struct tally_error *err);

/*
 * Whether a probe may be put at an offset of the file, that is in what is mapped executable: anywhere
 * else it would change data. Errors, explained: those of reading the file, -EINVAL.
 */
int elf_check_offset(const char *path, uint64_t offset, struct tally_error *err);

#endif
