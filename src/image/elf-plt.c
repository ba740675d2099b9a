/* SPDX-License-Identifier: MIT */
/*
 * Names for the stubs of procedure linkage tables, which have no symbols of their own. A stub jumps
 * to what a slot of the global offset table holds, and a relocation names the function whose address
 * the loader puts there. So where stubs can be taken apart, a stub is named by its slot, however the
 * linker lays out its tables (ld, lld and mold differ; .plt.sec, .plt.got and .iplt have orders of
 * their own). Elsewhere stubs stand in the order of the relocations of .rela.plt. The symbols and
 * names are few among many, and are read one by one.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "image/elf-content.h"
#include "image/elf-plt.h"

#define LONGEST_NAME 4096

/* Relocations are read by so many bytes. */
#define PIECE 12288

/* Real tables have far fewer entries. */
#define MAX_STUBS     (1u << 20)
#define MAX_RESOLVERS 256

/* What the loader puts into a slot: the address of a symbol's function, or what a resolver chooses. */
struct slot {
	uint64_t address;
	uint32_t symbol; /* 0: none, but: */
	uint64_t resolver;
};

struct stubs {
	const struct elf_input *in;
	struct elf_file *f;
	const GElf_Shdr *dynsym, *dynstr;
	VEC(struct slot) ordered; /* of .rela.plt */
	VEC(struct slot) sorted;  /* of all relocations, by address */
	uint64_t got;             /* where .got.plt begins: what 32-bit stubs count from */
	size_t resolvers;
};

/* Appends a name behind the others. Its offset; -ENOMEM. */
static int64_t add_text(struct elf_file *f, const char *name, size_t size)
{
	size_t at = f->plt_names.count;

	if (at > UINT32_MAX - size || !vec_reserve(&f->plt_names, size))
		return -ENOMEM;
	memcpy(f->plt_names.at + at, name, size);
	f->plt_names.count += size;
	return (int64_t)at;
}

/* Appends the name of a dynamic symbol. -ENOENT: it has none. */
static int64_t add_symbol_name(const struct stubs *s, size_t index)
{
	GElf_Sym sym;
	char name[LONGEST_NAME];

	if (!index || !s->dynstr || !elf_input_read_symbols(s->in, s->dynsym, index, 1, &sym) ||
	    !sym.st_name || sym.st_name >= s->dynstr->sh_size)
		return -ENOENT;
	uint64_t room = s->dynstr->sh_size - sym.st_name;
	/* Most names are short; a long one takes a second read. */
	for (size_t len = 256; len <= sizeof(name); len *= 16) {
		size_t n = room < len ? (size_t)room : len;
		if (!elf_input_read(s->in, name, n, s->dynstr->sh_offset + sym.st_name))
			return -ENOENT;
		const char *end = memchr(name, '\0', n);
		if (end)
			return add_text(s->f, name, (size_t)(end - name) + 1);
	}
	return -ENOENT;
}

/* Appends the name of a function that chooses another (STT_GNU_IFUNC): the chosen one's, too. */
static int64_t add_resolver_name(struct stubs *s, uint64_t resolver)
{
	struct symtab *t = &s->f->symtab;

	const struct symbol *best = NULL;
	char name[LONGEST_NAME];

	/* Nothing is sorted yet. Programs that are linked statically have some dozens of them. */
	if (s->resolvers++ >= MAX_RESOLVERS)
		return -ENOENT;
	vec_each (&t->symbols, symbol)
		if (t->base + symbol->start == resolver && !(symbol->kind & ELF_KIND_PLT) &&
		    (!best || symbol->binding > best->binding))
			best = symbol;
	if (!best)
		return -ENOENT;
	snprintf(name, sizeof(name), "%s", s->f->names.at + best->name);
	return add_text(s->f, name, strlen(name) + 1);
}

