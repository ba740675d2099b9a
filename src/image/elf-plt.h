/* SPDX-License-Identifier: MIT */
/* Names for the stubs through which a module calls others. */
#ifndef IMAGE_ELF_PLT_H
#define IMAGE_ELF_PLT_H

#include "image/elf-input.h"
#include "image/elf.h"

/* symbol.kind of functions of an ELF file */
#define ELF_KIND_OPEN  1 /* no size was stated: `size` reaches to the end of its section */
#define ELF_KIND_PLT   2
#define ELF_KIND_LABEL 4 /* no function by its type: a name in hand-written assembly */

/*
 * Adds "name" with ELF_KIND_PLT for each stub that calls `name`, once the symbols are read; `dynsym`
 * NULL: the file has none. -ENOMEM.
 */
int elf_plt_add(struct elf_file *f, const struct elf_input *in, const GElf_Shdr *dynsym);

#endif
