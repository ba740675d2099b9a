/* SPDX-License-Identifier: MIT */
/*
 * An ELF file while it is read. libelf decodes headers; the large tables are read here in pieces,
 * since libelf would put each of them into fresh memory first, and a mapping of the file would end
 * the process when somebody truncates it meanwhile.
 */
#ifndef IMAGE_ELF_INPUT_H
#define IMAGE_ELF_INPUT_H

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/build-id.h"

/* Real sections stay far below it. */
#define ELF_INPUT_MAX_SECTION ((uint64_t)1 << 30)

struct elf_input {
	int fd;
	uint64_t size;
	Elf *elf;
	GElf_Ehdr head;
	VEC(GElf_Shdr) sections;
};

/* -ENOEXEC: not an ELF file; -ENOMEM. elf_input_done() is the caller's in any case. */
int elf_input_open(struct elf_input *in, int fd);
void elf_input_done(struct elf_input *in);

/* Exactly these bytes of the file. false: there are not so many. */
bool elf_input_read(const struct elf_input *in, void *out, size_t len, uint64_t offset);

/* Whether its byte order is not ours. */
bool elf_input_is_swapped(const struct elf_input *in);

/* len 0: it has none. */
struct build_id elf_input_build_id(const struct elf_input *in);

/* NULL: no such section, or it does not lie in the file, or is absurdly large. */
const GElf_Shdr *elf_input_section(const struct elf_input *in, size_t index);
/* "" when it has none. */
const char *elf_input_section_name(const struct elf_input *in, const GElf_Shdr *section);

/* How many symbols a section holds. */
size_t elf_input_symbols(const struct elf_input *in, const GElf_Shdr *table);
/* Decodes `count` of them from index `first` on. false: they are not there. */
bool elf_input_read_symbols(const struct elf_input *in, const GElf_Shdr *table, size_t first,
			    size_t count, GElf_Sym *out);

#endif
