/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a section, decompressed where it is compressed: SHF_COMPRESSED with zlib or zstd
 * (System V gABI, chapter 4), and the older ".zdebug_" names of binutils with zlib.
 */
#ifndef IMAGE_ELF_CONTENT_H
#define IMAGE_ELF_CONTENT_H

#include "image/elf-input.h"

struct elf_content {
	uint8_t *at; /* malloc'ed; NULL: the section is empty */
	size_t size;
};

/*
 * The section of that name; for ".debug_x" also ".zdebug_x". NULL: none, or its bytes are not in
 * this file (strip and objcopy --only-keep-debug leave its header behind).
 */
const GElf_Shdr *elf_content_find(const struct elf_input *in, const char *name);

/*
 * Reads a section that elf_content_find() or elf_input_section() gave. Errors: -ENOEXEC: broken, or
 * larger than any real one; -ENOTSUP: compressed in an unknown way; -ENOMEM. elf_content_done() is
 * needed after success only.
 */
int elf_content_read(struct elf_content *out, const struct elf_input *in, const GElf_Shdr *section);

/* What an .xz file in memory holds. Errors: as elf_content_read. */
int elf_content_unpack_xz(struct elf_content *out, const struct elf_content *packed);

void elf_content_done(struct elf_content *content);

#endif