static int add_stub(struct stubs *s, uint64_t address, uint64_t size, const struct slot *slot)
{
	int64_t name = slot->symbol ? add_symbol_name(s, slot->symbol)
				    : add_resolver_name(s, slot->resolver);

	if (name < 0)
		return name == -ENOMEM ? -ENOMEM : 0;
	struct symbol stub = {
		.name = (uint32_t)name,
		.binding = SYMBOL_GLOBAL,
		.kind = ELF_KIND_PLT,
	};
	return symtab_add(&s->f->symtab, address, size, stub) ? 0 : -ENOMEM;
}

/* ---- relocations ---- */

/* The type of a relocation that calls a resolver: R_X86_64_IRELATIVE and its kin. */
static bool is_resolved(GElf_Half machine, uint64_t type)
{
	switch (machine) {
	case EM_X86_64:
		return type == 37;
	case EM_386:
		return type == 42;
	case EM_AARCH64:
		return type == 1032;
	default:
		return false;
	}
}

/* Relocations of one section, in the file's form: Elf32_Rel, Elf32_Rela, Elf64_Rel, Elf64_Rela. */
struct relocs {
	bool wide, addends, swapped, of_plt;
	size_t size;
};

static struct slot decode(const struct relocs *form, const uint8_t *at, uint64_t *type)
{
	bool sw = form->swapped;
	uint64_t info = form->wide ? load_u64(at + 8, sw) : load_u32(at + 4, sw);
	struct slot slot = {
		.address = form->wide ? load_u64(at, sw) : load_u32(at, sw),
		.symbol = (uint32_t)(form->wide ? info >> 32 : info >> 8),
	};

	*type = form->wide ? info & UINT32_MAX : info & 0xff;
	if (form->addends)
		slot.resolver = form->wide ? load_u64(at + 16, sw) : load_u32(at + 8, sw);
	return slot;
}

static bool take_relocation(struct stubs *s, const struct relocs *form, const uint8_t *at)
{
	uint64_t type;
	struct slot slot = decode(form, at, &type);
	bool named = slot.symbol || is_resolved(s->in->head.e_machine, type);

	if ((!named && !form->of_plt) || s->sorted.count >= MAX_STUBS)
		return true;
	struct slot *ordered = form->of_plt ? vec_push(&s->ordered) : NULL;
	struct slot *sorted = named ? vec_push(&s->sorted) : NULL;
	if ((form->of_plt && !ordered) || (named && !sorted))
		return false;
	if (ordered)
		*ordered = slot;
	if (sorted)
		*sorted = slot;
	return true;
}

