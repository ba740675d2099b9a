/* SPDX-License-Identifier: MIT */
/*
 * The functions, segments and build-id of one ELF file. Everything in it may be a lie: sizes and
 * offsets are checked, texts are ended.
 */
#ifndef IMAGE_ELF_H
#define IMAGE_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/build-id.h"
#include "image/symtab.h"

struct elf_segment {
	uint64_t offset, size; /* in the file */
	uint64_t address;
	bool executable;
};

struct elf_input;

struct elf_file {
	struct symtab symtab;
	VEC(char) names;     /* string tables, each with a NUL behind it */
	VEC(char) plt_names; /* of functions that stubs call */
	VEC(struct elf_segment) segments;
	struct build_id build_id;
	bool has_symtab; /* not only the exported functions of .dynsym */
	bool has_locals; /* functions, too, that one file of the source has for itself */
};

/*
 * Reads an open file, or an image in memory, into a zeroed `*f`. The file may be closed
 * afterwards. Errors: -ENOEXEC: not an ELF file, or broken; -ENOMEM. On failure elf_file_done() is
 * the caller's.
 */
int elf_file_read(struct elf_file *f, int fd);
int elf_file_read_memory(struct elf_file *f, const void *image, size_t size);

/* Adds the symbols of the file that debug_file_find() gave. */
int elf_file_read_debug(struct elf_file *f, int fd);

/* Ends the reading: look-ups may follow. -ENOMEM. */
int elf_file_seal(struct elf_file *f);

/* Only where its parts are loaded, which is all that elf_file_address() needs. -ENOEXEC, -ENOMEM. */
int elf_file_read_segments(struct elf_file *f, const struct elf_input *in);

/* The linker's address of a byte of the file; false: no segment holds it. */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *address);

/*
 * For which offsets, ends inclusive, the same distance to the linker's address holds as for `offset`,
 * which lies in code; false: it does not.
 */
bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *first, uint64_t *last);

/* As the linker knows it, without "@plt". */
const char *elf_file_name(const struct elf_file *f, uint32_t index);
/* A stub that jumps to a function of that name in another file. */
bool elf_file_is_plt(const struct elf_file *f, uint32_t index);

/* Only the build-id of an open file; len 0: none. */
struct build_id elf_build_id(int fd);

void elf_file_done(struct elf_file *f);

#endif
