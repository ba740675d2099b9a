/* SPDX-License-Identifier: MIT */
/* The functions, segments and build-id of one ELF file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "image/bulk.h"
#include "image/elf-content.h"
#include "image/elf-input.h"
#include "image/elf-plt.h"
#include "image/elf.h"

/* Real files stay far below it. */
#define MAX_SEGMENTS 64

#define PAGE 4096

/* Symbols are read by so many: 24 KiB on the stack. */
#define PIECE 1024

/* $a, $d, $t, $x mark code and data for ARM's and RISC-V's disassemblers. */
static bool is_mapping_symbol(GElf_Half machine, const char *name)
{
	return (machine == EM_ARM || machine == EM_AARCH64 || machine == EM_RISCV) &&
	       name[0] == '$' && name[1] && strchr("adtx", name[1]);
}

/* Whether a symbol names code: functions, and labels of hand-written assembly. */
static bool is_code(const GElf_Sym *sym, const GElf_Shdr *section)
{
	unsigned char type = GELF_ST_TYPE(sym->st_info);
	unsigned char visibility = GELF_ST_VISIBILITY(sym->st_other);

	if (!(section->sh_flags & SHF_ALLOC))
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && section->sh_flags & SHF_EXECINSTR &&
	       visibility != STV_HIDDEN && visibility != STV_INTERNAL;
}

static uint8_t binding_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return SYMBOL_LOCAL;
	case STB_WEAK:
		return SYMBOL_WEAK;
	default: /* STB_GNU_UNIQUE is global too */
		return SYMBOL_GLOBAL;
	}
}

/* A string table's place in elf_file.names. */
struct names {
	uint32_t at, len;
};

static int add_symbol(struct elf_file *f, const struct elf_input *in, const struct names *names,
		      uint64_t bias, const GElf_Sym *sym)
{
	if (!sym->st_name || sym->st_name >= names->len || sym->st_shndx == SHN_UNDEF ||
	    sym->st_shndx >= in->sections.count)
		return 0;
	const GElf_Shdr *section = &in->sections.at[sym->st_shndx];
	struct symbol symbol = {
		.name = names->at + sym->st_name,
		.binding = binding_of(sym),
	};
	if (!is_code(sym, section) ||
	    is_mapping_symbol(in->head.e_machine, f->names.at + symbol.name))
		return 0;
	f->has_locals |= symbol.binding == SYMBOL_LOCAL;
	/* The lowest bit tells Thumb from ARM code. */
	uint64_t start = in->head.e_machine == EM_ARM ? sym->st_value & ~(uint64_t)1
						      : sym->st_value;
	uint64_t size = sym->st_size, behind = start - section->sh_addr;
	if (!size) {
		size = behind < section->sh_size ? section->sh_size - behind : 0;
		symbol.kind = ELF_KIND_OPEN;
		if (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE)
			symbol.kind |= ELF_KIND_LABEL;
	}
	return symtab_add(&f->symtab, start + bias, size, symbol) ? 0 : -ENOMEM;
}

/* Appends a string table, with a NUL behind it. -ENOEXEC: it is none, or cannot be read. */
static int add_names(struct elf_file *f, const struct elf_input *in, size_t index,
		     struct names *names)
{
	const GElf_Shdr *section = elf_input_section(in, index);

	if (!section || section->sh_type != SHT_STRTAB ||
	    section->sh_size >= UINT32_MAX - f->names.count)
		return -ENOEXEC;
	*names = (struct names){ (uint32_t)f->names.count, (uint32_t)section->sh_size };
	if (!bulk_reserve(&f->names, names->len + (size_t)1))
		return -ENOMEM;
	if (!elf_input_read(in, f->names.at + names->at, names->len, section->sh_offset))
		return -ENOEXEC;
	f->names.count += names->len;
	f->names.at[f->names.count++] = '\0';
	return 0;
}

/* `bias` is what the file's addresses are below those of the module. */
static int add_table(struct elf_file *f, const struct elf_input *in, const GElf_Shdr *table,
		     uint64_t bias)
{
	size_t count = elf_input_symbols(in, table);
	GElf_Sym piece[PIECE];
	struct names names;
	int r = add_names(f, in, table->sh_link, &names);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!symtab_reserve(&f->symtab, count))
		return -ENOMEM;
	for (size_t first = 0; first < count && r == 0; first += PIECE) {
		size_t n = count - first < PIECE ? count - first : PIECE;
		if (!elf_input_read_symbols(in, table, first, n, piece))
			break;
		for (size_t i = 0; i < n && r == 0; i++)
			r = add_symbol(f, in, &names, bias, &piece[i]);
	}
	return r;
}