static int read_relocations(struct stubs *s, const GElf_Shdr *section, bool of_plt)
{
	uint8_t piece[PIECE];
	struct relocs form = {
		.wide = s->in->head.e_ident[EI_CLASS] == ELFCLASS64,
		.addends = section->sh_type == SHT_RELA,
		.swapped = elf_input_is_swapped(s->in),
		.of_plt = of_plt,
	};

	form.size = (form.addends ? 3 : 2) * (form.wide ? 8 : 4);
	size_t most = sizeof(piece) / form.size * form.size;
	for (uint64_t at = 0; section->sh_size - at >= form.size;) {
		uint64_t left = section->sh_size - at;
		size_t len = left < most ? (size_t)(left / form.size * form.size) : most;
		if (!elf_input_read(s->in, piece, len, section->sh_offset + at))
			break;
		for (size_t i = 0; i < len; i += form.size)
			if (!take_relocation(s, &form, piece + i))
				return -ENOMEM;
		at += len;
	}
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static bool has_section(const struct stubs *s, const char *name)
{
	for (size_t i = 1; i < s->in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(s->in, i);
		if (section && !strcmp(elf_input_section_name(s->in, section), name))
			return true;
	}
	return false;
}

/* The stubs of .plt.got and .iplt jump through slots of all relocations, which may be many. */
static int find_slots(struct stubs *s)
{
	bool all = has_section(s, ".plt.got") || has_section(s, ".iplt");

	for (size_t i = 1; i < s->in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(s->in, i);
		if (!section || !(section->sh_flags & SHF_ALLOC))
			continue;
		const char *name = elf_input_section_name(s->in, section);
		if (!strcmp(name, ".got.plt") || (!s->got && !strcmp(name, ".got")))
			s->got = section->sh_addr;
		if (section->sh_type != SHT_RELA && section->sh_type != SHT_REL)
			continue;
		bool of_plt = !strcmp(name, ".rela.plt") || !strcmp(name, ".rel.plt");
		int r = of_plt || all ? read_relocations(s, section, of_plt) : 0;
		if (r < 0)
			return r;
	}
	if (s->sorted.count)
		qsort(s->sorted.at, s->sorted.count, sizeof(*s->sorted.at), compare_slots);
	return 0;
}

static const struct slot *slot_at(const struct stubs *s, uint64_t address)
{
	size_t low = 0, high = s->sorted.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->sorted.at[middle].address == address)
			return &s->sorted.at[middle];
		if (s->sorted.at[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- sections of stubs ---- */

/* Code from some place on to the end of its section. */
struct code {
	const uint8_t *at;
	size_t left;
	uint64_t address;
};

/* Instructions are in this order, whatever the data's is. */
static uint32_t little_u32(const uint8_t *p)
{
	return load_u32(p, BYTE_ORDER == BIG_ENDIAN);
}

/* jmp *disp(%rip), as AMD's manual has it: FF /4. The slot that is jumped through; 0: no such jump. */
static uint64_t slot_x86_64(const struct stubs *s, const struct code *c)
{
	if (c->left < 6 || c->at[0] != 0xff || c->at[1] != 0x25)
		return 0;
	return c->address + 6 + (uint64_t)(int32_t)little_u32(c->at + 2);
}

/* jmp *slot, or where code may lie anywhere jmp *disp(%ebx), %ebx being the table's address. */
static uint64_t slot_386(const struct stubs *s, const struct code *c)
{
	if (c->left < 6 || c->at[0] != 0xff || (c->at[1] != 0x25 && c->at[1] != 0xa3))
		return 0;
	return (uint32_t)(little_u32(c->at + 2) + (c->at[1] == 0xa3 ? s->got : 0));
}

/* adrp x16, page; ldr x17, [x16, #offset]; add; br x17 (AArch64 ELF ABI). */
static uint64_t slot_aarch64(const struct stubs *s, const struct code *c)
{
	if (c->left < 8 || c->address % 4)
		return 0;
	uint32_t adrp = little_u32(c->at), ldr = little_u32(c->at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return 0;
	int64_t page = (int64_t)((uint64_t)(adrp >> 5 & 0x7ffff) << 45) >> 43 | (adrp >> 29 & 3);
	return (c->address & ~(uint64_t)0xfff) + ((uint64_t)page << 12) + (ldr >> 10 & 0xfff) * 8;
}

/* The shape of a section of stubs: the linker's, by machine (psABIs, binutils). */
struct plt_shape {
	GElf_Half machine;
	const char *section;
	uint32_t head, entry; /* where nothing else tells */
	uint64_t (*slot)(const struct stubs *s, const struct code *c);
};

static const struct plt_shape shapes[] = {
	{ EM_X86_64, ".plt", 16, 16, slot_x86_64 },
	{ EM_X86_64, ".plt.sec", 0, 16, slot_x86_64 },
	{ EM_X86_64, ".plt.got", 0, 8, slot_x86_64 },
	{ EM_X86_64, ".iplt", 0, 16, slot_x86_64 },
	{ EM_386, ".plt", 16, 16, slot_386 },
	{ EM_386, ".plt.sec", 0, 16, slot_386 },
	{ EM_386, ".plt.got", 0, 8, slot_386 },
	{ EM_386, ".iplt", 0, 16, slot_386 },
	{ EM_AARCH64, ".plt", 32, 16, slot_aarch64 },
	{ EM_AARCH64, ".iplt", 0, 16, slot_aarch64 },
	{ EM_ARM, ".plt", 20, 12, NULL },
	{ EM_RISCV, ".plt", 32, 16, NULL },
};

static const struct plt_shape *shape_of(const struct elf_input *in, const GElf_Shdr *section)
{
	const char *name = elf_input_section_name(in, section);

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (shapes[i].machine == in->head.e_machine && !strcmp(shapes[i].section, name))
			return &shapes[i];
	return NULL;
}

/* A jump through a slot that has a name. */
struct jump {
	size_t at; /* in the section */
	const struct slot *slot;
};

struct jumps {
	VEC(struct jump) found;
};

static bool find_jumps(struct jumps *out, const struct stubs *s, const struct elf_content *code,
		       const GElf_Shdr *plt, const struct plt_shape *shape)
{
	for (size_t at = 0; at < code->size && out->found.count < MAX_STUBS; at++) {
		struct code c = { code->at + at, code->size - at, plt->sh_addr + at };
		uint64_t address = shape->slot(s, &c);
		const struct slot *slot = address ? slot_at(s, address) : NULL;
		struct jump *jump = slot ? vec_push(&out->found) : NULL;
		if (slot && !jump)
			return false;
		if (jump)
			*jump = (struct jump){ at, slot };
	}
	return true;
}

/* Linkers make entries of 8 and of 16 bytes, in sections of the same name. */
static size_t entry_size(const struct jumps *jumps, const struct plt_shape *shape)
{
	size_t least = shape->entry;

	for (size_t i = 1; i < jumps->found.count; i++) {
		size_t apart = jumps->found.at[i].at - jumps->found.at[i - 1].at;
		if (i == 1 || apart < least)
			least = apart;
	}
	return is_power_of_two(least) ? least : shape->entry;
}

/* Answers how many stubs were found. */
static int add_by_slot(struct stubs *s, const GElf_Shdr *plt, const struct plt_shape *shape)
{
	struct jumps jumps = { 0 };
	struct elf_content code;
	int r = elf_content_read(&code, s->in, plt);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!find_jumps(&jumps, s, &code, plt, shape))
		r = -ENOMEM;
	size_t entry = entry_size(&jumps, shape);
	for (size_t i = 0; i < jumps.found.count && r == 0; i++) {
		/* Behind endbr64 or bnd, or where linkers load a number first. */
		size_t start = jumps.found.at[i].at & ~(entry - 1);
		r = add_stub(s, plt->sh_addr + start, entry, jumps.found.at[i].slot);
	}
	int count = (int)jumps.found.count;
	elf_content_done(&code);
	vec_done(&jumps.found);
	return r < 0 ? r : count;
}

static int add_by_order(struct stubs *s, const GElf_Shdr *plt, const struct plt_shape *shape)
{
	for (size_t i = 0; i < s->ordered.count; i++) {
		uint64_t at = shape->head + i * shape->entry;
		if (at >= plt->sh_size || plt->sh_size - at < shape->entry)
			break;
		int r = add_stub(s, plt->sh_addr + at, shape->entry, &s->ordered.at[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_sections(struct stubs *s)
{
	/* A linker makes one section of each; thousands would cost their product with the stubs. */
	uint32_t done = 0;

	for (size_t i = 1; i < s->in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(s->in, i);
		if (!section || section->sh_type != SHT_PROGBITS)
			continue;
		const struct plt_shape *shape = shape_of(s->in, section);
		uint32_t bit = shape ? 1u << (shape - shapes) : 0;
		if (!shape || done & bit)
			continue;
		done |= bit;
		int r = shape->slot ? add_by_slot(s, section, shape) : 0;
		/* With -z ibtplt those of .plt only push a number for those of .plt.sec. */
		if (r == 0 && shape->head)
			r = add_by_order(s, section, shape);
		if (r < 0)
			return r;
	}
	return 0;
}

int elf_plt_add(struct elf_file *f, const struct elf_input *in, const GElf_Shdr *dynsym)
{
	struct stubs s = { .in = in, .f = f, .dynsym = dynsym };

	s.dynstr = dynsym ? elf_input_section(in, dynsym->sh_link) : NULL;
	if (s.dynstr && s.dynstr->sh_type != SHT_STRTAB)
		s.dynstr = NULL;
	int r = find_slots(&s);
	if (r == 0 && s.sorted.count)
		r = add_sections(&s);
	vec_done(&s.ordered);
	vec_done(&s.sorted);
	return r;
}
