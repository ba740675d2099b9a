/* SPDX-License-Identifier: MIT */
/*
 * Names for the stubs of the procedure linkage table, which have no symbols of their own: they
 * stand in the order of the relocations of .rela.plt, each of which names a dynamic symbol. The
 * symbols and names are few among many, and are read one by one.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "image/elf-plt.h"

#define LONGEST_NAME 4096

/* The shape of a section of stubs: the linker's, by machine (psABIs, binutils). */
struct plt_shape {
	GElf_Half machine;
	const char *section;
	uint32_t head, entry;
};

static const struct plt_shape shapes[] = {
	{ EM_X86_64, ".plt", 16, 16 }, { EM_X86_64, ".plt.sec", 0, 16 }, { EM_386, ".plt", 16, 16 },
	{ EM_386, ".plt.sec", 0, 16 }, { EM_AARCH64, ".plt", 32, 16 },   { EM_ARM, ".plt", 20, 12 },
	{ EM_RISCV, ".plt", 32, 16 },
};

struct stubs {
	const struct elf_input *in;
	struct elf_file *f;
	const GElf_Shdr *dynsym, *dynstr;
	Elf_Data *relocs;
	size_t count;
	bool addends;
};

static const struct plt_shape *shape_of(const struct elf_input *in, const GElf_Shdr *section)
{
	const char *name = elf_input_section_name(in, section);

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (shapes[i].machine == in->head.e_machine && !strcmp(shapes[i].section, name))
			return &shapes[i];
	return NULL;
}

/* The dynamic symbol that relocation `i` is about; 0: none. */
static size_t relocated_symbol(const struct stubs *s, size_t i)
{
	GElf_Rela rela;
	GElf_Rel rel;

	if (s->addends)
		return gelf_getrela(s->relocs, (int)i, &rela) ? GELF_R_SYM(rela.r_info) : 0;
	return gelf_getrel(s->relocs, (int)i, &rel) ? GELF_R_SYM(rel.r_info) : 0;
}

/* Appends the name of relocation i's symbol. Its offset; -ENOENT: it has none; -ENOMEM. */
static int64_t add_name(const struct stubs *s, size_t i)
{
	GElf_Sym sym;
	char name[LONGEST_NAME];
	size_t index = relocated_symbol(s, i);

	if (!index || !elf_input_read_symbols(s->in, s->dynsym, index, 1, &sym) || !sym.st_name ||
	    sym.st_name >= s->dynstr->sh_size)
		return -ENOENT;
	uint64_t room = s->dynstr->sh_size - sym.st_name;
	/* Most names are short; a long one takes a second read. */
	for (size_t len = 256; len <= sizeof(name); len *= 16) {
		size_t n = room < len ? (size_t)room : len;
		if (!elf_input_read(s->in, name, n, s->dynstr->sh_offset + sym.st_name))
			return -ENOENT;
		const char *end = memchr(name, '\0', n);
		if (!end)
			continue;
		size_t size = (size_t)(end - name) + 1;
		size_t at = s->f->plt_names.count;
		if (at > UINT32_MAX - size || !vec_reserve(&s->f->plt_names, size))
			return -ENOMEM;
		memcpy(s->f->plt_names.at + at, name, size);
		s->f->plt_names.count += size;
		return (int64_t)at;
	}
	return -ENOENT;
}

static int add_stubs(const struct stubs *s, const GElf_Shdr *plt, const struct plt_shape *shape)
{
	for (size_t i = 0; i < s->count; i++) {
		uint64_t at = shape->head + i * shape->entry;
		if (at >= plt->sh_size || plt->sh_size - at < shape->entry)
			break;
		int64_t name = add_name(s, i);
		if (name == -ENOMEM)
			return -ENOMEM;
		if (name < 0)
			continue;
		struct symbol stub = {
			.name = (uint32_t)name,
			.binding = SYMBOL_GLOBAL,
			.kind = ELF_KIND_PLT,
		};
		if (!symtab_add(&s->f->symtab, plt->sh_addr + at, shape->entry, stub))
			return -ENOMEM;
	}
	return 0;
}

/* Finds .rela.plt or .rel.plt. */
static bool find_relocs(struct stubs *s)
{
	for (size_t i = 1; i < s->in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(s->in, i);
		if (!section || (section->sh_type != SHT_RELA && section->sh_type != SHT_REL))
			continue;
		const char *name = elf_input_section_name(s->in, section);
		s->addends = section->sh_type == SHT_RELA;
		if (strcmp(name, s->addends ? ".rela.plt" : ".rel.plt") != 0)
			continue;
		size_t size = gelf_fsize(s->in->elf, s->addends ? ELF_T_RELA : ELF_T_REL, 1,
					 EV_CURRENT);
		s->relocs = elf_getdata(elf_getscn(s->in->elf, i), NULL);
		if (!size || !s->relocs || !s->relocs->d_buf)
			return false;
		s->count = s->relocs->d_size / size;
		return s->count <= INT32_MAX;
	}
	return false;
}

int elf_plt_add(struct elf_file *f, const struct elf_input *in, const GElf_Shdr *dynsym)
{
	struct stubs s = {
		.in = in,
		.f = f,
		.dynsym = dynsym,
		.dynstr = elf_input_section(in, dynsym->sh_link),
	};

	if (!s.dynstr || s.dynstr->sh_type != SHT_STRTAB || !find_relocs(&s))
		return 0;
	/* A linker makes one section of each; thousands would cost their product with the stubs. */
	uint32_t done = 0;
	for (size_t i = 1; i < in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(in, i);
		if (!section || section->sh_type != SHT_PROGBITS)
			continue;
		const struct plt_shape *shape = shape_of(in, section);
		uint32_t bit = shape ? 1u << (shape - shapes) : 0;
		if (!shape || done & bit)
			continue;
		done |= bit;
		int r = add_stubs(&s, section, shape);
		if (r < 0)
			return r;
	}
	return 0;
}