static const GElf_Shdr *find_table(const struct elf_input *in, uint32_t type)
{
	for (size_t i = 1; i < in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(in, i);
		if (section && section->sh_type == type)
			return section;
	}
	return NULL;
}

/* .dynsym is part of .symtab, where that has not been thinned out. */
static int read_tables(struct elf_file *f, const struct elf_input *in)
{
	const GElf_Shdr *all = find_table(in, SHT_SYMTAB), *dynamic = find_table(in, SHT_DYNSYM);
	int r = 0;

	if (all) {
		r = add_table(f, in, all, 0);
		f->has_symtab = true;
	}
	if (r == 0 && dynamic &&
	    (!all || elf_input_symbols(in, all) < elf_input_symbols(in, dynamic)))
		r = add_table(f, in, dynamic, 0);
	return r == 0 ? elf_plt_add(f, in, dynamic) : r;
}

/* Where the first segment that is loaded lies. */
static bool first_address(const struct elf_input *in, uint64_t *address)
{
	size_t count;

	if (elf_getphdrnum(in->elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		GElf_Phdr head;
		if (gelf_getphdr(in->elf, (int)i, &head) && head.p_type == PT_LOAD) {
			*address = head.p_vaddr;
			return true;
		}
	}
	return false;
}

/* A file in memory with these bytes; its fd. */
static int memory_file(const void *bytes, size_t len)
{
	int fd = memfd_create("tally-image", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	int r = sys_write_all(fd, bytes, len);
	if (r == 0)
		return fd;
	sys()->close(fd);
	return r;
}

/* The symbols of another file of the same program. */
static int read_other(struct elf_file *f, const struct elf_input *in)
{
	const GElf_Shdr *all = find_table(in, SHT_SYMTAB);
	uint64_t first, bias = 0;

	if (!all)
		return 0;
	/* Prelinked programs moved after their debug files were made. */
	if (f->segments.count && first_address(in, &first))
		bias = f->segments.at[0].address - first;
	int r = add_table(f, in, all, bias);
	if (r == 0)
		f->has_symtab = true;
	return r;
}

/*
 * Fedora's programs keep the names of their own functions in an xz-packed ELF file within
 * (gdb's manual, "MiniDebugInfo").
 */
static int read_mini(struct elf_file *f, const struct elf_input *in)
{
	const GElf_Shdr *section = elf_content_find(in, ".gnu_debugdata");
	struct elf_content packed, unpacked;
	struct elf_input mini;

	if (f->has_symtab || !section)
		return 0;
	int r = elf_content_read(&packed, in, section);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = elf_content_unpack_xz(&unpacked, &packed);
	elf_content_done(&packed);
	int fd = r == 0 ? memory_file(unpacked.at, unpacked.size) : r;
	if (r == 0)
		elf_content_done(&unpacked);
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0;
	r = elf_input_open(&mini, fd);
	if (r == 0)
		r = read_other(f, &mini);
	elf_input_done(&mini);
	sys()->close(fd);
	return r == -ENOMEM ? r : 0;
}

int elf_file_read_segments(struct elf_file *f, const struct elf_input *in)
{
	size_t count;

	if (elf_getphdrnum(in->elf, &count) < 0)
		return -ENOEXEC;
	f->symtab.base = UINT64_MAX;
	for (size_t i = 0; i < count && f->segments.count < MAX_SEGMENTS; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(in->elf, (int)i, &head) || head.p_type != PT_LOAD ||
		    !head.p_filesz)
			continue;
		struct elf_segment *s = vec_push(&f->segments);
		if (!s)
			return -ENOMEM;
		*s = (struct elf_segment){
			.offset = head.p_offset,
			.size = head.p_filesz,
			.address = head.p_vaddr,
			.executable = head.p_flags & PF_X,
		};
		if (s->address < f->symtab.base)
			f->symtab.base = s->address;
	}
	if (!f->segments.count)
		f->symtab.base = 0;
	return 0;
}

int elf_file_read(struct elf_file *f, int fd)
{
	struct elf_input in;
	int r = elf_input_open(&in, fd);

	if (r == 0) {
		f->build_id = elf_input_build_id(&in);
		r = elf_file_read_segments(f, &in);
	}
	if (r == 0)
		r = read_tables(f, &in);
	if (r == 0)
		r = read_mini(f, &in);
	elf_input_done(&in);
	return r;
}

int elf_file_read_memory(struct elf_file *f, const void *image, size_t size)
{
	int fd = memory_file(image, size);

	if (fd < 0)
		return fd;
	int r = elf_file_read(f, fd);
	sys()->close(fd);
	return r;
}

int elf_file_read_debug(struct elf_file *f, int fd)
{
	struct elf_input in;
	int r = elf_input_open(&in, fd);

	if (r == 0)
		r = read_other(f, &in);
	elf_input_done(&in);
	return r;
}

/*
 * A symbol without a size reaches to the next one, at most to the end of its section. A label within
 * a function that tells its size is a place in that, and takes nothing from it.
 */
static void close_ends(struct symtab *t)
{
	uint32_t end = 0; /* of what told its size so far */

	for (size_t i = 0; i < t->symbols.count; i++) {
		struct symbol *s = &t->symbols.at[i];
		bool last = i + 1 == t->symbols.count;
		if (!(s->kind & ELF_KIND_OPEN))
			end = s->start + s->size > end ? s->start + s->size : end;
		else if (s->kind & ELF_KIND_LABEL && s->start < end)
			s->size = 0;
		else if (!last && s[1].start - s->start < s->size)
			s->size = s[1].start - s->start;
	}
}

static const char *name_of(const void *owner, const struct symbol *symbol)
{
	const struct elf_file *f = owner;

	return (symbol->kind & ELF_KIND_PLT ? f->plt_names.at : f->names.at) + symbol->name;
}

int elf_file_seal(struct elf_file *f)
{
	if (!symtab_sort(&f->symtab))
		return -ENOMEM;
	close_ends(&f->symtab);
	return symtab_seal(&f->symtab, name_of, f) ? 0 : -ENOMEM;
}

/* Whether the pages of a segment, or with slack 1 its bytes, have this offset. */
static bool holds(const struct elf_segment *s, uint64_t offset, uint64_t slack)
{
	uint64_t start = s->offset & ~(slack - 1);
	uint64_t length = s->offset - start + s->size;

	length = length > UINT64_MAX - slack ? UINT64_MAX : (length + slack - 1) & ~(slack - 1);
	return offset >= start && offset - start < length;
}

/*
 * Code first, since segments may share a page of the file (lld) and be mapped from it twice; exact
 * first, then as far as the pages reach that the loader maps.
 */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *address)
{
	static const struct {
		bool executable;
		uint64_t slack;
	} tries[] = { { true, 1 }, { false, 1 }, { true, PAGE }, { false, PAGE } };

	for (size_t t = 0; t < ARRAY_SIZE(tries); t++) {
		for (size_t i = 0; i < f->segments.count; i++) {
			const struct elf_segment *s = &f->segments.at[i];
			if (s->executable < tries[t].executable ||
			    !holds(s, offset, tries[t].slack))
				continue;
			*address = offset - s->offset + s->address;
			return true;
		}
	}
	return false;
}

bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *first, uint64_t *last)
{
	*first = 0;
	*last = UINT64_MAX;
	for (size_t i = 0; i < f->segments.count; i++) {
		const struct elf_segment *s = &f->segments.at[i];
		if (!s->executable || !s->size)
			continue;
		uint64_t end = s->size - 1 > UINT64_MAX - s->offset ? UINT64_MAX
								    : s->offset + s->size - 1;
		if (offset > end) {
			*first = end + 1 > *first ? end + 1 : *first;
		} else if (offset < s->offset) {
			*last = s->offset - 1 < *last ? s->offset - 1 : *last;
		} else {
			*first = s->offset > *first ? s->offset : *first;
			*last = end < *last ? end : *last;
			return true;
		}
	}
	return false;
}

const char *elf_file_name(const struct elf_file *f, uint32_t index)
{
	return name_of(f, &f->symtab.symbols.at[index]);
}

bool elf_file_is_plt(const struct elf_file *f, uint32_t index)
{
	return f->symtab.symbols.at[index].kind & ELF_KIND_PLT;
}

struct build_id elf_build_id(int fd)
{
	struct build_id id = { 0 };
	struct elf_input in;

	if (elf_input_open(&in, fd) == 0)
		id = elf_input_build_id(&in);
	elf_input_done(&in);
	return id;
}

void elf_file_done(struct elf_file *f)
{
	symtab_done(&f->symtab);
	vec_done(&f->names);
	vec_done(&f->plt_names);
	vec_done(&f->segments);
	*f = (struct elf_file){ 0 };
}
